/* SPDX-License-Identifier: MIT
 *
 * What: from an entry to the reply: which part of the file the request gets (RFC 9110, 13 and 14),
 * the fields that describe it, and the parts of multipart/byteranges (14.6).
 */
#include "sxe-http-file-private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "sxe-http-conditional.h"
#include "sxe-http-private.h"

/* 128 random bits as text, and a NUL: no file can have been made to contain it */
#define BOUNDARY_SIZE  33
#define PART_HEAD_SIZE (BOUNDARY_SIZE + SXE__HTTP_TYPE_MAX + SXE_HTTP_CONTENT_RANGE_MAX + 64)

struct reply {
    struct sxe_http_request *request;
    struct sxe_http_response *response;
    const struct sxe_http_files *files;
    const struct sxe__http_file *base;
    struct sxe__http_file *file; /* the file that is sent: base, or a sibling of base */
    const char *coding;          /* the coding of `file`; NULL: none */
    const char *modified;
};

/* ---- Refusals ---- */

void
sxe__http_file_refuse(struct sxe_http_request *request, unsigned status)
{
    struct sxe_http_response *response = sxe_http_response_of(request);

    if (status == 503) /* if there is no room for Retry-After, answer without it */
        (void)!sxe_http_add_field(response, "Retry-After", "1");
    (void)!sxe_http_reply_status(response, status);
}

static bool
has_name_end(struct sxe_span text, const char *name)
{
    const size_t length = strlen(name);
    const char *end = text.base + text.length;

    return text.length >= length && memcmp(end - length, name, length) == 0 &&
           (text.length == length || length == 0 || end[-(ptrdiff_t)length - 1] == '/');
}

void
sxe__http_file_redirect(struct sxe_http_files *files, struct sxe_http_request *request,
                        const char *name)
{
    struct sxe_http_response *response = sxe_http_response_of(request);
    struct sxe_span query = request->query;
    char location[3 * SXE__HTTP_NAME_SIZE + SXE__HTTP_PATH_ROOM] = "/";
    ssize_t length = sxe_http_path_to_file(request->path, files->room, sizeof(files->room));
    struct sxe_span all = {files->room, length > 0 ? (size_t)length : 0};

    /* the path does not end with the name that a handler gave to sxe_http_files_send */
    if (length <= 0 || !has_name_end(all, name)) {
        sxe__http_file_refuse(request, 404);
        return;
    }
    length = sxe_http_encode_path(all, location + 1, 3 * SXE__HTTP_NAME_SIZE);
    if (length >= 0)
        snprintf(location + 1 + length, sizeof(location) - 1 - (size_t)length, "/%s%.*s",
                 query.base == NULL ? "" : "?", (int)query.length, query.base);
    if (length < 0 || sxe_http_add_field(response, "Location", location) < 0)
        sxe__http_file_refuse(request, 414);
    else
        sxe__http_file_refuse(request, 301);
}

void
sxe__http_file_allow(struct sxe_http_request *request, unsigned status)
{
    struct sxe_http_response *response = sxe_http_response_of(request);

    (void)!sxe_http_add_field(response, "Allow", "GET, HEAD, OPTIONS");
    if (status == 204)
        (void)!sxe_http_reply(response, 204, NULL, NULL, 0);
    else
        (void)!sxe_http_reply_status(response, status);
}

/* ---- Fields ---- */

struct line {
    const char *name;
    const char *value; /* NULL: the line is left out */
};

static int
add_header_lines(struct sxe_http_response *response, const struct line *lines, unsigned number)
{
    int result = 0;

    for (unsigned i = 0; i < number && result == 0; i++) {
        if (lines[i].value != NULL)
            result = sxe_http_add_field(response, lines[i].name, lines[i].value);
    }
    return result;
}

