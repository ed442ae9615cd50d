/* SPDX-License-Identifier: MIT
 * shared-pool FILE WORDS...: each word becomes a job in the file, for lua/shared-pool.lua to do.
 * Both may be killed at any moment and started again: no job is lost. */
#include <stdio.h>
#include <sxe-pool-shared.h>
#include <unistd.h>
enum { FREE, READY, BUSY, STATES };
struct job {
    uint64_t tries;
    char word[24];
};
int
main(int argc, char **argv)
{
    SXE_POOL_SPEC spec = {.name = "jobs", .number = 8, .states = STATES, .file = argv[1]};
    char why[SXE_POOL_WHY_SIZE] = "usage: shared-pool FILE WORDS...";
    SXE_POOL_LEASE lease;
    spec.element_size = sizeof(struct job);
    spec.state_names = "FREE READY BUSY";
    spec.fields = "u64 tries, char[24] word";
    struct job *jobs = argc > 1 ? sxe_pool_open(&spec, why) : NULL;
    bool is_ready = jobs != NULL && sxe_pool_set_wait(jobs, 1.0) == 0;
    for (int i = 2; is_ready && i < argc; dprintf(1, "%s\n", argv[i++])) {
        struct job job = {.tries = 0};
        snprintf(job.word, sizeof(job.word), "%s", argv[i]);
        /* Write a FREE element and make it READY under one lock; while none is FREE, try again. */
        while (sxe_pool_lease_oldest(jobs, FREE, READY, &job, &lease) >= spec.number)
            usleep(1000);
    }
    sxe_pool_delete(jobs);
    return jobs == NULL && fprintf(stderr, "%s\n", why) > 0;
}
