/* SPDX-License-Identifier: MIT
 *
 * http.router, http.static and res:file.
 */
#include "lua-site.h"

#include <sys/stat.h>

static void
serve_router(const char *text)
{
    char whole[6000];

    snprintf(whole, sizeof(whole),
             "local r = http.router() %s http.serve{ip = '127.0.0.1', handler = r}", text);
    serve_script(whole);
}

/* ---- Routes ---- */

#define ECHO "function(req) return req.method .. ' ' .. tostring(req.params.id) end"

START_TEST(each_method_has_its_routes)
{
    static const char *const methods[][2] = {
        {"get", "GET"},     {"post", "POST"},       {"put", "PUT"}, {"delete", "DELETE"},
        {"patch", "PATCH"}, {"options", "OPTIONS"}, {"any", "BREW"}};
    char request[200], text[200];

    snprintf(text, sizeof(text), "r:%s('/a/{id}', " ECHO ")", methods[_i][0]);
    serve_router(text);
    snprintf(request, sizeof(request),
             "%s /a/%%20b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", methods[_i][1]);
    snprintf(text, sizeof(text), "%s  b", methods[_i][1]);
    EXPECT_ANSWER(request, "200 OK", text);
    end_script();
}
END_TEST

START_TEST(a_route_may_have_many_methods)
{
    serve_router(
        "r:route('GET,PUT', '/a/{id}', " ECHO "):get('/b', function(req) "
        "local p = req.params() return req.route .. tostring(next(p)) end)"
        ":get('/c/{x}/{y...}', function(req) local p = req.params() return p.x .. p.y end)");
    EXPECT_TEXT("/a/1", "GET 1");
    EXPECT_ANSWER(ASK("PUT /a/2", "", ""), "200 OK", "PUT 2");
    EXPECT_TEXT("/b", "/bnil");
    EXPECT_TEXT("/c/1/2/3", "12/3");
    EXPECT_ANSWER(ASK("GET /d", "", ""), "404 Not Found", "404 Not Found\n");
    EXPECT_IN(ask(ASK("POST /a/1", "", "")), "Allow: GET, HEAD, PUT, OPTIONS\r\n");
    end_script();
}
END_TEST

static const struct value {
    const char *path;
    const char *status;
    const char *text;
} values[] = {
    {"/one/a%20b.json", "200 OK", "a b a%20b"},
    {"/one/a%252Fb.json", "200 OK", "a%2Fb a%252Fb"},
    {"/one/..a.json", "200 OK", "..a ..a"},
    {"/raw/a%2fb.json", "200 OK", "a%2Fb"},
    {"/raw/..%5c.json", "200 OK", "..%5C"},
    {"/rest/a//b/%40/../c", "200 OK", "a/b/c a/b/c"},
    {"/rest/", "200 OK", " "},
    {"/one/a%2Fb.json", "400 Bad Request", NULL},
    {"/one/a%5Cb.json", "400 Bad Request", NULL},
    {"/one/a%00.json", "400 Bad Request", NULL},
    {"/one/..json", "400 Bad Request", NULL},
    {"/one/...json", "400 Bad Request", NULL},
    {"/one/%2e%2e.json", "400 Bad Request", NULL},
    {"/rest/a/%2Fetc/passwd", "400 Bad Request", NULL},
    {"/rest/..%2f..%2fetc", "400 Bad Request", NULL},
    {"/v../x", "400 Bad Request", NULL},
    {"/all/a%2Fb", "400 Bad Request", NULL},
};

/* A parameter whose decoded value could be read as another path is refused. */
START_TEST(a_value_is_one_name)
{
    char request[200];

    serve_router("local function say(req) return req.params.x .. ' ' .. req.escaped_params.x end "
                 "r:get('/one/{x}.json', say):get('/rest/{x...}', say):get('/v{x...}', say) "
                 "r:get('/raw/{x}.json', function(req) return req.escaped_params().x end) "
                 "r:get('/all/{x}', function(req) return req.params().x end)");
    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
             values[_i].path);
    if (values[_i].text != NULL)
        EXPECT_ANSWER(request, values[_i].status, values[_i].text);
    else
        EXPECT_IN(ask(request), values[_i].status);
    end_script();
}
END_TEST

START_TEST(routes_are_listed)
{
    serve_router(
        "r:get('/a', print):any('/b', print) local t = {} for i, x in ipairs(r:routes()) do "
        "t[i] = x.methods .. x.pattern end r:get('/', function() return "
        "table.concat(t, ' ') end)");
    EXPECT_TEXT("/", "GET/a */b");
    end_script();
}
END_TEST

/* ---- Filters ---- */

START_TEST(a_filter_answers_or_lets_pass)
{
    serve_router("r:use(function(req, res) res.headers.X = '1' task.sleep(0.001) end)"
                 ":use(function(req, res) if req.path == '/no' then return 403 end "
                 "if req.path == '/sent' then res:send('by filter') end end)"
                 ":get('/{path...}', function(req, res) return 'ok' .. res.headers.X end)");
    EXPECT_TEXT("/yes", "ok1");
    EXPECT_ANSWER(ASK("GET /no", "", ""), "403 Forbidden", "403 Forbidden\n");
    EXPECT_TEXT("/sent", "by filter");
    end_script();
}
END_TEST

/* Return values of a filter whose check fails. */
static const char *const refusals[] = {
    "return nil, 'denied'",
    "return nil, {status = 500, message = 'denied'}",
    "return nil, false",
    "task.sleep(0.001) return nil, 'denied'",
    "return false, 'denied'",
    "next() return nil, 'denied'",
    "return task.deadline(0.001, function() task.sleep(100) end)",
    "return task.deadline(0.001, function() task.sleep(100) return next() end)",
    "return require 'sxe.file'.read('/nonexistent')",
};

