/* SPDX-License-Identifier: MIT
 *
 * What: reads and writes the records of FastCGI 1.0. The rules of each type are a row of a table.
 */
#include "sxe-http-fastcgi.h"

#include <errno.h>
#include <string.h>

#define KEEP_CONNECTION 1
#define ANY_LENGTH      UINT16_MAX
#define LONG_LENGTH     0x80u /* the first bit of a length of four bytes */

static const struct {
    uint16_t least; /* bytes of content */
    uint16_t most;
    uint8_t side; /* the side that sends it */
    bool has_id;
    bool is_whole; /* the content is given in one span */
} rules[] = {
    [SXE_HTTP_FASTCGI_BEGIN_REQUEST] = {8, 8, SXE_HTTP_FASTCGI_OF_CLIENT, true, true},
    [SXE_HTTP_FASTCGI_ABORT_REQUEST] = {0, 0, SXE_HTTP_FASTCGI_OF_CLIENT, true, true},
    [SXE_HTTP_FASTCGI_END_REQUEST] = {8, 8, SXE_HTTP_FASTCGI_OF_SERVER, true, true},
    [SXE_HTTP_FASTCGI_PARAMS] = {0, ANY_LENGTH, SXE_HTTP_FASTCGI_OF_CLIENT, true, false},
    [SXE_HTTP_FASTCGI_STDIN] = {0, ANY_LENGTH, SXE_HTTP_FASTCGI_OF_CLIENT, true, false},
    [SXE_HTTP_FASTCGI_STDOUT] = {0, ANY_LENGTH, SXE_HTTP_FASTCGI_OF_SERVER, true, false},
    [SXE_HTTP_FASTCGI_STDERR] = {0, ANY_LENGTH, SXE_HTTP_FASTCGI_OF_SERVER, true, false},
    [SXE_HTTP_FASTCGI_DATA] = {0, ANY_LENGTH, SXE_HTTP_FASTCGI_OF_CLIENT, true, false},
    [SXE_HTTP_FASTCGI_GET_VALUES] = {0, SXE_HTTP_FASTCGI_VALUES_MAX, SXE_HTTP_FASTCGI_OF_CLIENT,
                                     false, true},
    [SXE_HTTP_FASTCGI_GET_VALUES_RESULT] = {0, SXE_HTTP_FASTCGI_VALUES_MAX,
                                            SXE_HTTP_FASTCGI_OF_SERVER, false, true},
    [SXE_HTTP_FASTCGI_UNKNOWN_TYPE] = {8, 8, SXE_HTTP_FASTCGI_OF_SERVER, false, true},
};

static uint16_t
get_two_bytes(const char *at)
{
    return (uint16_t)((uint8_t)at[0] << 8 | (uint8_t)at[1]);
}

static uint32_t
get_four_bytes(const char *at)
{
    return (uint32_t)get_two_bytes(at) << 16 | get_two_bytes(at + 2);
}

void
sxe_http_fastcgi_init(struct sxe_http_fastcgi *reader, enum sxe_http_fastcgi_side side)
{
    *reader = (struct sxe_http_fastcgi){.side = (uint8_t)side};
}

static bool
is_known_type(uint8_t type)
{
    return type >= SXE_HTTP_FASTCGI_BEGIN_REQUEST && type < SXE_COUNT(rules);
}

static enum sxe_http_fastcgi_refusal
check_record_head(const struct sxe_http_fastcgi *reader, uint8_t version)
{
    if (version != 1)
        return SXE_HTTP_FASTCGI_BAD_VERSION;
    /* A client may ask with management records that are not known here; a server asks nothing. */
    if (!is_known_type(reader->type))
        return reader->id == 0 && reader->type != 0 && reader->side == SXE_HTTP_FASTCGI_OF_CLIENT
                   ? SXE_HTTP_FASTCGI_ACCEPTED
                   : SXE_HTTP_FASTCGI_BAD_TYPE;
    if (rules[reader->type].side != reader->side)
        return SXE_HTTP_FASTCGI_BAD_SIDE;
    if (rules[reader->type].has_id != (reader->id != 0))
        return SXE_HTTP_FASTCGI_BAD_ID;
    if (reader->length < rules[reader->type].least || reader->length > rules[reader->type].most)
        return SXE_HTTP_FASTCGI_BAD_LENGTH;
    return SXE_HTTP_FASTCGI_ACCEPTED;
}

