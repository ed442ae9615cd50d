/* SPDX-License-Identifier: MIT
 *
 * What: a line of text for each event, with a level and perhaps the id of a connection or element;
 * call traces and hex dumps in checked builds; assertions that say what was wrong. Made to be left
 * on in production.
 *
 * Place: the lowest library. Called by everything, from any thread, also in a forked child; calls
 * write(2) once a line and never allocates. errno is the same after a call as before it.
 *
 * Shape: the exact line of 2010, UTC:
 *
 *     20101002 181142.290 P00006a5f    999 1 - connected: 1000
 *     date     time.ms    pid (hex) id     level, 2 spaces a visible call, mark, text
 *
 *     marks: "- " a line, a row of a dump, a return's text    "+ f()" a call's entry
 *            "{ // file:line" after the entry, one deeper     "} // file:line" after the return
 *
 * Levels: 1 fatal 2 error 3 warning 4 information 5 debug are in every build; 6 trace and 7 dump
 * only where SXE_CHECKED is 1: elsewhere they compile to nothing and their arguments are not
 * evaluated. A line is shown when its level is at most its library's. The most specific wins:
 *
 *     sxe_log_set_library_level() > SXE_LOG_LEVEL_<LIB> > sxe_log_set_level() > SXE_LOG_LEVEL > 4
 *
 * <LIB> is the library's name in capitals with _ for -: SXE_LOG_LEVEL_SXE_POOL=5. Values are digits
 * or names (fatal error warning or warn, information or info, debug trace dump); a bad value is
 * reported and ignored. A hidden line costs one branch; its arguments are not evaluated.
 *
 * Limits: a line is at most SXE_LOG_LINE_MAX bytes with its newline; a longer one ends in "..".
 * Bytes that are not printable ASCII are escaped (\n \r \t \\ \xHH), so text from a peer cannot
 * forge a line. A line that the sink refuses (a full disk, a blocked or closed pipe) is dropped and
 * counted; the log never waits. Not for signal handlers.
 *
 * Example:
 *     SXE_INFO("listening on %s:%u", ip, port);
 *     SXE_WARN_ID(connection_id, "peer sent %zu bytes of rubbish", length);
 *     SXE_ASSERT(used <= size, "used %u of %u", used, size);
 */
#ifndef SXE_LOG_H
#define SXE_LOG_H

#include <stdio.h>

#include "sxe-time.h"
#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_LOG_LINE_MAX 1024
/* how many calls the trace of a thread remembers; deeper calls are only counted */
#define SXE_LOG_TRACE_MAX 128
#define SXE_NO_ID         UINT32_MAX

enum sxe_log_level {
    SXE_LOG_NONE = 0,
    SXE_LOG_FATAL = 1,
    SXE_LOG_ERROR = 2,
    SXE_LOG_WARNING = 3,
    SXE_LOG_INFORMATION = 4,
    SXE_LOG_DEBUG = 5,
    SXE_LOG_TRACE = 6,
    SXE_LOG_DUMP = 7
};

/* A library's own level. Each library defines one and names it to its sources by defining
 * SXE_LOG_CONTROL before this header is included; a program uses sxe_log_program. */
struct sxe_log_control {
    int level;           /* private, atomic: SXE_LOG_UNSET until the first line asks for it */
    int environment;     /* private, atomic: the value of SXE_LOG_LEVEL_<LIB> */
    const char *library; /* ro: "sxe-pool"; "" for the program */
    struct sxe_log_control *next; /* private, atomic */
};
#define SXE_LOG_UNSET 127
#define SXE_LOG_CONTROL_INIT(library_name)               \
    {                                                    \
        SXE_LOG_UNSET, SXE_LOG_UNSET, library_name, NULL \
    }

SXE_PUBLIC extern struct sxe_log_control sxe_log_program;
#ifndef SXE_LOG_CONTROL
#    define SXE_LOG_CONTROL sxe_log_program
#endif

/* A place in the source that logs. The macros make a static one for each place. */
struct sxe_log_site {
    struct sxe_log_control *control;
    const char *file;
    const char *function;
    int line;
    int level;
};

