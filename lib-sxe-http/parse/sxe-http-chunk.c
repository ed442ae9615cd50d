/* SPDX-License-Identifier: MIT
 *
 * Framing is a few bytes a chunk, so it is read byte by byte:
 *
 *     SIZE -> DIGITS --------------> SIZE_LF -> DATA -> DATA_CR -> DATA_LF -> SIZE
 *               |                     ^   |
 *               +-> EXTENSION ... ----+   +-> TRAILER -> DONE, when the size is 0
 *
 *     EXTENSION -> NAME -> EQUALS -> TOKEN or QUOTED, and EXTENSION again after each ;
 *
 * The states AFTER_... are for blanks around ; and =, which are accepted, although senders must not
 * write them (RFC 9112, 7.1.1: BWS).
 */
#include "sxe-http-chunk.h"
#include "sxe-http-list.h"
#include "sxe-http-private.h"

enum state {
    SIZE, /* the first digit of a size */
    DIGITS,
    AFTER_SIZE, /* blanks after the size or a value; then a ; must come */
    EXTENSION,  /* after a ; */
    NAME,
    AFTER_NAME, /* blanks after a name; then a ; or = must come */
    EQUALS,     /* after a = */
    TOKEN,
    QUOTED,
    ESCAPED,     /* after a \ inside quotes */
    AFTER_VALUE, /* after the closing " */
    SIZE_LF,
    DATA_CR,
    DATA_LF,
    DATA, /* DATA and the later states are not read byte by byte */
    TRAILER,
    DONE,
    REFUSED
};

/* Returned in place of a state or a count: the byte is not allowed here. */
enum { BAD = -1 };

void
sxe_http_chunks_init(struct sxe_http_chunks *chunks, struct sxe_http_field *fields, uint16_t room,
                     const struct sxe_http_limits *limits)
{
    *chunks = (struct sxe_http_chunks){.state = SIZE};
    sxe_http_parser_init(&chunks->trailer, SXE_HTTP_TRAILER, fields, room, limits);
}

static ssize_t
refuse_chunks(struct sxe_http_chunks *chunks, enum sxe_http_refusal why)
{
    chunks->refusal = (uint8_t)why;
    chunks->state = REFUSED;
    return BAD;
}

