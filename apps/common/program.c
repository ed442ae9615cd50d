/* SPDX-License-Identifier: MIT
 *
 * The first steps of each program: standard descriptors, signal mask, SIGXFSZ.
 */
#include "program.h"

#include "sxe-log.h"

void
program_begin(const sigset_t *held)
{
    sigset_t none;

    sxe_hold_standard_descriptors();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, held != NULL ? held : &none, NULL);
    signal(SIGXFSZ, SIG_IGN);
}

bool
program_ignores(int signal_number)
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
program_disarm(int signal_number)
{
    struct sigaction nothing = {.sa_handler = ignore_signal, .sa_flags = SA_RESTART};

    if (!program_ignores(signal_number))
        sigaction(signal_number, &nothing, NULL);
}
