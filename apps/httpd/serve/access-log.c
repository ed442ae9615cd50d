/* SPDX-License-Identifier: MIT
 *
 * Choosing requests for the access log, and writing their lines without ever waiting.
 */
#include "access-log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "log-line.h"

#define BUFFER_SIZE (64u * 1024)
struct access_log {
    const char *path;
    const struct log_format *format;
    bool has_ids;    /* whether objects have the id of the request */
    unsigned worker; /* the number of the worker, for lines that have it */
    bool is_sampled;
    double rate;        /* the part of the requests that is logged, if is_sampled */
    uint64_t draw_from; /* a request is logged if draw_of returns at least this number */
    uint64_t slow_ns;
    int fd;
    bool is_file; /* not a pipe or a socket */
    struct log_clock clock;
    uint64_t dropped;
    uint64_t reported; /* how many of the dropped lines were reported in warnings */
    size_t torn;       /* how many bytes of a line are in the pipe already; the rest comes first */
    unsigned used;
    /* after the lines there is room for the next one, which is made there */
    char buffer[BUFFER_SIZE + LOG_LINE_SIZE];
};

/* ---- Sampling ---- */

#define DRAW_BITS 56 /* how many bits at the end of a trace id are random (W3C Trace Context 2) */

/* A number below 2^56 by which a request is chosen for the log. It comes from the request's trace,
 * so that all servers that see the trace compute the same number. Without a trace it is made from
 * the request's id, with FNV-1a and the finalizer of MurmurHash3. */
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
access_log_set_worker(struct access_log *log, unsigned worker)
{
    if (log != NULL)
        log->worker = worker;
}

void
access_log_sample(struct access_log *log, double rate, uint32_t slow_ms)
{
    log->is_sampled = true;
    log->rate = rate;
    log->draw_from = (uint64_t)((1 - rate) * (double)(UINT64_C(1) << DRAW_BITS));
    log->slow_ns = slow_ms * (uint64_t)SXE_NS_PER_MS;
}

/* ---- The file ---- */

#define FLAGS (O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)

/* Get a descriptor for standard output that does not block. The flag O_NONBLOCK belongs to the open
 * file description, which the shell shares. So open the file again, and only the new descriptor
 * does not block. A socket cannot be opened again: set the flag of a duplicate. */
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

/* A FIFO without a reader can be opened only for reading too. Then lines wait in it for a reader,
 * and are dropped when it is full. */
static int
open_file(const char *path)
{
    int fd;

    if (strcmp(path, "-") == 0)
        return open_output();
    fd = open(path, FLAGS | O_CREAT, 0640);
    return fd >= 0 || errno != ENXIO ? fd : open(path, (FLAGS & ~O_WRONLY) | O_RDWR);
}

struct access_log *
access_log_open(const char *path, const struct log_format *format, bool has_ids)
{
    struct access_log *log = calloc(1, sizeof(*log));

    if (log == NULL)
        return NULL;
    log->path = path;
    log->format = format;
    log->has_ids = has_ids;
    log->clock.second = -1;
    log->fd = open_file(path);
    log->is_file = log->fd >= 0 && lseek(log->fd, 0, SEEK_CUR) >= 0;
    if (log->fd >= 0)
        return log;
    free(log);
    return NULL;
}

/* ---- Dropped lines ---- */

/* The warnings are about the file, so they have no request's id: a request that ends while another
 * one's handler runs would get the id of that one. */

static void
drop_line(struct access_log *log)
{
    const int error = errno;
    const char *request = sxe_log_set_request(NULL);

    if (log->dropped++ == log->reported)
        SXE_WARN("the access log %s cannot be written: %s; lines are dropped until it can",
                 log->path, strerror(error));
    sxe_log_set_request(request);
}

static void
report_drops(struct access_log *log)
{
    const char *request;

    if (log->dropped == log->reported)
        return;
    request = sxe_log_set_request(NULL);
    SXE_WARN("the access log %s has lost %llu lines, because it could not be written", log->path,
             (unsigned long long)(log->dropped - log->reported));
    sxe_log_set_request(request);
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
    const char *end = memchr(log->buffer, '\n', log->used);

    drop_bytes(log, (size_t)(end - log->buffer) + 1);
    log->torn = 0;
    log->dropped++;
}

/* ---- Writing ---- */

/* How many bytes to write at once. A pipe or a socket may take a part of a large write; another
 * worker's lines would then follow in the middle of a line. It takes up to PIPE_BUF bytes wholly or
 * not at all, see pipe(7). */
static size_t
lines_at_once(const struct access_log *log)
{
    const char *end;

    if (log->is_file || log->used <= PIPE_BUF)
        return log->used;
    end = memrchr(log->buffer, '\n', PIPE_BUF);
    return end == NULL ? PIPE_BUF : (size_t)(end - log->buffer) + 1;
}

/* Cut off the beginning of a line, of which the disk had no room for the rest: other workers would
 * go on in the middle of the line. False: another process has already written after it. */
static bool
is_cut_off(const struct access_log *log, size_t length)
{
    const off_t end = lseek(log->fd, 0, SEEK_CUR);
    struct stat status;

    return end >= 0 && fstat(log->fd, &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_size == end && ftruncate(log->fd, end - (off_t)length) == 0;
}

/* Take the written bytes out of the buffer. False: the disk is full. */
static bool
note_written(struct access_log *log, size_t written)
{
    const char *end = memrchr(log->buffer, '\n', written);
    const size_t whole = end == NULL ? 0 : (size_t)(end - log->buffer) + 1;

    if (log->is_file && whole < written) {
        drop_bytes(log, whole);
        if (!is_cut_off(log, written - whole))
            drop_first_line(log);
        return false;
    }
    log->torn = end == NULL ? log->torn + written : written - whole;
    drop_bytes(log, written);
    return true;
}

/* Write the buffer. Bytes that cannot be written now stay in it. */
void
access_log_flush(struct access_log *log)
{
    ssize_t written = 0;

    while (log->used > 0 && (written = write(log->fd, log->buffer, lines_at_once(log))) > 0 &&
           note_written(log, (size_t)written))
        continue;
    if (log->used == 0)
        report_drops(log);
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
    log->is_file = lseek(fd, 0, SEEK_CUR) >= 0;
    if (log->torn > 0)
        drop_first_line(log);
    return 0;
}

/* Write the lines before this one, and move it to its place in the buffer. False: they cannot be
 * written. */
static bool
is_room_made(struct access_log *log, const struct log_line *line)
{
    access_log_flush(log);
    if (line->length > BUFFER_SIZE - log->used)
        return false;
    memmove(log->buffer + log->used, line->text, line->length);
    return true;
}

void
access_log_add(struct access_log *log, const struct sxe_http_request *request,
               const struct sxe_http_summary *summary)
{
    struct log_entry entry = {.request = request,
                              .summary = summary,
                              .clock = &log->clock,
                              .worker = log->worker,
                              .has_id = log->has_ids};
    struct log_line line = {.text = log->buffer + log->used};

    if (!is_chosen(log, request, summary))
        return;
    if (log->is_sampled)
        entry.sample_rate = is_always_logged(log, summary) ? 1 : log->rate;
    log_clock_set(&log->clock, time(NULL));
    log_line_make(&line, log->format, &entry);
    if (line.length > BUFFER_SIZE - log->used && !is_room_made(log, &line))
        drop_line(log);
    else
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
    while (log->used > 0)
        drop_first_line(log);
    report_drops(log);
    close(log->fd);
    free(log);
}
