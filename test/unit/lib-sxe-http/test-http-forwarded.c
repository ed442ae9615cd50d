/* SPDX-License-Identifier: MIT
 *
 * Forwarded and X-Forwarded-For, read from the right: what an element says, what is no element, and
 * the comparison with an oracle that reads from the left.
 */
#include "sxe-http-forwarded.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../oracle/forwarded-oracle.h"
#include "page-edge.h"
#include "test-main.h"

/* A hop as one word: "192.0.2.7:80", "hidden"; then its proto and host, "-": none. */
static const char *
text_of(const struct sxe_http_hop *hop)
{
    static char text[300];
    char ip[INET6_ADDRSTRLEN] = "hidden";
    const struct sockaddr_in *in = (const struct sockaddr_in *)&hop->address;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&hop->address;
    unsigned port = 0;

    if (hop->address_length == sizeof(*in)) {
        ck_assert_int_eq(in->sin_family, AF_INET);
        inet_ntop(AF_INET, &in->sin_addr, ip, sizeof(ip));
        port = ntohs(in->sin_port);
    } else if (hop->address_length > 0) {
        ck_assert_int_eq(in6->sin6_family, AF_INET6);
        ck_assert_uint_eq(hop->address_length, sizeof(*in6));
        inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof(ip));
        port = ntohs(in6->sin6_port);
    }
    snprintf(text, sizeof(text), "%s|%u|%.*s|%.*s", ip, port,
             (int)(hop->proto.base == NULL ? 1 : hop->proto.length),
             hop->proto.base == NULL ? "-" : hop->proto.base,
             (int)(hop->host.base == NULL ? 1 : hop->host.length),
             hop->host.base == NULL ? "-" : hop->host.base);
    return text;
}

typedef int (*reader)(struct sxe_span *rest, struct sxe_http_hop *hop);

/* All elements from the right, a blank between them; "!" ends it where there is no element. */
static const char *
walk(reader last, const char *line)
{
    static char found[3000];
    struct sxe_span rest = page_edge(line);
    struct sxe_http_hop hop;
    size_t used = 0;
    int result;

    found[0] = '\0';
    while ((result = last(&rest, &hop)) > 0)
        used += (size_t)snprintf(found + used, sizeof(found) - used, "%s%s", used > 0 ? " " : "",
                                 text_of(&hop));
    ck_assert(result == 0 || result == -EINVAL);
    if (result < 0)
        snprintf(found + used, sizeof(found) - used, "%s!", used > 0 ? " " : "");
    return found;
}

