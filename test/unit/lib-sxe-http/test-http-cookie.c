/* SPDX-License-Identifier: MIT
 *
 * Cookies: those of a request, and those that a reply sets.
 */
#include "http-site.h"

#include "sxe-http-cookie.h"

/* ---- Of a request ---- */

static const struct {
    const char *fields;
    const char *pairs; /* the cookies as sxe_http_cookies_next finds them */
    const char *a;     /* the cookie a, decoded; NULL: there is none */
} requests[] = {
    {"", "", NULL},
    {"Cookie: \r\n", "", NULL},
    {"Cookie: a=1\r\n", "a=1|", "1"},
    {"Cookie: a=1; b=2\r\n", "a=1|b=2|", "1"},
    {"Cookie: b=2; a=1; a=3\r\n", "b=2|a=1|a=3|", "1"},
    {"Cookie: A=1; aa=2; ab=3\r\n", "A=1|aa=2|ab=3|", NULL},
    {"Cookie: a=1;b=2;\ta = 3 \r\n", "a=1|b=2|a=3|", "1"},
    {"Cookie: ;; a ; b; =x; a=\r\n", "=x|a=|", ""},
    {"Cookie: a=\"q\"; b=\"; c=\"\"; d=\"x\r\n", "a=q|b=\"|c=|d=\"x|", "q"},
    {"Cookie: a=b=c==; d\r\n", "a=b=c==|", "b=c=="},
    {"Cookie: a=%41+%zz%4\r\n", "a=%41+%zz%4|", "A+%zz%4"},
    {"Cookie: b=2\r\nX: y\r\ncookie: \r\nCOOKIE: a=1\r\n", "b=2|a=1|", "1"},
};

static char pairs[200];
static char found[9];
static ssize_t found_length;

static enum sxe_http_verdict
read_cookies(struct sxe_http_request *request, struct sxe_http_response *response)
{
    struct sxe_http_cookies cookies;
    char *to = pairs;

    sxe_http_cookies_start(&cookies, request);
    while (sxe_http_cookies_next(&cookies))
        to += snprintf(to, sizeof(pairs) - (size_t)(to - pairs), "%.*s=%.*s|",
                       (int)cookies.name.length, cookies.name.base, (int)cookies.value.length,
                       cookies.value.base);
    *to = '\0';
    ck_assert(!sxe_http_cookies_next(&cookies));
    found_length = sxe_http_cookie(request, "a", found, sizeof(found));
    return sxe_http_reply(response, 200, NULL, "", 0);
}

