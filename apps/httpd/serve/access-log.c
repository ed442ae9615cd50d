/* SPDX-License-Identifier: MIT
 *
 * Formatting lines of the access log, and writing them without ever waiting.
 */
#include "access-log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sxe-json.h"

#define BUFFER_SIZE (64u * 1024)
#define LINE_SIZE   9216u
#define TEXT_MAX    1200u /* bytes of one escaped text; its last escape may exceed them */
#define TEXTS       6     /* client's texts in a line: user, method, target, host, referer, agent */
#define REST_MAX    1024  /* bytes of the rest of a line */

_Static_assert(TEXTS *(TEXT_MAX + sizeof("\\u00ff")) + REST_MAX <= LINE_SIZE,
               "every line has room: none is cut where it would not be JSON");

struct access_log {
    const char *path;
    enum access_log_format format;
    bool has_ids; /* lines of JSON have the id of the request */
    bool is_sampled;
    double rate;        /* the part of requests that is logged, if is_sampled */
    uint64_t draw_from; /* the least draw_of of a request that is logged */
    uint64_t slow_ns;
    int fd;
    time_t second; /* the time that `date` shows */
    char date[40];
    uint64_t dropped;
    uint64_t reported; /* dropped lines that a warning has counted */
    size_t torn;       /* bytes of the buffer's first line that the file already has */
    unsigned used;
    char buffer[BUFFER_SIZE];
};

struct line {
    char text[LINE_SIZE];
    unsigned length;
};

/* ---- Sampling ---- */

#define DRAW_BITS 56 /* bits at the end of a trace id that are random: W3C Trace Context 2 */

/* A number below 2^56, the same in all servers that see the trace. Without a trace it is made of
 * the request's id, by FNV-1a and the finalizer of MurmurHash3. */
