/* SPDX-License-Identifier: MIT
 *
 * One message, whose first byte says whether it is a response, to us and to http-parser and llhttp,
 * those that are installed: they must agree, or the tables of http-oracle.h say why not.
 */
#include <stdlib.h>

#include "../oracle/http-oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool said;

    if (size == 0 || size > 16384)
        return 0;
    for (unsigned i = 0; i < HTTP_PEERS; i++) {
        const char *explained;
        const char *difference;

        if (http_peer(i) == NULL) {
            if (!said)
                fprintf(stderr, "skipped: %s is not installed\n", http_peer_package(i));
            said = true;
            continue;
        }
        difference = http_oracle_compare(http_peer(i), (data[0] & 1) != 0, (const char *)data + 1,
                                         size - 1, &explained);
        if (difference != NULL) {
            fprintf(stderr, "%s: %s\n", http_peer(i)->name, difference);
            abort();
        }
    }
    return 0;
}
