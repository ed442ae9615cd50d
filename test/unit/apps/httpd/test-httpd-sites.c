/* SPDX-License-Identifier: MIT
 *
 * Sites and routes of a configuration file: what is refused, and which replies they give.
 */
#include "config-sites.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "run-httpd.h"

static char directory[] = "/tmp/sxe-sites-XXXXXX";

static void
write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");

    fputs(text, file);
    fclose(file);
}

static void
set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
    ck_assert_int_eq(mkdir("public", 0755), 0);
    ck_assert_int_eq(mkdir("public/below", 0755), 0);
    write_file("public/index.html", "index\n");
    write_file("public/below/a.txt", "a\n");
    write_file("public/page.txt", "page\n");
}

static void
tear_down(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static void
run_site(const char *text)
{
    write_file("site.lua", text);
    RUN_HTTPD("--config", "site.lua", "--check");
}

/* ---- Sites that are refused ---- */

#define ROUTE(text) "return { routes = {\n [\"/a\"] = " text " } }"

static const struct {
    const char *text;
    const char *says;
} mistakes[] = {
    {"return {\n routes = 1 }", "site.lua:2: routes: it is number; it must be a table such as"},
    {"return { routes = {\n 'x' } }",
     "site.lua:1: routes: a key is a path, such as [\"/a/{rest...}\"]"},
    {"return { routes = {\n ['/a\\0'] = {} } }",
     "routes: it is string; it must be a text without zero"},
    {"return { rutes = {} }", "site.lua:1: rutes: there is no such key; did you mean routes?"},
    {ROUTE("1"), "site.lua:2: /a: it is number; it must be a table such as { root = "},
    {ROUTE("{\n rot = 'x' }"), "site.lua:3: rot: there is no such key here; did you mean root?"},
    {ROUTE("{\n zzzzzzzzzz = 'x' }"), "site.lua:3: zzzzzzzzzz: there is no such key here\n"},
    {ROUTE("{ 5 }"), "site.lua:2: ?: there is no such key here\n"},
    {ROUTE("{}"),
     "site.lua:2: /a: a route has one of root, redirect, status, proxy, fastcgi and script"},
    {ROUTE("{ status = 200, rate = 5 }"), "rate: it is number; it must be a text"},
    {ROUTE("{ status = 200,\n rate = '5' }"),
     "site.lua:3: rate: it is 5; it must be a number of requests"},
    {ROUTE("{ status = 200,\n burst = 5 }"), "site.lua:3: burst: it is 5; it must be a number"},
    {ROUTE("{ status = 200, rate = '1/s', burst = 0 }"), "burst: it is 0; it must be a number"},
    {ROUTE("{ status = 200, rate = '1/s', burst = 1.5 }"), "burst: it is number; it must be"},
    {ROUTE("{ status = 200, rate = '1/s', burst = 1000001 }"), "burst: it is 1000001; it must"},
    {ROUTE("{ status = 200,\n passwords = 5 }"), "site.lua:3: passwords: it is number; it must be"},
    {ROUTE("{ status = 200,\n passwords = true }"), "passwords: it is boolean; it must be a text"},
    {ROUTE("{ status = 200,\n realm = 'a' }"), "site.lua:3: realm: a realm needs a file: add"},
    {ROUTE("{ status = 200, passwords = 'u',\n realm = 5 }"), "site.lua:3: realm: it is number;"},
    {ROUTE("{ status = 200, passwords = 'u',\n realm = '\"' }"),
     "realm: it is \"; it must be 1 to"},
    {ROUTE("{ status = 200, passwords = 'u',\n realm = '' }"),
     "realm: it is ; it must be 1 to 128"},
    {ROUTE("{ status = 200,\n passwords = 'nosuch' }"),
     "site.lua:3: passwords: cannot read the file of passwords 'nosuch': No such file"},
    {"return { sites = { { names = 'a', passwords = 5, routes = {} } } }",
     "passwords: it is number"},
    {ROUTE("{ root = 'public', status = 200 }"), "site.lua:2: /a: a route has one of"},
    {ROUTE("{\n root = 5 }"),
     "site.lua:3: root: it is number; it must be a text without zero bytes"},
    {ROUTE("{\n fallback = {} }"), "site.lua:3: fallback: it is table; it must be a text"},
    {ROUTE("{\n redirect = true }"), "site.lua:3: redirect: it is boolean; it must be a text"},
    {ROUTE("{\n body = 'a\\0' }"),
     "site.lua:3: body: it is string; it must be a text without zero"},
    {ROUTE("{\n type = 1 }"), "site.lua:3: type: it is number; it must be a text"},
    {ROUTE("{\n script = 'x' }"), "site.lua:3: script: it is string; it must be true or false"},
    {ROUTE("{\n status = 99 }"),
     "site.lua:3: status: it is 99; it must be a status from 200 to 599"},
    {ROUTE("{\n status = 'x' }"), "site.lua:3: status: it is string; it must be a status from 200"},
    {ROUTE("{ redirect = '/', status = 200 }"),
     "status: it is 200; it must be one of 301, 302, 303, 307 and 308"},
    {ROUTE("{ status = 200, header = { 1 } }"), "header: it is number; it must be a text"},
    {ROUTE("{ status = 200, header = 'Date: x' }"),
     "header: it is Date: x; it must be 'Name: value'"},
    {ROUTE("{ status = 200, header = { '','','','','','','','','' } }"),
     "there may be 8 of them at most"},
    {ROUTE("{ root = 'public', fallback = 'x' }"), "fallback: it is x; it must be a path such as"},
    {ROUTE("{ status = 200, fallback = '/x' }"), "fallback: it is /x; it must be a path such as"},
    {ROUTE("{ redirect = '{b}' }"), "redirect: it is {b}; it must be a path such as /people/{id}"},
    {ROUTE("{ redirect = '//a{b}/c' }"), "redirect: it is //a{b}/c; it must be a path such as"},
    {ROUTE("{ redirect = 'a:{b}//c/' }"), "redirect: it is a:{b}//c/; it must be a path such as"},
    {ROUTE("{ redirect = '/\\\\{b}/' }"), "redirect: it is /\\{b}/; it must be a path such as"},
    {ROUTE("{ redirect = '/\\t/{b}/' }"), "redirect: it is /\t/{b}/; it must be a path such as"},
    {ROUTE("{ status = 200, header = { ['X-A'] = 'b' } }"),
     "header: it is a table with names; it must be a text, or a list of texts"},
    {ROUTE("{ redirect = '/{b}/' }"),
     "redirect: it is /{b}/; it must be one with {name}s of the path only"},
    {ROUTE("{ redirect = 'a\\nb' }"),
     "redirect: it is a\nb; it must be a URL or a path, not empty"},
    {ROUTE("{ redirect = 'a b' }"), "redirect: it is a b; it must be a URL or a path, not empty"},
    {ROUTE("{ redirect = '' }"), "redirect: it is ; it must be a URL or a path, not empty"},
    {ROUTE("{ status = 200, type = 'a\\nb' }"), "type: it is a\nb; it must be a media type"},
    {ROUTE("{ status = 200, type = '' }"), "type: it is ; it must be a media type such as"},
    {ROUTE("{ status = 200, type = 'text' }"), "type: it is text; it must be a media type"},
    {ROUTE("{ status = 200, type = 'text/' }"), "type: it is text/; it must be a media type"},
    {ROUTE("{ status = 200, type = 'a/b c' }"), "type: it is a/b c; it must be a media type"},
    {ROUTE("{ status = 200, type = 'a/b ;\\n' }"), "type: it is a/b ;\n; it must be a media"},
    {ROUTE("{ script = true }"),
     "site.lua:2: /a: the route has script = true, but there is no script: add --lua FILE"},
    {"return { port = 1,\n tls_cert = 'a' }",
     "site.lua:2: tls-cert: each --tls-cert needs its --tls-key"},
    {"return {\n tls_cert = 'site.lua', tls_key = 'site.lua' }",
     "site.lua:2: tls-cert: cannot serve TLS: site.lua is no certificate"},
    {ROUTE("{ redirect = '/b', status = 304 }"),
     "status: it is 304; it must be one of 301, 302, 303, 307 and 308"},
    {ROUTE("{ root = 'nosuch' }"),
     "site.lua:2: root: cannot open the directory 'nosuch': No such file"},
    {"return { routes = { ['a'] = { status = 200 } } }", "site.lua:1: a: no / to begin with"},
    {"return { sites = {\n { names = { '*', '*.a', '[::1]', 'a b' }, routes = {} } } }",
     "site.lua:2: names: it is a b; it must be a name without port and final dot"},
    {"return { sites = {\n { names = 'a..b', routes = {} } } }", "site.lua:2: names: it is a..b"},
    {"return { sites = {\n { names = '*[::1]', routes = {} } } }", "site.lua:2: names: it is *["},
    {"return { root = 'public', routes = { ['/'] = { status = 200 } } }",
     "-r does not go with routes"},
    {"return { proxy = '/b=http://127.0.0.1:1', routes = { ['/'] = { status = 200 } } }",
     "--proxy does not go with routes"},
    {"return {\n sites = 1 }", "site.lua:2: sites: it is number; it must be a list of sites"},
    {"return {\n sites = { shop = { names = 'a', routes = {} } } }",
     "site.lua:2: sites: it is table; it must be a list of sites: { { names ="},
    {"return { sites = {\n 1 } }",
     "site.lua:2: sites: it is number; it must be a table such as { names"},
    {"return { sites = {\n { name = 'a' } } }",
     "site.lua:2: name: there is no such key here; did you mean names?"},
    {"return { sites = {\n { names = 5 } } }",
     "site.lua:2: names: it is number; it must be a text"},
    {"return { sites = {\n { routes = {} } } }", "site.lua:2: sites: a site needs names"},
    {"return { sites = { { names = 'a',\n routes = 7 } } }", "site.lua:2: routes: it is number"},
    {"return { sites = { { names = 'a',\n routes = { ['/'] = {} } } } }",
     "site.lua:2: /: a route has one of"},
};

START_TEST(a_mistake_is_named_with_its_line)
{
    run_site(mistakes[_i].text);
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, mistakes[_i].says);
}
END_TEST