/* Read the head of a record at the front of data. 8; 0: more is needed; -1: refused. */
static ssize_t
read_record_head(struct sxe_http_fastcgi *reader, const char *data, size_t length)
{
    uint16_t content;

    if (length < SXE_HTTP_FASTCGI_HEAD)
        return 0;
    reader->type = (uint8_t)data[1];
    reader->id = get_two_bytes(data + 2);
    reader->length = content = get_two_bytes(data + 4);
    reader->refusal = (uint8_t)check_record_head(reader, (uint8_t)data[0]);
    if (reader->refusal != SXE_HTTP_FASTCGI_ACCEPTED)
        return -1;
    if (is_known_type(reader->type) && rules[reader->type].is_whole &&
        length - SXE_HTTP_FASTCGI_HEAD < content)
        return 0;
    reader->left = content;
    reader->padding = (uint8_t)data[6];
    return SXE_HTTP_FASTCGI_HEAD;
}

ssize_t
sxe_http_fastcgi_read(struct sxe_http_fastcgi *reader, const char *data, size_t length,
                      struct sxe_span *content)
{
    bool had_content = reader->left > 0;
    size_t padding;
    ssize_t n = 0;

    *content = (struct sxe_span){data, 0};
    reader->is_first = reader->is_last = false;
    if (reader->refusal != SXE_HTTP_FASTCGI_ACCEPTED)
        return -1;
    if (reader->left == 0 && reader->padding == 0) {
        n = read_record_head(reader, data, length);
        if (n <= 0)
            return n;
        reader->is_first = had_content = true;
    }
    content->base = data + n;
    content->length = reader->left < length - (size_t)n ? reader->left : length - (size_t)n;
    n += (ssize_t)content->length;
    reader->left = (uint16_t)(reader->left - content->length);
    if (reader->left > 0)
        return n;
    reader->is_last = had_content;
    padding = reader->padding < length - (size_t)n ? reader->padding : length - (size_t)n;
    reader->padding = (uint8_t)(reader->padding - padding);
    return n + (ssize_t)padding;
}

const char *
sxe_http_fastcgi_refusal_text(enum sxe_http_fastcgi_refusal refusal)
{
    static const char *const texts[] = {
        [SXE_HTTP_FASTCGI_ACCEPTED] = "no refusal",
        [SXE_HTTP_FASTCGI_BAD_VERSION] = "a record whose version is not 1",
        [SXE_HTTP_FASTCGI_BAD_TYPE] = "a record of a type that does not exist",
        [SXE_HTTP_FASTCGI_BAD_SIDE] = "a record that only the other side may send",
        [SXE_HTTP_FASTCGI_BAD_ID] = "a record whose id does not fit its type",
        [SXE_HTTP_FASTCGI_BAD_LENGTH] = "a record whose length does not fit its type",
    };

    return texts[refusal];
}

void
sxe_http_fastcgi_get_begin(const char content[8], uint16_t *role, bool *keep)
{
    *role = get_two_bytes(content);
    *keep = (content[2] & KEEP_CONNECTION) != 0;
}

void
sxe_http_fastcgi_get_end(const char content[8], uint32_t *application, uint8_t *protocol)
{
    *application = get_four_bytes(content);
    *protocol = (uint8_t)content[4];
}

/* ---- Pairs of a name and a value ---- */

