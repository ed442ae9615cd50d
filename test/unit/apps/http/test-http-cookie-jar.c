/* SPDX-License-Identifier: MIT
 *
 * The cookies of a virtual user: RFC 6265, for one server, with a limited number.
 */
#include "../../../../apps/http/input/cookie-jar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../apps/http/input/cookie-date.h"
#include "test-main.h"

#define NOW 1000000000

static struct load_jar jar;
static const char *host;
static const char *at; /* the target of the request */

static void
begin(void)
{
    load_jar_clear(&jar);
    host = "www.example.com";
    at = "/a/b?c=/d";
}

static void
take(const char *field)
{
    struct load_jar_origin origin = {{host, strlen(host)}, {at, strlen(at)}};
    char *copy = malloc(strlen(field) + 1);

    memcpy(copy, field, strlen(field));
    load_jar_take(&jar, &origin, copy, strlen(field), NOW);
    free(copy);
}

static const char *
sent_at(const char *target, int64_t now_s)
{
    static char text[LOAD_JAR_TEXT_MAX + 1];

    text[load_jar_write(&jar, (struct sxe_span){target, strlen(target)}, now_s, text)] = '\0';
    return text;
}

static const char *
sent(const char *target)
{
    return sent_at(target, NOW);
}

START_TEST(a_cookie_is_sent_until_it_is_set_again)
{
    ck_assert_str_eq(sent("/a/b"), "");
    take("a=1; Path=/");
    take("b=2; path = / ; HttpOnly; SameSite=Lax");
    ck_assert_str_eq(sent("/"), "a=1; b=2");
    take("a=new; Path=/");
    ck_assert_str_eq(sent("/x?y"), "a=new; b=2");
    take("a=new; Path=/");
    ck_assert_str_eq(sent("/x?y"), "a=new; b=2");
    ck_assert_uint_eq(jar.number, 2);
    load_jar_clear(&jar);
    ck_assert_str_eq(sent("/"), "");
}
END_TEST

static const struct {
    const char *field;
    const char *sent; /* the cookies sent with a request to /a/b */
} fields[] = {
    {"a=1", "a=1"},
    {" a = 1 ", "a=1"},
    {"a=1=2", "a=1=2"},
    {"a=", "a="},
    {"a=\"quoted; still", "a=\"quoted"},
    {"a=1;;; ;", "a=1"},
    {"a=1; unknown; also=this", "a=1"},
    {"=1", ""},
    {"a", ""},
    {"", ""},
    {";a=1", ""},
    {"a; b=1", ""},
    {"a=1; Secure", ""},
    {"a=1; secure=x", ""},
    {"a=1; Path=/a", "a=1"},
    {"a=1; Path=/a/", "a=1"},
    {"a=1; Path=/b", ""},
    {"a=1; Path=/a/bc", ""},
    {"a=1; Path=/a/b", "a=1"},
    {"a=1; Path=x", "a=1"},
    {"a=1; Path=/b; Path=/a", "a=1"},
    {"a=1; Domain=", "a=1"},
    {"a=1; Domain=www.example.com", "a=1"},
    {"a=1; Domain=.Example.COM", "a=1"},
    {"a=1; Domain=ww.example.com", ""},
    {"a=1; Domain=xwww.example.com", ""},
    {"a=1; Domain=example.org", ""},
    {"a=1; Domain=xample.com", ""},
    {"a=1; Max-Age=1", "a=1"},
    {"a=1; Max-Age=0", ""},
    {"a=1; Max-Age=-5", ""},
    {"a=1; Max-Age=", "a=1"},
    {"a=1; Max-Age=-", "a=1"},
    {"a=1; Max-Age=1x", "a=1"},
    {"a=1; Max-Age=99999999999999999999999", "a=1"},
    {"a=1; Expires=Sun, 09 Sep 2001 01:46:40 GMT", ""},
    {"a=1; Expires=Sun, 09 Sep 2001 01:46:41 GMT", "a=1"},
    {"a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=9", "a=1"},
    {"a=1; Max-Age=0; Expires=Fri, 01 Jan 2100 00:00:00 GMT", ""},
    {"a=1; Expires=some day", "a=1"},
};

