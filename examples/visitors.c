/* SPDX-License-Identifier: MIT
 *
 * How many different lines all runs of this program have read, together: run several at a time,
 * `cut -d ' ' -f 1 access.log | visitors`. The sketch is in /dev/shm, and takes 16 KiB.
 */
#include <sxe-hll.h>

#include <stdio.h>
#include <string.h>

int
main(void)
{
    const SXE_HLL_SPEC spec = {.name = "visitors", .precision = 14, .file = "sxe-example-visitors"};
    char why[SXE_POOL_WHY_SIZE];
    char line[4096];
    SXE_HLL *visitors = sxe_hll_open(&spec, why);

    if (visitors == NULL) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    while (fgets(line, sizeof(line), stdin) != NULL)
        sxe_hll_add(visitors, line, strcspn(line, "\n"));
    printf("about %.0f different ones\n", sxe_hll_count(visitors));
    sxe_hll_close(visitors);
    return 0;
}
