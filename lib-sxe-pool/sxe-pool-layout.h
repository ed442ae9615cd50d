/* SPDX-License-Identifier: MIT
 *
 * What: the text that says what is in a pool's elements, "u64 hits, char[24] name", taken apart.
 * With it a tool that knows only the pool's file can show its fields, and a program in another
 * language agrees with one in C.
 *
 * Place: part of lib-sxe-pool, whose files keep the text (SXE_POOL_SPEC.fields); the program
 * sxe-pool and the Lua module read it. Uses nothing.
 *
 * Shape: fields stand where C has the members of a struct that is declared in the same order, each
 * aligned to its size, text to 1:
 *
 *     "u8 kind, u64 hits, char[5] name"      struct { uint8_t kind; uint64_t hits; char name[5]; }
 *      kind at 0, hits at 8, name at 16       sizeof: 24
 *
 *     u8 u16 u32 u64  i8 i16 i32 i64  f32 f64  bool  char[1] to char[65535]
 *
 * Limits: names are C's identifiers, 1 to 31 bytes, each once; the text has at most 511 bytes.
 * Blanks and new lines may stand wherever C would allow them.
 *
 * Example:
 *     struct sxe_pool_layout layout;
 *     sxe_pool_layout_parse(&layout, sxe_pool_get_fields(jobs), NULL);
 *     const struct sxe_pool_field *hits = sxe_pool_layout_find(&layout, "hits");
 *     if (hits != NULL && hits->kind == 'u' && hits->size == 8)
 *         sxe_pool_add_u64(jobs, id, hits->offset, 1);
 */
#ifndef SXE_POOL_LAYOUT_H
#define SXE_POOL_LAYOUT_H

#include <stdint.h>

#include "sxe-pool-shared.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_POOL_FIELD_NAME_MAX 31u
#define SXE_POOL_FIELD_TEXT_MAX 65535u
/* the shortest field, "u8 a,", takes five bytes of the text */
#define SXE_POOL_LAYOUT_MAX ((SXE_POOL_FIELDS_MAX + 1) / 5)

struct sxe_pool_field {
    char name[SXE_POOL_FIELD_NAME_MAX + 1];
    /* u unsigned, i signed, f floating, b bool, c text; a text shorter than its field ends with a
     * 0 */
    char kind;
    uint32_t size; /* bytes of the field */
    uint32_t offset;
};

struct sxe_pool_layout {
    unsigned number;
    uint32_t alignment; /* the alignment of the struct: the largest one of its members */
    uint32_t size;      /* sizeof the struct; 0: no fields */
    struct sxe_pool_field field[SXE_POOL_LAYOUT_MAX];
};

/* Parse a list of fields. 0; or -EINVAL and a sentence in why (SXE_POOL_WHY_SIZE bytes, or NULL):
 * then the layout has the fields before the mistake. A text without fields is valid. */
SXE_PUBLIC SXE_MUST_USE int sxe_pool_layout_parse(struct sxe_pool_layout *layout, const char *text,
                                                  char *why);

/* Find the field with this name; NULL: there is none. */
SXE_PUBLIC const struct sxe_pool_field *sxe_pool_layout_find(const struct sxe_pool_layout *layout,
                                                             const char *name);

#ifdef __cplusplus
}
#endif

#endif