START_TEST(without_memory_it_says_so)
{
    write_file("site.lua",
               "return { routes = { ['/'] = { status = 200, header = 'A: b' } },"
               " sites = { { names = { 'a' }, routes = { ['/b'] = { root = 'public' } } } } }");
    sweep_httpd_memory((const char *[]){"sxe-httpd", "--config", "site.lua", "--check", NULL}, 20);
}
END_TEST

START_TEST(a_directory_that_goes_before_it_is_served_is_named)
{
    write_file("site.lua", "return { port = 0, routes = {\n ['/{p...}'] = { root = 'nosuch' } } }");
    RUN_HTTPD("--config", "site.lua", "--plan");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "site.lua:2: root: cannot serve the files of 'nosuch': No such file");
}
END_TEST

/* ---- The site of a request ---- */

static const struct {
    const char *name;
    unsigned site; /* 0: the routes at the top level */
} hosts[] = {
    {"example.com", 1},
    {"EXAMPLE.com:8080", 1},
    {"example.com.", 1},
    {"example.com.:80", 1},
    {"x.example.com", 2},
    {"a.b.example.com", 2},
    {"x.api.example.com", 3},
    {"example.org", 0},
    {"", 0},
    {"[::1]:80", 4},
    {"[::1]", 4},
    {"evilexample.com", 0},
    {"com", 0},
};

