/* SPDX-License-Identifier: MIT
 *
 * TLS for the connections of the load, with lib-sxe-tls.
 */
#include "handshake.h"

#include <stdint.h>

#include "sxe-time.h"
#include "sxe-tls.h"

struct sxe_tls *
load_handshake_open(const struct load_plan *plan, uint32_t sessions)
{
    uint64_t timeout_ms = plan->timeout_ns / SXE_NS_PER_MS;
    struct sxe_tls_pair pair = {.certificate = plan->tls.certificate, .key = plan->tls.key};
    struct sxe_tls_config config = {
        .pairs = &pair,
        .pair_count = pair.certificate != NULL,
        .protocols = "http/1.1",
        .verify = plan->tls.is_insecure ? SXE_TLS_OFF : SXE_TLS_REQUIRED,
        .authorities = plan->tls.authorities,
        .handshake_timeout_ms = timeout_ms < UINT32_MAX ? (uint32_t)timeout_ms : UINT32_MAX,
        .sessions_max = sessions > 0 ? sessions : UINT32_MAX,
    };

    return sxe_tls_new_client(&config);
}

const char *
load_handshake_check(const struct load_plan *plan)
{
    struct sxe_tls *tls = load_handshake_open(plan, 0);

    if (tls == NULL)
        return sxe_tls_problem();
    sxe_tls_delete(tls);
    return NULL;
}

void
load_handshake_close(struct sxe_tls *tls)
{
    sxe_tls_delete(tls);
}

int
load_handshake_begin(struct sxe_tls *tls, SXE *sxe, const char *name, void (*on_ready)(SXE *sxe))
{
    int result = sxe_tls_use(tls, sxe, name);

    if (result == 0)
        sxe_tls_on_ready(sxe, on_ready);
    return result;
}

bool
load_handshake_has_offered(const SXE *sxe)
{
    return sxe_tls_has_offered(sxe);
}

bool
load_handshake_is_resumed(const SXE *sxe)
{
    return sxe_tls_is_resumed(sxe);
}

bool
load_handshake_is_done(const SXE *sxe)
{
    return sxe_tls_is_secure(sxe);
}

const char *
load_handshake_failure(const SXE *sxe)
{
    return sxe_tls_failure(sxe);
}
