/* SPDX-License-Identifier: MIT
 *
 * A program outside the source tree for gdb to look into: it stops with a private and a shared
 * pool, and a buffer.
 */
#include <sxe-pool-shared.h>
#include <sxe.h>

#include <stdlib.h>

int
main(void)
{
    SXE_POOL_SPEC spec = {
        .name = "jobs", .number = 100, .states = 3, .options = SXE_POOL_OPTION_LOCKED};
    struct sxe_buffer text = SXE_BUFFER_EMPTY;
    char memory[64];
    int *jobs, *words = sxe_pool_new("words", 10, sizeof(*words), 2, 0);

    spec.element_size = sizeof(*jobs);
    jobs = sxe_pool_open(&spec, NULL);
    sxe_buffer_wrap(&text, memory, 0, sizeof(memory));
    if (words == NULL || jobs == NULL || sxe_buffer_add(&text, "a \"text\"\n", 9) < 0)
        return 1;
    for (int i = 0; i < 4; i++) {
        words[sxe_pool_take(words, 0, 1)] = i;
        jobs[sxe_pool_take(jobs, 0, 2)] = i;
    }
    abort();
}
