/* SPDX-License-Identifier: MIT
 *
 * What: RUN_HTTP("-c", "1") runs sxe-http in this process, by means of run-program.h.
 */
#ifndef RUN_HTTP_H
#define RUN_HTTP_H

#include "run-program.h"

int sxe_http_main(int argc, char **argv);

/* Like RUN_HTTP, with standard output to another file. */
static inline void
run_http_into(FILE *output, const char **argv)
{
    run_here_into(output, sxe_http_main, argv);
}

static inline void
run_http(const char **argv)
{
    run_here(sxe_http_main, argv);
}
#define RUN_HTTP(...) run_http((const char *[]){"sxe-http", __VA_ARGS__, NULL})

#endif
