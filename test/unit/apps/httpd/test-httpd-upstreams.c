/* SPDX-License-Identifier: MIT
 *
 * Upstreams of the configuration file and of --proxy: what is refused, and how requests are sent
 * on.
 */
#include <stdlib.h>
#include <string.h>

#include "run-httpd.h"
#include "upstreams.h"

static char directory[] = "/tmp/sxe-upstreams-XXXXXX";

static void
write_site(const char *text)
{
    FILE *file = fopen("site.lua", "w");

    fputs(text, file);
    fclose(file);
}

static void
set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
}

static void
tear_down(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* ---- Configurations that are refused ---- */

#define UPSTREAM(text) "return { upstreams = {\n app = " text " }, routes = {} }"
#define ROUTE(text)    "return { routes = {\n ['/a/{r...}'] = " text " } }"
#define SERVERS        "{ servers = 'a:1', "

static const struct {
    const char *text;
    const char *says;
} mistakes[] = {
    {"return {\n upstreams = 1 }", "site.lua:2: upstreams: it is number; it must be a table such"},
    {"return {\n upstreams = { 'a:1' } }", "site.lua:2: upstreams: each has a name: app ="},
    {"return { upstream = {} }", "upstream: there is no such key; did you mean upstreams?"},
    {"return { upstreams = {\n ['a\\0'] = {} } }", "upstreams: it is string; it must be a text"},
    {UPSTREAM("'a:1'"), "site.lua:2: app: it is string; it must be a table such as { servers"},
    {UPSTREAM("{}"), "app: an upstream needs servers"},
    {UPSTREAM("{ server = 'a:1' }"), "server: there is no such key here; did you mean servers?"},
    {UPSTREAM("{ servers = 1 }"), "servers: it is number; it must be a text"},
    {UPSTREAM("{\n servers = 'a' }"), "site.lua:3: servers: it is a; it must be an address and a"},
    {UPSTREAM(SERVERS "balance = 'best' }"), "balance: it is best; it must be round_robin, least"},
    {UPSTREAM(SERVERS "balance = 1 }"), "balance: it is number; it must be a text"},
    {UPSTREAM(SERVERS "balance = 'header' }"), "balance_header: the name of a header, with"},
    {UPSTREAM(SERVERS "balance_header = 'X' }"), "balance_header: it is X; it must be the name"},
    {UPSTREAM(SERVERS "balance_header = 1 }"), "balance_header: it is number; it must be a text"},
    {UPSTREAM(SERVERS "balance = 'header', balance_header = 'a b' }"), "it is a b; it must be the"},
    {UPSTREAM(SERVERS "max_fails = 0 }"), "max_fails: the upstream's max_fails is '0'; it must be"},
    {UPSTREAM(SERVERS "max_fails = true }"), "max_fails: it is boolean; it must be a number, or a"},
    {UPSTREAM(SERVERS "connections = 70000 }"), "the upstream's connections is '70000'; it must"},
    {UPSTREAM(SERVERS "idle = 'x' }"), "the upstream's idle is 'x'; it must be"},
    {UPSTREAM(SERVERS "\n fail_timeout = '5x' }"),
     "site.lua:3: fail_timeout: the upstream's fail_"},
    {UPSTREAM(SERVERS "slow_start = {} }"), "slow_start: it is table; it must be a number, or a"},
    {UPSTREAM(SERVERS "connect_timeout = 'a' }"), "the upstream's connect_timeout is 'a'; it must"},
    {UPSTREAM(SERVERS "reply_timeout = 0 }"), "the upstream's reply_timeout is '0'; it must be"},
    {UPSTREAM(SERVERS "stall_timeout = 0 }"), "the upstream's stall_timeout is '0'; it must be"},
    {UPSTREAM(SERVERS "websockets = 0 }"), "the upstream's websockets is '0'; it must be"},
    {UPSTREAM(SERVERS "websocket_timeout = 'x' }"), "the upstream's websocket_timeout is 'x'; it"},
    {UPSTREAM(SERVERS "check = 'health' }"), "check: it is health; it must be a path such as /v1"},
    {UPSTREAM(SERVERS "check = 1 }"), "check: it is number; it must be a text"},
    {UPSTREAM(SERVERS "check_interval = 'x' }"), "the upstream's check_interval is 'x'; it must"},
    {UPSTREAM(SERVERS "check_rises = 0 }"), "the upstream's check_rises is '0'; it must be"},
    {UPSTREAM(SERVERS "check_falls = 0 }"), "the upstream's check_falls is '0'; it must be"},
    {UPSTREAM(SERVERS "idle_timeout = 0 }"), "the upstream's idle_timeout is '0'; it must be"},
    {ROUTE("{ proxy = 5 }"), "proxy: it is number; it must be a text"},
    {ROUTE("{ proxy = 'app' }"), "proxy: it is app; it must be the name of one of the upstreams"},
    {ROUTE("{ proxy = 'ftp://a:1' }"), "proxy: it is ftp://a:1; it must be the name of one"},
    {ROUTE("{ proxy = 'http://a:1', root = 'x' }"), "a route has one of root, redirect, status,"},
    {ROUTE("{ status = 200, host = 'x' }"), "path, host, via, forwarded, encoded_slash and"},
    {ROUTE("{ status = 200, encoded_slash = true }"), "and request_header need proxy = ..."},
    {ROUTE("{ status = 200, request_header = 'X: a' }"), "and request_header need proxy = ..."},
    {ROUTE("{ proxy = 'http://a:1', request_header = 1 }"),
     "request_header: it is number; it must"},
    {ROUTE("{ proxy = 'http://a:1', request_header = { 'X: a', 'Host: b' } }"),
     "request_header: it is Host: b; it must be another field: the server itself sets Host and"},
    {ROUTE("{ proxy = 'http://a:1', request_header = 'X a' }"),
     "request_header: it is X a; it must be 'Name: value', with a colon"},
    {ROUTE("{ proxy = 'http://a:1', request_header = 'X a: b' }"),
     "it must be 'Name: value' with a name of letters, digits and dashes"},
    {ROUTE("{ proxy = 'http://a:1', request_header = 'X: \\1' }"),
     "it must be 'Name: value' in one line, without control bytes"},
    {ROUTE("{ proxy = 'http://a:1', request_header = 'X: {name}' }"),
     "it must be 'Name: value' without other braces than {user}, {request_id} and {client}"},
    {ROUTE("{ proxy = 'http://a:1', encoded_slash = 1 }"), "encoded_slash: it is number; it must"},
    {ROUTE("{ proxy = 'http://a:1/b', path = '/c' }"), "path: it is /c; it must be in the URL or"},
    {ROUTE("{ proxy = 'http://a:1', path = 'c' }"), "path: it is c; it must be a path such as"},
    {ROUTE("{ proxy = 'http://a:1', path = '/../c' }"), "path: it is /../c; it must be a path"},
    {ROUTE("{ proxy = 'http://a:1', path = '/c?d' }"), "path: it is /c?d; it must be a path such"},
    {ROUTE("{ proxy = 'http://a:1', path = '/c#d' }"), "path: it is /c#d; it must be a path such"},
    {ROUTE("{ proxy = 'http://a:1', path = '/c d' }"), "path: it is /c d; it must be a path such"},
    {ROUTE("{ proxy = 'http://a:1', path = '/c\\1d' }"), "path: it is /c\1d; it must be a path"},
    {ROUTE("{ proxy = 'http://a:1/b?c' }"), "proxy: it is http://a:1/b?c; it must be a URL with a"},
    {ROUTE("{ proxy = 'http://a:1', host = '' }"), "host: it is ; it must be a host, with or with"},
    {ROUTE("{ proxy = 'http://a:1', path = 1 }"), "path: it is number; it must be a text"},
    {ROUTE("{ proxy = 'http://a:1', host = 'a b' }"), "host: it is a b; it must be a host, with"},
    {ROUTE("{ proxy = 'http://a:1', via = 'a b' }"), "via: it is a b; it must be a name of"},
    {ROUTE("{ proxy = 'http://a:1', forwarded = 'a' }"), "forwarded: it is a; it must be x-forw"},
    {ROUTE("{ proxy = 'http://a:1', forwarded = 1 }"), "forwarded: it is number; it must be a"},
    {UPSTREAM(SERVERS "fastcgi = 1 }"), "fastcgi: it is number; it must be"},
    {UPSTREAM(SERVERS "keep = true }"), "keep: it needs fastcgi = true"},
    {UPSTREAM(SERVERS "keep = 1 }"), "keep: it is number; it must be"},
    {UPSTREAM("{ servers = 'https://a:1', fastcgi = true }"),
     "servers of FastCGI have no https://"},
    {UPSTREAM(SERVERS "fastcgi = true, check = '/a' }"),
     "check: servers of FastCGI are not checked"},
    {ROUTE("{ fastcgi = 1 }"), "fastcgi: it is number; it must be a text"},
    {ROUTE("{ fastcgi = 'a' }"),
     "fastcgi: it is a; it must be the name of an upstream with fastcgi"},
    {ROUTE("{ fastcgi = 'https://a:1' }"),
     "it must be the name of an upstream with fastcgi = true"},
    {ROUTE("{ fastcgi = 'a:1', proxy = 'http://a:1' }"),
     "a route has one of root, redirect, status,"},
    {ROUTE("{ fastcgi = 'a:1', status = 200 }"),
     "a route has one of root, redirect, status, proxy"},
    {ROUTE("{ fastcgi = 'a:1', path = '/x' }"),
     "path, host, via, forwarded, encoded_slash and request_he"},
    {ROUTE("{ fastcgi = 'a:1', host = '' }"), "host: it is ; it must be a host, with or without"},
    {ROUTE("{ fastcgi = 'a:1', host = 'a b' }"), "host: it is a b; it must be a host, with"},
    {"return { routes = { ['/noseg'] = { fastcgi = 'a:1', root = '/' } } }",
     "no path of this route leads to a script: let it end with {path...}"},
    {ROUTE("{ fastcgi = 'a:1', suffix = '.php' }"),
     "suffix, index, remote and files need fastcgi ="},
    {ROUTE("{ root = '/', index = 'a.php' }"),
     "suffix, index, remote and files need fastcgi = ..."},
    {ROUTE("{ root = '/', remote = true }"),
     "suffix, index, remote and files need fastcgi = ... and"},
    {ROUTE("{ root = '/', files = true }"),
     "suffix, index, remote and files need fastcgi = ... and"},
    {ROUTE("{ fastcgi = 'a:1', root = '/', suffix = 1 }"),
     "suffix: it is number; it must be a text"},
    {ROUTE("{ fastcgi = 'a:1', root = '/', index = 'a' }"),
     "index and fallback end with suffix, by"},
    {ROUTE("{ fastcgi = 'a:1', root = '/', fallback = '/a' }"),
     "index and fallback end with suffix"},
    {ROUTE("{ fastcgi = 'a:1', root = 'public' }"),
     "root: it is public; it must be a path that beg"},
    {ROUTE("{ fastcgi = 'a:1', root = '/', remote = true, files = true }"),
     "needs a directory that"},
    {"return { upstreams = { app = { servers = 'a:1', fastcgi = true } },\n"
     "routes = { ['/'] = { proxy = 'app' } } }",
     "proxy: it is app; it must be an upstream without fastcgi = true; or write fastcgi = "
     "\"NAME\""},
    {"return { upstreams = { app = { servers = 'a:1' } },\n"
     "routes = { ['/'] = { fastcgi = 'app' } } }",
     "fastcgi: it is app; it must be an upstream with fastcgi = true; or write proxy = \"NAME\""},
};

START_TEST(a_mistake_is_named_with_its_line)
{
    write_site(mistakes[_i].text);
    RUN_HTTPD("--config", "site.lua", "--check");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, mistakes[_i].says);
}
END_TEST

