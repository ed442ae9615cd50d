/* SPDX-License-Identifier: MIT
 * shared-pool FILE WORDS...: each word becomes a job in the file, for lua/shared-pool.lua to do.
 * Both may be killed at any moment and started again: no job is lost. */
#include <stdio.h>
#include <sxe-pool-shared.h>
#include <unistd.h>
enum { FREE, WRITING, READY, BUSY, STATES };
struct job {
    uint64_t tries;
    char word[24];
};
static bool
put(struct job *jobs, const char *word)
{
    struct job job = {.tries = 0};
    unsigned result, id = sxe_pool_set_oldest_element_state(jobs, FREE, WRITING);
    if (id >= sxe_pool_get_number(jobs))
        return false; /* all are taken, or the lock is */
    snprintf(job.word, sizeof(job.word), "%s", word);
    sxe_pool_write_element(jobs, id, &job);
    while ((result = sxe_pool_set_indexed_element_state(jobs, id, WRITING, READY)) ==
           SXE_POOL_LOCK_NOT_TAKEN)
        continue;
    return result == SXE_POOL_LOCK_TAKEN; /* or a worker took it back, as it took a second */
}
int
main(int argc, char **argv)
{
    SXE_POOL_SPEC spec = {.name = "jobs", .number = 8, .states = STATES, .file = argv[1]};
    char why[SXE_POOL_WHY_SIZE] = "usage: shared-pool FILE WORDS...";
    spec.element_size = sizeof(struct job);
    spec.state_names = "FREE WRITING READY BUSY";
    spec.fields = "u64 tries, char[24] word";
    struct job *jobs = argc > 1 ? sxe_pool_open(&spec, why) : NULL;
    for (int i = 2; jobs != NULL && i < argc; dprintf(1, "%s\n", argv[i++]))
        while (!put(jobs, argv[i]))
            usleep(1000);
    sxe_pool_delete(jobs);
    return jobs == NULL && fprintf(stderr, "%s\n", why) > 0;
}
