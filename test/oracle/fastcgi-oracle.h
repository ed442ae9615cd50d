/* SPDX-License-Identifier: MIT
 *
 * A slow reader of FastCGI records, to compare the library's with: it has all bytes at once, counts
 * in wide numbers, and writes the rules of each type out. The result is a text.
 */
#ifndef FASTCGI_ORACLE_H
#define FASTCGI_ORACLE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FASTCGI_TEXT_MAX = 1 << 18 };

struct fastcgi_text {
    char bytes[FASTCGI_TEXT_MAX];
    size_t length;
};

static void
fastcgi_say(struct fastcgi_text *out, const char *what, unsigned number)
{
    out->length += (size_t)snprintf(out->bytes + out->length, FASTCGI_TEXT_MAX - out->length,
                                    "%s%u", what, number);
}

static void
fastcgi_say_bytes(struct fastcgi_text *out, const char *data, size_t length)
{
    for (size_t i = 0; i < length; i++)
        out->length += (size_t)snprintf(out->bytes + out->length, FASTCGI_TEXT_MAX - out->length,
                                        "%02x", (unsigned)(uint8_t)data[i]);
}

/* The number of the refusal of a record; 0: none. */
static unsigned
fastcgi_oracle_refusal(int of_server, long version, long type, long id, long length)
{
    int by_server = type == 3 || type == 6 || type == 7 || type == 10 || type == 11;
    int about_all = type == 9 || type == 10 || type == 11;

    if (version != 1)
        return 1;
    if (type == 0 || (type > 11 && (of_server || id != 0)))
        return 2;
    if (type > 11)
        return 0;
    if (by_server != of_server)
        return 3;
    if (about_all ? id != 0 : id == 0)
        return 4;
    if ((type == 1 || type == 3 || type == 11) && length != 8)
        return 5;
    if ((type == 2 && length != 0) || ((type == 9 || type == 10) && length > 1024))
        return 5;
    return 0;
}

/* All records in data: " type/id=content." for each whole record, "(type/id" before content that is
 * not whole, "!refusal" at the end. */
static void
fastcgi_oracle_records(struct fastcgi_text *out, int of_server, const char *data, size_t size)
{
    const uint8_t *at = (const uint8_t *)data;
    size_t i = 0;

    out->length = 0;
    while (i + 8 <= size) {
        long type = at[i + 1];
        long id = at[i + 2] * 256L + at[i + 3];
        size_t length = at[i + 4] * 256u + at[i + 5];
        size_t have = size - i - 8 < length ? size - i - 8 : length;
        unsigned refusal = fastcgi_oracle_refusal(of_server, at[i], type, id, (long)length);
        int is_whole = type == 1 || type == 2 || type == 3 || (type >= 9 && type <= 11);

        if (refusal != 0) {
            fastcgi_say(out, "!", refusal);
            return;
        }
        if (is_whole && have < length)
            return;
        fastcgi_say(out, " ", (unsigned)type);
        fastcgi_say(out, "/", (unsigned)id);
        fastcgi_say_bytes(out, data + i + 8, have);
        if (have < length)
            return;
        fastcgi_say(out, ".", (unsigned)length);
        i += 8 + length + at[i + 6];
    }
}

/* The pairs in data: " name=value" of each, then "?" if the last is not whole, "!" if a name is
 * empty. */
static void
fastcgi_oracle_pairs(struct fastcgi_text *out, const char *data, size_t size)
{
    const uint8_t *at = (const uint8_t *)data;
    size_t i = 0;

    out->length = 0;
    while (i < size) {
        uint64_t lengths[2];

        for (int k = 0; k < 2; k++) {
            if (k == 1 && lengths[0] == 0) {
                fastcgi_say(out, "!", 0);
                return;
            }
            if (i >= size || (at[i] >= 128 && size - i < 4)) {
                fastcgi_say(out, "?", 0);
                return;
            }
            if (at[i] < 128) {
                lengths[k] = at[i];
                i++;
            } else {
                lengths[k] = (at[i] - 128ull) * 16777216 + at[i + 1] * 65536ull +
                             at[i + 2] * 256ull + at[i + 3];
                i += 4;
            }
        }
        if (i + lengths[0] + lengths[1] > size) {
            fastcgi_say(out, "?", 0);
            return;
        }
        fastcgi_say(out, " ", (unsigned)lengths[0]);
        fastcgi_say_bytes(out, data + i, lengths[0]);
        fastcgi_say(out, "=", (unsigned)lengths[1]);
        fastcgi_say_bytes(out, data + i + lengths[0], lengths[1]);
        i += lengths[0] + lengths[1];
    }
}

#endif
