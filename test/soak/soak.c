/* SPDX-License-Identifier: MIT
 *
 * usage: soak [SECONDS [SEED]]    kill processes that use a shared pool, at random, for SECONDS
 *                                 (3600); print a line each minute. Exit status 1: an error.
 */
#include "pool-kills.h"

#define SECONDS_A_LINE 60u

int
main(int argc, char **argv)
{
    const unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 3600;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
    const uint64_t begin = sxe_time_ns();
    struct kills_result result;
    uint64_t kills = 0;

    do {
        const uint64_t left = seconds - (sxe_time_ns() - begin) / SXE_NS_PER_SECOND;
        const struct kills_plan plan = {.seed = seed,
                                        .kills = UINT32_MAX,
                                        .seconds =
                                            left < SECONDS_A_LINE ? (unsigned)left : SECONDS_A_LINE,
                                        .processes = 8};

        kills_run(&plan, &result);
        kills_print(&result, seed);
        fflush(stdout);
        kills += result.kills;
        seed++;
    } while (result.wrong[0] == '\0' && sxe_time_ns() - begin < seconds * SXE_NS_PER_SECOND);
    if (result.wrong[0] != '\0')
        printf("WRONG: %s; the pool is left in /dev/shm/sxe-kills-%d\n", result.wrong,
               (int)getpid());
    printf("%llu kills\n", (unsigned long long)kills);
    return result.wrong[0] != '\0';
}
