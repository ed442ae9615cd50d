/* SPDX-License-Identifier: MIT
 *
 * How a process ended, as text and as an exit status; signals that do nothing.
 */
#include "sxe-process-internal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "sxe-util.h"

const char *
sxe__wait_status_text(int status, char text[SXE__WAIT_STATUS_MAX])
{
    if (WIFSIGNALED(status))
        snprintf(text, SXE__WAIT_STATUS_MAX, "ended with signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, SXE__WAIT_STATUS_MAX, "ended with exit status %d", WEXITSTATUS(status));
    return text;
}

int
sxe__wait_status_exit(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool
sxe__signal_is_ignored(int signal_number)
{
    struct sigaction action;

    sigaction(signal_number, NULL, &action);
    return action.sa_handler == SIG_IGN;
}

static void
ignore_signal(int signal_number)
{
    SXE_UNUSED_PARAMETER(signal_number);
}

void
sxe__signal_disarm(int signal_number)
{
    struct sigaction nothing = {.sa_handler = ignore_signal, .sa_flags = SA_RESTART};

    if (!sxe__signal_is_ignored(signal_number))
        sigaction(signal_number, &nothing, NULL);
}
