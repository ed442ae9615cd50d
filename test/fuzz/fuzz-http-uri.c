/* SPDX-License-Identifier: MIT
 *
 * Any bytes as target, path, query and text to write: results stay within their room, a normal path
 * stays as it is when it is normalised again, a file's name stays below the root, and a text that
 * was escaped and decoded is the same.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/common/path-model.h"

enum { SIZE_MAX_TRIED = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
expect(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "sxe-http-uri: %s\n", what);
    abort();
}

static bool
same(struct sxe_span a, struct sxe_span b)
{
    return a.length == b.length && memcmp(a.base, b.base, a.length) == 0;
}

static bool
is_inside(struct sxe_span part, struct sxe_span whole)
{
    return part.base >= whole.base && part.length <= whole.length &&
           (size_t)(part.base - whole.base) <= whole.length - part.length;
}

/* A heap block of exactly this size, so that the address sanitizer sees an access past it. */
static char *
room_of(size_t size)
{
    char *room = malloc(size > 0 ? size : 1);

    if (room == NULL)
        abort();
    return room;
}

static void
check_target(struct sxe_span text)
{
    struct sxe_http_target parts;

    if (sxe_http_split_target(text, &parts) != 0)
        return;
    expect(parts.path.length > 0, "an empty path");
    expect(*parts.path.base == '/' || same(parts.path, (struct sxe_span){"*", 1}),
           "a path that does not begin with a slash");
    expect(memchr(parts.path.base, '?', parts.path.length) == NULL, "a query in the path");
    expect(parts.query.base == NULL || is_inside(parts.query, text), "a query from elsewhere");
    expect(parts.authority.base == NULL || is_inside(parts.authority, text),
           "an authority from elsewhere");
}

/* Check that no segment is one or two dots. */
static void
check_segments(struct sxe_span path)
{
    size_t from = 0;

    for (size_t i = 0; i <= path.length; i++) {
        if (i < path.length && path.base[i] != '/')
            continue;
        expect(i - from != 1 || path.base[from] != '.', "a segment of one dot");
        expect(i - from != 2 || memcmp(path.base + from, "..", 2) != 0, "a segment of two dots");
        from = i + 1;
    }
}

static void
check_path(struct sxe_span path)
{
    char *room = room_of(path.length);
    char *in_place = room_of(path.length);
    struct sxe_span normal;
    struct sxe_span again;
    int result = sxe_http_normalise_path(path, room, path.length, &normal);

    if (path.length > 0)
        memcpy(in_place, path.base, path.length);
    expect(sxe_http_normalise_path((struct sxe_span){in_place, path.length}, in_place, path.length,
                                   &again) == result,
           "another result in place");
    if (result == 0) {
        expect(same(normal, again), "another path in place");
        expect(normal.length > 0 && normal.length <= path.length, "a longer path");
        expect(*normal.base == '/', "a path without its slash");
        check_segments(normal);
        expect(memmem(normal.base, normal.length, "//", 2) == NULL, "an empty segment");
        expect(sxe_http_normalise_path(normal, in_place, path.length, &again) == 0 &&
                   same(normal, again),
               "a normal path becomes another");
    }
    free(in_place);
    free(room);
}

static void
check_layers(struct sxe_span path)
{
    const char *wrong = path_model_check(path);

    expect(wrong == NULL, wrong);
}

static void
check_file(struct sxe_span path)
{
    char *room = room_of(path.length + 1);
    ssize_t length = sxe_http_path_to_file(path, room, path.length + 1);

    if (length >= 0) {
        struct sxe_span name = {room, (size_t)length};

        expect(length > 0 && strlen(room) == name.length, "a NUL in a file's name");
        expect(room[0] != '/', "an absolute name of a file");
        expect(strstr(room, "//") == NULL, "an empty segment in a file's name");
        expect(strchr(room, '\\') == NULL, "a backslash in a file's name");
        if (strcmp(room, ".") != 0)
            check_segments(name);
    }
    free(room);
}

static void
check_query(struct sxe_span text)
{
    struct sxe_http_query query;
    char *room = room_of(text.length);

    sxe_http_query_start(&query, text);
    while (sxe_http_query_next(&query)) {
        expect(is_inside(query.name, text), "a name from elsewhere");
        expect(query.value.base == NULL || is_inside(query.value, text), "a value from elsewhere");
        expect(sxe_http_decode_form(query.value, room, query.value.length) <=
                   (ssize_t)query.value.length,
               "a decoded value that is longer");
        sxe_http_query_is(&query, "a b");
    }
    expect(sxe_http_query_find(text, "a", room, text.length) <= (ssize_t)text.length,
           "a found value that is longer");
    free(room);
}

static void
check_written(struct sxe_span text)
{
    char *escaped = room_of(6 * text.length);
    char *back = room_of(text.length);
    ssize_t length = sxe_http_encode_segment(text, escaped, 3 * text.length);

    expect(length >= (ssize_t)text.length, "an escaped text that is shorter");
    length = sxe_http_decode((struct sxe_span){escaped, (size_t)length}, back, text.length);
    expect(length >= 0 && same((struct sxe_span){back, (size_t)length}, text),
           "another text comes back");
    length = sxe_http_encode_path(text, escaped, 3 * text.length);
    length = sxe_http_decode((struct sxe_span){escaped, (size_t)length}, back, text.length);
    expect(length >= 0 && same((struct sxe_span){back, (size_t)length}, text),
           "another path comes back");
    length = sxe_http_escape_html(text, escaped, 6 * text.length);
    expect(length >= (ssize_t)text.length, "HTML that is shorter");
    for (ssize_t i = 0; i < length; i++)
        expect(strchr("<>\"'", escaped[i]) == NULL || escaped[i] == '\0', "HTML with a mark");
    free(back);
    free(escaped);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sxe_span text = {(const char *)data, size};

    if (size > SIZE_MAX_TRIED)
        return 0;
    check_target(text);
    check_path(text);
    check_file(text);
    check_layers(text);
    check_query(text);
    check_written(text);
    return 0;
}
