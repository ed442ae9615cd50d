/* SPDX-License-Identifier: MIT
 *
 * What: a script with a server, and the test as its clients, on the virtual clock of http-site.h.
 * Log lines of level warning or worse are captured.
 *
 * Example:
 *     serve_script("http.serve{handler = function(req) return 'at ' .. req.path end}");
 *     EXPECT_SAID("GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "at /a");
 *     end_script();
 */
#ifndef LUA_SITE_H
#define LUA_SITE_H

#include "lua-state.h"

#undef SXE_LOG_CONTROL /* each library has its own control */

#include "http-site.h"
#include "sxe-lua-http-private.h"

static unsigned fds_before_script;

/* Load a script, in which http, task and json are loaded, and `kept` is a local; it may serve. */
static inline void
load_site(const char *text, const struct sxe_lua_config *config)
{
    static char whole[20000];

    memset(&site, 0, sizeof(site));
    fake_time_start(UINT64_C(1000000000000), SITE_TIME * SXE_NS_PER_SECOND);
    fds_before_script = fake_os_open_fds();
    state_start_with(config);
    snprintf(whole, sizeof(whole),
             "local http, task, json = require 'sxe.http', require 'sxe.task', require 'sxe.json' "
             "local kept %s",
             text);
    run_script(whole);
    site.http = sxe__lua_http.servers[0].http;
}

static inline void
start_site(void)
{
    ck_assert_int_eq(sxe_init(), 0);
    sxe_log_set_level(SXE_LOG_WARNING);
    ck_assert_int_eq(sxe_lua_init(lua), 0);
    captured.number = 0;
}

static inline void
serve_script_with(const char *text, const struct sxe_lua_config *config)
{
    load_site(text, config);
    start_site();
}

static inline void
serve_script(const char *text)
{
    serve_script_with(text, &(struct sxe_lua_config){.tasks = 64});
}

/* Serve a handler function(req, res) with this body. */
static inline void
serve_handler(const char *body)
{
    static char text[10000];

    snprintf(text, sizeof(text),
             "http.serve{ip = '127.0.0.1', handler = function(req, res) %s end}", body);
    serve_script(text);
}

/* Close everything; no request, connection or descriptor may be left. */
static inline void
end_script(void)
{
    unsigned given = 0;

    if (site.http != NULL)
        expect_rest();
    for (uint32_t next = sxe__lua_http.free; next > 0; given++)
        next = sxe__lua_http.exchanges[next - 1].next;
    ck_assert_uint_eq(given, sxe__lua_http.used);
    ck_assert_int_eq(sxe_fini(), 0);
    state_stop();
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
    ck_assert_uint_eq(fake_os_open_fds(), fds_before_script);
}

/* ---- Clients ---- */

#define ASK(line, fields, body) \
    line " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" fields "\r\n" body

/* Receive until the connection ends; returns the reply without its Date and Connection. */
static inline const char *
hear(int peer)
{
    static char got[400000];
    size_t length = take_dates_out(got, peer_receive(peer, got, sizeof(got) - 1));
    char *close_line = memmem(got, length, "Connection: close\r\n", 19);

    got[length] = '\0';
    if (close_line != NULL)
        memmove(close_line, close_line + 19, length + 1 - (size_t)(close_line + 19 - got));
    return got;
}

/* Send a request on a new connection; returns the whole reply. */
static inline const char *
ask(const char *request)
{
    const char *reply;
    int peer = client();

    say(peer, request);
    reply = hear(peer);
    close(peer);
    turn(3);
    return reply;
}

#define EXPECT_ANSWER(request, status, body) \
    expect_answer(__FILE__, __LINE__, request, status, body)

static inline void
expect_answer(const char *file, int line, const char *request, const char *status, const char *body)
{
    const char *reply = ask(request);
    const char *end = strstr(reply, "\r\n\r\n");

    if (end == NULL || strncmp(reply + 9, status, strlen(status)) != 0 ||
        strcmp(end + 4, body) != 0)
        _ck_assert_failed(file, line, "the answer is", "'%s', not %s '%s'; log: %s", reply, status,
                          body, log_line(0));
}

#define EXPECT_TEXT(path, body)   EXPECT_ANSWER(ASK("GET " path, "", ""), "200 OK", body)
#define EXPECT_IN(text, part)     expect_part(__FILE__, __LINE__, text, part, true)
#define EXPECT_NOT_IN(text, part) expect_part(__FILE__, __LINE__, text, part, false)

static inline void
expect_part(const char *file, int line, const char *text, const char *part, bool is_there)
{
    if ((strstr(text, part) != NULL) != is_there)
        _ck_assert_failed(file, line, is_there ? "it has" : "it has not", "'%s': '%s'; log: %s",
                          part, text, log_line(0));
}

#endif
