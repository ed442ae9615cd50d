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