START_TEST(a_field_is_read_as_rfc_6265_says)
{
    take(fields[_i].field);
    ck_assert_str_eq(sent("/a/b"), fields[_i].sent);
}
END_TEST

static const struct {
    const char *target;
    const char *path;
} paths[] = {
    {"/", "/"},     {"/a", "/"}, {"/a/", "/a"}, {"/a/b", "/a"}, {"/a/b/c?d/e", "/a/b"},
    {"/?a/b", "/"}, {"", "/"},   {"*", "/"},
};

START_TEST(without_a_path_it_is_that_of_the_request)
{
    char inside[40], beside[40];

    at = paths[_i].target;
    take("a=1");
    snprintf(inside, sizeof(inside), "%s%sx", paths[_i].path,
             strcmp(paths[_i].path, "/") == 0 ? "" : "/");
    snprintf(beside, sizeof(beside), "%sx", paths[_i].path);
    ck_assert_str_eq(sent(paths[_i].path), "a=1");
    ck_assert_str_eq(sent(inside), "a=1");
    ck_assert_str_eq(sent(beside), strcmp(paths[_i].path, "/") == 0 ? "a=1" : "");
}
END_TEST

START_TEST(an_address_is_in_no_domain_but_itself)
{
    host = "127.0.0.1";
    take("a=1; Domain=0.0.1");
    ck_assert_str_eq(sent("/a/b"), "");
    take("a=1; Domain=127.0.0.1");
    ck_assert_str_eq(sent("/a/b"), "a=1");
}
END_TEST

START_TEST(longer_paths_come_first_and_then_older_cookies)
{
    take("a=1; Path=/");
    take("b=2; Path=/a/b");
    take("c=3; Path=/a");
    take("d=4; Path=/");
    take("e=5; Path=/a/b");
    take("a=6; Path=/a");
    ck_assert_str_eq(sent("/a/b"), "b=2; e=5; c=3; a=6; a=1; d=4");
    take("b=7; Path=/a/b");
    take("a=8; Path=/");
    ck_assert_str_eq(sent("/a/b"), "b=7; e=5; c=3; a=6; a=8; d=4");
}
END_TEST

START_TEST(a_cookie_is_removed_by_one_that_has_expired)
{
    take("a=1; Path=/");
    take("a=2; Path=/a");
    take("a=; Path=/; Max-Age=0");
    ck_assert_str_eq(sent("/a"), "a=2");
    take("never=there; Max-Age=0");
    ck_assert_uint_eq(jar.number, 1);
}
END_TEST

START_TEST(a_cookie_ends_at_its_time)
{
    take("a=1; Path=/; Max-Age=10");
    take("b=1; Path=/; Max-Age=20");
    ck_assert(jar.has_times);
    ck_assert_str_eq(sent_at("/", NOW + 9), "a=1; b=1");
    ck_assert_str_eq(sent_at("/", NOW + 10), "b=1");
    ck_assert_str_eq(sent_at("/", NOW + 20), "");
}
END_TEST

START_TEST(of_too_many_the_oldest_goes)
{
    char field[40];

    for (unsigned i = 0; i < LOAD_JAR_COOKIES + 2; i++) {
        snprintf(field, sizeof(field), "c%u=%u; Path=/", i, i);
        take(field);
    }
    ck_assert_uint_eq(jar.number, LOAD_JAR_COOKIES);
    ck_assert_ptr_eq(strstr(sent("/"), "c2=2; c3=3; "), sent("/"));
}
END_TEST

/* If the jar is full, an expired cookie is removed rather than an old one. */
START_TEST(too_many_bytes_are_as_too_many_cookies)
{
    struct load_jar_origin origin = {{host, strlen(host)}, {"/", 1}};
    char field[LOAD_COOKIE_MAX + 3];

    memset(field, 'x', sizeof(field));
    field[1] = '=';
    load_jar_take(&jar, &origin, field, LOAD_COOKIE_MAX + 2, NOW);
    ck_assert_uint_eq(jar.number, 0);
    take("old=1; Path=/");
    take("gone=1; Path=/; Max-Age=5");
    field[0] = 'a';
    load_jar_take(&jar, &origin, field, LOAD_COOKIE_MAX + 1, NOW + 6);
    ck_assert_uint_eq(jar.number, 2);
    field[0] = 'b';
    load_jar_take(&jar, &origin, field, LOAD_COOKIE_MAX + 1, NOW + 6);
    ck_assert_uint_eq(jar.number, 1);
    ck_assert_int_eq(*sent_at("/", NOW + 6), 'b');
}
END_TEST

