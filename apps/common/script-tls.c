/* SPDX-License-Identifier: MIT
 *
 * The tables of functions through which lib-sxe-lua uses TLS. The functions are those of
 * lib-sxe-tls.
 */
#include "script-tls.h"

#include <stdio.h>

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

static bool
describe_connection(const SXE *socket, struct sxe_lua_tls_facts *facts)
{
    const char *protocol;
    int length = (int)sxe_tls_protocol(socket, &protocol);

    snprintf(facts->version, sizeof(facts->version), "%s", sxe_tls_version(socket));
    snprintf(facts->cipher, sizeof(facts->cipher), "%s", sxe_tls_cipher(socket));
    snprintf(facts->name, sizeof(facts->name), "%s", sxe_tls_name(socket));
    snprintf(facts->protocol, sizeof(facts->protocol), "%.*s", length, length > 0 ? protocol : "");
    facts->is_resumed = sxe_tls_is_resumed(socket);
    facts->has_client = sxe_tls_peer_validity(socket, &facts->not_before, &facts->not_after);
    sxe_tls_peer_subject(socket, facts->subject, sizeof(facts->subject));
    sxe_tls_peer_issuer(socket, facts->issuer, sizeof(facts->issuer));
    sxe_tls_peer_names(socket, facts->names, sizeof(facts->names));
    sxe_tls_peer_fingerprint(socket, facts->fingerprint);
    return sxe_tls_is_secure(socket);
}

const struct sxe_lua_tls *
script_tls(void)
{
    static const struct sxe_lua_tls table = {.new_client = new_client,
                                             .delete_client = sxe_tls_delete,
                                             .use = sxe_tls_use,
                                             .start = sxe_tls_start,
                                             .on_ready = sxe_tls_on_ready,
                                             .failure = sxe_tls_failure,
                                             .describe = describe_connection};

    return &table;
}