START_TEST(cookies_are_pairs_of_all_lines_and_the_first_of_a_name_counts)
{
    char text[300];
    int peer;

    serve((struct sxe_http_config){.handler = read_cookies});
    peer = client();
    snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: h\r\n%s\r\n", requests[_i].fields);
    say(peer, text);
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    ck_assert_str_eq(pairs, requests[_i].pairs);
    ck_assert_int_eq(found_length,
                     requests[_i].a == NULL ? -ENOENT : (ssize_t)strlen(requests[_i].a));
    if (requests[_i].a != NULL)
        ck_assert_str_eq(found, requests[_i].a);
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
read_without_room(struct sxe_http_request *request, struct sxe_http_response *response)
{
    char room[4] = "xyz";

    ck_assert_int_eq(sxe_http_cookie(request, "a", room, 0), -ENOBUFS);
    ck_assert_int_eq(sxe_http_cookie(request, "a", room, 3), -ENOBUFS);
    ck_assert_int_eq(sxe_http_cookie(request, "a", room, 4), 3);
    ck_assert_str_eq(room, "123");
    return sxe_http_reply(response, 200, NULL, "", 0);
}

START_TEST(a_value_without_room_is_an_error)
{
    int peer;

    serve((struct sxe_http_config){.handler = read_without_room});
    peer = client();
    say(peer, "GET / HTTP/1.1\r\nHost: h\r\nCookie: a=12%33\r\n\r\n");
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    close(peer);
    end_site();
}
END_TEST

/* ---- Of a reply ---- */

static char long_text[SXE_HTTP_COOKIE_MAX + 100];

#define VALUE(text)                      \
    {                                    \
        (text), SXE_LITERAL_LENGTH(text) \
    }

static const struct {
    struct sxe_http_cookie cookie;
    int result;
    const char *line;
} replies[] = {
    {{.name = "a", .value = VALUE("1")}, 0, "a=1; Path=/; HttpOnly; SameSite=Lax"},
    {{.name = "a"}, 0, "a=; Path=/; HttpOnly; SameSite=Lax"},
    {{.name = "a", .value = VALUE("x y;\"\\,%\r\n\x7f\xc3\xa9\0=!~")},
     0,
     "a=x%20y%3B%22%5C%2C%25%0D%0A%7F%C3%A9%00=!~; Path=/; HttpOnly; SameSite=Lax"},
    {{.name = "a", .value = VALUE("1"), .path = "/b", .domain = "example.org", .max_age = 60},
     0,
     "a=1; Path=/b; Domain=example.org; Max-Age=60; HttpOnly; SameSite=Lax"},
    {{.name = "a", .max_age = -5}, 0, "a=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"},
    {{.name = "a",
      .is_secure = true,
      .is_for_scripts = true,
      .is_partitioned = true,
      .same_site = SXE_HTTP_SAME_SITE_NONE},
     0,
     "a=; Path=/; Secure; SameSite=None; Partitioned"},
    {{.name = "a", .same_site = SXE_HTTP_SAME_SITE_STRICT},
     0,
     "a=; Path=/; HttpOnly; SameSite=Strict"},
    {{.name = "__Host-a", .is_secure = true, .path = "/"},
     0,
     "__Host-a=; Path=/; Secure; HttpOnly; SameSite=Lax"},
    {{.name = "__secure-a", .is_secure = true},
     0,
     "__secure-a=; Path=/; Secure; HttpOnly; SameSite=Lax"},

    {{.name = ""}, -EINVAL, NULL},
    {{.name = "a b"}, -EINVAL, NULL},
    {{.name = "a", .path = "b"}, -EINVAL, NULL},
    {{.name = "a", .path = ""}, -EINVAL, NULL},
    {{.name = "a", .path = "/; Secure"}, -EINVAL, NULL},
    {{.name = "a", .path = "/\n"}, -EINVAL, NULL},
    {{.name = "a", .path = "/\x7f"}, -EINVAL, NULL},
    {{.name = "a", .domain = ""}, -EINVAL, NULL},
    {{.name = "a", .domain = "a;b"}, -EINVAL, NULL},
    {{.name = "a", .same_site = SXE_HTTP_SAME_SITE_NONE}, -EINVAL, NULL},
    {{.name = "a", .same_site = (enum sxe_http_same_site)3}, -EINVAL, NULL},
    {{.name = "a", .is_partitioned = true}, -EINVAL, NULL},
    {{.name = "__SECURE-a"}, -EINVAL, NULL},
    {{.name = "__Host-a"}, -EINVAL, NULL},
    {{.name = "__host-a", .is_secure = true, .path = "/b"}, -EINVAL, NULL},
    {{.name = "__Host-a", .is_secure = true, .domain = "b"}, -EINVAL, NULL},

    {{.name = long_text}, -EMSGSIZE, NULL},
    {{.name = "a", .value = {long_text, SXE_HTTP_COOKIE_MAX - 33}}, -EMSGSIZE, NULL},
    {{.name = "a", .value = {long_text, SXE_HTTP_COOKIE_MAX}}, -EMSGSIZE, NULL},
    {{.name = "a", .path = "/", .domain = long_text}, -EMSGSIZE, NULL},
};

static unsigned number;

static enum sxe_http_verdict
set_one(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    ck_assert_int_eq(sxe_http_set_cookie(response, &replies[number].cookie),
                     replies[number].result);
    return sxe_http_reply(response, 200, NULL, "", 0);
}

START_TEST(a_cookie_is_one_safe_line_or_an_error)
{
    char text[300];
    int peer;

    memset(long_text, 'x', sizeof(long_text) - 1);
    number = (unsigned)_i;
    serve((struct sxe_http_config){.handler = set_one});
    peer = client();
    say(peer, GET("/"));
    snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\n%s%s%sContent-Length: 0\r\n\r\n",
             replies[_i].line == NULL ? "" : "Set-Cookie: ",
             replies[_i].line == NULL ? "" : replies[_i].line,
             replies[_i].line == NULL ? "" : "\r\n");
    EXPECT_REPLY(peer, text);
    close(peer);
    end_site();
}
END_TEST