static const char good[] =
    "return { upstreams = { app = { servers = { '127.0.0.1:3000 weight=2', '[::1]:3000',\n"
    "'@app', '/run/app.sock weight=3' }, balance = 'header', balance_header = 'X-Key',\n"
    "max_fails = 5, fail_timeout = '5s', slow_start = 60, connections = 10, idle = 5,\n"
    "connect_timeout = '100ms', reply_timeout = 5, stall_timeout = 5, idle_timeout = 5,\n"
    "websockets = 5, websocket_timeout = '5m',\n"
    "check = '/health', check_interval = '1s', check_rises = 1, check_falls = 1 },\n"
    "other = { servers = '127.0.0.1:1' }, php = { servers = '/a', fastcgi = true, keep = true } "
    "},\n"
    "routes = { ['/a/{r...}'] = { proxy = 'app', path = '/v1/', host = 'a:1', via = 'edge',\n"
    "forwarded = 'forwarded' }, ['/b'] = { proxy = 'other', forwarded = 'none' },\n"
    "['/c/*'] = { proxy = 'http://127.0.0.1/v2', forwarded = 'x-forwarded' },\n"
    "['/h'] = { fastcgi = 'php', root = '/', host = 'a', fallback = '/a.cgi', suffix = '.cgi',\n"
    "index = 'a.cgi', files = true }, ['/f'] = { fastcgi = '127.0.0.1:1' },\n"
    "['/g/*'] = { fastcgi = '/a', root = '/', remote = true },\n"
    "['/d/*'] = { proxy = 'http://127.0.0.1/v2', encoded_slash = true,\n"
    "request_header = { 'X-User: {user}', 'X-Id: {request_id}', 'X-Client: {client}' } },\n"
    "['/e/*'] = { proxy = 'http://127.0.0.1/v2', request_header = 'X-App: shop' } } }";

