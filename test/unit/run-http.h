/* SPDX-License-Identifier: MIT
 *
 * What: runs sxe-http in this process and keeps what it printed. RUN_HTTP("-c", "1") fills `ran`.
 * Limits: 256 KiB of each output. Faults of fake-os are off when it returns.
 */
#ifndef RUN_HTTP_H
#define RUN_HTTP_H

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "captured.h"
#include "fake-os.h"
#include "has.h"

int sxe_http_main(int argc, char **argv);

static struct {
    int status;
    char output[256 * 1024];
    char errors[256 * 1024];
    unsigned calls[FAKE_CALLS]; /* made meanwhile */
} ran;

/* The same, with standard output going elsewhere. */
static inline void
run_http_into(FILE *output, const char **argv)
{
    struct captured out = capture(STDOUT_FILENO, output);
    struct captured errors = capture(STDERR_FILENO, tmpfile());
    unsigned before[FAKE_CALLS];
    int argc = 0;

    while (argv[argc] != NULL)
        argc++;
    for (unsigned call = 0; call < FAKE_CALLS; call++)
        before[call] = fake_os_calls((enum fake_call)call);
    ran.status = sxe_http_main(argc, (char **)(uintptr_t)argv);
    for (unsigned call = 0; call < FAKE_CALLS; call++)
        ran.calls[call] = fake_os_calls((enum fake_call)call) - before[call];
    fflush(stdout);
    fake_os_reset();
    captured_text(&errors, ran.errors, sizeof(ran.errors));
    end_capture(&out);
}

static inline void
run_http(const char **argv)
{
    FILE *output = tmpfile();

    run_http_into(output, argv);
    read_back(output, ran.output, sizeof(ran.output));
}
#define RUN_HTTP(...) run_http((const char *[]){"sxe-http", __VA_ARGS__, NULL})

#endif