static uint64_t
draw_of(const struct sxe_http_request *request)
{
    const struct sxe_http_trace *trace = sxe_http_trace(request);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    if (trace != NULL)
        return strtoull(trace->trace_id + 32 - DRAW_BITS / 4, NULL, 16);
    for (const char *p = sxe_http_request_id(request); *p != '\0'; p++)
        hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
    hash = (hash ^ hash >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return hash >> (64 - DRAW_BITS);
}

static bool
is_always_logged(const struct access_log *log, const struct sxe_http_summary *summary)
{
    return summary->status >= 500 || summary->duration_ns >= log->slow_ns;
}

static bool
is_chosen(const struct access_log *log, const struct sxe_http_request *request,
          const struct sxe_http_summary *summary)
{
    return !log->is_sampled || is_always_logged(log, summary) || draw_of(request) >= log->draw_from;
}

void
access_log_sample(struct access_log *log, double rate, uint32_t slow_ms)
{
    log->is_sampled = true;
    log->rate = rate;
    log->draw_from = (uint64_t)((1 - rate) * (double)(UINT64_C(1) << DRAW_BITS));
    log->slow_ns = slow_ms * (uint64_t)SXE_NS_PER_MS;
}

/* ---- Lines ---- */

static void add_to_line(struct line *line, const char *format, ...) SXE_PRINTF(2, 3);

static void
add_to_line(struct line *line, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    line->length +=
        (unsigned)vsnprintf(line->text + line->length, LINE_SIZE - line->length, format, arguments);
    va_end(arguments);
}

/* A blank stays in a quoted text, but would end a word. */
static void
add_escaped(struct line *line, struct sxe_span text, bool is_word)
{
    unsigned end = line->length + TEXT_MAX;

    for (size_t i = 0; i < text.length && line->length < end; i++) {
        unsigned char byte = (unsigned char)text.base[i];

        if (byte < ' ' + is_word || byte >= 0x7f || byte == '"' || byte == '\\')
            add_to_line(line, "\\x%02X", byte);
        else
            line->text[line->length++] = (char)byte;
    }
}

static void
add_quoted(struct line *line, struct sxe_span text)
{
    add_to_line(line, " \"");
    add_escaped(line, text.base == NULL ? (struct sxe_span){"-", 1} : text, false);
    add_to_line(line, "\"");
}

/* A user's name may have spaces, which separate the words of a line. */
static void
add_user(struct line *line, const struct sxe_http_request *request)
{
    struct sxe_http_basic basic;
    const struct sxe_span user = sxe_http_user(request, &basic);

    add_escaped(line, user.length == 0 ? (struct sxe_span){"-", 1} : user, true);
}

static struct sxe_span
peer_of(const struct sxe_http_request *request)
{
    static const char mapped[] = "::ffff:"; /* how a listener on :: sees an IPv4 address */
    const char *ip = sxe_http_peer_ip(request);

    if (*ip == '\0')
        ip = "unix";
    else if (strncmp(ip, mapped, sizeof(mapped) - 1) == 0 && strchr(ip, '.') != NULL)
        ip += sizeof(mapped) - 1;
    return (struct sxe_span){ip, strlen(ip)};
}

/* The status to log. A client that left before its reply began has none: log 499, as nginx does. */
static unsigned
status_of(const struct sxe_http_summary *summary)
{
    return summary->status != 0 ? summary->status : 499;
}

/* Body bytes that were sent: none for HEAD, although its summary has the length of a GET's body. */
static unsigned long long
body_bytes(const struct sxe_http_request *request, const struct sxe_http_summary *summary)
{
    return request->head.method == SXE_HTTP_HEAD ? 0 : summary->body_length;
}

/* A request line that was refused or incomplete may lack its version. */
static bool
has_version(const struct sxe_http_request *request, const struct sxe_http_summary *summary)
{
    return request->head.number > 0 ||
           (request->head.refusal == SXE_HTTP_NOT_REFUSED && summary->status != 408);
}

static void
add_request_line(struct line *line, const struct sxe_http_request *request,
                 const struct sxe_http_summary *summary)
{
    struct sxe_span method = sxe_http_method_text(request);
    struct sxe_span target = sxe_http_target(request);

    add_escaped(line, method.length > 0 ? method : (struct sxe_span){"-", 1}, true);
    if (target.length == 0)
        return;
    add_to_line(line, " ");
    add_escaped(line, target, false);
    if (has_version(request, summary))
        add_to_line(line, " HTTP/1.%u", request->head.minor);
}

static void
add_common(struct line *line, const char *date, const struct sxe_http_request *request,
           const struct sxe_http_summary *summary)
{
    add_escaped(line, peer_of(request), true);
    add_to_line(line, " - ");
    add_user(line, request);
    add_to_line(line, " [%s] \"", date);
    add_request_line(line, request, summary);
    add_to_line(line, "\" %u %llu", status_of(summary), body_bytes(request, summary));
}

static void
add_member(struct line *line, const char *name, struct sxe_span text)
{
    if (text.length == 0)
        return;
    add_to_line(line, ",\"%s\":\"", name);
    line->length += (unsigned)sxe_json_escape(line->text + line->length, TEXT_MAX, text.base,
                                              &text.length, SXE_JSON_LATIN1);
    add_to_line(line, "\"");
}

static void
add_json(struct line *line, const char *date, const struct sxe_http_request *request,
         const struct sxe_http_summary *summary, const struct access_log *log)
{
    const struct sxe_http_parser *head = &request->head;
    struct sxe_http_basic basic;
    const struct sxe_http_trace *trace = sxe_http_trace(request);
    struct sxe_span id = {NULL, 0};

    add_to_line(line, "{\"time\":\"%s\",\"status\":%u,\"bytes\":%llu,\"duration_us\":%llu", date,
                status_of(summary), body_bytes(request, summary),
                (unsigned long long)(summary->duration_ns / SXE_NS_PER_US));
    add_member(line, "peer", peer_of(request));
    add_member(line, "user", sxe_http_user(request, &basic));
    add_member(line, "method", sxe_http_method_text(request));
    add_member(line, "target", sxe_http_target(request));
    if (has_version(request, summary))
        add_to_line(line, ",\"version\":\"1.%u\"", head->minor);
    add_member(line, "host", sxe_http_known_value(request, SXE_HTTP_FIELD_HOST));
    add_member(line, "referer", sxe_http_field_value(request, "Referer"));
    add_member(line, "user_agent", sxe_http_known_value(request, SXE_HTTP_FIELD_USER_AGENT));
    if (log->has_ids) {
        id.base = sxe_http_request_id(request);
        id.length = strlen(id.base);
    }
    add_member(line, "request_id", id);
    if (trace != NULL)
        add_to_line(line, ",\"trace_id\":\"%s\",\"span_id\":\"%s\"", trace->trace_id,
                    trace->span_id);
    if (log->is_sampled)
        add_to_line(line, ",\"sample_rate\":%g", is_always_logged(log, summary) ? 1 : log->rate);
    if (head->refusal != SXE_HTTP_NOT_REFUSED)
        add_to_line(line, ",\"refused\":\"%s\"",
                    sxe_http_refusal_text((enum sxe_http_refusal)head->refusal));
    if (summary->result < 0)
        add_to_line(line, ",\"error\":\"%s\"", strerror(-summary->result));
    add_to_line(line, "}");
}

/* The current date in UTC, formatted once a second. */
static const char *
date_of_now(struct access_log *log)
{
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
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
    snprintf(log->date, sizeof(log->date), "%02d/%s/%04d:%02d:%02d:%02d +0000", tm.tm_mday,
             months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    return log->date;
}

static void
make_line(struct access_log *log, struct line *line, const struct sxe_http_request *request,
          const struct sxe_http_summary *summary)
{
    const char *date = date_of_now(log);

    line->length = 0;
    if (log->format == ACCESS_LOG_JSON) {
        add_json(line, date, request, summary, log);
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

#define FLAGS (O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)

/* O_NONBLOCK is a flag of the open file description, which standard output shares with the shell:
 * open the file again, so that only ours does not block. A socket cannot be opened again: set the
 * flag at a duplicate. */
static int
open_output(void)
{
    int fd = open("/proc/self/fd/1", FLAGS);

    if (fd >= 0)
        return fd;
    fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (fd >= 0)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return fd;
}

static int
open_file(const char *path)
{
    return strcmp(path, "-") == 0 ? open_output() : open(path, FLAGS | O_CREAT, 0640);
}

struct access_log *
access_log_open(const char *path, enum access_log_format format, bool has_ids)
{
    struct access_log *log = calloc(1, sizeof(*log));

    if (log == NULL)
        return NULL;
    log->path = path;
    log->format = format;
    log->has_ids = has_ids;
    log->second = -1;
    log->fd = open_file(path);
    if (log->fd >= 0)
        return log;
    free(log);
    return NULL;
}

/* ---- Dropped lines ---- */

static void
drop(struct access_log *log)
{
    if (log->dropped++ == log->reported)
        SXE_WARN("the access log %s cannot be written: %s; lines are dropped until it can",
                 log->path, strerror(errno));
}

static void
report_drops(struct access_log *log)
{
    if (log->dropped == log->reported)
        return;
    SXE_WARN("the access log %s has lost %llu lines, because it could not be written", log->path,
             (unsigned long long)(log->dropped - log->reported));
    log->reported = log->dropped;
}

static void
drop_bytes(struct access_log *log, size_t length)
{
    log->used -= (unsigned)length;
    memmove(log->buffer, log->buffer + length, log->used);
}

/* Drop the first line of the buffer, and count it. */
static void
drop_first_line(struct access_log *log)
{
    const char *end = rawmemchr(log->buffer, '\n');

    drop_bytes(log, (size_t)(end - log->buffer) + 1);
    log->torn = 0;
    log->dropped++;
}

/* ---- Writing ---- */

/* Bytes that cannot be written now stay in the buffer. */
void
access_log_flush(struct access_log *log)
{
    ssize_t written = 0;

    while (log->used > 0 && (written = write(log->fd, log->buffer, log->used)) > 0) {
        const char *end = memrchr(log->buffer, '\n', (size_t)written);

        log->torn =
            end == NULL ? log->torn + (size_t)written : (size_t)(log->buffer + written - 1 - end);
        drop_bytes(log, (size_t)written);
    }
    if (log->used == 0)
        report_drops(log);
}

/* Cut off the beginning of a line whose rest will not follow: the next program that writes to this
 * file begins with a whole line. If another process has written after it, it stays. */
static void
cut_torn_line(const struct access_log *log)
{
    const off_t end = log->torn == 0 ? -1 : lseek(log->fd, 0, SEEK_CUR);
    struct stat status;

    if (end >= 0 && fstat(log->fd, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size == end)
        (void)!ftruncate(log->fd, end - (off_t)log->torn);
}

int
access_log_reopen(struct access_log *log)
{
    int fd = open_file(log->path);

    if (fd < 0)
        return -errno;
    access_log_flush(log);
    cut_torn_line(log);
    close(log->fd);
    log->fd = fd;
    if (log->torn > 0)
        drop_first_line(log);
    return 0;
}

void
access_log_add(struct access_log *log, const struct sxe_http_request *request,
               const struct sxe_http_summary *summary)
{
    struct line line;

    if (!is_chosen(log, request, summary))
        return;
    make_line(log, &line, request, summary);
    if (line.length > BUFFER_SIZE - log->used)
        access_log_flush(log);
    if (line.length > BUFFER_SIZE - log->used) {
        drop(log);
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
    cut_torn_line(log);
    while (log->used > 0)
        drop_first_line(log);
    report_drops(log);
    close(log->fd);
    free(log);
}