/* Add the fields about the representation that every reply has, 304 too (RFC 9110, 15.4.5). */
static int
add_validators(const struct reply *reply)
{
    bool is_listing = reply->file->is_listing;
    const char *cache_control = reply->files->config.cache_control;
    const struct line lines[] = {
        {"ETag", is_listing ? NULL : reply->file->etag},
        {"Last-Modified", is_listing ? NULL : reply->modified},
        {"Cache-Control", is_listing ? "no-cache" : cache_control},
        {"Vary", reply->base->siblings != 0 ? "Accept-Encoding" : NULL},
    };

    return add_header_lines(reply->response, lines, sizeof(lines) / sizeof(lines[0]));
}

/* Content-Encoding comes last: if the lines do not fit, finish_reply answers 500 with the lines
 * before it, and the body of a 500 has no coding. */
static int
add_file_headers(const struct reply *reply, const char *type, const char *content_range)
{
    const char *units = reply->files->config.no_ranges ? "none" : "bytes";
    const struct line lines[] = {
        {"Content-Type", type},
        {"X-Content-Type-Options", reply->files->config.sniff ? NULL : "nosniff"},
        {"Accept-Ranges", reply->file->is_listing ? NULL : units},
        {"Content-Range", content_range},
        {"Content-Encoding", reply->coding},
    };
    int result = add_validators(reply);

    return result < 0 ? result
                      : add_header_lines(reply->response, lines, sizeof(lines) / sizeof(lines[0]));
}

/* ---- Contents ---- */

/* Whether replies copy the content; then no reply needs to hold the entry. */
static bool
is_copied(const struct sxe__http_file *file)
{
    return file->content != NULL && file->size <= SXE__HTTP_COPY_MAX;
}

/* A reply cannot be sent: answer 500, or abort the connection if that fails, too. */
static void
finish_reply(const struct reply *reply, int result)
{
    if (result < 0)
        sxe__http_file_refuse(reply->request, 500);
}

static int
end_reply_with_file(const struct reply *reply, uint64_t first, uint64_t length)
{
    const struct sxe__http_file *file = reply->file;

    if (file->content != NULL)
        return sxe_http_end_borrowed(reply->response, file->content + first, length);
    return sxe_http_end_file(reply->response, file->fd, (off_t)first, length);
}

/* Add the fields of a reply with the whole file. Without a coding they are equal in each reply, so
 * the entry keeps them for the next one. */
static int
add_all_fields(const struct reply *reply)
{
    struct sxe__http_file *file = reply->file;
    bool is_usual = reply->coding == NULL && reply->modified == file->modified &&
                    sxe__http_lines(reply->response).length == 0;
    struct sxe_span lines = {file->lines, file->lines_length};
    int result;

    if (is_usual && lines.length > 0 && file->lines_siblings == file->siblings)
        return sxe__http_add_lines(reply->response, lines);
    result = add_file_headers(reply, reply->base->type, NULL);
    lines = sxe__http_lines(reply->response);
    if (result == 0 && is_usual && lines.length <= sizeof(file->lines)) {
        memcpy(file->lines, lines.base, lines.length);
        file->lines_length = (uint16_t)lines.length;
        file->lines_siblings = file->siblings;
    }
    return result;
}

static void
send_all_ranges(const struct reply *reply)
{
    int result = add_all_fields(reply);

    finish_reply(reply, result < 0 ? result : end_reply_with_file(reply, 0, reply->file->size));
}

static void
send_range(const struct reply *reply, const struct sxe_http_range *range)
{
    char content_range[SXE_HTTP_CONTENT_RANGE_MAX];
    int result;

    sxe_http_content_range(range, reply->file->size, content_range);
    result = add_file_headers(reply, reply->base->type, content_range);
    if (result == 0)
        result = sxe_http_set_status(reply->response, 206);
    finish_reply(reply,
                 result < 0 ? result : end_reply_with_file(reply, range->first, range->length));
}

/* ---- Several ranges ---- */

struct multipart {
    const struct reply *reply;
    const struct sxe_http_range *ranges;
    unsigned number;
    char boundary[BOUNDARY_SIZE];
};