START_TEST(a_name_has_the_site_that_fits_best)
{
    static struct config_site sites[] = {
        {.names_number = 0},
        {.names = {"other.example.net", "example.com"}, .names_number = 2},
        {.names = {"*.example.com"}, .names_number = 1},
        {.names = {"*.api.example.com"}, .names_number = 1},
        {.names = {"[::1]"}, .names_number = 1},
    };
    const struct config_sites all = {.first = sites, .usual = sites};
    const char *name = hosts[_i].name;

    for (unsigned i = 0; i < 4; i++)
        sites[i].next = &sites[i + 1];
    ck_assert_ptr_eq(config_site_of(&all, (struct sxe_span){name, strlen(name)}),
                     &sites[hosts[_i].site]);
}
END_TEST

/* ---- Replies of routes ---- */

#define ASK(method, path) method " " path " HTTP/1.1\r\nHost: a\r\n\r\n"

START_TEST(routes_answer)
{
    write_file("app.lua", "return function(req) return 'script ' .. req.path end");
    write_file("site.lua",
               "return { lua = 'app.lua', index = 'index.html', sniff = true,\n"
               "routes = {\n"
               " ['/files/{path...}'] = { root = 'public', fallback = '/page.txt' },\n"
               " ['/none/{path...}'] = { root = 'public', fallback = '/nosuch' },\n"
               " ['/plain/{path...}'] = { root = 'public' },\n"
               " ['/page.txt'] = { root = 'public' },\n"
               " ['/old/{id}'] = { redirect = '/new/{id}/x', status = 308 },\n"
               " ['/open/{path...}'] = { redirect = '/{path}/b' },\n"
               " ['/odd'] = { redirect = '/a{b' },\n"
               " ['/away'] = { redirect = '//example.com/' },\n"
               " ['/long/{id}'] = { redirect = ('/{id}{id}') },\n"
               " ['/gone'] = { status = 410 },\n"
               " ['/text'] = { status = 201, body = 'b', header = { 'X-A:  1', 'X-B: 2' } },\n"
               " ['/typed'] = { status = 200, body = '{}', type = 'application/json' },\n"
               " ['/script/{rest...}'] = { script = true },\n"
               " ['/often'] = { status = 204, rate = '1/h' },\n"
               " ['/twice'] = { status = 204, rate = '1/h', burst = 2 },\n"
               "} }");
    START_HTTPD("--config", "site.lua");
    ask_and_expect(ASK("GET", "/text"), "HTTP/1.1 201 Created\r\nDate: @\r\nX-A: 1\r\nX-B: 2\r\n"
                                        "Content-Type: text/plain\r\nContent-Length: 1\r\n\r\nb");
    ask_and_expect(ASK("POST", "/typed"),
                   "HTTP/1.1 200 OK\r\nDate: @\r\nContent-Type: application/json\r\n");
    ask_and_expect(ASK("GET", "/gone"), "HTTP/1.1 410 Gone\r\n");
    ask_and_expect(ASK("GET", "/old/5"),
                   "HTTP/1.1 308 Permanent Redirect\r\nDate: @\r\nLocation: /new/5/x\r\n");
    ask_and_expect(ASK("GET", "/open/a"), "HTTP/1.1 302 Found\r\nDate: @\r\nLocation: /a/b\r\n");
    ask_and_expect(ASK("GET", "/open/"), "HTTP/1.1 404 Not Found\r\n");
    ask_and_expect(ASK("GET", "/odd"), "HTTP/1.1 302 Found\r\nDate: @\r\nLocation: /a{b\r\n");
    ask_and_expect(ASK("GET", "/away"),
                   "HTTP/1.1 302 Found\r\nDate: @\r\nLocation: //example.com/\r\n");
    ask_and_expect(ASK("GET", "/nosuch"), "HTTP/1.1 404 Not Found\r\n");
    ask_and_expect(ASK("POST", "/page.txt"),
                   "HTTP/1.1 405 Method Not Allowed\r\nDate: @\r\nAllow: GET, HEAD, OPTIONS\r\n");
    ask_and_expect(ASK("GET", "/page.txt"), "HTTP/1.1 200 OK\r\n");
    ask_and_expect(ASK("GET", "/files/below/a.txt"), "HTTP/1.1 200 OK\r\n");
    ask_and_expect(ASK("GET", "/files/"), "HTTP/1.1 200 OK\r\n");
    ask_and_expect(ASK("GET", "/files/nosuch"), "HTTP/1.1 200 OK\r\n");
    ask_and_expect(ASK("GET", "/none/nosuch"), "HTTP/1.1 404 Not Found\r\n");
    ask_and_expect(ASK("GET", "/plain/nosuch"), "HTTP/1.1 404 Not Found\r\n");
    ask_and_expect(ASK("GET", "/plain/below"), "HTTP/1.1 301 Moved Permanently\r\n");
    ask_and_expect(ASK("GET", "/script/x"), "HTTP/1.1 200 OK\r\n");
    ask_and_expect(ASK("GET", "/often"), "HTTP/1.1 204 No Content\r\n");
    ask_and_expect(ASK("GET", "/often"),
                   "HTTP/1.1 429 Too Many Requests\r\nDate: @\r\nRetry-After: 3");
    ask_and_expect(ASK("GET", "/twice"), "HTTP/1.1 204 No Content\r\n");
    ask_and_expect(ASK("GET", "/twice"), "HTTP/1.1 204 No Content\r\n");
    ask_and_expect(ASK("GET", "/twice"), "HTTP/1.1 429 Too Many Requests\r\n");
    stop_httpd();
}
END_TEST

