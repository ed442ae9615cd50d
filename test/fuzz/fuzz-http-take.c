/* SPDX-License-Identifier: MIT
 *
 * Any path on any JSON that jansson accepts finds the value that jansson finds. Any pattern on any
 * bytes finds nothing outside of these bytes. Input: the path or pattern up to a line feed, then
 * the bytes.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "take-json.h"
#include "take-pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
expect(bool is_so, const char *what)
{
    if (!is_so) {
        fprintf(stderr, "http-take: %s\n", what);
        abort();
    }
}

static const json_t *
follow(const json_t *value, const struct load_json_path *path)
{
    char name[100];

    for (unsigned i = 0; i < path->number && value != NULL; i++) {
        if (path->parts[i].name == NULL) {
            value = json_array_get(value, path->parts[i].index);
            continue;
        }
        snprintf(name, sizeof(name), "%.*s", (int)path->parts[i].length, path->parts[i].name);
        value = json_object_get(value, name);
    }
    return value;
}

/* Whether jansson's functions can take this text as a name. */
static bool
is_plain(const char *text, size_t length)
{
    return length < 100 && memchr(text, '\0', length) == NULL;
}

static void
check_json(const char *text, size_t length, const char *body, size_t size)
{
    static char room[65536];
    struct load_json_value found = {room, sizeof(room), 0};
    struct load_json_path path;
    enum load_json_found result;
    const json_t *expected;
    json_t *root;

    if (load_json_path_compile(&path, text, length) != NULL)
        return;
    result = load_json_find(&path, body, size, &found);
    root = json_loadb(body, size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    if (root == NULL || !is_plain(text, length) || result == LOAD_JSON_BROKEN) {
        json_decref(root);
        return;
    }
    expected = follow(root, &path);
    expect((expected == NULL) == (result == LOAD_JSON_MISSING), "one finds it and one does not");
    expect(json_is_null(expected) == (result == LOAD_JSON_NULL), "null is another");
    if (result == LOAD_JSON_FOUND && json_is_string(expected))
        expect(found.length == json_string_length(expected) &&
                   memcmp(room, json_string_value(expected), found.length) == 0,
               "the text is another");
    json_decref(root);
}

static void
check_pattern(const char *text, size_t length, const char *body, size_t size)
{
    struct load_pattern pattern;
    struct sxe_span found;

    if (load_pattern_compile(&pattern, text, length) != NULL ||
        !load_pattern_find(&pattern, body, size, &found))
        return;
    expect(found.base >= body && found.base + found.length <= body + size, "it is outside");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *end = size == 0 ? NULL : memchr(text, '\n', size);
    size_t length;

    if (end == NULL)
        return 0;
    length = (size_t)(end - text);
    check_json(text, length, end + 1, size - length - 1);
    check_pattern(text, length, end + 1, size - length - 1);
    return 0;
}