START_TEST(what_the_page_says_is_accepted)
{
    write_site(good);
    RUN_HTTPD("--config", "site.lua", "--check");
    ck_assert_str_eq(ran.errors, "");
    ck_assert_int_eq(ran.status, 0);
    RUN_HTTPD("--config", "site.lua", "--plan");
    ck_assert_int_eq(ran.status, 0);
    check_has(ran.output, "memory as app needs it\n");
    RUN_HTTPD("--proxy", "/e=http://127.0.0.1:5", "--plan");
    ck_assert_int_eq(ran.status, 0);
    check_has(ran.output, "memory as 127.0.0.1:5 needs it\n");
}
END_TEST

START_TEST(without_memory_it_says_so)
{
    write_site(good);
    sweep_httpd_memory((const char *[]){"sxe-httpd", _i == 1 ? "--proxy" : "--config",
                                        _i == 1 ? "/e=http://127.0.0.1:5" : "site.lua", "--plan",
                                        NULL},
                       _i == 1 ? 3 : 20);
}
END_TEST

/* ---- Places and URLs ---- */

static const char *const good_places[] = {
    "127.0.0.1:1", "[::1]:65535", "a-b.example_c:80", "/a", "@a", "a:1 weight=1000", "/a weight=1",
};

static const char *const bad_places[] = {
    "",      "a",           "a:",         "a:0",           "a:65536",      "a:1x",
    ":1",    "[::1]",       "[]:1",       "[::1]1",        "[g]:1",        "a b:1",
    "a:1 ",  "a:1 weight=", "a:1 weight", "a:1 weight=0",  "a:1 weight=x", "a:1 weight=1001",
    "a:1 b", "a/b:1",       "a:100000",   "a:1 weight=1x",
};