START_TEST(a_location_that_is_too_long_is_refused)
{
    static char request[8192];

    write_file("site.lua", "return { routes = { ['/{id}'] = { redirect = '/{id}/{id}' } } }");
    snprintf(request, sizeof(request), "GET /%03000d HTTP/1.1\r\nHost: a\r\n\r\n", 1);
    START_HTTPD("--config", "site.lua");
    ask_and_expect(request, "HTTP/1.1 414 ");
    stop_httpd();
}
END_TEST

START_TEST(a_name_that_no_site_has_is_404_without_routes_for_all)
{
    write_file("site.lua",
               "return { sites = { { names = 'b', routes = { ['/'] = { status = 204 } } } } }");
    START_HTTPD("--config", "site.lua");
    ask_and_expect(ASK("GET", "/"), "HTTP/1.1 404 Not Found\r\n");
    ask_and_expect("GET / HTTP/1.1\r\nHost: b\r\n\r\n", "HTTP/1.1 204 No Content\r\n");
    ask_and_expect("GET / HTTP/1.0\r\n\r\n", "HTTP/1.1 404 Not Found\r\n");
    stop_httpd();
}
END_TEST

START_TEST(without_a_table_of_rates_it_does_not_start)
{
    write_file("site.lua", "return { port = 0 }");
    fake_os_fail(FAKE_MEMFD_CREATE, 1, 1, EMFILE);
    RUN_HTTPD("--config", "site.lua");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors,
              "sxe-httpd: cannot start: cannot make the table of rate limits: Too many open files");
}
END_TEST

