/* SPDX-License-Identifier: MIT
 *
 * Any text as a list of fields. The fields of a text that is accepted follow each other, aligned
 * and without repetition, and the text is the same when it is written again. A sentence says why a
 * text is refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-pool-layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(int condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "not so: %s\n", what);
        abort();
    }
}

static void
write_field(char text[64], const struct sxe_pool_field *field)
{
    if (field->kind == 'c')
        snprintf(text, 64, "char[%u] %s", field->size, field->name);
    else if (field->kind == 'b')
        snprintf(text, 64, "bool %s", field->name);
    else
        snprintf(text, 64, "%c%u %s", field->kind, field->size * 8, field->name);
}

static void
check_fields(const struct sxe_pool_layout *layout)
{
    static struct sxe_pool_layout again;
    char text[SXE_POOL_LAYOUT_MAX * 64] = "";
    uint32_t end = 0;

    for (unsigned i = 0; i < layout->number; i++) {
        const struct sxe_pool_field *field = &layout->field[i];
        const uint32_t alignment = field->kind == 'c' ? 1 : field->size;
        const size_t length = strlen(text);

        must(field->offset >= end && field->offset - end < alignment, "no gap that C has not");
        must(field->offset % alignment == 0, "aligned");
        must(sxe_pool_layout_find(layout, field->name) == field, "found by its name, so once");
        end = field->offset + field->size;
        snprintf(text + length, sizeof(text) - length, "%s", i == 0 ? "" : ",");
        write_field(text + strlen(text), field);
    }
    must(layout->size >= end && layout->size - end < layout->alignment, "the size of the struct");
    if (strlen(text) > SXE_POOL_FIELDS_MAX)
        return;
    must(sxe_pool_layout_parse(&again, text, NULL) == 0, "accepted again");
    must(memcmp(&again, layout, sizeof(again)) == 0, "the same again");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sxe_pool_layout layout;
    char why[SXE_POOL_WHY_SIZE] = "";
    char *text = malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    if (sxe_pool_layout_parse(&layout, text, why) == 0)
        check_fields(&layout);
    else
        must(why[0] != '\0' && strlen(why) < sizeof(why), "a sentence");
    free(text);
    return 0;
}
