/* SPDX-License-Identifier: MIT
 *
 * Operations on buffers, from bytes, against plain arrays.
 */
#include <stdlib.h>

#include "check-buffer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *wrong = check_buffers(data, size);

    if (wrong != NULL) {
        fprintf(stderr, "%s differs\n", wrong);
        abort();
    }
    return 0;
}