START_TEST(nil_and_a_message_is_an_error_of_a_filter_too)
{
    char text[500];

    snprintf(text, sizeof(text),
             "local inner = http.router() r:use('/in', inner)"
             "inner:use(function(req, res, next) %s end):get('/', function() return 'secret' end)"
             "r:use(function(req, res, next) if req.headers.x then return next() end end)",
             refusals[_i]);
    serve_router(text);
    EXPECT_IN(ask(ASK("GET /in/", "", "")), "500 Internal Server Error");
    EXPECT_IN(ask(ASK("GET /in/", "X: 1\r\n", "")), "500 Internal Server Error");
    EXPECT_IN(ask(ASK("GET /in/none", "", "")), "500 Internal Server Error");
    end_script();
}
END_TEST

START_TEST(a_filtered_handler_may_wait)
{
    serve_router("r:use(function() end):get('/', function() task.sleep(0.001) return 'late' end)");
    EXPECT_TEXT("/", "late");
    end_script();
}
END_TEST

/* Nested routers whose filters each add a letter to req.ctx.s. */
#define NESTED                                                                                \
    "local function mark(c) return function(req) req.ctx.s = (req.ctx.s or '') .. c end end " \
    "local function say(req) return req.ctx.s .. ':' .. req.path end "                        \
    "local a, b, c = http.router(), http.router(), http.router() "                            \
    "c:use(mark 'c'):get('/x', say):post('/p', say) "                                         \
    "b:use('/c', c):get('/y', say):use('/{id}/d', c) "                                        \
    "a:use('/b', b):use('/f', http.static '/') "                                              \
    "r:use('/a', a):get('/z', say):get('/{other...}', say) "                                  \
    "a:use(function(req) if req.ctx.s == 'r!' then return 401, req.path end end) "            \
    "r:use(mark 'r'):use(function(req) if req.headers.x then req.ctx.s = 'r!' end end) "      \
    "a:use(mark 'a') b:use(mark 'b') "

static const struct nested {
    const char *request;
    const char *status;
    const char *text;
} nested[] = {
    {"GET /z", "200 OK", "r:/z"},
    {"GET /none", "200 OK", "r:/none"},
    {"GET /a/b/y", "200 OK", "rab:/a/b/y"},
    {"GET /a/b/c/x", "200 OK", "rabc:/a/b/c/x"},
    {"GET /a/b/7/d/x", "200 OK", "rabc:/a/b/7/d/x"},
    {"GET //a/./b//c/x", "200 OK", "rabc:/a/b/c/x"},
    {"GET /a/none", "200 OK", "r:/a/none"},
};

START_TEST(filters_of_outer_routers_run_first)
{
    char request[200];

    serve_router(NESTED);
    snprintf(request, sizeof(request), "%s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
             nested[_i].request);
    EXPECT_ANSWER(request, nested[_i].status, nested[_i].text);
    end_script();
}
END_TEST

/* The reply must not show whether a route or a file exists before the filters have let it pass. */
START_TEST(filters_run_before_what_no_route_answers)
{
    static const char *const requests[] = {
        "GET /a/b/y",    "PUT /a/b/y",     "OPTIONS /a/b/y", "PUT /a/b/c/x",
        "DELETE /a/b/c", "PUT /a/b/c/q",   "PUT /a/f/etc",   "GET /a/f/etc/none",
        "GET /a/f",      "OPTIONS /a/f/x", "BREW /a/",       "OPTIONS /a/b/1/d/",
        "PUT /a"};
    char request[200];

    serve_router(NESTED);
    for (unsigned i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        snprintf(request, sizeof(request),
                 "%s HTTP/1.1\r\nHost: h\r\nX: 1\r\nConnection: close\r\n\r\n", requests[i]);
        ck_assert_msg(strstr(ask(request), "HTTP/1.1 401 ") != NULL, "%s", requests[i]);
    }
    EXPECT_IN(ask(ASK("PUT /a/b/y", "", "")),
              "405 Method Not Allowed\r\nAllow: GET, HEAD, OPTIONS");
    EXPECT_IN(ask(ASK("OPTIONS /a/b/y", "", "")), "204 No Content\r\nAllow: GET, HEAD, OPTIONS");
    EXPECT_IN(ask(ASK("OPTIONS *", "", "")), "204 No Content\r\nAllow: GET, HEAD, POST, OPTIONS");
    end_script();
}
END_TEST

START_TEST(a_path_without_a_route_meets_the_filters_of_the_mounts_above_it)
{
    serve_router("local inner = http.router():use(function(req) return 401 end) "
                 "r:get('/x', function() return 'x' end):use('/in', inner):use('/{id}/in', inner)");
    EXPECT_IN(ask(ASK("GET /in", "", "")), "401 Unauthorized");
    EXPECT_IN(ask(ASK("GET /in/a/b", "", "")), "401 Unauthorized");
    EXPECT_IN(ask(ASK("PUT /7/in/", "", "")), "401 Unauthorized");
    EXPECT_IN(ask(ASK("GET /inn", "", "")), "404 Not Found");
    EXPECT_IN(ask(ASK("PUT /x", "", "")), "405 Method Not Allowed\r\nAllow: GET, HEAD, OPTIONS");
    EXPECT_IN(ask(ASK("OPTIONS *", "", "")), "204 No Content");
    end_script();
}
END_TEST