static const struct {
    const char *line;
    const char *elements;
} lines[] = {
    /* The examples of RFC 7239, 4 and 6 and 7.1. */
    {"for=\"_gazonk\"", "hidden|0|-|-"},
    {"For=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17|4711|-|-"},
    {"for=192.0.2.60;proto=http;by=203.0.113.43", "192.0.2.60|0|http|-"},
    {"for=192.0.2.43, for=198.51.100.17", "198.51.100.17|0|-|- 192.0.2.43|0|-|-"},
    {"for=\"192.0.2.43:47011\"", "192.0.2.43|47011|-|-"},
    {"for=\"[2001:db8:cafe::17]:47011\"", "2001:db8:cafe::17|47011|-|-"},
    {"for=192.0.2.43, for=\"[2001:db8:cafe::17]\",for=unknown",
     "hidden|0|-|- 2001:db8:cafe::17|0|-|- 192.0.2.43|0|-|-"},
    {"for=_hidden, for=_SEVKISEK", "hidden|0|-|- hidden|0|-|-"},
    /* Pairs in any order and case; names that are not known. */
    {"HOST=\"a.example:8080\";PROTO=https;secret=\"a b\";FOR=\"1.2.3.4:_p.o-r_t\"",
     "1.2.3.4|0|https|a.example:8080"},
    {"for=UNKNOWN;host=\"[::1]:80\"", "hidden|0|-|[::1]:80"},
    {"for=\"unknown:80\";by=_me", "hidden|0|-|-"},
    {"proto=http", "hidden|0|http|-"},
    {"for=\"[::ffff:192.0.2.1]:65535\"", "::ffff:192.0.2.1|65535|-|-"},
    /* Blanks, and elements and pairs that are empty. */
    {"", ""},
    {" ,\t, ;, ", ""},
    {"\tfor=1.2.3.4 ; proto=a\t;; ,", "1.2.3.4|0|a|-"},
    {";for=1.2.3.4,;proto=http;", "hidden|0|http|- 1.2.3.4|0|-|-"},
    /* The right end counts, whatever is to its left. */
    {"for=\", for=1.2.3.4", "1.2.3.4|0|-|- !"},
    {"for=\"a\\\", for=1.2.3.4", "1.2.3.4|0|-|- !"},
    {"for=5.6.7.8 for=1.2.3.4", "!"},
    {"rubbish, for=\"1.2.3.4:5\"", "1.2.3.4|5|-|- !"},
    {"for=5.6.7.8,x;for=1.2.3.4", "!"},
    /* No addresses. */
    {"for=1.2.3", "!"},
    {"for=1.2.3.256", "!"},
    {"for=01.2.3.4", "!"},
    {"for=1.2.3.4.5", "!"},
    {"for=1.2.3.4:80", "!"},
    {"for=::1", "!"},
    {"for=[::1]", "!"},
    {"for=\"::1\"", "!"},
    {"for=\"[::1\"", "!"},
    {"for=\"[]\"", "!"},
    {"for=\"[1.2.3.4]\"", "!"},
    {"for=\"[::1%lo]\"", "!"},
    {"for=\"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]\"", "!"},
    {"for=\"[::1]80\"", "!"},
    {"for=\"[::1]:\"", "!"},
    {"for=\"1.2.3.4:\"", "!"},
    {"for=\"1.2.3.4:65536\"", "!"},
    {"for=\"1.2.3.4:000080\"", "!"},
    {"for=\"1.2.3.4:8a\"", "!"},
    {"for=\"1.2.3.4:_\"", "!"},
    {"for=\"1.2.3.4:_a+\"", "!"},
    {"for=\"\"", "!"},
    {"for=_", "!"},
    {"for=_a+b", "!"},
    {"for=unknowns", "!"},
    {"for=\"unknown:x\"", "!"},
    {"for=a.example", "!"},
    {"for=\"1.2.3.4 \"", "!"},
    {"by=a.example", "!"},
    /* No pairs. */
    {"for", "!"},
    {"for=", "!"},
    {"=1.2.3.4", "!"},
    {"for= 1.2.3.4", "!"},
    {"for =1.2.3.4", "!"},
    {"for==1.2.3.4", "!"},
    {"\"for\"=1.2.3.4", "!"},
    {"for=\"1.2.3.4", "!"},
    {"for=1.2.3.4\"", "!"},
    {"\"", "!"},
    {"for=\"1.2.3\\.4\"", "!"},
    {"x=\"\x7f\"", "!"},
    {"x=\"\t\"", "!"},
    {"x=\"\xc3\xa9\"", "!"},
    {"for=1.2.3.4;for=1.2.3.4", "!"},
    {"proto=a;Proto=b", "!"},
    {"host=a;host=b", "!"},
    {"by=_a;by=_b", "!"},
    {"proto=\"\"", "!"},
    {"proto=1http", "!"},
    {"proto=ht_tp", "!"},
    {"host=\"\"", "!"},
    {"host=\"a b\"", "!"},
    {"host=\"a/b\"", "!"},
};

START_TEST(elements_are_read_from_the_right)
{
    ck_assert_str_eq(walk(sxe_http_forwarded_last, lines[_i].line), lines[_i].elements);
}
END_TEST