START_TEST(a_place_is_an_address_and_a_port_or_a_path)
{
    char longer[400];

    for (unsigned i = 0; i < SXE_COUNT(good_places); i++)
        ck_assert_msg(upstream_is_place(good_places[i]), "%s", good_places[i]);
    for (unsigned i = 0; i < SXE_COUNT(bad_places); i++)
        ck_assert_msg(!upstream_is_place(bad_places[i]), "%s", bad_places[i]);
    snprintf(longer, sizeof(longer), "/%0107d", 0);
    ck_assert(!upstream_is_place(longer));
    longer[107] = '\0';
    ck_assert(upstream_is_place(longer));
    snprintf(longer, sizeof(longer), "%0256d:1", 0);
    ck_assert(!upstream_is_place(longer));
}
END_TEST

static const struct {
    const char *url;
    const char *place; /* NULL: the URL is refused */
    const char *path;
} urls[] = {
    {"http://a:1", "a:1", NULL},
    {"http://a", "a:80", NULL},
    {"http://[::1]/b/c", "[::1]:80", "/b/c"},
    {"http://a:1/", "a:1", "/"},
    {"https://a:1", "https://a:1", NULL},
    {"https://a", "https://a:443", NULL},
    {"https://[::1]/b", "https://[::1]:443", "/b"},
    {"https://@a", NULL, NULL},
    {"https://https://a", NULL, NULL},
    {"http:/a:1", NULL, NULL},
    {"http://", NULL, NULL},
    {"http://@a", NULL, NULL},
    {"http://a:1 weight=2", NULL, NULL},
    {"http://a:1/%41", NULL, NULL},
    {"http://a:1/b//c", NULL, NULL},
    {"http://a:1/b?c", NULL, NULL},
    {"http://a:1/b#c", NULL, NULL},
    {"http://a:1/b c", NULL, NULL},
    {"http://a:1/b\rc", NULL, NULL},
    {"http://a:1?b", NULL, NULL},
    {"http://a:x", NULL, NULL},
};

