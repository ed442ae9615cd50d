/* SPDX-License-Identifier: MIT
 *
 * What: runs scripts and scenarios as worker and parent do, in one process. A case may set
 * `options`; it loads a script, and checks the queries, the messages on stderr (said()), and the
 * output on stdout (printed()).
 */
#ifndef SCRIPT_CASE_H
#define SCRIPT_CASE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../../apps/http/input/script-private.h"
#include "captured.h"
#include "fake-os.h"
#include "has.h"
#include "test-main.h"

static struct load_template_options request_options = {.method = "GET"};
static struct load_script_options options = {
    .host = "127.0.0.1",
    .port = 8000,
    .target = "/",
    .authority = "127.0.0.1:8000",
    .request = &request_options,
    .workers = 2,
};
static struct load_requests *requests;
static struct load_query query;

static FILE *err;
static char *err_text;
static size_t err_length;
static size_t err_seen;

/* The messages on stderr since the last call. */
static inline const char *
said(void)
{
    static char text[20000];

    fflush(err);
    snprintf(text, sizeof(text), "%s", err_text + err_seen);
    err_seen = err_length;
    return text;
}

/* Load a script, or a scenario if options say so; NULL: it was refused. */
static inline struct load_requests *
load(const char *text)
{
    static char path[64];
    int fd;
    size_t length = strlen(text);

    if (err == NULL)
        err = open_memstream(&err_text, &err_length);
    snprintf(path, sizeof(path), "/tmp/sxe-http-script-XXXXXX");
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, length), (ssize_t)length);
    close(fd);
    options.path = path;
    requests = load_script_new(&options, err);
    unlink(path);
    return requests;
}

static inline void
must_load(const char *text)
{
    ck_assert_msg(load(text) != NULL, "%s", said());
    ck_assert_str_eq(said(), "");
}

static inline void
must_refuse(const char *text, const char *why)
{
    ck_assert_ptr_null(load(text));
    check_has(said(), why);
}

static inline void
must_begin(const char *text)
{
    must_load(text);
    ck_assert_msg(requests->begin(requests, 0, options.workers, 1) == 0, "%s", said());
    ck_assert_str_eq(said(), "");
}

/* The next query as text; NULL: the run is over. */
static inline const char *
next_text(void)
{
    static char text[70000];

    if (requests->next(requests, 0, &query) < 0)
        return NULL;
    ck_assert_uint_lt(query.length, sizeof(text));
    memcpy(text, query.bytes, query.length);
    text[query.length] = '\0';
    return text;
}

static inline bool
reply_of_kind(unsigned kind, unsigned status, const char *fields, const char *body)
{
    char head[4096];
    int length = snprintf(head, sizeof(head), "HTTP/1.1 %u X\r\n%s", status, fields);
    struct load_exchange exchange = {.kind = (uint16_t)kind,
                                     .status = (uint16_t)status,
                                     .head = head,
                                     .head_length = (size_t)length,
                                     .body = body,
                                     .body_length = strlen(body)};

    return requests->replied(requests, &exchange);
}

static inline bool
reply(unsigned status, const char *fields, const char *body)
{
    return reply_of_kind(0, status, fields, body);
}

static inline uint64_t
end_calls(void)
{
    uint64_t calls, ns;

    requests->end(requests, &calls, &ns);
    return calls;
}

/* The result of a run with one trial; all zero at first. */
static struct load_result total;
static struct load_run run = {.trials_number = 1, .total = &total, .trials = {{.result = &total}}};

static inline int
done(void)
{
    return load_script_done(requests, &run);
}

/* Capture stdout from here until printed(). */
static struct captured printing;

static inline void
catch_print(void)
{
    printing = capture(STDOUT_FILENO, tmpfile());
}

static inline const char *
printed(void)
{
    static char text[20000];

    captured_text(&printing, text, sizeof(text));
    return text;
}

static inline void
free_script(void)
{
    load_script_free(requests);
    requests = NULL;
    if (err != NULL)
        fclose(err);
    free(err_text);
    err = NULL;
    err_text = NULL;
    err_seen = 0;
}

#endif
