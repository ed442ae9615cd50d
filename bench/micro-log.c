/* SPDX-License-Identifier: MIT
 *
 * Measures how many nanoseconds of CPU time a line of the log takes, in the best of five rounds.
 * With a function that gets the line and does nothing, this is the library's own time; with
 * /dev/null it includes the system calls.
 */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>

#include "sxe-log.h"

enum { ROUNDS = 5, LINES = 200000, HIDDEN_LINES = 50000000 };

static double
cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void
take(void *user, int level, const char *line, size_t length)
{
    (void)level;
    (void)line;
    *(size_t *)user += length;
}

static void
log_plain(unsigned i)
{
    (void)i;
    SXE_INFO("all connections are open");
}

static void
log_values(unsigned i)
{
    SXE_INFO_ID(i, "connected to %s:%u after %d attempts", "127.0.0.1", 8000u, 3);
}

static void
log_escaped(unsigned i)
{
    SXE_INFO_ID(i, "%s",
                "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nUser-Agent: x\r\n\r\n");
}

static void
log_hidden(unsigned i)
{
    SXE_DEBUG_ID(i, "connected to %s:%u after %d attempts", "127.0.0.1", 8000u, 3);
}

static void
measure(const char *what, void (*log)(unsigned), unsigned lines)
{
    double best = 1e18;

    for (int round = 0; round < ROUNDS; round++) {
        double start = cpu_ns();

        for (unsigned i = 0; i < lines; i++)
            log(i);
        double ns = (cpu_ns() - start) / lines;
        best = ns < best ? ns : best;
    }
    printf("%-40s %8.1f ns\n", what, best);
}

int
main(void)
{
    size_t bytes = 0;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (null < 0) {
        perror("/dev/null");
        return 1;
    }
    sxe_log_set_level(SXE_LOG_INFORMATION);
    sxe_log_to_function(take, &bytes);
    measure("text, constant, to a function", log_plain, LINES);
    measure("text, three values, to a function", log_values, LINES);
    measure("text, 66 bytes to escape, to a function", log_escaped, LINES);
    sxe_log_set_format(SXE_LOG_JSON);
    measure("json, three values, to a function", log_values, LINES);
    sxe_log_set_format(SXE_LOG_TEXT);
    sxe_log_to_fd(null);
    measure("text, three values, to /dev/null", log_values, LINES);
    measure("hidden line (with the loop's call)", log_hidden, HIDDEN_LINES);
    return bytes > 0 ? 0 : 1;
}
