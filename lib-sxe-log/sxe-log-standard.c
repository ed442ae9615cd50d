/* SPDX-License-Identifier: MIT
 *
 * What: the three standard descriptors are always open, so that no file and no socket gets the
 * number to which the log, or another's printf, writes.
 */
#include <fcntl.h>
#include <unistd.h>

#include "sxe-log.h"

/* Opened the wrong way round: to read from it or write to it goes on failing with EBADF, as it did
 * while it was closed. */
void
sxe_hold_standard_descriptors(void)
{
    static const int flags[] = {O_WRONLY, O_RDONLY, O_RDONLY};

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (SXE_LIKELY(fcntl(fd, F_GETFD) >= 0))
            continue;
        const int lowest = open("/dev/null", flags[fd]);
        if (lowest != fd) { /* none, or of a descriptor that another thread has opened meanwhile */
            close(lowest);
            return;
        }
    }
}