START_TEST(a_url_is_a_place_and_a_path)
{
    char place[UPSTREAM_PLACE_SIZE];
    char longer[700];
    const char *path = NULL;

    for (unsigned i = 0; i < SXE_COUNT(urls); i++) {
        ck_assert_int_eq(upstream_split_url(urls[i].url, place, &path) == NULL,
                         urls[i].place != NULL);
        if (urls[i].place == NULL)
            continue;
        ck_assert_str_eq(place, urls[i].place);
        ck_assert_pstr_eq(path, urls[i].path);
    }
    snprintf(longer, sizeof(longer), "http://a/%0256d", 0);
    ck_assert_ptr_nonnull(upstream_split_url(longer, place, &path));
    snprintf(longer, sizeof(longer), "http://%0400d", 0);
    ck_assert_ptr_nonnull(upstream_split_url(longer, place, &path));
}
END_TEST

static const struct {
    const char *text;
    const char *patterns[2]; /* NULL: it is refused */
    const char *path;
} proxies[] = {
    {"/=http://a:1", {"", "/{path...}"}, NULL},
    {"/b=http://a:1", {"/b", "/b/{path...}"}, NULL},
    {"/b/=http://a:1/c/", {"/b", "/b/{path...}"}, "/c/"},
    {"b=http://a:1", {NULL, NULL}, NULL},
    {"/b", {NULL, NULL}, NULL},
    {"/{b}=http://a:1", {NULL, NULL}, NULL},
    {"/*=http://a:1", {NULL, NULL}, NULL},
    {"/b/../c=http://a:1", {NULL, NULL}, NULL},
    {"/b=a:1", {NULL, NULL}, NULL},
    {"/b?c=http://a:1", {NULL, NULL}, NULL},
    {"/b c=http://a:1", {NULL, NULL}, NULL},
    {"/<b>=http://a:1", {NULL, NULL}, NULL},
    {"/b=http://a:1/c?d", {NULL, NULL}, NULL},
    {"/b=http://a:1/c d", {NULL, NULL}, NULL},
};

START_TEST(an_option_is_a_prefix_and_a_url)
{
    static struct httpd_proxy proxy;
    char longer[400];

    for (unsigned i = 0; i < SXE_COUNT(proxies); i++) {
        ck_assert_int_eq(upstream_read_proxy(proxies[i].text, &proxy) == NULL,
                         proxies[i].patterns[1] != NULL);
        if (proxies[i].patterns[1] == NULL)
            continue;
        ck_assert_str_eq(proxy.patterns[0], proxies[i].patterns[0]);
        ck_assert_str_eq(proxy.patterns[1], proxies[i].patterns[1]);
        ck_assert_pstr_eq(proxy.send.path, proxies[i].path);
        ck_assert_str_eq(proxy.upstream.places[0], "a:1");
    }
    snprintf(longer, sizeof(longer), "/%0300d=http://a:1", 0);
    ck_assert_ptr_nonnull(upstream_read_proxy(longer, &proxy));
}
END_TEST

