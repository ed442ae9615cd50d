/* SPDX-License-Identifier: MIT
 *
 * What: the context of each thread, which all other files use, and questions about sockets that
 * only their pool answers. This file calls none of the others.
 */
#include "sxe-private.h"

struct sxe_log_control sxe__log = SXE_LOG_CONTROL_INIT("sxe");

_Thread_local struct sxe__context sxe__context
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

const char *
sxe_state_to_string(unsigned state)
{
    static const char *const names[SXE_STATES] = {
        "FREE",     "NEW",     "LISTENING", "CONNECTING", "IDLE",   "READING",
        "HANDLING", "WRITING", "STARVED",   "CLOSING",    "CLOSED",
    };

    return state < SXE_STATES ? names[state] : "?";
}

unsigned
sxe_number_in_state(enum sxe_state state)
{
    return CONTEXT->sockets == NULL ? 0 : sxe_pool_get_count(CONTEXT->sockets, state);
}

uint64_t
sxe_handle(const SXE *this)
{
    return sxe_pool_get_handle(CONTEXT->sockets, this->id);
}

SXE *
sxe_from_handle(uint64_t handle)
{
    unsigned id = CONTEXT->sockets == NULL ? SXE_POOL_NO_INDEX
                                           : sxe_pool_handle_to_index(CONTEXT->sockets, handle);
    SXE *s = id == SXE_POOL_NO_INDEX ? NULL : sxe__socket(id);

    return s == NULL || sxe__state(s) == SXE_STATE_FREE ? NULL : s;
}
