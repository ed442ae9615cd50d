/* SPDX-License-Identifier: MIT
 *
 * Access logs in the common and combined formats of Apache, nginx, sxe-httpd and many others:
 *
 *     127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a?b HTTP/1.0" 200 2326 "referer" "agent"
 *                    ^ time                       ^ request; what is around them is not looked at
 *
 * If a client sent nothing until it timed out, the log has "-" (Apache) or "" (nginx, with status
 * 400 or 408) in place of the request. Such a line cannot be replayed.
 */
#include "replay-private.h"

#include <ctype.h>
#include <string.h>

#define TIME    "10/Oct/2000:13:55:36 -0700"
#define VERSION "HTTP/"

struct log_line {
    uint64_t at_ns;
    bool is_unasked;      /* whether the line has no request, but "-" or "" */
    struct sxe_span text; /* the request line, "GET /a?b" */
    struct sxe_span method;
    struct sxe_span target;
};

static int
hex_digit_of_log(char c)
{
    const char *digits = "0123456789abcdef";
    const char *at = c == '\0' ? NULL : strchr(digits, tolower((unsigned char)c));

    return at == NULL ? -1 : (int)(at - digits);
}

/* Decode the escape whose backslash was read, and whose other bytes begin the text. Store the byte,
 * and return how many bytes of the text belong to the escape. nginx and Apache write \xHH; Apache
 * also writes the escapes of C, such as \t. */
static size_t
unescape_one_byte(struct sxe_span text, char *byte)
{
    /* the letters of \b, \t, \n, \v, \f and \r, whose codes are 8 to 13 */
    static const char letters[] = "btnvfr";
    const char *letter = memchr(letters, *text.base, strlen(letters));
    int high;
    int low;

    if (letter != NULL) {
        *byte = (char)('\b' + (letter - letters));
        return 1;
    }
    *byte = *text.base;
    if (*text.base != 'x' || text.length < 3)
        return 1;
    high = hex_digit_of_log(text.base[1]);
    low = hex_digit_of_log(text.base[2]);
    if (high < 0 || low < 0)
        return 1;
    *byte = (char)(high * 16 + low);
    return 3;
}

/* Copy the quoted string that begins the text to `room`, which is large enough, and decode its
 * escapes. False: the closing quote is missing. */
static bool
unquote_text(struct sxe_span text, char *room, struct sxe_span *result)
{
    *result = (struct sxe_span){room, 0};
    for (size_t i = 1; i < text.length && *text.base == '"'; i++) {
        char byte = text.base[i];

        if (byte == '"')
            return true;
        if (byte == '\\' && i + 1 < text.length)
            i +=
                unescape_one_byte((struct sxe_span){text.base + i + 1, text.length - i - 1}, &byte);
        room[result->length++] = byte;
    }
    return false;
}

/* Split "GET /a HTTP/1.1". The method ends at the first blank, and the version begins after the
 * last one. */
static bool
split_request(struct sxe_span request, struct log_line *line)
{
    const char *version = memrchr(request.base, ' ', request.length);
    const char *end = request.base + request.length;
    const char *blank = memchr(request.base, ' ', request.length);

    if (version == NULL || version == blank || (size_t)(end - version - 1) <= strlen(VERSION) ||
        memcmp(version + 1, VERSION, strlen(VERSION)) != 0)
        return false;
    line->text = (struct sxe_span){request.base, (size_t)(version - request.base)};
    line->method = (struct sxe_span){request.base, (size_t)(blank - request.base)};
    line->target = (struct sxe_span){blank + 1, (size_t)(version - blank - 1)};
    return true;
}

/* Read time, method and target. A user's name may contain a bracket, so look for the bracket that
 * is followed by a time. */
static bool
parse_line(struct sxe_span text, char *room, struct log_line *line)
{
    const size_t length = strlen(TIME);
    const char *end = text.base + text.length;
    const char *p = text.base;

    while ((p = memchr(p, '[', (size_t)(end - p))) != NULL) {
        struct sxe_span request;

        p++;
        if ((size_t)(end - p) <= length || p[length] != ']' ||
            !load_replay_log_time((struct sxe_span){p, length}, &line->at_ns))
            continue;
        p += length + 1;
        while (p < end && *p == ' ')
            p++;
        if (p == end || !unquote_text((struct sxe_span){p, (size_t)(end - p)}, room, &request))
            return false;
        line->is_unasked = request.length == 0 || (request.length == 1 && *request.base == '-');
        return split_request(request, line);
    }
    return false;
}

/* Whether lib-sxe-http can write the request. CONNECT is refused, because it would open a
 * tunnel. */
static bool
is_sendable(const struct log_line *line)
{
    char head[LOAD_READER_ROOM];
    struct sxe_http_request_head request = {.method = line->method, .target = line->target};

    return line->method.length > 0 && !load_template_is_method(line->method, "CONNECT") &&
           sxe_http_request_write(&request, head, sizeof(head)) > 0;
}

/* Find the index of the line's request in texts, or add the request. SXE_NONE: the line is not to
 * be sent, or *wrong is set. */
static uint32_t
find_text(struct load_replay *replay, const struct log_line *line, const char **wrong)
{
    uint32_t request = load_texts_find(&replay->texts, line->text);
    int kind;

    if (request != SXE_NONE)
        return request;
    kind = is_sendable(line) ? load_replay_kind(replay, line->method, wrong) : -1;
    if (kind < 0)
        return SXE_NONE;
    request = load_texts_add(&replay->texts, line->text, (uint16_t)kind);
    if (request == SXE_NONE)
        *wrong = "out of memory";
    return request;
}

/* Add a line of the log. NULL, or why no more lines can be added. */
static const char *
add_log_line(struct load_replay *replay, struct sxe_span text)
{
    char room[LOAD_READER_ROOM];
    const char *wrong = NULL;
    struct log_line line = {.is_unasked = false};
    uint32_t request = SXE_NONE;

    if (parse_line(text, room, &line))
        request = find_text(replay, &line, &wrong);
    if (request != SXE_NONE)
        return load_replay_add(replay, line.at_ns, request);
    if (line.is_unasked)
        replay->unasked++;
    else if (wrong == NULL)
        load_replay_refuse(replay, text);
    return wrong;
}

const char *
load_replay_read_log(struct load_replay *replay, struct load_reader *reader)
{
    const char *wrong = NULL;
    struct sxe_span line;

    while (wrong == NULL && load_reader_line(reader, &line)) {
        replay->lines++;
        if (line.length > 0 && line.base[line.length - 1] == '\r')
            line.length--;
        if (line.length == 0)
            continue;
        replay->is_cut = replay->number == replay->entries_max;
        if (replay->is_cut)
            break;
        wrong = add_log_line(replay, line);
    }
    return wrong;
}