START_TEST(a_script_that_does_not_load_ends_it)
{
    write_file("app.lua", "error 'no'");
    write_file("site.lua",
               "return { port = 0, lua = 'app.lua', routes = { ['/'] = { script = true } } }");
    RUN_HTTPD("--config", "site.lua");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "app.lua:1");
}
END_TEST

static Suite *
sites_suite(void)
{
    Suite *suite = suite_create("httpd-sites");
    TCase *tcase = tcase_create("sites");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, a_mistake_is_named_with_its_line, 0,
                        (int)(sizeof(mistakes) / sizeof(mistakes[0])));
    tcase_add_test(tcase, without_memory_it_says_so);
    tcase_add_test(tcase, a_directory_that_goes_before_it_is_served_is_named);
    tcase_add_loop_test(tcase, a_name_has_the_site_that_fits_best, 0,
                        (int)(sizeof(hosts) / sizeof(hosts[0])));
    tcase_add_test(tcase, routes_answer);
    tcase_add_test(tcase, a_location_that_is_too_long_is_refused);
    tcase_add_test(tcase, a_name_that_no_site_has_is_404_without_routes_for_all);
    tcase_add_test(tcase, without_a_table_of_rates_it_does_not_start);
    tcase_add_test(tcase, a_script_that_does_not_load_ends_it);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return sxe_test_main(sites_suite());
}