static bool
is_blank_byte(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

static bool
is_token_byte(uint8_t byte)
{
    return sxe_http_is_token((struct sxe_span){(const char *)&byte, 1});
}

/* The value of a digit, 0 to 15; 16: the byte is no digit. */
static unsigned
hex_digit_of_size(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - (unsigned)'0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - (unsigned)'a' + 10 : 16;
}

/* The state after this byte, which is not part of a size, a name or a value but follows one; or
 * BAD. */
static int
state_after(uint8_t byte, enum state blanks)
{
    if (byte == ';')
        return EXTENSION;
    if (byte == '\r')
        return SIZE_LF;
    return is_blank_byte(byte) ? (int)blanks : BAD;
}

/* The state after this byte, which is in an extension; or BAD. */
static int
extension_state(enum state state, uint8_t byte)
{
    if (state == EXTENSION || state == EQUALS) {
        if (is_blank_byte(byte))
            return (int)state;
        if (state == EQUALS && byte == '"')
            return QUOTED;
        return is_token_byte(byte) ? (state == EXTENSION ? NAME : TOKEN) : BAD;
    }
    if (state == QUOTED || state == ESCAPED) {
        if ((byte < ' ' && byte != '\t') || byte == 0x7F)
            return BAD;
        if (state == QUOTED && byte == '"')
            return AFTER_VALUE;
        return state == QUOTED && byte == '\\' ? ESCAPED : QUOTED;
    }
    if ((state == NAME || state == TOKEN) && is_token_byte(byte))
        return (int)state;
    if ((state == NAME || state == AFTER_NAME) && byte == '=')
        return EQUALS;
    /* Blanks must be followed by ; or =, not by the end of the line. */
    if ((state == AFTER_NAME || state == AFTER_SIZE) && byte == '\r')
        return BAD;
    return state_after(byte, state == NAME || state == AFTER_NAME ? AFTER_NAME : AFTER_SIZE);
}

static ssize_t
size_byte(struct sxe_http_chunks *chunks, uint8_t byte)
{
    unsigned digit = hex_digit_of_size(byte);
    int state;

    if (digit < 16) {
        if (chunks->left >> 60 != 0)
            return refuse_chunks(chunks, SXE_HTTP_REFUSED_CHUNK_TOO_LARGE);
        chunks->left = chunks->left << 4 | digit;
        chunks->state = DIGITS;
        return 1;
    }
    state = chunks->state == DIGITS ? state_after(byte, AFTER_SIZE) : BAD;
    if (state == BAD)
        return refuse_chunks(chunks, SXE_HTTP_REFUSED_BAD_CHUNK_SIZE);
    chunks->state = (uint8_t)state;
    return 1;
}

/* Count the bytes of extensions; bytes of data are subtracted from the count. So a peer cannot keep
 * us busy with extensions that come with little data. */
static ssize_t
extension_byte(struct sxe_http_chunks *chunks, uint8_t byte)
{
    int state = extension_state(chunks->state, byte);

    if (state == BAD)
        return refuse_chunks(chunks, SXE_HTTP_REFUSED_BAD_CHUNK_EXTENSION);
    if (++chunks->excess > chunks->trailer.limits.head_max)
        return refuse_chunks(chunks, SXE_HTTP_REFUSED_CHUNK_OVERHEAD);
    chunks->state = (uint8_t)state;
    return 1;
}

/* Read the LF at the end of the line with the size. */
static ssize_t
size_end(struct sxe_http_chunks *chunks, uint8_t byte)
{
    if (byte != '\n')
        return refuse_chunks(chunks, SXE_HTTP_REFUSED_BARE_CR);
    chunks->excess -= chunks->left < chunks->excess ? (uint32_t)chunks->left : chunks->excess;
    chunks->state = chunks->left > 0 ? DATA : TRAILER;
    return 1;
}

/* Read one byte of framing. Returns 1; -1: the byte is refused. */
static ssize_t
framing_byte(struct sxe_http_chunks *chunks, uint8_t byte)
{
    if (chunks->state == DATA_CR || chunks->state == DATA_LF) {
        if (byte != (chunks->state == DATA_CR ? '\r' : '\n'))
            return refuse_chunks(chunks, SXE_HTTP_REFUSED_BAD_CHUNK_END);
        chunks->state = chunks->state == DATA_CR ? DATA_LF : SIZE;
        chunks->line = 0;
        return 1;
    }
    if (++chunks->line > chunks->trailer.limits.line_max)
        return refuse_chunks(chunks, SXE_HTTP_REFUSED_CHUNK_LINE_TOO_LONG);
    if (chunks->state == SIZE_LF)
        return size_end(chunks, byte);
    return chunks->state <= DIGITS ? size_byte(chunks, byte) : extension_byte(chunks, byte);
}

static size_t
read_data(struct sxe_http_chunks *chunks, struct sxe_span *body, size_t length)
{
    body->length = chunks->left < length ? (size_t)chunks->left : length;
    chunks->left -= body->length;
    if (chunks->left == 0)
        chunks->state = DATA_CR;
    return body->length;
}

/* Read the trailer. Returns its length; 0: more bytes are needed; -1: refused. */
static ssize_t
read_trailer(struct sxe_http_chunks *chunks, const char *data, size_t length)
{
    int result = sxe_http_parse(&chunks->trailer, data, length);

    if (result < 0) {
        chunks->taken += chunks->trailer.refused_at;
        return refuse_chunks(chunks, chunks->trailer.refusal);
    }
    if (result > 0) {
        chunks->state = DONE;
        chunks->done = true;
    }
    return result;
}

ssize_t
sxe_http_chunks_read(struct sxe_http_chunks *chunks, const char *data, size_t length,
                     struct sxe_span *body)
{
    size_t at = 0;
    ssize_t trailer = 0;

    for (; at < length && chunks->state < DATA; at++) {
        if (framing_byte(chunks, (uint8_t)data[at]) < 0)
            break;
        chunks->taken++;
    }
    *body = (struct sxe_span){data + at, 0};
    if (chunks->state == DATA) {
        at += read_data(chunks, body, length - at);
        chunks->taken += body->length;
    } else if (chunks->state == TRAILER) {
        trailer = read_trailer(chunks, data + at, length - at);
        chunks->taken += trailer > 0 ? (size_t)trailer : 0;
    }
    return chunks->state == REFUSED ? BAD : (ssize_t)at + trailer;
}
