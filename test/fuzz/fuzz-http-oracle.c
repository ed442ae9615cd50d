/* SPDX-License-Identifier: MIT
 *
 * A message, whose first byte says whether it is a response, is read by our parser, by http-parser
 * and by llhttp: they must agree, or a table of http-oracle.h must say why not.
 */
#include <stdlib.h>

#include "../oracle/http-oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fail(const char *who, const char *why)
{
    fprintf(stderr, "%s: %s\n", who, why);
    abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool told[HTTP_PEERS];

    if (size == 0 || size > 16384)
        return 0;
    for (unsigned i = 0; i < HTTP_PEERS; i++) {
        const char *difference;
        const char *section;

        if (http_peer(i) == NULL) {
            if (!told[i])
                printf("skipped: the comparison with %s, which was not installed when this was "
                       "built\n",
                       http_peer_package(i));
            told[i] = true;
            continue;
        }
        difference = http_oracle_compare(http_peer(i), (data[0] & 1) != 0, (const char *)data + 1,
                                         size - 1, &section);
        if (difference != NULL)
            fail(http_peer(i)->name, difference);
    }
    return 0;
}