/* An attribute that is too long is ignored; so is the request's path if it is too long. */
START_TEST(a_path_that_is_too_long_is_not_kept)
{
    static char path[1100] = "a=1; Path=/";

    memset(path + strlen(path), 'p', 1024);
    take(path);
    ck_assert_str_eq(sent("/a/b"), "a=1");
    load_jar_clear(&jar);
    memset(path, 'p', 1090);
    path[0] = path[1090] = '/';
    at = path;
    take("a=1");
    ck_assert_uint_eq(jar.number, 0);
}
END_TEST

static const struct {
    const char *text;
    int64_t seconds; /* -1: the text is no date */
} dates[] = {
    {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
    {"Sun, 09 Sep 2001 01:46:40 GMT", 1000000000},
    {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
    {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
    {"Sun Nov  6 08:49:37 1994", 784111777},
    {"6 november 94 8:49:37", 784111777},
    {"29 Feb 2000 12:00:00", 951825600},
    {"31 Dec 2068 23:59:59", 3124223999},
    {"1 Mar 2100 0:0:0", 4107542400},
    {"8:49:37x 6 Nov 1994", 784111777},
    {"1994 6 Nov 8:49:37", 784111777},
    {"", -1},
    {"6 Nov 1994", -1},
    {"6 Nov 8:49:37", -1},
    {"Nov 1994 8:49:37", -1},
    {"6 1994 8:49:37", -1},
    {"6 Nov 1994 8:49", -1},
    {"6 Nov 1994 8:", -1},
    {"6 Nov 1994 8:49:", -1},
    {"6 Nov 1994 8:49:377", -1},
    {"6 Nov 1994 24:00:00", -1},
    {"6 Nov 1994 23:60:00", -1},
    {"6 Nov 1994 23:00:60", -1},
    {"0 Nov 1994 8:49:37", -1},
    {"31 Nov 1994 8:49:37", -1},
    {"29 Feb 2100 8:49:37", -1},
    {"6 Nov 1600 8:49:37", -1},
    {"6 Nov 19941 8:49:37", -1},
    {"6 No 1994 8:49:37", -1},
};

START_TEST(a_date_is_told_in_many_forms)
{
    int64_t seconds = -1;
    bool is_date =
        load_cookie_date((struct sxe_span){dates[_i].text, strlen(dates[_i].text)}, &seconds);

    ck_assert_int_eq(seconds, dates[_i].seconds);
    ck_assert_int_eq(is_date, dates[_i].seconds >= 0);
}
END_TEST

static Suite *
suite(void)
{
    Suite *all = suite_create("http-cookie-jar");
    TCase *cases = tcase_create("jar");

    tcase_add_checked_fixture(cases, begin, NULL);
    tcase_add_test(cases, a_cookie_is_sent_until_it_is_set_again);
    tcase_add_loop_test(cases, a_field_is_read_as_rfc_6265_says, 0,
                        sizeof(fields) / sizeof(*fields));
    tcase_add_loop_test(cases, without_a_path_it_is_that_of_the_request, 0,
                        sizeof(paths) / sizeof(*paths));
    tcase_add_test(cases, an_address_is_in_no_domain_but_itself);
    tcase_add_test(cases, longer_paths_come_first_and_then_older_cookies);
    tcase_add_test(cases, a_cookie_is_removed_by_one_that_has_expired);
    tcase_add_test(cases, a_cookie_ends_at_its_time);
    tcase_add_test(cases, of_too_many_the_oldest_goes);
    tcase_add_test(cases, too_many_bytes_are_as_too_many_cookies);
    tcase_add_test(cases, a_path_that_is_too_long_is_not_kept);
    tcase_add_loop_test(cases, a_date_is_told_in_many_forms, 0, sizeof(dates) / sizeof(*dates));
    suite_add_tcase(all, cases);
    return all;
}

int
main(void)
{
    return sxe_test_main(suite());
}
