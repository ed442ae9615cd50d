/* SPDX-License-Identifier: MIT
 *
 * What: message_of(call, argument) returns the line that a failed assertion logged during
 * call(argument), or "" if none failed. Locks that the call held when it stopped stay held.
 */
#ifndef STOPS_H
#define STOPS_H

#include <setjmp.h>

#include "capture-log.h"
#include "has.h"

static jmp_buf before_stop;

static void
jump_out(void)
{
    longjmp(before_stop, 1);
}

static inline const char *
message_of(void (*call)(void *), void *argument)
{
    capture_log();
    sxe_log_set_fatal_hook(jump_out);
    if (setjmp(before_stop) == 0)
        call(argument);
    sxe_log_set_fatal_hook(NULL);
    return log_line(0);
}

#endif
