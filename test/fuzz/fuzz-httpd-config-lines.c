/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a configuration file, for the reader of its lines: the reader ends, reads nothing
 * outside of the bytes, and names only lines that the file has.
 */
#include "config-lines.c"

#include "sxe-util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* a heap copy, so that the address sanitizer sees a read past
                                    * it */
    struct config_lines *lines;
    unsigned number = 1;

    memcpy(text, data, size);
    for (size_t i = 0; i < size; i++)
        number += text[i] == '\n';
    text = realloc(text, size > 0 ? size : 1);
    lines = config_lines_new(text, size);
    for (size_t i = 0; i < lines->number; i++) {
        if (lines->all[i].line == 0 || lines->all[i].line > number)
            abort();
    }
    config_lines_delete(lines);
    free(text);
    return 0;
}
