/* SPDX-License-Identifier: MIT
 *
 * URLs of the command line: a table of inputs and results.
 */
#include "url.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <unistd.h>

#include "fake-os.h"
#include "page-edge.h"
#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

/* A text of the table that ends, with its NUL, at a page without access. */
static const char *
at_edge(const char *text)
{
    return page_edge_bytes(text, strlen(text) + 1);
}

static const struct {
    const char *text;
    const char *host;
    unsigned port;
    const char *authority;
    const char *path;
    const char *target;
} urls[] = {
    {"http://127.0.0.1:8000/", "127.0.0.1", 8000, "127.0.0.1:8000", "", "/"},
    {"http://127.0.0.1:8000", "127.0.0.1", 8000, "127.0.0.1:8000", "", "/"},
    {"http://www.example.com/a?b", "www.example.com", 80, "www.example.com", "", "/a?b"},
    {"http://h:80/", "h", 80, "h", "", "/"},
    {"http://h:00080/", "h", 80, "h", "", "/"},
    {"http://h:65535/", "h", 65535, "h:65535", "", "/"},
    {"HTTP://h/", "h", 80, "h", "", "/"},
    {"localhost:8000/a", "localhost", 8000, "localhost:8000", "", "/a"},
    {"localhost", "localhost", 80, "localhost", "", "/"},
    {"h/http://x/", "h", 80, "h", "", "/http://x/"},
    {"h?a://b", "h", 80, "h", "", "/?a://b"},
    {"http://h?a=b", "h", 80, "h", "", "/?a=b"},
    {"http://h#part", "h", 80, "h", "", "/"},
    {"http://h/a?b=%2F+%c3%a9#part", "h", 80, "h", "", "/a?b=%2F+%c3%a9"},
    {"http://h/item/{RAND:1:9}?n={SEQ}", "h", 80, "h", "", "/item/{RAND:1:9}?n={SEQ}"},
    {"http://h//a//b", "h", 80, "h", "", "//a//b"},
    {"http://h/a:b@c", "h", 80, "h", "", "/a:b@c"},
    {"http://[::1]/", "::1", 80, "[::1]", "", "/"},
    {"http://[::1]:8080/x", "::1", 8080, "[::1]:8080", "", "/x"},
    {"[::1]:8080", "::1", 8080, "[::1]:8080", "", "/"},
    {"http://[fe80::1%eth0]:81/", "fe80::1%eth0", 81, "[fe80::1]:81", "", "/"},
    {"http://[fe80::1%25eth0]/", "fe80::1%eth0", 80, "[fe80::1]", "", "/"},
    {"http://[fe80::1%25]/", "fe80::1%25", 80, "[fe80::1]", "", "/"},
    {"http+unix:///run/web.sock:/a?b", "", 0, "localhost", "/run/web.sock", "/a?b"},
    {"http+unix:///run/web.sock", "", 0, "localhost", "/run/web.sock", "/"},
    {"unix:/run/web.sock:/a", "", 0, "localhost", "/run/web.sock", "/a"},
    {"unix:/run/a:b", "", 0, "localhost", "/run/a:b", "/"},
    {"unix:@name:/", "", 0, "localhost", "@name", "/"},
    {"UNIX:@name", "", 0, "localhost", "@name", "/"},
    {"https://h/", "h", 443, "h", "", "/"},
    {"HTTPS://h:443/a", "h", 443, "h", "", "/a"},
    {"https://[::1]:80/", "::1", 80, "[::1]:80", "", "/"},
    {"http://h:443/", "h", 443, "h:443", "", "/"},
};

START_TEST(urls_are_taken_apart)
{
    struct load_url url;
    const char *wrong = load_url_parse(&url, at_edge(urls[_i].text));

    ck_assert_msg(wrong == NULL, "%s: %s", urls[_i].text, wrong);
    ck_assert_str_eq(url.host, urls[_i].host);
    ck_assert_uint_eq(url.port, urls[_i].port);
    ck_assert_str_eq(url.authority, urls[_i].authority);
    ck_assert_str_eq(url.path, urls[_i].path);
    ck_assert_str_eq(url.target, urls[_i].target);
    ck_assert(url.is_tls == (strncasecmp(urls[_i].text, "https", 5) == 0));
}
END_TEST

