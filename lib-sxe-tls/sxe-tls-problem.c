/* SPDX-License-Identifier: MIT
 *
 * Keeps the sentence that says why the last call of this thread failed.
 */
#include "sxe-tls-private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char problem[SXE_TLS_PROBLEM_SIZE];

const char *
sxe_tls_problem(void)
{
    return problem;
}

/* The reason in OpenSSL's queue; NULL: there is none. A call that failed because the system refused
 * a call has the system's error first, and then a general one. */
static const char *
reason_of_queue(void)
{
    unsigned long first = ERR_peek_error();

    if (ERR_SYSTEM_ERROR(first))
        return strerror(ERR_GET_REASON(first));
    return first == 0 ? NULL : ERR_reason_error_string(ERR_peek_last_error());
}

void *
sxe__tls_refuse(const char *format, ...)
{
    const char *reason = reason_of_queue();
    char what[SXE_TLS_PROBLEM_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    ERR_clear_error();
    snprintf(problem, sizeof(problem), "%.180s%s%.60s", what, reason == NULL ? "" : ": ",
             reason == NULL ? "" : reason);
    return NULL;
}