static const struct wrapped {
    const char *filter;
    const char *status;
    const char *text;
} wrapped[] = {
    {"next()", "201 Created", "made 1"},
    {"local s, t = next() return s, t .. '!'", "201 Created", "made 1!"},
    {"task.sleep(0.001) next() task.sleep(0.001) res.status = 202 return 'mine'", "202 Accepted",
     "mine"},
    {"local ok, e = pcall(next) return 200, tostring(ok)", "200 OK", "true"},
    {"next() return 200, select(2, pcall(next))", "200 OK",
     "next() was called twice, or after its filter had ended"},
    {"kept = next", "201 Created", "made false"},
    {"return", "201 Created", "made 1"},
    {"return 200, tostring(select('#', next()))", "200 OK", "2"},
    {"res:send 'sent' next()", "200 OK", "sent"},
    {"next() return nil", "201 Created", "made 1"},
    {"return nil, nil", "201 Created", "made 1"},
    {"next() return nil, nil", "201 Created", "made 1"},
    {"next() return 'text', nil", "200 OK", "text"},
    {"next() return 404, nil", "404 Not Found", "404 Not Found\n"},
};

START_TEST(a_filter_wraps_what_comes_after_it)
{
    char text[1000];

    snprintf(text, sizeof(text),
             "r:use(function(req, res, next) %s end)"
             ":use(function(req, res, next) task.sleep(0.001) local s, t = next() "
             "  if t then return s, t end end)"
             ":get('/', function(req) task.sleep(0.001) "
             "  if kept then return 201, 'made ' .. tostring((pcall(kept))) end "
             "  return 201, 'made 1' end)",
             wrapped[_i].filter);
    serve_router(text);
    EXPECT_ANSWER(ASK("GET /", "", ""), wrapped[_i].status, wrapped[_i].text);
    end_script();
}
END_TEST

START_TEST(a_filter_catches_what_comes_after_it)
{
    serve_router("r:use(function(req, res, next) local ok, e = pcall(next) "
                 "if not ok then return 200, 'caught ' .. tostring(e.message or e) end end)"
                 ":get('/boom', function() error({message = 'boom'}) end)"
                 ":get('/nil', function() return nil, 'failed' end)"
                 ":get('/many', function() return 200, 'a', 'b', 'c', 'd' end)"
                 ":get('/nothing', function() end)");
    EXPECT_TEXT("/boom", "caught boom");
    EXPECT_IN(ask(ASK("GET /nil", "", "")), "500 Internal");
    EXPECT_TEXT("/many", "a");
    EXPECT_IN(ask(ASK("GET /nothing", "", "")), "204 No Content");
    end_script();
}
END_TEST

START_TEST(a_request_has_a_table_for_filters_and_handlers)
{
    serve_router(
        "r:use(function(req) req.ctx.user = 'ann' req.ctx.n = (req.ctx.n or 0) + 1 end)"
        ":on_error(function(req, res, err) return req.ctx.user .. err.message end)"
        ":get('/a', function(req) kept = req return req.ctx.user .. req.ctx.n end)"
        ":get('/b', function(req) error{status = 400, message = 'bad'} end)"
        ":get('/c', function(req) return select(2, pcall(function() return kept.ctx end)) end)"
        ":get('/d', function(req) return select(2, pcall(function() req.ctx = 1 end)) end)");
    EXPECT_TEXT("/a", "ann1");
    EXPECT_TEXT("/a", "ann1");
    EXPECT_IN(ask(ASK("GET /b", "", "")), "annbad");
    EXPECT_IN(ask(ASK("GET /c", "", "")), "the request is over");
    EXPECT_IN(ask(ASK("GET /d", "", "")), "has no field 'ctx' to assign");
    end_script();
}
END_TEST

/* ---- Errors ---- */

START_TEST(the_nearest_on_error_makes_the_reply)
{
    serve_router("local function boom() error 'boom' end "
                 "local function of(name) return function(req, res, err) return name end end "
                 "local a, b = http.router():get('/', boom), http.router():get('/', boom) "
                 "r:use('/a', a:use('/b', b)):get('/', boom):on_error(of 'outer') "
                 "b:on_error(of 'inner')");
    EXPECT_IN(ask(ASK("GET /", "", "")), "outer");
    EXPECT_IN(ask(ASK("GET /a/", "", "")), "outer");
    EXPECT_IN(ask(ASK("GET /a/b/", "", "")), "inner");
    end_script();
}
END_TEST

START_TEST(on_error_makes_the_reply)
{
    serve_router("r:on_error(function(req, res, err) task.sleep(0.001) "
                 "return err.status .. err.message .. tostring(err.traceback ~= nil) end)"
                 ":get('/a', function() error 'boom' end)"
                 ":get('/b', function() error{status = 404, message = 'gone'} end)");
    EXPECT_ANSWER(ASK("GET /a", "", ""), "500 Internal Server Error", "500test:1: boomtrue");
    ck_assert(logged("GET /a: test:1: boom"));
    EXPECT_ANSWER(ASK("GET /b", "", ""), "404 Not Found", "404gonefalse");
    end_script();
}
END_TEST

START_TEST(an_error_of_on_error_is_500)
{
    serve_router("r:on_error(print):on_error(function() error 'again' end)"
                 ":get('/a', function() error 'boom' end)");
    EXPECT_IN(ask(ASK("GET /a", "", "")), "{\"error\":\"internal\",\"id\":\"");
    ck_assert(logged("boom"));
    ck_assert(logged("again"));
    end_script();
}
END_TEST