/* Read a length of one or four bytes. Returns how many bytes it has; 0: more is needed. */
static size_t
get_pair_length(const char *data, size_t length, size_t *value)
{
    if (length == 0)
        return 0;
    if (((uint8_t)*data & LONG_LENGTH) == 0) {
        *value = (uint8_t)*data;
        return 1;
    }
    if (length < 4)
        return 0;
    *value = get_four_bytes(data) & INT32_MAX;
    return 4;
}

/* The lengths are compared with what is left, not added up: no sum can overflow. */
ssize_t
sxe_http_fastcgi_pair(const char *data, size_t length, struct sxe_span *name,
                      struct sxe_span *value)
{
    size_t n = get_pair_length(data, length, &name->length);
    size_t second;
    size_t left;

    if (n == 0)
        return 0;
    if (name->length == 0)
        return -1;
    second = get_pair_length(data + n, length - n, &value->length);
    if (second == 0)
        return 0;
    n += second;
    left = length - n;
    if (name->length > left || value->length > left - name->length)
        return 0;
    name->base = data + n;
    value->base = name->base + name->length;
    return (ssize_t)(n + name->length + value->length);
}

/* ---- Writing ---- */

static void
put_four_bytes(char *to, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        to[i] = (char)(value >> (24 - 8 * i));
}

void
sxe_http_fastcgi_put_head(char to[8], enum sxe_http_fastcgi_type type, uint16_t id, uint16_t length,
                          uint8_t padding)
{
    to[0] = 1;
    to[1] = (char)type;
    to[2] = (char)(id >> 8);
    to[3] = (char)id;
    to[4] = (char)(length >> 8);
    to[5] = (char)length;
    to[6] = (char)padding;
    to[7] = 0;
}

void
sxe_http_fastcgi_put_begin(char to[16], uint16_t id, enum sxe_http_fastcgi_role role, bool keep)
{
    sxe_http_fastcgi_put_head(to, SXE_HTTP_FASTCGI_BEGIN_REQUEST, id, 8, 0);
    memset(to + SXE_HTTP_FASTCGI_HEAD, 0, 8);
    to[9] = (char)role;
    to[10] = keep ? KEEP_CONNECTION : 0;
}

void
sxe_http_fastcgi_put_end(char to[16], uint16_t id, uint32_t application,
                         enum sxe_http_fastcgi_status protocol)
{
    sxe_http_fastcgi_put_head(to, SXE_HTTP_FASTCGI_END_REQUEST, id, 8, 0);
    memset(to + SXE_HTTP_FASTCGI_HEAD, 0, 8);
    put_four_bytes(to + SXE_HTTP_FASTCGI_HEAD, application);
    to[12] = (char)protocol;
}

void
sxe_http_fastcgi_put_unknown(char to[16], uint8_t type)
{
    sxe_http_fastcgi_put_head(to, SXE_HTTP_FASTCGI_UNKNOWN_TYPE, 0, 8, 0);
    memset(to + SXE_HTTP_FASTCGI_HEAD, 0, 8);
    to[8] = (char)type;
}

static size_t
pair_length_size(size_t length)
{
    return length < LONG_LENGTH ? 1 : 4;
}

static char *
put_pair_length(char *to, size_t length)
{
    if (length < LONG_LENGTH) {
        *to = (char)length;
        return to + 1;
    }
    put_four_bytes(to, (uint32_t)length | LONG_LENGTH << 24);
    return to + 4;
}

ssize_t
sxe_http_fastcgi_put_pair(char *to, size_t size, struct sxe_span name, struct sxe_span value)
{
    size_t needed;

    if (name.length == 0 || name.length > INT32_MAX || value.length > INT32_MAX)
        return -EINVAL;
    needed =
        pair_length_size(name.length) + pair_length_size(value.length) + name.length + value.length;
    if (needed > size)
        return -ENOBUFS;
    to = put_pair_length(put_pair_length(to, name.length), value.length);
    memcpy(to, name.base, name.length);
    if (value.length > 0)
        memcpy(to + name.length, value.base, value.length);
    return (ssize_t)needed;
}
