/* SPDX-License-Identifier: MIT
 *
 * usage: threads [CALLS]    run threads on pools of each kind; test-pool-threads.c builds this with
 *                           ThreadSanitizer. Exit status 1: an error.
 */
#include "pool-threads.h"

#include <stdlib.h>

int
main(int argc, char **argv)
{
    const unsigned calls = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 5000;
    bool wrong = false;

    for (unsigned i = 0; i < 4; i++) {
        const char *what = threads_run(&(struct threads_plan){.options = threads_options[i / 2],
                                                              .shards = threads_shards[i % 2],
                                                              .threads = 4,
                                                              .calls = calls});
        if (what != NULL)
            printf("WRONG: %s\n", what);
        wrong = wrong || what != NULL;
    }
    return wrong;
}