static const struct wrong {
    const char *text;
    const char *message;
} wrong[] = {
    {"http.router():get('/{a', print)", "cannot route GET /{a"},
    {"http.router():route('GET,put', '/a', print)",
     "methods are written in capitals, as \"GET,PUT\""},
    {"http.router():get('/a', 1)", "function expected, got number"},
    {"http.router():get(print, print)", "string expected, got function"},
    {"http.router():get('/a', print):get('/a', print)", "cannot route GET /a"},
    {"local r = http.router() r:use('/b', r)", "another router expected"},
    {"http.router():use('/b', 1)", "function expected, got number"},
    {"http.router():use('/{*}', http.router())", "cannot route * /{*}"},
    {"http.router():use('//', http.router():use('/b//', http.router())):use('a', http.router())",
     "cannot route * a: no / to begin with"},
    {"http.static('/none')", "http.static: /none: No such file or directory"},
    {"http.static('.', {cache_control = 'a\\r\\nB: c'})",
     "http.static: cache_control cannot be used"},
    {"http.static('.', {types = 'nonsense', cache_control = 'a'})",
     "http.static: types or cache_control cannot be used"},
    {"http.static('.', {gzip = 'pre'})", "gzip must be true or false, not a string"},
    {"http.static('.', {color = 1})", "http.static has no option 'color'"},
    {"http.static('.', {1})", "http.static has no option '1'"},
    {"http.static('.', {etag = false})", "http.static has no option 'etag'"},
    {"http.static('.', {index = 1})", "http.static: index must be a string, not a number"},
    {"http.static('.', {ranges = 257})", "http.static: ranges must be a number from 0 to 256"},
    {"http.static('.', {ranges = -1})", "http.static: ranges must be a number from 0 to 256"},
    {"http.static('.', {ranges = 1.5})", "http.static: ranges must be a number from 0 to 256"},
    {"http.static('.', {ranges = 'many'})", "http.static: ranges must be a number from 0 to 256"},
    {"http.static('.', {ranges = true})", "http.static: ranges must be a number from 0 to 256"},
    {"http.serve{prot = 1}", "http.serve has no option 'prot'"},
    {"http.serve{1}", "http.serve has no option '1'"},
    {"http.serve()", "table expected, got no value"},
    {"http.serve{port = 65536, handler = print}",
     "http.serve: port must be a number from 0 to 65535"},
    {"http.serve{port = 'x', handler = print}",
     "http.serve: port must be a number from 0 to 65535"},
    {"http.serve{ip = 1, handler = print}", "http.serve: ip must be a string, not a number"},
    {"http.serve{ip = ('x'):rep(50), handler = print}", "http.serve: ip is too long"},
    {"http.serve{limits = 1, handler = print}", "http.serve: limits must be a table, not a number"},
    {"http.serve{limits = {x = 1}, handler = print}", "limits has no option 'x'"},
    {"http.serve{timeouts = {idle = 'x'}, handler = print}",
     "http.serve: timeouts.idle must be seconds, or false"},
    {"http.serve{timeouts = {idle = true}, handler = print}",
     "http.serve: timeouts.idle must be seconds, or false"},
    {"http.serve{port = 1}", "http.serve: handler must be a function, an http.router(), an "
                             "http.static() or an http.proxy(), not a nil"},
    {"http.serve{limits = {line = 100, head = 50}, handler = print}",
     "http.serve: Invalid argument"},
    {"for i = 1, 17 do http.serve{handler = print, connections = 1} end",
     "http.serve: there are 16 servers already"},
};

START_TEST(what_is_wrong_is_said_when_the_script_is_loaded)
{
    load_site("", &(struct sxe_lua_config){.tasks = 64});
    char text[500];

    snprintf(text, sizeof(text), "local http = require 'sxe.http' %s", wrong[_i].text);
    fails_with(text, wrong[_i].message);
    state_stop();
}
END_TEST

/* ---- Other routers below a prefix ---- */

START_TEST(functions_and_routers_answer_below_a_prefix)
{
    serve_router("local function at(req) return req.path .. ' ' .. req.method end "
                 "r:use('/f/', at):use('', function() return 'rest' end) "
                 "local api = http.router():get('/x/{id}', function(req) return req.params.id end)"
                 ":use(function(req) if req.params.id == '7' then return 403 end end)"
                 "r:use('/api', api)");
    EXPECT_TEXT("/f", "/f GET");
    EXPECT_ANSWER(ASK("PUT /f/a/b", "", ""), "200 OK", "/f/a/b PUT");
    EXPECT_TEXT("/other", "rest");
    EXPECT_TEXT("/api/x/5", "5");
    EXPECT_ANSWER(ASK("GET /api/x/7", "", ""), "403 Forbidden", "403 Forbidden\n");
    end_script();
}
END_TEST

/* ---- Files ---- */

static char directory[64];

static void
write_file(const char *name, const char *text)
{
    FILE *file;

    ck_assert_int_eq(chdir(directory), 0);
    file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    chmod(name, 0644);
}

