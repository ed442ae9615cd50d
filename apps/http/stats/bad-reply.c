/* SPDX-License-Identifier: MIT
 *
 * Noting and printing the first invalid reply.
 */
#include "bad-reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* how many bytes of the line are shown, at most, before the wrong byte */
#define BEFORE (LOAD_BAD_BYTES / 2)

void
load_bad_reply_note(struct load_bad_reply *bad, unsigned why, const char *data, size_t length,
                    size_t at)
{
    size_t from = at < length ? at : length;

    while (from > 0 && at - from < BEFORE && data[from - 1] != '\n')
        from--;
    length -= from;
    bad->why = (uint8_t)why;
    bad->length = (uint8_t)(length < LOAD_BAD_BYTES ? length : LOAD_BAD_BYTES);
    memcpy(bad->bytes, data + from, bad->length);
}

const char *
load_bad_reply_why(const struct load_bad_reply *bad)
{
    if (bad->why == LOAD_BAD_UPGRADE)
        return "it begins another protocol";
    if (bad->why == LOAD_BAD_MORE)
        return "there is more than was asked for";
    return sxe_http_refusal_text((enum sxe_http_refusal)bad->why);
}

/* The byte that a backslash and this letter stand for; 0: there is no such escape. */
static char
letter_of(char byte)
{
    switch (byte) {
    case '\r':
        return 'r';
    case '\n':
        return 'n';
    case '\t':
        return 't';
    case '"':
    case '\\':
        return byte;
    default:
        return 0;
    }
}

/* Write a byte as it is printed, escaped if necessary. Returns the length of the text. */
static size_t
show_byte(char byte, char *to, size_t size)
{
    char letter = letter_of(byte);
    int length;

    if (letter != 0)
        length = snprintf(to, size, "\\%c", letter);
    else if (byte >= ' ' && byte <= '~')
        length = snprintf(to, size, "%c", byte);
    else
        length = snprintf(to, size, "\\x%02x", (unsigned char)byte);
    return (size_t)length;
}

const char *
load_bad_reply_quote(const struct load_bad_reply *bad, char *text, size_t size)
{
    size_t used = 0;

    text[used++] = '"';
    for (unsigned i = 0; i < bad->length && used + sizeof("\\x00\"") <= size; i++)
        used += show_byte(bad->bytes[i], text + used, size - used);
    snprintf(text + used, size - used, "\"");
    return text;
}

/* Read one byte, which may be escaped, at *text, and move *text to the byte after it. */
static char
read_shown(const char **text)
{
    static const char letters[] = "rnt\"\\", bytes[] = "\r\n\t\"\\";
    const char *at = *text;
    const char *letter;
    char hex[3] = "";

    *text = at + 1;
    if (*at != '\\' || at[1] == '\0')
        return *at;
    letter = strchr(letters, at[1]);
    *text = at + 2;
    if (letter != NULL)
        return bytes[letter - letters];
    snprintf(hex, sizeof(hex), "%.2s", at + 2);
    *text += strlen(hex);
    return (char)strtoul(hex, NULL, 16);
}

void
load_bad_reply_read(struct load_bad_reply *bad, const char *why, const char *quoted)
{
    struct load_bad_reply read = {.why = LOAD_BAD_MORE};

    if (why == NULL || quoted == NULL || *quoted != '"')
        return;
    while (read.why > 0 && strcmp(load_bad_reply_why(&read), why) != 0)
        read.why--;
    for (quoted++; *quoted != '\0' && *quoted != '"' && read.length < LOAD_BAD_BYTES;)
        read.bytes[read.length++] = read_shown(&quoted);
    if (read.why > 0)
        *bad = read;
}
