/* SPDX-License-Identifier: MIT
 *
 * The table of functions through which lib-sxe-lua decompresses bodies. The functions call zlib.
 */
#include "script-inflate.h"

#include <errno.h>
#include <stdlib.h>

#define ZLIB_CONST
#include <zlib.h>

/* Arguments of inflateInit2: for gzip, for zlib's format, and for data without any format around
 * it. */
enum { WINDOW_GZIP = 15 + 16, WINDOW_ZLIB = 15, WINDOW_RAW = -15 };

struct inflating {
    z_stream zlib;
    bool is_gzip;
    bool has_begun;
    bool is_over; /* whether the last byte ended the data, or one of gzip's members */
};

static void *
allocate_inflating(void *unused, unsigned number, unsigned size)
{
    (void)unused;
    return calloc(number, size);
}

static void
release_inflating(void *unused, void *memory)
{
    (void)unused;
    free(memory);
}

static void
destroy_inflating(void *stream)
{
    struct inflating *inflating = stream;

    inflateEnd(&inflating->zlib);
    free(inflating);
}

static void *
create_inflating(bool is_gzip)
{
    struct inflating *inflating = calloc(1, sizeof(*inflating));

    if (inflating == NULL)
        return NULL;
    inflating->is_gzip = is_gzip;
    inflating->zlib.zalloc = allocate_inflating;
    inflating->zlib.zfree = release_inflating;
    if (inflateInit2(&inflating->zlib, is_gzip ? WINDOW_GZIP : WINDOW_ZLIB) == Z_OK)
        return inflating;
    free(inflating);
    return NULL;
}

/* Prepare for the first byte of the data, or of gzip's next member. 0, or -EBADMSG: zlib's format
 * has ended, but more bytes follow. If the first byte cannot begin zlib's format, expect data
 * without a format: some servers send deflate in this way (RFC 9110, 8.4.1.2). In zlib's format
 * this byte names the method 8 and a window of at most 7. */
static int
begin_member(struct inflating *inflating)
{
    const unsigned first = *inflating->zlib.next_in;

    if (inflating->is_over && !inflating->is_gzip)
        return -EBADMSG;
    if (inflating->is_over)
        inflateReset(&inflating->zlib);
    else if (!inflating->has_begun && !inflating->is_gzip && ((first & 15) != 8 || first >> 4 > 7))
        inflateReset2(&inflating->zlib, WINDOW_RAW);
    inflating->has_begun = true;
    inflating->is_over = false;
    return 0;
}

static ssize_t
decode_bytes(void *stream, const char *bytes, size_t length, size_t *used, char *room, size_t size)
{
    struct inflating *inflating = stream;
    z_stream *zlib = &inflating->zlib;
    int result = Z_OK;

    zlib->next_in = (const unsigned char *)bytes;
    zlib->avail_in = (unsigned)length;
    zlib->next_out = (unsigned char *)room;
    zlib->avail_out = (unsigned)size;
    /* go on until zlib can make no more progress */
    while (result != Z_BUF_ERROR && zlib->avail_out > 0) {
        const bool is_between = inflating->is_over || !inflating->has_begun;

        if (is_between && zlib->avail_in == 0)
            break;
        if (is_between && begin_member(inflating) != 0)
            return -EBADMSG;
        result = inflate(zlib, Z_NO_FLUSH);
        inflating->is_over = result == Z_STREAM_END;
        if (result == Z_MEM_ERROR)
            return -ENOMEM;
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return -EBADMSG;
    }
    *used = length - zlib->avail_in;
    return (ssize_t)(size - zlib->avail_out);
}

static bool
is_stream_whole(const void *stream)
{
    const struct inflating *inflating = stream;

    return inflating->is_over || !inflating->has_begun;
}

const struct sxe_lua_inflate *
script_inflate(void)
{
    static const struct sxe_lua_inflate table = {.create = create_inflating,
                                                 .destroy = destroy_inflating,
                                                 .decode = decode_bytes,
                                                 .is_whole = is_stream_whole};

    return &table;
}