static const struct {
    const char *text;
    const char *says;
} refused[] = {
    {"ftp://h/", "'ftp' is not a scheme of ours"},
    {"://h/", "not a scheme of ours"},
    {"http://user@h/", "a user in a URL is not sent"},
    {"http://user:pass@h/", "a user in a URL is not sent"},
    {"", "a host of 1 to 255 bytes"},
    {"/path", "a host of 1 to 255 bytes"},
    {"http://", "a host of 1 to 255 bytes"},
    {"http://:80/", "a host of 1 to 255 bytes"},
    {"http://h:0/", "the port in ':0'"},
    {"http://h:/", "the port in ':'"},
    {"http://h:65536/", "the port in ':65536'"},
    {"http://h:99999999999999999999/", "not a number from 1 to 65535"},
    {"http://h:80x/", "not a number from 1 to 65535"},
    {"::1", "a host of 1 to 255 bytes"},
    {"fe80::1", "has brackets around it"},
    {"http://2001:db8::1/", "has brackets around it"},
    {"http://[]/", "'[]' is not a host"},
    {"http://[::1/", "has brackets around it"},
    {"http://[::g]/", "'[::g]' is not a host"},
    {"http://[::1]8080/", "is not a host with a port"},
    {"http://a b/", "'a b' is not a host"},
    {"http://a\"b/", "is not a host"},
    {"http://h/a b", "write %20 for a blank"},
    {"http://h/a\tb", "'/a?b' has a byte"},
    {"http://h/a\r\nX: y", "has a byte or an escape"},
    {"http://h/100%", "%25 for a percent sign"},
    {"http://h/\xc3\xa9", "has a byte or an escape"},
    {"unix:", "a unix socket is unix:/path"},
    {"unix:/", "a unix socket is unix:/path"},
    {"unix:relative", "a unix socket is unix:/path"},
    {"http+unix://h/", "a unix socket is unix:/path"},
    {"unix:/s:/a b", "has a byte or an escape"},
};

START_TEST(others_are_refused)
{
    struct load_url url;
    const char *wrong = load_url_parse(&url, at_edge(refused[_i].text));

    ck_assert_msg(wrong != NULL, "'%s' is accepted", refused[_i].text);
    ck_assert_msg(strstr(wrong, refused[_i].says) != NULL, "'%s': %s", refused[_i].text, wrong);
}
END_TEST

/* A URL: front, then this many letters, then after. */
static const char *
long_url(const char *front, size_t letters, const char *after)
{
    static char text[8192];

    ck_assert_uint_lt(strlen(front) + letters + strlen(after), sizeof(text));
    snprintf(text, sizeof(text), "%s", front);
    memset(text + strlen(front), 'a', letters);
    snprintf(text + strlen(front) + letters, sizeof(text) - strlen(front) - letters, "%s", after);
    return text;
}

static const struct {
    const char *front;
    size_t letters;
    const char *after;
    const char *says; /* the message if there is one letter more */
} longest[] = {
    {"http://", 255, "/", "a host of 1 to 255 bytes"},
    {"http://h/", 4094, "", "longer than 4094 bytes"},
    {"unix:/", 106, ":/", "at most 107 bytes"},
    {"http://[fe80::1%", 247, "]/", "a host of 1 to 255 bytes"},
};

START_TEST(the_longest_part_is_taken_and_no_longer_one)
{
    const char *front = longest[_i].front;
    const char *after = longest[_i].after;
    struct load_url url;
    const char *wrong;

    wrong = load_url_parse(&url, at_edge(long_url(front, longest[_i].letters, after)));
    ck_assert_msg(wrong == NULL, "%s: %s", front, wrong);
    wrong = load_url_parse(&url, at_edge(long_url(front, longest[_i].letters + 1, after)));
    ck_assert_msg(wrong != NULL && strstr(wrong, longest[_i].says) != NULL, "%s: %s", front, wrong);
}
END_TEST

/* ---- Addresses ---- */

/* The addresses to which all names resolve here; NULL: the real ones. */
static struct addrinfo *all;

int
getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
            struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

    *found = all;
    if (all != NULL)
        return 0;
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    return real(host, service, hints, found);
}

void
freeaddrinfo(struct addrinfo *found)
{
    void (*real)(struct addrinfo *);

    if (found == all)
        return;
    *(void **)&real = dlsym(RTLD_NEXT, "freeaddrinfo");
    real(found);
}

START_TEST(addresses_resolve_to_themselves)
{
    struct load_addresses addresses;

    ck_assert_ptr_null(load_url_resolve("127.0.0.1", 80, &addresses));
    ck_assert_uint_eq(addresses.number, 1);
    ck_assert_uint_eq(addresses.used, 1);
    ck_assert_str_eq(addresses.ip[0], "127.0.0.1");
    ck_assert_ptr_null(load_url_resolve("::1", 80, &addresses));
    ck_assert_str_eq(addresses.ip[0], "::1");
}
END_TEST

START_TEST(what_does_not_resolve_says_why)
{
    struct load_addresses addresses;
    char label[80];

    /* A name with a label of more than 63 bytes is not looked up (RFC 1035, 2.3.4). */
    memset(label, 'a', sizeof(label) - 1);
    label[sizeof(label) - 1] = '\0';
    ck_assert_ptr_nonnull(load_url_resolve(label, 80, &addresses));
}
END_TEST

/* ---- Several addresses ---- */

#define MANY (LOAD_ADDRESSES_MAX + 2)

static struct sockaddr_storage places[MANY];
static struct addrinfo found[MANY];
static int listener;

