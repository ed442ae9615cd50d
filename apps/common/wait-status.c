/* SPDX-License-Identifier: MIT
 *
 * How a process ended, as text and as an exit status.
 */
#include "wait-status.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

const char *
wait_status_text(int status, char text[WAIT_STATUS_MAX])
{
    if (WIFSIGNALED(status))
        snprintf(text, WAIT_STATUS_MAX, "ended with signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, WAIT_STATUS_MAX, "ended with exit status %d", WEXITSTATUS(status));
    return text;
}

int
wait_status_exit(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
