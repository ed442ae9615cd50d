/* SPDX-License-Identifier: MIT */
#include "access-log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_SIZE (64u * 1024)
#define LINE_SIZE   4096u
#define FIELD_MAX   1200u /* bytes of one escaped text */

struct access_log {
    const char *path;
    enum access_log_format format;
    int fd;
    time_t second; /* that `date` says */
    char date[40];
    uint64_t dropped;
    uint64_t reported; /* of those dropped */
    unsigned used;
    char buffer[BUFFER_SIZE];
};

/* A line being made; what has no room is cut. */
struct line {
    char text[LINE_SIZE];
    unsigned length;
};

/* ---- Lines ---- */

enum escape { HEX, JSON };

static void add(struct line *line, const char *format, ...) SXE_PRINTF(2, 3);

static void
add(struct line *line, const char *format, ...)
{
    unsigned room = LINE_SIZE - line->length;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line->text + line->length, room, format, arguments);
    va_end(arguments);
    line->length += (unsigned)length < room ? (unsigned)length : room - 1;
}

static void
add_escaped(struct line *line, struct sxe_span text, enum escape escape)
{
    unsigned end = line->length + FIELD_MAX;

    for (size_t i = 0; i < text.length && line->length < end; i++) {
        unsigned char byte = (unsigned char)text.base[i];

        if (byte < ' ' || byte >= 0x7f || byte == '"' || byte == '\\')
            add(line, escape == JSON ? "\\u%04x" : "\\x%02X", byte);
        else if (line->length < LINE_SIZE - 1)
            line->text[line->length++] = (char)byte;
    }
}

static void
add_quoted(struct line *line, struct sxe_span text)
{
    add(line, " \"");
    add_escaped(line, text.base == NULL ? (struct sxe_span){"-", 1} : text, HEX);
    add(line, "\"");
}

static struct sxe_span
peer_of(const struct sxe_http_request *request)
{
    const char *ip = sxe_http_peer_ip(request);

    if (*ip == '\0')
        ip = "unix";
    return (struct sxe_span){ip, strlen(ip)};
}

static void
add_common(struct line *line, const char *date, const struct sxe_http_request *request,
           const struct sxe_http_summary *summary)
{
    add_escaped(line, peer_of(request), HEX);
    add(line, " - - [%s] \"", date);
    add_escaped(line, sxe_http_method_text(request), HEX);
    add(line, " ");
    add_escaped(line, sxe_http_target(request), HEX);
    add(line, " HTTP/1.%u\" %u %llu", request->head.minor, summary->status,
        (unsigned long long)summary->body_length);
}

static void
add_member(struct line *line, const char *name, struct sxe_span text)
{
    if (text.base == NULL)
        return;
    add(line, ",\"%s\":\"", name);
    add_escaped(line, text, JSON);
    add(line, "\"");
}

static void
add_json(struct line *line, const char *date, const struct sxe_http_request *request,
         const struct sxe_http_summary *summary)
{
    add(line, "{\"time\":\"%s\",\"status\":%u,\"bytes\":%llu,\"duration_us\":%llu", date,
        summary->status, (unsigned long long)summary->body_length,
        (unsigned long long)(summary->duration_ns / SXE_NS_PER_US));
    add_member(line, "peer", peer_of(request));
    add_member(line, "method", sxe_http_method_text(request));
    add_member(line, "target", sxe_http_target(request));
    add(line, ",\"version\":\"1.%u\"", request->head.minor);
    add_member(line, "host", sxe_http_known_value(request, SXE_HTTP_FIELD_HOST));
    add_member(line, "referer", sxe_http_field_value(request, "Referer"));
    add_member(line, "user_agent", sxe_http_known_value(request, SXE_HTTP_FIELD_USER_AGENT));
    if (summary->result < 0)
        add(line, ",\"error\":\"%s\"", strerror(-summary->result));
    add(line, "}");
}

/* The date of now, made once a second. UTC, whatever the zone is. */
static const char *
date_of_now(struct access_log *log)
{
    time_t now = time(NULL);
    struct tm tm;

    if (now == log->second)
        return log->date;
    log->second = now;
    gmtime_r(&now, &tm);
    if (log->format == ACCESS_LOG_JSON) {
        snprintf(log->date, sizeof(log->date), "%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900,
                 tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
        return log->date;
    }
    snprintf(log->date, sizeof(log->date), "%02d/%.3s/%04d:%02d:%02d:%02d +0000", tm.tm_mday,
             "JanFebMarAprMayJunJulAugSepOctNovDec" + 3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour,
             tm.tm_min, tm.tm_sec);
    return log->date;
}

static void
make_line(struct access_log *log, struct line *line, const struct sxe_http_request *request,
          const struct sxe_http_summary *summary)
{
    const char *date = date_of_now(log);

    if (log->format == ACCESS_LOG_JSON) {
        add_json(line, date, request, summary);
    } else {
        add_common(line, date, request, summary);
        if (log->format == ACCESS_LOG_COMBINED) {
            add_quoted(line, sxe_http_field_value(request, "Referer"));
            add_quoted(line, sxe_http_known_value(request, SXE_HTTP_FIELD_USER_AGENT));
        }
    }
    line->text[line->length++] = '\n';
}

/* ---- The file ---- */

static int
open_file(const char *path)
{
    if (strcmp(path, "-") == 0)
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
}

struct access_log *
access_log_open(const char *path, enum access_log_format format)
{
    struct access_log *log = calloc(1, sizeof(*log));

    if (log == NULL)
        return NULL;
    log->path = path;
    log->format = format;
    log->second = -1;
    log->fd = open_file(path);
    if (log->fd >= 0)
        return log;
    free(log);
    return NULL;
}

int
access_log_reopen(struct access_log *log)
{
    int fd = open_file(log->path);

    if (fd < 0)
        return -errno;
    access_log_flush(log);
    close(log->fd);
    log->fd = fd;
    return 0;
}

static void
report_drops(struct access_log *log)
{
    if (log->dropped == log->reported)
        return;
    SXE_WARN("the access log %s goes on; %llu lines are lost, because it could not be written",
             log->path, (unsigned long long)(log->dropped - log->reported));
    log->reported = log->dropped;
}

/* What cannot be written now stays: half a line would spoil the next one. */
void
access_log_flush(struct access_log *log)
{
    ssize_t written = log->used == 0 ? 0 : write(log->fd, log->buffer, log->used);

    if (written <= 0)
        return;
    log->used -= (unsigned)written;
    memmove(log->buffer, log->buffer + written, log->used);
    if (log->used == 0)
        report_drops(log);
}

void
access_log_add(struct access_log *log, const struct sxe_http_request *request,
               const struct sxe_http_summary *summary)
{
    struct line line;

    line.length = 0;
    make_line(log, &line, request, summary);
    if (line.length > BUFFER_SIZE - log->used)
        access_log_flush(log);
    if (line.length > BUFFER_SIZE - log->used) {
        log->dropped++;
        return;
    }
    memcpy(log->buffer + log->used, line.text, line.length);
    log->used += line.length;
}

uint64_t
access_log_dropped(const struct access_log *log)
{
    return log->dropped;
}

void
access_log_close(struct access_log *log)
{
    if (log == NULL)
        return;
    access_log_flush(log);
    close(log->fd);
    free(log);
}
