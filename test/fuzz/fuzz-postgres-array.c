/* SPDX-License-Identifier: MIT
 *
 * Arrays in PostgreSQL's text form. If the first byte is even, the others are a text: the scanner
 * stays inside of the text, and its lists are balanced if it ends well. If the first byte is odd,
 * the others say what an array holds: the array is written with quotes and escapes, and the scanner
 * must find what it holds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../lib-sxe-postgres/sxe-postgres-array.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1000, TEXT_MAX = 8 * INPUT_MAX, ELEMENT_MAX = 15 };

static struct {
    char text[TEXT_MAX];
    size_t length;
    struct {
        enum sxe__postgres_token token;
        char element[ELEMENT_MAX + 1];
        size_t length;
    } wanted[3 * INPUT_MAX];
    size_t number;
} made;

static void
check(bool is_good, const char *what)
{
    if (is_good)
        return;
    fprintf(stderr, "sxe-postgres-array: %s\n", what);
    abort();
}

static struct sxe__postgres_array
begin_scan(const char *text, size_t length)
{
    return (struct sxe__postgres_array){
        .text = text, .end = text + length, .room = malloc(length + 1)};
}

static void
scan_any(const char *text, size_t length)
{
    struct sxe__postgres_array array = begin_scan(text, length);
    char *room = array.room;
    enum sxe__postgres_token token;
    unsigned opened = 0, closed = 0;
    size_t number = 0;

    do {
        token = sxe__postgres_array_next(&array);
        opened += token == SXE__POSTGRES_OPEN;
        closed += token == SXE__POSTGRES_CLOSE;
        check(array.text <= array.end, "it reads past the end");
        check(opened >= closed && opened - closed == array.depth, "lists are not balanced");
        check(array.depth <= SXE__POSTGRES_DEPTH, "lists are too deep");
        check(++number <= length + 1, "it does not end");
    } while (token != SXE__POSTGRES_END && token != SXE__POSTGRES_BAD);
    check(token == SXE__POSTGRES_BAD || (opened == closed && opened > 0), "it ends too early");
    free(room);
}

/* ---- Arrays of a known content ---- */

static void
put(char byte)
{
    made.text[made.length++] = byte;
}

static void
expect(enum sxe__postgres_token token, const char *element, size_t length)
{
    made.wanted[made.number].token = token;
    made.wanted[made.number].length = length;
    memcpy(made.wanted[made.number++].element, element, length);
}

/* Quoted, unless it needs no quotes and a bit says so. */
static void
put_element(const char *element, size_t length, bool is_plain)
{
    for (size_t i = 0; i < length; i++)
        is_plain = is_plain && strchr("{},\"\\ \t\n", element[i]) == NULL;
    is_plain = is_plain && length > 0 && !(length == 4 && strncasecmp(element, "null", 4) == 0);
    if (!is_plain)
        put('"');
    for (size_t i = 0; i < length; i++) {
        if (!is_plain && (element[i] == '"' || element[i] == '\\'))
            put('\\');
        put(element[i]);
    }
    if (!is_plain)
        put('"');
    expect(SXE__POSTGRES_ELEMENT, element, length);
}

static void
make_array(const char *data, size_t size)
{
    unsigned depth = 1;
    bool is_after = false;

    made.length = made.number = 0;
    put('{');
    expect(SXE__POSTGRES_OPEN, "", 0);
    for (size_t i = 0; i < size && depth > 0; i++) {
        const unsigned what = (unsigned char)data[i];
        size_t length = what / 16 < size - i - 1 ? what / 16 : size - i - 1;

        if (what % 8 == 7) {
            put('}');
            expect(SXE__POSTGRES_CLOSE, "", 0);
            depth--;
            is_after = true;
            continue;
        }
        if (is_after)
            put(',');
        is_after = what % 8 != 6 || depth == SXE__POSTGRES_DEPTH;
        if (!is_after) {
            put('{');
            expect(SXE__POSTGRES_OPEN, "", 0);
            depth++;
        } else if (what % 8 == 5) {
            memcpy(&made.text[made.length], "NULL", 4);
            made.length += 4;
            expect(SXE__POSTGRES_NULL, "", 0);
        } else {
            put_element(&data[i + 1], length, (what & 8) != 0);
            i += length;
        }
    }
    for (; depth > 0; depth--) {
        put('}');
        expect(SXE__POSTGRES_CLOSE, "", 0);
    }
    expect(SXE__POSTGRES_END, "", 0);
}

static void
scan_made(void)
{
    struct sxe__postgres_array array = begin_scan(made.text, made.length);
    char *room = array.room;

    for (size_t i = 0; i < made.number; i++) {
        check(sxe__postgres_array_next(&array) == made.wanted[i].token, "another token");
        check(made.wanted[i].token != SXE__POSTGRES_ELEMENT ||
                  (array.length == made.wanted[i].length &&
                   memcmp(array.room, made.wanted[i].element, array.length) == 0),
              "another element");
    }
    free(room);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > INPUT_MAX)
        return 0;
    if (data[0] % 2 == 0) {
        scan_any((const char *)data + 1, size - 1);
        return 0;
    }
    /* A zero byte is in no text of PostgreSQL's. */
    if (memchr(data + 1, '\0', size - 1) != NULL)
        return 0;
    make_array((const char *)data + 1, size - 1);
    scan_made();
    return 0;
}
