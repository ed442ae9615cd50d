/* SPDX-License-Identifier: MIT
 *
 * Keeps the sentence that says why the last call of this thread failed.
 */
#include "sxe-tls-private.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char problem[SXE_TLS_PROBLEM_SIZE];

const char *
sxe_tls_problem(void)
{
    return problem;
}

void *
sxe__tls_refuse(const char *format, ...)
{
    unsigned long error = ERR_peek_last_error();
    const char *reason = error == 0 ? NULL : ERR_reason_error_string(error);
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