static const struct {
    const char *line;
    const char *elements;
} addresses[] = {
    {"203.0.113.9, 198.51.100.1", "198.51.100.1|0|-|- 203.0.113.9|0|-|-"},
    {"2001:db8::1,[2001:db8::2], [2001:db8::3]:80,1.2.3.4:443",
     "1.2.3.4|443|-|- 2001:db8::3|80|-|- 2001:db8::2|0|-|- 2001:db8::1|0|-|-"},
    {"unknown,_a", "hidden|0|-|- hidden|0|-|-"},
    {"::ffff:192.0.2.1", "::ffff:192.0.2.1|0|-|-"},
    {"", ""},
    {", ,\t,", ""},
    {" ,1.2.3.4\t, ", "1.2.3.4|0|-|-"},
    {"a.example, \"1.2.3.4\", 1.2.3.4", "1.2.3.4|0|-|- !"},
    {"1.2.3.4 5.6.7.8", "!"},
    {"1.2.3.4:", "!"},
    {"1.2.3.4:99999", "!"},
    {"::1:g", "!"},
    {"::1%lo", "!"},
    {"[::1", "!"},
    {":80", "!"},
    {":", "!"},
    {"for=1.2.3.4", "!"},
    {"127.1", "!"},
};

START_TEST(addresses_are_read_from_the_right)
{
    ck_assert_str_eq(walk(sxe_http_forwarded_for_last, addresses[_i].line), addresses[_i].elements);
}
END_TEST

START_TEST(a_zero_byte_ends_nothing)
{
    static const char with_zero[] = "1.2.3.4\0005";
    struct sxe_span rest = {with_zero, sizeof(with_zero) - 1};
    struct sxe_http_hop hop;

    ck_assert_int_eq(sxe_http_forwarded_for_last(&rest, &hop), -EINVAL);
    ck_assert_uint_eq(rest.length, sizeof(with_zero) - 1);
}
END_TEST

/* Lines that are put together of pieces, most of them good. */
START_TEST(the_oracle_reads_the_same)
{
    static const char *const pieces[] = {
        "for=",       "by=",
        "proto=",     "host=",
        "x=",         ",",
        ";",          ", ",
        "1.2.3.4",    "_a",
        "https",      "a.b",
        "\"[::1]\"",  "unknown",
        "\"",         "\"1.2.3.4:80\"",
        "a.b:80",     "for=",
        ",",          ";",
        "\"a.b:80\"", "1.2.3.256",
        "[",          "for=1.2.3.4,",
        "proto=a;",   "host=\"[::2]:1\";",
        ", for=_b",
    };
    uint32_t state = 1;
    unsigned compared = 0;

    for (unsigned i = 0; i < 20000; i++) {
        char line[600] = "";
        const char *difference;
        size_t used = 0;

        for (unsigned number = 1 + i % 12; number > 0; number--) {
            state = state * 1664525 + 1013904223;
            used += (size_t)snprintf(line + used, sizeof(line) - used, "%s",
                                     pieces[(state >> 16) % (sizeof(pieces) / sizeof(pieces[0]))]);
        }
        difference = forwarded_oracle_compare(line, strlen(line));
        ck_assert_msg(difference == NULL, "%s: %s", line, difference);
        compared += strcmp(walk(sxe_http_forwarded_last, line), "!") != 0;
    }
    ck_assert_uint_gt(compared, 1000);
    for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        ck_assert_ptr_null(forwarded_oracle_compare(lines[i].line, strlen(lines[i].line)));
}
END_TEST

static Suite *
forwarded_suite(void)
{
    Suite *suite = suite_create("http forwarded");
    TCase *tcase = tcase_create("elements");

    tcase_add_loop_test(tcase, elements_are_read_from_the_right, 0,
                        (int)(sizeof(lines) / sizeof(lines[0])));
    tcase_add_loop_test(tcase, addresses_are_read_from_the_right, 0,
                        (int)(sizeof(addresses) / sizeof(addresses[0])));
    tcase_add_test(tcase, a_zero_byte_ends_nothing);
    tcase_add_test(tcase, the_oracle_reads_the_same);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return sxe_test_main(forwarded_suite());
}