static void
make_directory(void)
{
    snprintf(directory, sizeof(directory), "/tmp/lua-http-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    chmod(directory, 0755);
    write_file("a b.txt", "file a");
    write_file("index.html", "<index>");
    write_file("start.htm", "<start>");
    mkdir("sub", 0755);
    write_file("sub/index.html", "<sub>");
}

static void
remove_directory(void)
{
    unlink("a b.txt");
    unlink("index.html");
    unlink("start.htm");
    unlink("sub/index.html");
    rmdir("sub");
    ck_assert_int_eq(chdir("/"), 0);
    rmdir(directory);
}

/* A thread reads the file, so the reply takes real time. */
static const char *
ask_file(const char *request)
{
    const char *reply;
    int peer = client();

    say(peer, request);
    while (connections_in(SXE__HTTP_HANDLING) > 0) {
        usleep(1000);
        turn(1);
    }
    reply = hear(peer);
    close(peer);
    turn(3);
    return reply;
}

START_TEST(files_are_served_below_a_prefix)
{
    char text[6000];

    make_directory();
    serve_router("r:use('/files', http.static('.', {index = 'start.htm', gzip = true, "
                 "cache_control = 'no-cache', types = 'text/x txt\\n'}))");
    EXPECT_IN(ask_file(ASK("GET /files/a%20b.txt", "", "")), "\r\n\r\nfile a");
    EXPECT_IN(ask_file(ASK("GET /files/", "", "")), "\r\n\r\n<start>");
    EXPECT_IN(ask_file(ASK("GET /files", "", "")),
              "301 Moved Permanently\r\nLocation: /files/\r\n");
    EXPECT_IN(ask_file(ASK("GET /files?x", "", "")),
              "301 Moved Permanently\r\nLocation: /files/?x\r\n");
    snprintf(text, sizeof(text),
             "GET /files?%05000d HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 1);
    EXPECT_IN(ask_file(text), "414 URI Too Long");
    EXPECT_IN(ask_file(ASK("GET /files/none", "", "")), "404 Not Found");
    EXPECT_IN(ask_file(ASK("GET /files/%2e%2e/x", "", "")), "404 Not Found");
    end_script();
    remove_directory();
}
END_TEST

START_TEST(files_in_a_mounted_router_are_filtered)
{
    make_directory();
    serve_router("local inner = http.router():use('/files', http.static('.')) "
                 "local seen = http.router():use('/{tenant}', http.static('.')) "
                 "r:use('/in', inner):use('/open', seen) "
                 "inner:use(function(req, res) res.headers.X = req.path "
                 "if req.headers.no then return 403 end end)");
    EXPECT_IN(ask_file(ASK("GET /in/files/a%20b.txt", "", "")), "\r\n\r\nfile a");
    EXPECT_IN(ask_file(ASK("GET /in/files/a%20b.txt", "", "")), "X: /in/files/a b.txt\r\n");
    EXPECT_IN(ask_file(ASK("GET /in/files/sub", "", "")), "Location: /in/files/sub/\r\n");
    EXPECT_IN(ask_file(ASK("GET /in/files", "", "")), "Location: /in/files/\r\n");
    EXPECT_IN(ask_file(ASK("GET /in/files", "No: 1\r\n", "")), "403 Forbidden");
    EXPECT_IN(ask_file(ASK("GET /in/files/a%20b.txt", "No: 1\r\n", "")), "403 Forbidden");
    EXPECT_IN(ask_file(ASK("GET //in//files/sub/..//a%20b.txt", "No: 1\r\n", "")), "403 Forbidden");
    EXPECT_IN(ask_file(ASK("GET /open/t/a%20b.txt", "", "")), "\r\n\r\nfile a");
    EXPECT_IN(ask_file(ASK("GET /open/a-long-tenant/", "", "")), "\r\n\r\n<index>");
    EXPECT_IN(ask_file(ASK("GET /open/t", "", "")), "Location: /open/t/\r\n");
    end_script();
    remove_directory();
}
END_TEST

START_TEST(a_filter_that_has_begun_the_reply_leaves_no_file)
{
    make_directory();
    serve_router(
        "r:use('', http.static('.')):use(function(req, res, next) res:write 'part' next() end)");
    EXPECT_IN(ask_file(ASK("GET /a%20b.txt", "", "")), "part");
    EXPECT_NOT_IN(ask_file(ASK("GET /a%20b.txt", "", "")), "file a");
    end_script();
    remove_directory();
}
END_TEST

#define PART  "HTTP/1.1 206 "
#define WHOLE "HTTP/1.1 200 "

static const struct {
    const char *options;
    const char *said[4]; /* the reply to one range, to two, to three, to none */
} kinds_of_ranges[] = {
    {"{}", {PART, PART, PART, "\r\nAccept-Ranges: bytes\r\n"}},
    {"{ranges = 2}", {PART, PART, WHOLE, "\r\nAccept-Ranges: bytes\r\n"}},
    {"{ranges = 1}", {PART, WHOLE, WHOLE, "\r\nAccept-Ranges: bytes\r\n"}},
    {"{ranges = 0}", {WHOLE, WHOLE, WHOLE, "\r\nAccept-Ranges: none\r\n"}},
};

START_TEST(a_request_may_ask_for_as_many_ranges_as_the_option_says)
{
    static const char *const asked[] = {
        ASK("GET /a%20b.txt", "Range: bytes=0-0\r\n", ""),
        ASK("GET /a%20b.txt", "Range: bytes=0-0,2-2\r\n", ""),
        ASK("GET /a%20b.txt", "Range: bytes=0-0,2-2,4-4\r\n", ""),
        ASK("GET /a%20b.txt", "", ""),
    };
    char text[200];

    make_directory();
    snprintf(text, sizeof(text), "http.serve{ip = '127.0.0.1', handler = http.static('.', %s)}",
             kinds_of_ranges[_i].options);
    serve_script(text);
    for (unsigned i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
        EXPECT_IN(ask_file(asked[i]), kinds_of_ranges[_i].said[i]);
    end_script();
    remove_directory();
}
END_TEST

START_TEST(files_are_a_handler)
{
    make_directory();
    serve_script("http.serve{ip = '127.0.0.1', handler = http.static('.')}");
    EXPECT_IN(ask_file(ASK("GET /", "", "")), "\r\n\r\n<index>");
    EXPECT_IN(ask_file(ASK("GET /sub", "", "")), "301 Moved Permanently\r\nLocation: /sub/\r\n");
    end_script();
    remove_directory();
}
END_TEST

START_TEST(a_handler_sends_files)
{
    make_directory();
    serve_script(
        "local files = http.static('.') local long = ('x'):rep(5000) http.serve{ip = '127.0.0.1', "
        "handler = function(req, res) "
        "if req.path == '/file' then res:file('a b.txt') "
        "elseif req.path == '/late' then task.sleep(0.001) return res:file('a b.txt') "
        "elseif req.path == '/after' then res:file('a b.txt') kept = select(2, pcall(res.send, "
        "res, 1)) "
        "elseif req.path == '/long' then res:file(long) "
        "elseif req.path == '/send' then files:send(res, 'sub/index.html') "
        "elseif req.path == '/kept' then return kept "
        "elseif req.path == '/begun' then res:write('') return res:file('a b.txt') "
        "elseif req.path == '/begun2' then res:write('') return files(req, res) "
        "elseif req.path == '/abs' then return select(2, pcall(res.file, res, '/etc/passwd')) "
        "else return files(req, res) end end}");
    EXPECT_IN(ask_file(ASK("GET /file", "", "")), "\r\n\r\nfile a");
    EXPECT_IN(ask_file(ASK("GET /file", "", "")), "\r\n\r\nfile a");
    EXPECT_IN(ask_file(ASK("GET /late", "", "")), "\r\n\r\nfile a");
    EXPECT_IN(ask_file(ASK("POST /after", "", "")), "\r\n\r\nfile a");
    EXPECT_IN(ask_file(ASK("GET /kept", "", "")), "the request is over");
    EXPECT_IN(ask_file(ASK("GET /long", "", "")), "404 Not Found");
    EXPECT_IN(ask_file(ASK("GET /send", "", "")), "\r\n\r\n<sub>");
    EXPECT_IN(ask_file(ASK("GET /index.html", "", "")), "\r\n\r\n<index>");
    EXPECT_IN(ask_file(ASK("GET /abs", "", "")), "a name in the directory expected");
    ck_assert_uint_eq(captured.number, 0);
    EXPECT_NOT_IN(ask_file(ASK("GET /begun", "", "")), "file a");
    EXPECT_NOT_IN(ask_file(ASK("GET /begun2", "", "")), "file a");
    ck_assert(logged("the reply has begun: a file is a whole one"));
    end_script();
    remove_directory();
}
END_TEST

/* ---- The handler that a script returned, for a server in C ---- */

static void
serve_returned(const char *text)
{
    struct sxe_http_config config = {
        .handler = sxe_lua_http_handle, .stream = true, .connections = 100};

    load_site("", &(struct sxe_lua_config){.tasks = 64});
    ck_assert_int_eq(sxe_lua_http_open(lua), 0);
    run_script(text);
    site.http = sxe_http_new(&config);
    start_site();
    ck_assert_int_eq(sxe_http_listen(site.http, "127.0.0.1", 0), 0);
}

static void
end_returned(void)
{
    struct sxe_http *http = site.http;

    end_script();
    sxe_http_delete(http);
}

START_TEST(a_server_of_c_asks_what_the_script_returned)
{
    make_directory();
    serve_returned("return function(req) return req.path .. req:body() end");
    EXPECT_TEXT("/a", "/a");
    EXPECT_ANSWER(ASK("POST /a", "Content-Length: 1\r\n", "b"), "200 OK", "/ab");
    ck_assert_int_eq(load_text("return 1"), 0);
    EXPECT_ANSWER(ASK("GET /", "", ""), "404 Not Found", "404 Not Found\n");
    ck_assert_int_eq(load_text("return setmetatable({}, {__call = function() return 't' end})"), 0);
    EXPECT_TEXT("/a", "t");
    end_returned();
    remove_directory();
}
END_TEST

START_TEST(a_server_of_c_asks_a_router)
{
    serve_returned("return require 'sxe.http'.router():get('/a', function() return 'routed' end)");
    EXPECT_TEXT("/a", "routed");
    EXPECT_ANSWER(ASK("GET /b", "", ""), "404 Not Found", "404 Not Found\n");
    EXPECT_IN(ask(ASK("POST /a", "", "")), "405 Method Not Allowed\r\n");
    EXPECT_IN(ask(ASK("OPTIONS /a", "", "")), "204 No Content\r\nAllow: GET, HEAD, OPTIONS\r\n");
    end_returned();
}
END_TEST

START_TEST(a_server_of_c_asks_files)
{
    make_directory();
    serve_returned("return require 'sxe.http'.static('.')");
    EXPECT_IN(ask_file(ASK("GET /", "", "")), "\r\n\r\n<index>");
    end_returned();
    remove_directory();
}
END_TEST

START_TEST(bodies_may_come_whole)
{
    struct sxe_http_config config = {.handler = sxe_lua_http_handle, .connections = 100};

    load_site("", &(struct sxe_lua_config){.tasks = 64});
    run_script("return function(req) if req.path == '/a' then return req:body() end "
               "for part in req:chunks() do return 'one ' .. part end end");
    site.http = sxe_http_new(&config);
    start_site();
    ck_assert_int_eq(sxe_http_listen(site.http, "127.0.0.1", 0), 0);
    EXPECT_ANSWER(ASK("POST /a", "Content-Length: 5\r\n", "whole"), "200 OK", "whole");
    EXPECT_ANSWER(ASK("POST /b", "Content-Length: 5\r\n", "whole"), "200 OK", "one whole");
    end_returned();
}
END_TEST

/* ---- Servers ---- */

START_TEST(a_server_says_where_it_listens_and_stops)
{
    int peer;

    serve_script(
        "local server server = http.serve{ip = '127.0.0.1', connections = 10, limits = {body = 3, "
        "requests = 100, address = 100, fields = 50}, timeouts = {head = 1, body = 1, idle = "
        "false, handler = 5.5}, handler = function(req) "
        "if req.path == '/stop' then task.start(function() kept = "
        "{server:stop(0.5)} kept[#kept + 1] = server:stop() end) return 'stops' end "
        "if req.path == '/wait' then task.sleep(2) return 'waited' end "
        "return server.port .. server.ip end} "
        "assert(server.port == 0) assert(not pcall(server.stop, server)) "
        "assert(not pcall(function() return server.none end))");
    char text[50];

    snprintf(text, sizeof(text), "%u127.0.0.1", sxe_http_port(site.http));
    EXPECT_TEXT("/", text);
    EXPECT_ANSWER(ASK("POST /", "Content-Length: 4\r\n", "abcd"), "200 OK", text);
    peer = client();
    say(peer, GET("/wait"));
    EXPECT_TEXT("/stop", "stops");
    wait_ms(3000);
    EXPECT_IN(hear(peer), "waited");
    close(peer);
    ck_assert_int_eq(load_text("return 1"), 0);
    end_script();
}
END_TEST

START_TEST(each_server_stops_by_itself)
{
    serve_script("local a = http.serve{ip = '127.0.0.1', connections = 10, handler = print} "
                 "local b = http.serve{ip = '127.0.0.1', connections = 10, handler = print} "
                 "assert(not pcall(function() local early <close> = a end)) "
                 "task.start(function() do local x <close> = b end "
                 "assert(b:stop()) assert(b:stop()) assert(a:stop(1)) "
                 "local log = require 'sxe.log' log.warn('all have stopped') end)");
    turn(10);
    ck_assert(logged("all have stopped"));
    site.http = NULL;
    end_script();
}
END_TEST

START_TEST(who_cancels_a_stop_is_told)
{
    int peer;

    serve_script("local server server = http.serve{ip = '127.0.0.1', connections = 10, handler = "
                 "function() local t = task.start(function() "
                 "require 'sxe.log'.warn('%s %s', server:stop(0.1)) "
                 "require 'sxe.log'.warn('%s %s', server:stop()) end) "
                 "task.sleep(1) t:cancel() task.sleep(1) end}");
    peer = client();
    say(peer, GET("/"));
    wait_ms(5000);
    ck_assert(logged("nil timeout"));
    ck_assert(logged("nil cancelled"));
    close(peer);
    end_script();
}
END_TEST

START_TEST(a_module_that_is_opened_late_has_no_files)
{
    struct sxe_http_config config = {
        .handler = sxe_lua_http_handle, .stream = true, .connections = 100};

    memset(&site, 0, sizeof(site));
    fake_time_start(UINT64_C(1000000000000), SITE_TIME * SXE_NS_PER_SECOND);
    fds_before_script = fake_os_open_fds();
    state_start();
    site.http = sxe_http_new(&config);
    start_site();
    ck_assert_int_eq(sxe_http_listen(site.http, "127.0.0.1", 0), 0);
    run_script("return function(req, res) return select(2, pcall(res.file, res, 'x')) end");
    EXPECT_ANSWER(ASK("GET /", "", ""), "404 Not Found", "404 Not Found\n");
    ck_assert_int_eq(sxe_lua_http_open(lua), 0);
    EXPECT_IN(ask(ASK("GET /", "", "")), "res:file() cannot be planned any more");
    end_returned();
}
END_TEST

START_TEST(a_server_that_cannot_listen_fails_the_start)
{
    char text[200];
    unsigned short port;
    int peer = peer_listen(&port);

    snprintf(text, sizeof(text), "http.serve{ip = '127.0.0.1', port = %u, handler = print}", port);
    load_site(text, &(struct sxe_lua_config){.tasks = 64});
    ck_assert_int_eq(sxe_init(), 0);
    sxe_log_set_level(SXE_LOG_WARNING);
    ck_assert_int_eq(sxe_lua_init(lua), -EINVAL);
    ck_assert(logged("http.serve cannot listen at 127.0.0.1 port "));
    ck_assert_int_eq(sxe_fini(), 0);
    state_stop();
    close(peer);
}
END_TEST

START_TEST(a_server_may_listen_at_a_unix_socket)
{
    char text[200];

    snprintf(text, sizeof(text),
             "http.serve{unix = '@lua-http-%d', handler = print} http.serve{handler = print}",
             (int)getpid());
    load_site(text, &(struct sxe_lua_config){.tasks = 64});
    ck_assert_int_eq(sxe_init(), 0);
    captured.number = 0;
    ck_assert_int_eq(sxe_lua_init(lua), 0);
    ck_assert(logged("http.serve listens at @lua-http-"));
    ck_assert(logged("http.serve listens at *:"));
    ck_assert_int_eq(sxe_fini(), 0);
    state_stop();
}
END_TEST

START_TEST(on_error_can_say_which_path_was_refused)
{
    serve_router(
        "r:get('/n/{x}', function(req) return req.params.x end)"
        ":get('/p/{x...}', function(req) return req.path end)"
        ":get('/e/{x}', function() error{status = 409, message = 'bad'} end)"
        ":on_error(function(req, res, err) "
        "return err.status, req.path .. ' ' .. req.params.x .. ' ' .. req.params().x end)");
    EXPECT_ANSWER(ASK("GET /n/a%2Fb", "", ""), "400 Bad Request", "/n/a%2Fb a%2Fb a%2Fb");
    EXPECT_ANSWER(ASK("GET /n/%20%00", "", ""), "400 Bad Request", "/n/%20%00 %20%00 %20%00");
    EXPECT_ANSWER(ASK("GET /p/a%5Cb", "", ""), "400 Bad Request", "/p/a%5Cb a%5Cb a%5Cb");
    EXPECT_ANSWER(ASK("GET /e/a%20b", "", ""), "409 Conflict", "/e/a b a b a b");
    end_script();
}
END_TEST

START_TEST(what_comes_too_late_is_refused)
{
    static const char *const late[][2] = {
        {"http.serve{handler = print}", "http.serve: servers are planned before the loop starts"},
        {"http.static('.')", "http.static: files are planned before the loop starts"},
        {"http.router()", "http.router: routes are made before the loop starts"},
        {"r:get('/a', print)", "GET /a comes too late: routes are made before"},
    };
    char text[200];

    load_site("r = http.router()", &(struct sxe_lua_config){.tasks = 64});
    sxe_register(1, 0);
    start_site();
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof(text), "local http = require 'sxe.http' %s", late[i][0]);
        fails_with(text, late[i][1]);
    }
    ck_assert_int_eq(sxe_fini(), 0);
    state_stop();
}
END_TEST

/* ---- Finalizers ---- */

START_TEST(a_finalizer_cannot_be_called_by_scripts)
{
    serve_router("assert(getmetatable(r) == false) assert(not pcall(setmetatable, r, {})) "
                 "local f = http.static '/tmp' assert(getmetatable(f) == false) "
                 "r:get('/a', function() return 'a' end)");
    EXPECT_TEXT("/a", "a");
    end_script();
}
END_TEST

START_TEST(a_router_refuses_at_the_end_of_the_state)
{
    /* Finalizers run in the reverse order of their marking, so this object is finalized last. */
    serve_script("local log, r = require 'sxe.log' setmetatable({}, {__gc = function() "
                 "log.error('%s', select(2, pcall(r.get, r, '/b', print))) end}) "
                 "r = http.router() http.serve{ip = '127.0.0.1', handler = r}");
    end_script();
    ck_assert_msg(logged("the state is closed, and so is the router"), "%s", log_line(0));
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-http-router");
    TCase *t = tcase_create("routes");

#define CASES(list) ((int)(sizeof(list) / sizeof(list[0])))
    tcase_add_loop_test(t, each_method_has_its_routes, 0, 7);
    tcase_add_test(t, a_route_may_have_many_methods);
    tcase_add_loop_test(t, a_value_is_one_name, 0, CASES(values));
    tcase_add_test(t, routes_are_listed);
    tcase_add_test(t, a_filter_answers_or_lets_pass);
    tcase_add_loop_test(t, nil_and_a_message_is_an_error_of_a_filter_too, 0, CASES(refusals));
    tcase_add_test(t, a_filtered_handler_may_wait);
    tcase_add_loop_test(t, filters_of_outer_routers_run_first, 0, CASES(nested));
    tcase_add_test(t, filters_run_before_what_no_route_answers);
    tcase_add_test(t, a_path_without_a_route_meets_the_filters_of_the_mounts_above_it);
    tcase_add_loop_test(t, a_filter_wraps_what_comes_after_it, 0, CASES(wrapped));
    tcase_add_test(t, a_filter_catches_what_comes_after_it);
    tcase_add_test(t, a_request_has_a_table_for_filters_and_handlers);
    tcase_add_test(t, the_nearest_on_error_makes_the_reply);
    tcase_add_test(t, on_error_makes_the_reply);
    tcase_add_test(t, an_error_of_on_error_is_500);
    tcase_add_test(t, functions_and_routers_answer_below_a_prefix);
    tcase_add_loop_test(t, what_is_wrong_is_said_when_the_script_is_loaded, 0, CASES(wrong));
    suite_add_tcase(s, t);

    t = tcase_create("files");
    tcase_add_test(t, files_are_served_below_a_prefix);
    tcase_add_loop_test(t, a_request_may_ask_for_as_many_ranges_as_the_option_says, 0,
                        sizeof(kinds_of_ranges) / sizeof(kinds_of_ranges[0]));
    tcase_add_test(t, files_in_a_mounted_router_are_filtered);
    tcase_add_test(t, a_filter_that_has_begun_the_reply_leaves_no_file);
    tcase_add_test(t, files_are_a_handler);
    tcase_add_test(t, a_handler_sends_files);
    suite_add_tcase(s, t);

    t = tcase_create("servers");
    tcase_add_test(t, a_server_of_c_asks_what_the_script_returned);
    tcase_add_test(t, a_server_of_c_asks_a_router);
    tcase_add_test(t, a_server_of_c_asks_files);
    tcase_add_test(t, bodies_may_come_whole);
    tcase_add_test(t, a_server_says_where_it_listens_and_stops);
    tcase_add_test(t, each_server_stops_by_itself);
    tcase_add_test(t, who_cancels_a_stop_is_told);
    tcase_add_test(t, a_module_that_is_opened_late_has_no_files);
    tcase_add_test(t, a_server_that_cannot_listen_fails_the_start);
    tcase_add_test(t, a_server_may_listen_at_a_unix_socket);
    tcase_add_test(t, on_error_can_say_which_path_was_refused);
    tcase_add_test(t, what_comes_too_late_is_refused);
    tcase_add_test(t, a_finalizer_cannot_be_called_by_scripts);
    tcase_add_test(t, a_router_refuses_at_the_end_of_the_state);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
