/* SPDX-License-Identifier: MIT
 *
 * What: opens the standard descriptors that are closed, so that no file and no socket gets a number
 * to which the log or a printf(3) writes.
 */
#include <fcntl.h>
#include <unistd.h>

#include "sxe-log.h"

/* Open each closed descriptor for the wrong direction: reading from standard input, and writing to
 * the others, then still fail with EBADF, as if they were closed. */
void
sxe_hold_standard_descriptors(void)
{
    static const int flags[] = {O_WRONLY, O_RDONLY, O_RDONLY};

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (SXE_LIKELY(fcntl(fd, F_GETFD) >= 0))
            continue;
        const int lowest = open("/dev/null", flags[fd]);
        if (lowest != fd) { /* open failed, or another thread has taken the number meanwhile */
            close(lowest);
            return;
        }
    }
}
