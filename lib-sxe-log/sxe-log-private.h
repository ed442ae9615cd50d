/* SPDX-License-Identifier: MIT
 *
 * What: what the files of lib-sxe-log share: an event, and the functions that make it a line.
 * Place: included by lib-sxe-log/sxe-log*.c and by tests that look inside.
 *
 * Shape, in the order in which an event passes:
 *
 *     sxe-log-level.c   is it shown?                        controls, settings, the environment
 *     sxe-log-trace.c   how far is it indented?             the calls that this thread is in
 *     sxe-log.c         what the macros call                makes the text of events
 *     sxe-log-text.c    event -> line                       stamps, escapes, the cut
 *     sxe-log-json.c    event -> line, the other format
 *     sxe-log-sink.c    line -> fd, function or syslog      and how many were lost
 */
#ifndef SXE_LOG_PRIVATE_H
#define SXE_LOG_PRIVATE_H

#define SXE_LOG_CONTROL sxe__log_control

#include <stdbool.h>

#include "sxe-log.h"

/* The attribute of thread-local variables that every line uses. dlopen(3) has little room for
 * variables of this model, so other variables do not have it. */
#define SXE__HOT_TLS _Thread_local __attribute__((tls_model("initial-exec")))

extern struct sxe_log_control sxe__log_control;

struct sxe__log_event {
    const struct sxe_log_site *site;
    const char *mark; /* "- ", "+ ", "{ " or "} " */
    const char *text; /* the message; may have any bytes */
    size_t length;
    const char *request; /* the id of the request; NULL: there is none */
    uint32_t id;
    unsigned indent; /* how many calls around the event are shown */
    bool is_row;     /* the event is a row of a dump, and its text needs no escapes */
};

/* ---- sxe-log-trace.c ---- */

struct sxe__trace_call {
    const struct sxe_log_site *site;
    struct sxe_log_frame frame;
    uint32_t id;
};

/* Forget the calls that have ended, as can be told from `frame`, the frame of a running
 * function. */
void sxe__trace_forget(const struct sxe_log_frame *frame);

/* How many of the remembered calls are shown at the current level. */
unsigned sxe__trace_indent(void);

/* Note a call, or its return. Returns the indentation of the line that begins with "+", or with
 * "}". */
unsigned sxe__trace_enter(const struct sxe__trace_call *call);
unsigned sxe__trace_leave(const struct sxe_log_site *site, const struct sxe_log_frame *frame);

/* The nth remembered call; 0 is the innermost one. NULL: fewer calls are remembered. */
const struct sxe__trace_call *sxe__trace_call(unsigned nth);

/* How many calls are nested too deep to be remembered. */
unsigned sxe__trace_deeper(void);

/* ---- sxe-log-text.c ---- */

/* Write the date and time of a second as YYYYMMDDHHMMSS in UTC. */
void sxe__log_date(char digits[14], int64_t second);

/* Append a copy of shape, in which the time now (YYYYMMDDHHMMSSmmm) replaces the 0s, digit by
 * digit. Returns the new end. */
char *sxe__log_put_now(char *end, const char *shape);

/* Write the line with its newline, returns its length. */
size_t sxe__log_text(char line[SXE_LOG_LINE_MAX], const struct sxe__log_event *event);

/* bytes of date and pid at a line's front; syslog adds its own, so it gets the rest of the line */
#define SXE__LOG_TEXT_HEAD 30

const char *sxe__log_basename(const char *file);

/* ---- sxe-log-json.c ---- */

size_t sxe__log_json(char line[SXE_LOG_LINE_MAX], const struct sxe__log_event *event);

/* ---- sxe-log-sink.c ---- */

void sxe__log_emit(const struct sxe__log_event *event);

#endif