/* ---- Lines ---- */
/* Log a line, formatted as by printf(3), if its level is shown. */
#define SXE_ERROR(...) SXE_LOG_LINE(SXE_LOG_ERROR, SXE_NO_ID, __VA_ARGS__)
#define SXE_WARN(...)  SXE_LOG_LINE(SXE_LOG_WARNING, SXE_NO_ID, __VA_ARGS__)
#define SXE_INFO(...)  SXE_LOG_LINE(SXE_LOG_INFORMATION, SXE_NO_ID, __VA_ARGS__)
#define SXE_DEBUG(...) SXE_LOG_LINE(SXE_LOG_DEBUG, SXE_NO_ID, __VA_ARGS__)
#define SXE_TRACE(...) SXE_LOG_LINE(SXE_LOG_TRACE, SXE_NO_ID, __VA_ARGS__)

/* Like the macros above, for an event of a thing that has an id: a connection, an element of a
 * pool. */
#define SXE_ERROR_ID(id, ...) SXE_LOG_LINE(SXE_LOG_ERROR, id, __VA_ARGS__)
#define SXE_WARN_ID(id, ...)  SXE_LOG_LINE(SXE_LOG_WARNING, id, __VA_ARGS__)
#define SXE_INFO_ID(id, ...)  SXE_LOG_LINE(SXE_LOG_INFORMATION, id, __VA_ARGS__)
#define SXE_DEBUG_ID(id, ...) SXE_LOG_LINE(SXE_LOG_DEBUG, id, __VA_ARGS__)
#define SXE_TRACE_ID(id, ...) SXE_LOG_LINE(SXE_LOG_TRACE, id, __VA_ARGS__)

/* Log memory in rows of 16 bytes: address, hex, text. */
#define SXE_DUMP(data, length)        SXE_LOG_DUMP_AT(SXE_LOG_DUMP, SXE_NO_ID, data, length)
#define SXE_DUMP_ID(id, data, length) SXE_LOG_DUMP_AT(SXE_LOG_DUMP, id, data, length)

/* ---- Call traces (checked builds) ---- A function whose calls are worth seeing begins with
 * SXE_ENTER("f(n=%d)", n) and ends with SXE_LEAVE("return %d", result). Lines between them are
 * indented. A call that ended without SXE_LEAVE (by longjmp, or because it was forgotten) is
 * dropped from the trace at the next line. */
#define SXE_ENTER(...)        SXE_LOG_ENTER_AT(SXE_LOG_TRACE, SXE_NO_ID, __VA_ARGS__)
#define SXE_LEAVE(...)        SXE_LOG_LEAVE_AT(SXE_LOG_TRACE, SXE_NO_ID, __VA_ARGS__)
#define SXE_ENTER_ID(id, ...) SXE_LOG_ENTER_AT(SXE_LOG_TRACE, id, __VA_ARGS__)
#define SXE_LEAVE_ID(id, ...) SXE_LOG_LEAVE_AT(SXE_LOG_TRACE, id, __VA_ARGS__)

/* ---- Assertions: programming errors, checked in every build ---- SXE_ASSERT(used <= size, "used
 * %u of %u", used, size) logs what failed and where at level 1, whatever level is shown, then the
 * calls that this thread's trace remembers, and calls the fatal hook. Never assert a condition that
 * a peer or the system can make false. SXE_DEBUG_ASSERT is checked, and its condition evaluated, in
 * checked builds only. Both macros are statements. */