#define SET(response, name_, text)  \
    sxe_http_set_cookie((response), \
                        &(struct sxe_http_cookie){.name = (name_), .value = VALUE(text)})

static enum sxe_http_verdict
set_again(struct sxe_http_request *request, struct sxe_http_response *response)
{
    struct sxe_http_cookie big = {.name = "a", .value = {long_text, 4000}};

    (void)request;
    ck_assert_int_eq(sxe_http_add_field(response, "set-cookie", "a=0"), 0);
    ck_assert_int_eq(SET(response, "a", "1"), 0);
    ck_assert_int_eq(SET(response, "aa", "2"), 0);
    ck_assert_int_eq(sxe_http_set_cookie(response, &big), 0);
    /* it replaces the first one: there is no room for two */
    ck_assert_int_eq(sxe_http_set_cookie(response, &big), 0);
    big.name = "b";
    ck_assert_int_eq(sxe_http_set_cookie(response, &big), -ENOBUFS);
    ck_assert_int_eq(SET(response, "aa", "3"), 0);
    big.name = "a";
    big.value.length = 5;
    ck_assert_int_eq(sxe_http_set_cookie(response, &big), 0);
    sxe_http_begin(response, 0);
    ck_assert_int_eq(SET(response, "c", "late"), -EINVAL);
    sxe_http_end(response, NULL, 0);
    return SXE_HTTP_DONE;
}

START_TEST(a_cookie_that_is_set_again_takes_the_place_of_the_first)
{
    int peer;

    memset(long_text, 'x', sizeof(long_text) - 1);
    serve((struct sxe_http_config){.handler = set_again, .fields_max = 6000});
    peer = client();
    say(peer, GET("/"));
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\n"
                       "Set-Cookie: aa=3; Path=/; HttpOnly; SameSite=Lax\r\n"
                       "Set-Cookie: a=xxxxx; Path=/; HttpOnly; SameSite=Lax\r\n"
                       "Content-Length: 0\r\n\r\n");
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
fail_late(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    sxe_http_keep_cookies(response);
    ck_assert_int_eq(sxe_http_add_field(response, "Upgrade", "x"), 0);
    ck_assert_int_eq(SET(response, "a", "1"), 0);
    ck_assert_int_eq(sxe_http_add_field(response, "Set-Cookies", "x"), 0);
    ck_assert_int_eq(sxe_http_add_field(response, "set-cookie", "b=2"), 0);
    sxe_http_keep_cookies(response);
    return sxe_http_reply(response, 500, NULL, "", 0);
}

START_TEST(an_error_has_the_cookies_and_no_other_field)
{
    int peer;

    serve((struct sxe_http_config){.handler = fail_late});
    peer = client();
    say(peer, GET("/"));
    EXPECT_REPLY(peer, "HTTP/1.1 500 Internal Server Error\r\n"
                       "Set-Cookie: a=1; Path=/; HttpOnly; SameSite=Lax\r\n"
                       "set-cookie: b=2\r\nContent-Length: 0\r\n\r\n");
    close(peer);
    end_site();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("http-cookie");
    TCase *t = tcase_create("cookies");

    tcase_add_loop_test(t, cookies_are_pairs_of_all_lines_and_the_first_of_a_name_counts, 0,
                        (int)(sizeof(requests) / sizeof(requests[0])));
    tcase_add_test(t, a_value_without_room_is_an_error);
    tcase_add_loop_test(t, a_cookie_is_one_safe_line_or_an_error, 0,
                        (int)(sizeof(replies) / sizeof(replies[0])));
    tcase_add_test(t, a_cookie_that_is_set_again_takes_the_place_of_the_first);
    tcase_add_test(t, an_error_has_the_cookies_and_no_other_field);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
