/* SPDX-License-Identifier: MIT
 *
 * What: where lines go, and the count of lost lines.
 */
#include "sxe-log-private.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <syslog.h>
#include <unistd.h>

static enum { TO_FD, TO_FUNCTION, TO_SYSLOG } sink = TO_FD;
static int sink_fd = STDERR_FILENO;
static sxe_log_sink sink_function;
static void *sink_user;
static sxe_log_sink also_function; /* the function that sxe_log_also_to_function set; NULL: none */
static void *also_user;
static enum sxe_log_format format = SXE_LOG_TEXT;
static _Atomic uint64_t dropped;
/* the last line that was written to the descriptor was cut, and has no newline */
static atomic_bool is_cut;

void
sxe_log_to_fd(int fd)
{
    atomic_store_explicit(&is_cut, false, memory_order_relaxed);
    sink_fd = fd;
    sink = TO_FD;
}

void
sxe_log_to_function(sxe_log_sink function, void *user)
{
    sink_function = function;
    sink_user = user;
    sink = TO_FUNCTION;
}

void
sxe_log_also_to_function(sxe_log_sink also, void *user)
{
    also_function = also;
    also_user = user;
}

void
sxe_log_to_syslog(const char *ident, int facility)
{
    openlog(ident, LOG_PID, facility);
    sink = TO_SYSLOG;
}

void
sxe_log_set_format(enum sxe_log_format new_format)
{
    format = new_format;
}

uint64_t
sxe_log_dropped(void)
{
    return atomic_load_explicit(&dropped, memory_order_relaxed);
}

/* Whether the descriptor takes a line now; asked before each write. Other programs may share the
 * descriptor, so we must not set O_NONBLOCK, and the write could block. A pipe without a reader
 * would end the process by SIGPIPE. */
static bool
can_write(int fd)
{
    struct pollfd asked = {.fd = fd, .events = POLLOUT};
    int answers = poll(&asked, 1, 0);

    return answers < 0 || (answers == 1 && asked.revents == POLLOUT);
}

/* Write a line. True: all of it was written. If the line before was cut, for example by a full
 * disk, write a newline first, so that a reader loses one line and not two; line[-1] is free for
 * that newline. */
static bool
write_whole_line(int fd, char *line, size_t length)
{
    const bool ends_another = atomic_exchange_explicit(&is_cut, false, memory_order_relaxed);
    const char *rest = line;
    size_t left = length;

    if (ends_another) {
        line[-1] = '\n';
        rest--;
        left++;
    }
    while (left > 0) {
        ssize_t written = can_write(fd) ? write(fd, rest, left) : 0;

        if (written == 0 || (written < 0 && errno != EINTR)) {
            if (rest > line || (rest < line && ends_another))
                atomic_store_explicit(&is_cut, true, memory_order_relaxed);
            return false;
        }
        if (written > 0) {
            rest += written;
            left -= (size_t)written;
        }
    }
    return true;
}

static void
write_syslog(int level, const char *line, size_t length)
{
    static const int priorities[] = {LOG_CRIT, LOG_CRIT,  LOG_ERR,   LOG_WARNING,
                                     LOG_INFO, LOG_DEBUG, LOG_DEBUG, LOG_DEBUG};
    size_t head = format == SXE_LOG_TEXT ? SXE__LOG_TEXT_HEAD : 0;

    syslog(priorities[level], "%.*s", (int)(length - head - 1), line + head);
}

void
sxe__log_emit(const struct sxe__log_event *event)
{
    char room[1 + SXE_LOG_LINE_MAX];
    char *line = room + 1;
    int level = event->site->level;
    size_t length =
        format == SXE_LOG_TEXT ? sxe__log_text(line, event) : sxe__log_json(line, event);

    if (also_function != NULL)
        also_function(also_user, level, line, length);
    switch (sink) {
    case TO_FD:
        if (!write_whole_line(sink_fd, line, length))
            atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
        break;
    case TO_FUNCTION:
        sink_function(sink_user, level, line, length);
        break;
    case TO_SYSLOG:
        write_syslog(level, line, length);
        break;
    }
}
