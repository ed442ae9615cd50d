/* SPDX-License-Identifier: MIT */
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
