/* SPDX-License-Identifier: MIT
 *
 * Writing to standard output when its reader may stop reading. The signals that ask to end are
 * blocked, so a write that waits for the reader would delay them, and keep the pool in use.
 * Therefore this file waits for the reader and for these signals at once.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "pool-tool.h"
#include "sxe-libc-internal.h"

static int signals = -1; /* a signalfd(2) of the signals that ask to end */
static bool is_given_up;

/* Write as many bytes as a write that does not wait may have: a pipe that poll(2) calls writable
 * takes PIPE_BUF bytes at once. (If poll fails, the write may wait.) */
static ssize_t
write_pipe_bytes(const char *bytes, size_t size)
{
    struct pollfd fds[] = {
        {.fd = STDOUT_FILENO, .events = POLLOUT},
        {.fd = signals, .events = POLLIN},
    };

    poll(fds, 2, pool_ended_by() == 0 ? -1 : 0);
    is_given_up = fds[0].revents == 0 && pool_is_over();
    errno = EINTR;
    return is_given_up ? -1 : write(STDOUT_FILENO, bytes, size < PIPE_BUF ? size : PIPE_BUF);
}

/* The write function for fopencookie(3). If it returns less than size, the stream has an error. */
static ssize_t
write_stream_bytes(void *cookie, const char *bytes, size_t size)
{
    size_t written = 0;
    ssize_t result = 1;

    (void)cookie;
    while (written < size && result > 0 && !is_given_up) {
        result = write_pipe_bytes(bytes + written, size - written);
        written += result > 0 ? (size_t)result : 0;
    }
    return (ssize_t)written;
}

void
pool_output_begin(void)
{
    const sigset_t ending = pool_ending_signals();
    FILE *output = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_stream_bytes});

    signals = signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK);
    if (output != NULL)
        (void)SXE__LIBC_SET_STREAM(stdout, output);
}
