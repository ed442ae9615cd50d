/* SPDX-License-Identifier: MIT
 *
 * The bytes are operations on buffers. The same operations run on plain arrays, which must then
 * hold the same bytes.
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