/* Make the boundary between parts. False: the system has no random bits yet. */
static bool
make_boundary(char boundary[BOUNDARY_SIZE])
{
    uint64_t random[2];

    if (getrandom(random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
        return false;
    snprintf(boundary, BOUNDARY_SIZE, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    return true;
}

static size_t
put_part_head(const struct multipart *multipart, unsigned i, char head[PART_HEAD_SIZE])
{
    const struct reply *reply = multipart->reply;
    char content_range[SXE_HTTP_CONTENT_RANGE_MAX];

    sxe_http_content_range(&multipart->ranges[i], reply->file->size, content_range);
    return (size_t)snprintf(
        head, PART_HEAD_SIZE, "%s--%s\r\nContent-Type: %s\r\nContent-Range: %s\r\n\r\n",
        i == 0 ? "" : "\r\n", multipart->boundary, reply->base->type, content_range);
}

#define LAST_LINE        "\r\n--%s--\r\n"
#define LAST_LINE_LENGTH (BOUNDARY_SIZE - 1 + SXE_LITERAL_LENGTH("\r\n----\r\n"))

static uint64_t
length_of(const struct multipart *multipart)
{
    uint64_t length = LAST_LINE_LENGTH;
    char head[PART_HEAD_SIZE];

    for (unsigned i = 0; i < multipart->number; i++)
        length += put_part_head(multipart, i, head) + multipart->ranges[i].length;
    return length;
}

static int
write_multipart_part(const struct multipart *multipart, unsigned i)
{
    const struct sxe__http_file *file = multipart->reply->file;
    struct sxe_http_response *response = multipart->reply->response;
    const struct sxe_http_range *range = &multipart->ranges[i];
    char head[PART_HEAD_SIZE];
    int result = sxe_http_write(response, head, put_part_head(multipart, i, head));

    if (result < 0)
        return result;
    if (is_copied(file))
        return sxe_http_write(response, file->content + range->first, range->length);
    if (file->content != NULL)
        return sxe__http_write_borrowed(response, file->content + range->first, range->length);
    return sxe_http_write_file(response, file->fd, (off_t)range->first, range->length);
}

static void
write_multipart_parts(const struct multipart *multipart)
{
    struct sxe_http_response *response = multipart->reply->response;
    char last_line[LAST_LINE_LENGTH + 1];
    int result = 0;

    for (unsigned i = 0; i < multipart->number && result == 0; i++)
        result = write_multipart_part(multipart, i);
    snprintf(last_line, sizeof(last_line), LAST_LINE, multipart->boundary);
    if (result == 0)
        result = sxe_http_end(response, last_line, LAST_LINE_LENGTH);
    /* The reply cannot go on. Ending a reply too early closes the connection. */
    if (result < 0)
        (void)!sxe_http_end(response, NULL, 0);
}

static void
send_ranges(const struct reply *reply, const struct sxe_http_range *ranges, unsigned number)
{
    struct multipart multipart = {.reply = reply, .ranges = ranges, .number = number};
    char type[sizeof("multipart/byteranges; boundary=") + BOUNDARY_SIZE];
    int result;

    /* without a boundary send the whole file; a server may always ignore Range */
    if (!make_boundary(multipart.boundary)) {
        send_all_ranges(reply);
        return;
    }
    snprintf(type, sizeof(type), "multipart/byteranges; boundary=%s", multipart.boundary);
    result = add_file_headers(reply, type, NULL);
    if (result == 0)
        result = sxe_http_set_status(reply->response, 206);
    if (result == 0)
        result = sxe_http_begin(reply->response, length_of(&multipart));
    if (result == 0)
        write_multipart_parts(&multipart);
    finish_reply(reply, result);
}

/* ---- Choosing the reply ---- */

static void
send_not_modified(const struct reply *reply)
{
    int result = add_validators(reply);

    if (result == 0)
        result = sxe_http_set_status(reply->response, 304);
    finish_reply(reply, result < 0 ? result : sxe_http_end(reply->response, NULL, 0));
}

static void
send_unsatisfiable(const struct reply *reply)
{
    char content_range[SXE_HTTP_CONTENT_RANGE_MAX];

    sxe_http_content_range(NULL, reply->file->size, content_range);
    (void)!sxe_http_add_field(reply->response, "Content-Range", content_range);
    sxe__http_file_refuse(reply->request, 416);
}

static void
send_selected(const struct reply *reply, int64_t modified, int64_t now)
{
    const struct sxe__http_file *file = reply->file;
    const struct sxe_http_request *request = reply->request;
    const struct sxe_http_files_config *config = &reply->files->config;
    struct sxe_http_range ranges[SXE_HTTP_FILES_RANGES_MOST];
    struct sxe_http_conditions conditions =
        sxe_http_conditions_of(&request->head, request->data, now);
    struct sxe_http_representation selected = {
        .etag = {file->etag, strlen(file->etag)},
        .modified = modified,
        .length = file->size,
        .modified_is_weak = modified >= now,
    };
    unsigned status = sxe_http_precondition(&conditions, &selected);
    int number;

    if (status == 304) {
        send_not_modified(reply);
        return;
    }
    if (status != 0) {
        sxe__http_file_refuse(reply->request, status);
        return;
    }
    number = config->no_ranges
                 ? 0
                 : sxe_http_select_ranges(&conditions, &selected, ranges, config->ranges_max);
    if (number < 0)
        send_unsatisfiable(reply);
    else if (number == 0)
        send_all_ranges(reply);
    else if (number == 1)
        send_range(reply, &ranges[0]);
    else
        send_ranges(reply, ranges, (unsigned)number);
}

static void
send_whole_file(struct reply *reply, struct sxe_http_files *files)
{
    const char *date = sxe_http_date(&files->date, sxe_time_turn_ns());
    int64_t now = files->date.seconds;
    int64_t modified = reply->file->found.st_mtim.tv_sec;
    char text[SXE_HTTP_DATE_LENGTH + 1];

    reply->modified = reply->file->modified;
    if (modified > now) { /* Last-Modified must not be later than Date (RFC 9110, 8.8.2.1) */
        modified = now;
        snprintf(text, sizeof(text), "%.*s", SXE_HTTP_DATE_LENGTH, date);
        reply->modified = text;
    }
    if (SXE_LIKELY(sxe_http_is_unconditional(&reply->request->head)))
        send_all_ranges(reply);
    else
        send_selected(reply, modified, now);
}

static void
end_file_reply(struct sxe_http_request *request, struct sxe_http_response *response, int result)
{
    SXE_UNUSED_PARAMETER(request);
    SXE_UNUSED_PARAMETER(result);
    sxe__http_cache_release(response->user);
}

void
sxe__http_file_reply(const struct sxe__http_wish *wish, struct sxe__http_file *base,
                     struct sxe__http_file *file)
{
    struct sxe_http_response *response = sxe_http_response_of(wish->request);
    struct reply reply = {
        .request = wish->request,
        .response = response,
        .files = base->files,
        .base = base,
        .file = file,
        .coding = file == base ? NULL : sxe__http_codings[wish->coding].name,
    };

    if (file->status == 301) {
        sxe__http_file_redirect(base->files, wish->request, base->name);
        return;
    }
    if (file->status == 404 && base->files->config.missing != NULL) {
        (void)base->files->config.missing(wish->request, response);
        return;
    }
    if (file->status != 0) {
        sxe__http_file_refuse(wish->request, file->status);
        return;
    }
    response->user = file;
    response->on_done = is_copied(file) ? NULL : end_file_reply;
    if (response->on_done == NULL)
        sxe__http_cache_touch(file);
    else
        sxe__http_cache_hold(file);
    if (file->is_listing)
        send_all_ranges(&reply);
    else
        send_whole_file(&reply, base->files);
}
