/* SPDX-License-Identifier: MIT
 *
 * The client's side of FastCGI: records of a server, in pieces, of which a script's head becomes
 * the head of a response. The first byte chooses the size of the pieces, the second one the room
 * for the head. The same bytes in one piece must give the same; a head that is taken must be read
 * whole by the parser, or refused by it; and a request that is written must be read again.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sxe-http-client-private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 8192 };

struct found {
    char output[INPUT_MAX];
    size_t output_length;
    char errors[INPUT_MAX];
    size_t errors_length;
    bool is_ended;
    const char *complaint;
};

static void
check_that(bool is_good, const char *what)
{
    if (!is_good) {
        fprintf(stderr, "%s is wrong\n", what);
        abort();
    }
}

/* Read records, `piece` bytes at a time, each time from memory of the exact size. */
static void
read_all(struct found *found, const char *data, size_t size, size_t piece)
{
    struct sxe__http_records records;
    enum sxe__http_record_kind kind;
    struct sxe_span content;
    size_t taken = 0;
    size_t end = 0;
    ssize_t n = 1;

    memset(found, 0, sizeof(*found));
    sxe__http_records_begin(&records, false, NULL, 0);
    while (!found->is_ended && n >= 0 && end < size) {
        end = size - end < piece ? size : end + piece;
        char *copy = malloc(end - taken);

        check_that(copy != NULL, "memory");
        memcpy(copy, data + taken, end - taken);
        for (size_t at = 0; !found->is_ended; at += (size_t)n) {
            n = sxe__http_records_read(&records, copy + at, end - taken - at, &content, &kind,
                                       &found->complaint);
            check_that((n < 0) <= (found->complaint != NULL), "a complaint");
            if (n <= 0) {
                taken += at;
                break;
            }
            char *to = kind == SXE__HTTP_RECORD_OUTPUT ? found->output : found->errors;
            size_t *used =
                kind == SXE__HTTP_RECORD_OUTPUT ? &found->output_length : &found->errors_length;

            if (kind == SXE__HTTP_RECORD_OUTPUT || kind == SXE__HTTP_RECORD_ERRORS) {
                memcpy(to + *used, content.base, content.length);
                *used += content.length;
            }
            found->is_ended = kind == SXE__HTTP_RECORD_END;
        }
        free(copy);
    }
}

/* Make a head, as many bytes at a time as `piece` says. Returns how many bytes were taken. */
static size_t
make_head(const char *data, size_t size, size_t piece, char *room, size_t room_size, size_t *made,
          const char **complaint)
{
    struct sxe__http_records records;
    bool is_whole = false;
    size_t at = 0;

    *complaint = NULL;
    *made = 0;
    sxe__http_records_begin(&records, false, NULL, 0);
    while (at < size && !is_whole) {
        const size_t length = size - at < piece ? size - at : piece;
        const ssize_t n = sxe__http_records_head(&records, (struct sxe_span){data + at, length},
                                                 room, room_size, &is_whole, complaint);

        if (n < 0)
            return at;
        check_that((size_t)n == length || (is_whole && (size_t)n <= length), "what was taken");
        at += (size_t)n;
        check_that(records.used <= room_size, "the head's length");
    }
    *made = is_whole ? records.used : 0;
    return at;
}

static void
check_heads(const char *data, size_t size, size_t piece, size_t room_size)
{
    static const struct sxe_http_limits limits = {UINT16_MAX, UINT16_MAX, 255};
    struct sxe_http_field fields[255];
    struct sxe_http_parser parser;
    char *rooms[2] = {malloc(room_size + 1), malloc(room_size + 1)};
    const char *complaints[2];
    size_t made[2];
    size_t taken[2];

    check_that(rooms[0] != NULL && rooms[1] != NULL, "memory");
    taken[0] = make_head(data, size, size, rooms[0], room_size, &made[0], &complaints[0]);
    taken[1] = make_head(data, size, piece, rooms[1], room_size, &made[1], &complaints[1]);
    check_that(complaints[0] == complaints[1], "the complaint about pieces");
    check_that(made[0] == made[1] && memcmp(rooms[0], rooms[1], made[0]) == 0, "a head in pieces");
    check_that(complaints[0] != NULL || taken[0] == taken[1], "the length of a head in pieces");
    if (made[0] > 0) {
        sxe_http_parser_init(&parser, SXE_HTTP_RESPONSE, fields, 255, &limits);
        const int n = sxe_http_parse(&parser, rooms[0], made[0]);

        check_that(n == -1 || (n == (int)made[0] && parser.status >= 200 && parser.status <= 599 &&
                               parser.body != SXE_HTTP_BODY_CHUNKED),
                   "the head that was made");
    }
    free(rooms[0]);
    free(rooms[1]);
}

/* Write the bytes as parameters, and read them again. */
static void
check_request(const char *data, size_t size, size_t room_size)
{
    struct sxe_http_pair pairs[64];
    struct sxe_http_request_head head = {.method = {"GET", 3}, .fields = pairs};
    struct sxe__http_asked asked;
    struct sxe_http_fastcgi reader;
    struct sxe_span content;
    char *room = malloc(room_size + 1);
    ssize_t length;
    size_t at = 0;

    check_that(room != NULL, "memory");
    for (size_t i = 0; i + 2 < size && head.fields_number < 64; i += 3) {
        const size_t name = (uint8_t)data[i] % 8 + 1u;
        const size_t value = (uint8_t)data[i + 1] * 2u;

        if (name > size - i || value > size - i)
            break;
        pairs[head.fields_number++] = (struct sxe_http_pair){{data + i, name}, {data + i, value}};
    }
    length = sxe__http_records_write(&head, true, room, room_size, &asked);
    check_that(length <= (ssize_t)room_size, "the length of a request");
    sxe_http_fastcgi_init(&reader, SXE_HTTP_FASTCGI_OF_CLIENT);
    while (length > 0 && at < (size_t)length) {
        const ssize_t n = sxe_http_fastcgi_read(&reader, room + at, (size_t)length - at, &content);

        check_that(n > 0 && reader.id == 1, "a request that was written");
        at += (size_t)n;
    }
    free(room);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct found whole;
    static struct found pieces;
    const char *bytes = (const char *)data + 2;

    if (size < 2 || size > INPUT_MAX)
        return 0;
    size -= 2;
    read_all(&whole, bytes, size, INPUT_MAX);
    read_all(&pieces, bytes, size, data[0] + 1u);
    check_that(whole.complaint == pieces.complaint && whole.is_ended == pieces.is_ended,
               "the end of records in pieces");
    check_that(whole.output_length == pieces.output_length &&
                   memcmp(whole.output, pieces.output, whole.output_length) == 0 &&
                   whole.errors_length == pieces.errors_length &&
                   memcmp(whole.errors, pieces.errors, whole.errors_length) == 0,
               "the streams of records in pieces");
    check_heads(whole.output, whole.output_length, data[0] + 1u, data[1] * 8u);
    check_heads(bytes, size, data[0] + 1u, data[1] * 8u);
    check_request(bytes, size, data[1] * 16u);
    return 0;
}
