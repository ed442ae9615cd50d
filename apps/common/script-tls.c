/* SPDX-License-Identifier: MIT
 *
 * The tables of functions through which lib-sxe-lua uses TLS, from lib-sxe-tls.
 */
#include "script-tls.h"

#include "sxe-tls.h"

static struct sxe_tls *
new_client(const struct sxe_lua_tls_options *options, const char **problem)
{
    struct sxe_tls_pair pair = {.certificate = options->certificate, .key = options->key};
    struct sxe_tls_config config = {.pairs = &pair,
                                    .pair_count = options->certificate != NULL,
                                    .protocols = options->protocols,
                                    .verify = options->is_insecure ? SXE_TLS_OFF : SXE_TLS_DEFAULT,
                                    .authorities = options->authorities};
    struct sxe_tls *tls = sxe_tls_new_client(&config);

    if (tls == NULL)
        *problem = sxe_tls_problem();
    return tls;
}

const struct sxe_lua_tls *
script_tls(void)
{
    static const struct sxe_lua_tls table = {.new_client = new_client,
                                             .delete_client = sxe_tls_delete,
                                             .use = sxe_tls_use,
                                             .on_ready = sxe_tls_on_ready,
                                             .failure = sxe_tls_failure};

    return &table;
}
