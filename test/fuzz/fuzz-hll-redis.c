/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a string of Redis. A string that is accepted is written again with the same
 * registers, in sketches of each precision. A string that is refused changes nothing, and a
 * sentence says why.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-hll.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FINE, AGAIN, COARSE, COARSE_AGAIN, SKETCHES };

static SXE_HLL *sketches[SKETCHES];

static void
must(int condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "not so: %s\n", what);
        abort();
    }
}

static void
make_empty(void)
{
    for (unsigned i = 0; i < SKETCHES; i++) {
        const SXE_HLL_SPEC spec = {
            .name = "fuzz", .precision = i < COARSE ? 14 : 6, .options = SXE_POOL_OPTION_LOCKED};

        if (sketches[i] == NULL)
            sketches[i] = sxe_hll_open(&spec, NULL);
        must(sketches[i] != NULL, "opened");
        sxe_hll_clear(sketches[i]);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t string[SXE_HLL_REDIS_MAX], again[SXE_HLL_REDIS_MAX];
    char why[SXE_POOL_WHY_SIZE] = "";

    make_empty();
    const int result = sxe_hll_import(sketches[FINE], data, size, why);

    must(result == 0 || result == -EINVAL, "an error that is documented");
    must((result == 0) == (why[0] == '\0'), "a sentence for each error");
    must(sxe_hll_import(sketches[COARSE], data, size, NULL) == result, "whatever the precision");
    if (result < 0) {
        must(sxe_hll_count(sketches[FINE]) <= 0, "nothing was merged");
        must(sxe_hll_count(sketches[COARSE]) <= 0, "nothing was merged into the coarse one");
        return 0;
    }
    const ssize_t length = sxe_hll_export(sketches[FINE], string, sizeof(string));

    must(length >= 18, "exported");
    must(sxe_hll_import(sketches[AGAIN], string, (size_t)length, NULL) == 0, "imported again");
    must(sxe_hll_export(sketches[AGAIN], again, sizeof(again)) == length, "as long");
    must(memcmp(string, again, (size_t)length) == 0, "the same registers");
    must(sxe_hll_merge(sketches[COARSE_AGAIN], sketches[FINE]) == 0, "merged");
    must(sxe_hll_count(sketches[COARSE_AGAIN]) >= sxe_hll_count(sketches[COARSE]) &&
             sxe_hll_count(sketches[COARSE_AGAIN]) <= sxe_hll_count(sketches[COARSE]),
         "an import is folded as a merge is");
    return 0;
}