START_TEST(a_proxy_that_cannot_be_is_refused)
{
    RUN_HTTPD("--proxy", "/a");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors,
              "a path and its upstream (--proxy) is '/a'; it must be PATH=URL, such as");
    RUN_HTTPD("--proxy", "/1=http://a:1", "--proxy", "/2=http://a:1", "--proxy", "/3=http://a:1",
              "--proxy", "/4=http://a:1", "--proxy", "/5=http://a:1", "--proxy", "/6=http://a:1",
              "--proxy", "/7=http://a:1", "--proxy", "/8=http://a:1", "--proxy", "/9=http://a:1");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "it must be one of at most 8");
    RUN_HTTPD("--proxy", "/a=http://a:1/b?c");
    check_has(ran.errors, "it must be a URL with a path such as /v1/, without a query, a fragment");
    RUN_HTTPD("--proxy", "/a?b=http://a:1");
    check_has(ran.errors, "it must be PATH=URL; PATH is a path such as /v1/, without a query");
}
END_TEST

START_TEST(a_check_refuses_the_routes_that_a_start_refuses)
{
    static const char *const ways[] = {"--check", "--plan", "--print-config"};

    RUN_HTTPD("--proxy", "/a=http://127.0.0.1:1", "--proxy", "/a=http://127.0.0.1:2", ways[_i]);
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "a path of --proxy or --stats cannot be routed: * /a: the pattern");
    RUN_HTTPD("--proxy", "/a=http://127.0.0.1:1", "--stats", "/a/../b", ways[_i]);
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "cannot be routed: GET /a/../b: a segment . or ..");
    RUN_HTTPD("--proxy", "/a=http://127.0.0.1:1", "--stats", "/a", ways[_i]);
    ck_assert_int_eq(ran.status, 0);
}
END_TEST

START_TEST(a_name_that_is_not_found_is_named_and_the_others_are_used)
{
    RUN_HTTPD("--proxy", "/a=http://a..b:1", "--plan");
    ck_assert_int_eq(ran.status, 0);
    check_has(ran.errors, "sxe-httpd: the upstream a..b:1: a..b: ");
    check_has(ran.errors, "; this server is down until a reload looks its name up again\n");
    write_site("return { upstreams = {\n app = { servers = { 'a..b:1', '127.0.0.1:5' } } },\n"
               "routes = { ['/'] = { proxy = 'app' },\n ['/a'] = { proxy = 'http://a..b:1' } } }");
    RUN_HTTPD("--config", "site.lua", "--plan");
    ck_assert_int_eq(ran.status, 0);
    check_has(ran.errors, "sxe-httpd: site.lua:2: the upstream app: a..b: ");
    check_has(ran.errors, "sxe-httpd: site.lua:4: the upstream http://a..b:1: a..b: ");
    check_has(ran.output, "memory as app needs it\n");
    ck_assert_ptr_null(strstr(ran.output, "memory as http://a..b:1 needs it\n"));
}
END_TEST

START_TEST(a_route_without_an_address_is_answered_502_and_the_others_as_ever)
{
    write_site("return { routes = { ['/a'] = { proxy = 'http://a..b:1' },\n"
               "['/b'] = { status = 204 } } }");
    START_HTTPD("--config", "site.lua");
    ask_and_expect("GET /a HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 502 Bad Gateway\r\n");
    ask_and_expect("GET /b HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 204 No Content\r\n");
    stop_httpd();
    START_HTTPD("--proxy", "/c=http://a..b:1");
    ask_and_expect("GET /c/d HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 502 Bad Gateway\r\n");
    stop_httpd();
}
END_TEST

/* ---- Requests that are sent on ---- */

static int listener;
static unsigned short listener_port;

static void
listen_as_upstream(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(at);

    listener = patient_socket(AF_INET);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, length), 0);
    ck_assert_int_eq(listen(listener, 10), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &length), 0);
    listener_port = ntohs(at.sin_port);
}

