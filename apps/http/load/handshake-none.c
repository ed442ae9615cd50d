/* SPDX-License-Identifier: MIT
 *
 * Replaces handshake.c if sxe-http was built without OpenSSL.
 */
#include "handshake.h"

#include <errno.h>
#include <stddef.h>

const char *
load_handshake_check(const struct load_plan *plan)
{
    SXE_UNUSED_PARAMETER(plan);
    return "this sxe-http was built without OpenSSL 3; install libssl-dev and build it again";
}

struct sxe_tls *
load_handshake_open(const struct load_plan *plan, uint32_t sessions)
{
    SXE_UNUSED_PARAMETER(sessions);
    SXE_UNUSED_PARAMETER(plan);
    return NULL;
}

void
load_handshake_close(struct sxe_tls *tls)
{
    SXE_UNUSED_PARAMETER(tls);
}

int
load_handshake_begin(struct sxe_tls *tls, SXE *sxe, const char *name, void (*on_ready)(SXE *sxe))
{
    SXE_UNUSED_PARAMETER(tls);
    SXE_UNUSED_PARAMETER(sxe);
    SXE_UNUSED_PARAMETER(name);
    SXE_UNUSED_PARAMETER(on_ready);
    return -ENOTSUP;
}

bool
load_handshake_has_offered(const SXE *sxe)
{
    SXE_UNUSED_PARAMETER(sxe);
    return false;
}

bool
load_handshake_is_resumed(const SXE *sxe)
{
    SXE_UNUSED_PARAMETER(sxe);
    return false;
}

bool
load_handshake_is_done(const SXE *sxe)
{
    SXE_UNUSED_PARAMETER(sxe);
    return true;
}

const char *
load_handshake_failure(const SXE *sxe)
{
    SXE_UNUSED_PARAMETER(sxe);
    return "";
}