#define SXE_ASSERT(condition, ...) \
    SXE_LOG_ASSERT_AT(1, SXE_NO_ID, #condition, condition, __VA_ARGS__)
#define SXE_ASSERT_ID(id, condition, ...) \
    SXE_LOG_ASSERT_AT(1, id, #condition, condition, __VA_ARGS__)
#define SXE_DEBUG_ASSERT(condition, ...) \
    SXE_LOG_ASSERT_AT(SXE_CHECKED, SXE_NO_ID, #condition, condition, __VA_ARGS__)

/* Set the function that is called when an assertion has failed, after the message was written. The
 * function may exit or longjmp. If it returns, or is NULL (the default), the process aborts.
 * Returns the function that was set before. */
typedef void (*sxe_log_fatal_hook)(void);
SXE_PUBLIC sxe_log_fatal_hook sxe_log_set_fatal_hook(sxe_log_fatal_hook hook);

/* ---- Levels ---- */

/* From now on, show lines up to level: 1 to 7, or 0 to hide all; a number out of range counts as
 * the nearest one. SXE_LOG_UNSET removes the setting. Returns the level that was in force. */
SXE_PUBLIC int sxe_log_set_level(int level);
SXE_PUBLIC int sxe_log_get_level(void);

/* Like sxe_log_set_level, for one library by name ("sxe-pool"; "" is the program), loaded or not.
 * 0, -EINVAL for a bad name (more than 31 bytes) or level, -ENOSPC after 16 names. */
SXE_PUBLIC int sxe_log_set_library_level(const char *library, int level);

/* Convert the text of a level: "3", "warning" or "WARNING" -> 3; "0" or "none" -> 0; the old "8"
 * and "9" -> 7; -EINVAL for anything else, also for NULL, the result of getenv(3) without such a
 * variable. */
SXE_PUBLIC SXE_MUST_USE int sxe_log_level_from_text(const char *text);

/* ---- Sinks and formats: set them before other threads log ---- */

/* JSON: {"ts":"2010-10-02T18:11:42.290Z","level":"fatal","msg":"connected: 1000","pid":27231,
 * "id":999,"file":"http.c","line":124} on one line, in this order. An event without an id has no
 * "id"; after sxe_log_set_request "request_id" follows the id. The line is ASCII: other characters
 * become \uXXXX, and bytes that are not UTF-8 become \ufffd. */
enum sxe_log_format {
    SXE_LOG_TEXT = 0, /* the line shown at the top of this file */
    SXE_LOG_JSON = 1
};

/* A sink receives one whole line with its newline, valid until the function returns. It must not
 * log. */
typedef void (*sxe_log_sink)(void *user, int level, const char *line, size_t length);

/* Send lines to a descriptor, which is borrowed; the default is 2, stderr. */
SXE_PUBLIC void sxe_log_to_fd(int fd);
SXE_PUBLIC void sxe_log_to_function(sxe_log_sink sink, void *user);

/* Also pass each line to a function, before the sink gets it: for a program that keeps the last
 * lines. NULL: to no function. */
SXE_PUBLIC void sxe_log_also_to_function(sxe_log_sink also, void *user);

/* Send lines to syslog(3), without date and pid, which syslog adds. Borrows ident. */
SXE_PUBLIC void sxe_log_to_syslog(const char *ident, int facility);
SXE_PUBLIC void sxe_log_set_format(enum sxe_log_format format);

/* How many lines the sink did not take whole since the process began. */
SXE_PUBLIC uint64_t sxe_log_dropped(void);

/* ---- Requests ---- */

#define SXE_LOG_REQUEST_MAX 128

/* Show the id of a request in all lines of this thread from now on: "- 8f41c2d05b7e9a36 text", in
 * JSON "request_id". The id is borrowed, and shown up to SXE_LOG_REQUEST_MAX bytes; NULL: no id.
 * Returns what was set before. */
SXE_PUBLIC const char *sxe_log_set_request(const char *id);
SXE_PUBLIC const char *sxe_log_get_request(void);

/* ---- Around longjmp ----
 * A protected call (lua_pcall) that traced functions may leave by longjmp is wrapped so:
 * unsigned mark = sxe_log_trace_mark(); ... sxe_log_trace_release(mark); */
SXE_PUBLIC unsigned sxe_log_trace_mark(void);
SXE_PUBLIC void sxe_log_trace_release(unsigned mark);

/* ---- Functions that the macros call ---- */

/* Find the level of a control at its first line, and store it in the control. */
SXE_PUBLIC int sxe_log_resolve(struct sxe_log_control *control);
/* Whether lines of the level are shown. */
static inline int
sxe_log_shown(struct sxe_log_control *control, int level)
{
    int limit = __atomic_load_n(&control->level, __ATOMIC_RELAXED);

    return SXE_UNLIKELY(level <= limit) &&
           (SXE_LIKELY(limit != SXE_LOG_UNSET) || level <= sxe_log_resolve(control));
}

#define SXE_LOG_COMPILED (SXE_CHECKED ? SXE_LOG_DUMP : SXE_LOG_DEBUG)

/* Identifies the running call of a function; the trace finds out by it which other calls have
 * ended. */
struct sxe_log_frame {
    const void *address;
    const void *return_address;
};
/* Call call_ with the place of the line and its frame, if the condition holds. */
#define SXE_LOG_IF(condition_, level_, call_, ...)                                           \
    do {                                                                                     \
        if (condition_) {                                                                    \
            static const struct sxe_log_site sxe_log_site_ = {&SXE_LOG_CONTROL, __FILE__,    \
                                                              __func__, __LINE__, (level_)}; \
            const struct sxe_log_frame sxe_log_frame_ = {                                    \
                SXE_CHECKED ? __builtin_frame_address(0) : NULL,                             \
                SXE_CHECKED ? __builtin_return_address(0) : NULL};                           \
            call_(&sxe_log_site_, SXE_CHECKED ? &sxe_log_frame_ : NULL, __VA_ARGS__);        \
        }                                                                                    \
    } while (0)
#define SXE_LOG_AT(level, call, ...)                                                           \
    SXE_LOG_IF((level) <= SXE_LOG_COMPILED && sxe_log_shown(&SXE_LOG_CONTROL, (level)), level, \
               call, __VA_ARGS__)
#define SXE_LOG_LINE(level, id, ...)             SXE_LOG_AT(level, sxe_log_line, (id), __VA_ARGS__)
#define SXE_LOG_DUMP_AT(level, id, data, length) SXE_LOG_AT(level, sxe_log_dump, (id), data, length)

/* SXE_ENTER and SXE_LEAVE note calls and returns even when their level is hidden, so that the trace
 * is complete. */
#define SXE_LOG_ENTER_AT(level, id, ...) \
    SXE_LOG_IF(SXE_CHECKED, level, sxe_log_enter, (id), __VA_ARGS__)
#define SXE_LOG_LEAVE_AT(level, id, ...) \
    SXE_LOG_IF(SXE_CHECKED, level, sxe_log_leave, (id), __VA_ARGS__)
/* End the process if the condition does not hold. checked: whether the condition is checked in this
 * build. */
#define SXE_LOG_ASSERT_AT(checked, id, text, condition, ...)                                  \
    SXE_LOG_IF((checked) && SXE_UNLIKELY(!(condition)), SXE_LOG_FATAL, sxe_log_assert_failed, \
               (id), text, __VA_ARGS__)

/* If frame is NULL, the function does not look for calls that have ended. sxe_log_enter and
 * sxe_log_leave need a frame. */
SXE_PUBLIC void sxe_log_line(const struct sxe_log_site *site, const struct sxe_log_frame *frame,
                             uint32_t id, const char *format, ...) SXE_PRINTF(4, 5);
SXE_PUBLIC void sxe_log_dump(const struct sxe_log_site *site, const struct sxe_log_frame *frame,
                             uint32_t id, const void *data, size_t length);
SXE_PUBLIC void sxe_log_enter(const struct sxe_log_site *site, const struct sxe_log_frame *frame,
                              uint32_t id, const char *format, ...) SXE_PRINTF(4, 5);
SXE_PUBLIC void sxe_log_leave(const struct sxe_log_site *site, const struct sxe_log_frame *frame,
                              uint32_t id, const char *format, ...) SXE_PRINTF(4, 5);
SXE_PUBLIC SXE_NORETURN void sxe_log_assert_failed(const struct sxe_log_site *site,
                                                   const struct sxe_log_frame *frame, uint32_t id,
                                                   const char *expression, const char *format, ...)
    SXE_PRINTF(5, 6);

/* If descriptor 0, 1 or 2 is closed, open /dev/null for it, so that no file and no socket gets a
 * number to which others write. Reading from or writing to such a descriptor still fails with
 * EBADF. sxe_init and the functions that open a pool's file call it. */
SXE_PUBLIC void sxe_hold_standard_descriptors(void);

#ifdef __cplusplus
}
#endif

#ifndef SXE_LOG_NO_2010
#    include "sxe-log-2010.h"
#endif

#endif
