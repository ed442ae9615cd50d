/* SPDX-License-Identifier: MIT
 *
 * Whatever a server sends, at once and in pieces.
 */
#include <stdio.h>

#include "check-http-reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *wrong = check_http_reply(data, size);

    if (wrong != NULL) {
        fprintf(stderr, "%s differs\n", wrong);
        abort();
    }
    return 0;
}