static void
add_place(unsigned i, const char *ip)
{
    struct sockaddr_in *ipv4 = (struct sockaddr_in *)&places[i];
    struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)&places[i];
    bool is_ipv6 = strchr(ip, ':') != NULL;

    if (i > 0)
        found[i - 1].ai_next = &found[i];
    found[i] = (struct addrinfo){.ai_family = is_ipv6 ? AF_INET6 : AF_INET,
                                 .ai_addr = (struct sockaddr *)&places[i],
                                 .ai_addrlen = is_ipv6 ? sizeof(*ipv6) : sizeof(*ipv4)};
    places[i].ss_family = (sa_family_t)found[i].ai_family;
    inet_pton(found[i].ai_family, ip, is_ipv6 ? (void *)&ipv6->sin6_addr : &ipv4->sin_addr);
}

/* The addresses ::1, 127.0.0.2, ::1 and 127.0.0.1; only 127.0.0.1 listens at the port. */
static void
have_both_families(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(at);

    add_place(0, "::1");
    add_place(1, "127.0.0.2");
    add_place(2, "::1");
    add_place(3, "127.0.0.1");
    listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, length), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &length), 0);
    for (unsigned i = 0; i < 4; i++) {
        if (places[i].ss_family == AF_INET6)
            ((struct sockaddr_in6 *)&places[i])->sin6_port = at.sin_port;
        else
            ((struct sockaddr_in *)&places[i])->sin_port = at.sin_port;
    }
}

/* A name with the addresses from `from` on must resolve to those of the text, "used | unused". */
static void
check_resolved(struct addrinfo *from, const char *text)
{
    struct load_addresses addresses;
    char got[256] = "";

    all = from;
    ck_assert_ptr_null(load_url_resolve("name", 80, &addresses));
    all = NULL;
    for (unsigned i = 0; i < addresses.number; i++) {
        strncat(got, i == addresses.used ? " | " : i > 0 ? " " : "", sizeof(got) - 32);
        strncat(got, addresses.ip[i], sizeof(got) - 32);
    }
    ck_assert_str_eq(got, text);
}

START_TEST(a_family_of_which_none_accepts_is_not_used_if_the_other_does)
{
    have_both_families();
    check_resolved(found, "127.0.0.2 127.0.0.1 | ::1");
    check_resolved(&found[3], "127.0.0.1");
    close(listener);
    check_resolved(found, "::1 127.0.0.2 127.0.0.1");
}
END_TEST

START_TEST(if_both_families_accept_both_are_used)
{
    have_both_families();
    fake_os_fail(FAKE_CONNECT, 3, 1, 0); /* lets the connect to ::1 succeed at once */
    check_resolved(found, "::1 127.0.0.2 127.0.0.1");
    fake_os_reset();
    close(listener);
}
END_TEST

START_TEST(an_address_that_cannot_be_tried_does_not_accept)
{
    have_both_families();
    fake_os_fail(FAKE_SOCKET, 1, 0, EMFILE);
    check_resolved(found, "::1 127.0.0.2 127.0.0.1");
    fake_os_reset();
    fake_os_fail(FAKE_POLL, 1, 0, EINTR);
    check_resolved(found, "::1 127.0.0.2 127.0.0.1");
    fake_os_reset();
    close(listener);
}
END_TEST

START_TEST(a_name_has_a_limited_number_of_addresses)
{
    struct load_addresses addresses;
    char ip[16];

    for (unsigned i = 0; i < MANY; i++) {
        snprintf(ip, sizeof(ip), "127.0.1.%u", i);
        add_place(i, ip);
    }
    all = found;
    ck_assert_ptr_null(load_url_resolve("name", 80, &addresses));
    all = NULL;
    ck_assert_uint_eq(addresses.number, LOAD_ADDRESSES_MAX);
    ck_assert_uint_eq(addresses.used, LOAD_ADDRESSES_MAX);
    load_url_use_family(&addresses, AF_INET6);
    ck_assert_uint_eq(addresses.used, LOAD_ADDRESSES_MAX);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-url");
    TCase *tcase = tcase_create("url");

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, urls_are_taken_apart, 0, COUNT(urls));
    tcase_add_loop_test(tcase, others_are_refused, 0, COUNT(refused));
    tcase_add_loop_test(tcase, the_longest_part_is_taken_and_no_longer_one, 0, COUNT(longest));
    tcase_add_test(tcase, addresses_resolve_to_themselves);
    tcase_add_test(tcase, what_does_not_resolve_says_why);
    tcase_add_test(tcase, a_family_of_which_none_accepts_is_not_used_if_the_other_does);
    tcase_add_test(tcase, if_both_families_accept_both_are_used);
    tcase_add_test(tcase, an_address_that_cannot_be_tried_does_not_accept);
    tcase_add_test(tcase, a_name_has_a_limited_number_of_addresses);
    return sxe_test_main(suite);
}
