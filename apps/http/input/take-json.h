/* SPDX-License-Identifier: MIT
 *
 * What: finds one value in JSON (RFC 8259) by its path, without building a tree. Place: steps of a
 * session take values out of bodies with it, and rows of JSON lines are read with it. The functions
 * do no I/O and allocate nothing.
 *
 * Shape: a path is a part of JSONPath (RFC 9535): names and indexes from 0.
 *
 *     $.user.emails[0]    $["a b"].id    $
 *
 * The text before the value must be JSON, and is read once; the text after the value is not read.
 * If an object has equal names, the first counts. If the value is a string, the result is its text,
 * with escapes replaced; if it is a number, true, false, an object or an array, the result is its
 * bytes. null is no value.
 *
 * Limits: LOAD_JSON_PARTS parts; LOAD_JSON_DEPTH arrays and objects inside each other.
 *
 * Example:
 *     struct load_json_path path;
 *     char text[100];
 *     struct load_json_value value = {text, sizeof(text), 0};
 *     if (load_json_path_compile(&path, "$.id", 4) == NULL &&
 *         load_json_find(&path, body, length, &value) == LOAD_JSON_FOUND)
 *         printf("%.*s\n", (int)value.length, value.text);
 */
#ifndef LOAD_TAKE_JSON_H
#define LOAD_TAKE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_JSON_PARTS 16
#define LOAD_JSON_DEPTH 64

struct load_json_path {
    unsigned number;
    struct {
        const char *name; /* a name; NULL: the part is an index */
        size_t length;
        uint64_t index;
    } parts[LOAD_JSON_PARTS];
};

/* Room for the value that is found. */
struct load_json_value {
    char *text;
    size_t room;
    /* the length of the value that was found, also if the room is too small for it */
    size_t length;
};

enum load_json_found {
    LOAD_JSON_FOUND,
    LOAD_JSON_MISSING,  /* the path leads to no value */
    LOAD_JSON_NULL,     /* the path leads to null */
    LOAD_JSON_BROKEN,   /* the bytes up to the value are not JSON */
    LOAD_JSON_TOO_LONG, /* the value does not fit into its room */
};

/* Parse a path. `text` must stay valid. NULL, or what is wrong, as a static text. */
const char *load_json_path_compile(struct load_json_path *path, const char *text, size_t length);

enum load_json_found load_json_find(const struct load_json_path *path, const char *json,
                                    size_t length, struct load_json_value *value);

#endif