/* Send a request; the upstream must get this one, and the client gets its reply. */
static void
ask_through(const char *request, const char *sent)
{
    int client = dial();
    int server;

    say(client, request);
    server = accept(listener, NULL, NULL);
    ck_assert_int_ge(server, 0);
    expect(server, sent);
    say(server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    expect(client, "HTTP/1.1 200 OK\r\nDate: @\r\n");
    close(server);
    close(client);
}

#define WHO                                                     \
    "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\n" \
    "X-Forwarded-Host: a\r\n"

START_TEST(routes_send_requests_on)
{
    char text[1000];

    listen_as_upstream();
    snprintf(text, sizeof(text),
             "return { upstreams = { app = { servers = '127.0.0.1:%u' } }, routes = {\n"
             " ['/a/{rest...}'] = { proxy = 'app', path = '/v1', host = 'b', via = 'edge',\n"
             "   header = 'X-A: 1' },\n"
             " ['/b/{rest...}'] = { proxy = 'http://127.0.0.1:%u/v2/', forwarded = 'none',\n"
             "   encoded_slash = true },\n"
             " ['/c'] = { status = 204 } } }",
             listener_port, listener_port);
    write_site(text);
    START_HTTPD("--config", "site.lua");
    ask_through("GET /a/x?y HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET /v1/x?y HTTP/1.1\r\nHost: b\r\nVia: 1.1 edge\r\n" WHO "\r\n");
    ask_through("POST /b/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
                "POST /v2/x HTTP/1.1\r\nHost: a\r\nVia: 1.1 sxe\r\nContent-Length: 3\r\n\r\nabc");
    ask_and_expect("GET /a/..%2Fc HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n");
    ask_through("GET /b/x%2Fy HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET /v2/x%2Fy HTTP/1.1\r\nHost: a\r\nVia: 1.1 sxe\r\n\r\n");
    ask_and_expect("GET /c HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 204 No Content\r\n");
    stop_httpd();
    close(listener);
}
END_TEST

START_TEST(options_send_requests_on)
{
    char options[2][100];

    listen_as_upstream();
    snprintf(options[0], sizeof(options[0]), "/a=http://127.0.0.1:%u/v1/", listener_port);
    snprintf(options[1], sizeof(options[1]), "/b/c=http://127.0.0.1:%u", listener_port);
    START_HTTPD("--proxy", options[0], "--proxy", options[1], "--stats", "/stats");
    ask_through("GET /a/x?y HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET /v1/x?y HTTP/1.1\r\nHost: a\r\nVia: 1.1 sxe\r\n" WHO "\r\n");
    ask_through("GET /b/c HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET /b/c HTTP/1.1\r\nHost: a\r\nVia: 1.1 sxe\r\n" WHO "\r\n");
    ask_and_expect("GET /b HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n");
    ask_and_expect("GET /stats HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n");
    stop_httpd();
    close(listener);
}
END_TEST

static Suite *
httpd_upstreams_suite(void)
{
    Suite *suite = suite_create("httpd-upstreams");
    TCase *tcase = tcase_create("upstreams");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, a_mistake_is_named_with_its_line, 0, SXE_COUNT(mistakes));
    tcase_add_test(tcase, what_the_page_says_is_accepted);
    tcase_add_loop_test(tcase, without_memory_it_says_so, 0, 2);
    tcase_add_test(tcase, a_place_is_an_address_and_a_port_or_a_path);
    tcase_add_test(tcase, a_url_is_a_place_and_a_path);
    tcase_add_test(tcase, an_option_is_a_prefix_and_a_url);
    tcase_add_test(tcase, a_proxy_that_cannot_be_is_refused);
    tcase_add_loop_test(tcase, a_check_refuses_the_routes_that_a_start_refuses, 0, 3);
    tcase_add_test(tcase, a_name_that_is_not_found_is_named_and_the_others_are_used);
    tcase_add_test(tcase, a_route_without_an_address_is_answered_502_and_the_others_as_ever);
    tcase_add_test(tcase, routes_send_requests_on);
    tcase_add_test(tcase, options_send_requests_on);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return sxe_test_main(httpd_upstreams_suite());
}
