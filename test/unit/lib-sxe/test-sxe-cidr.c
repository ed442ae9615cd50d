/* SPDX-License-Identifier: MIT
 *
 * Tests networks (CIDR): which texts are read as one, and which addresses are in it.
 */
#include "sxe-cidr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test-main.h"

static struct sxe_cidr_list list;

static struct sockaddr_storage
address_of(const char *text)
{
    struct sockaddr_storage address = {.ss_family = AF_UNIX};

    if (inet_pton(AF_INET, text, &((struct sockaddr_in *)&address)->sin_addr) == 1)
        address.ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)&address)->sin6_addr) == 1)
        address.ss_family = AF_INET6;
    return address;
}

static bool
matches(const char *text)
{
    struct sockaddr_storage address = address_of(text);

    return sxe_cidr_match(&list, (const struct sockaddr *)&address);
}

/* ---- Addresses of a network ---- */

static const struct {
    const char *networks;
    const char *inside[4];
    const char *outside[6];
} lists[] = {
    {"127.0.0.1",
     {"127.0.0.1", "::ffff:127.0.0.1"},
     {"127.0.0.0", "127.0.0.2", "255.0.0.1", "::1", "::127.0.0.1", "unix"}},
    {"10.0.0.0/8",
     {"10.0.0.0", "10.255.255.255", "::ffff:10.1.2.3"},
     {"9.255.255.255", "11.0.0.0", "::ffff:11.1.2.3", "a00::", "::a00:0"}},
    {"192.168.0.0/15", {"192.168.0.0", "192.169.255.255"}, {"192.167.255.255", "192.170.0.0"}},
    {"192.0.2.128/25", {"192.0.2.128", "192.0.2.255"}, {"192.0.2.127", "192.0.3.128"}},
    {"192.0.2.4/31", {"192.0.2.4", "192.0.2.5"}, {"192.0.2.3", "192.0.2.6"}},
    {"192.0.2.4/32", {"192.0.2.4"}, {"192.0.2.5", "192.0.2.0"}},
    {"0.0.0.0/0", {"0.0.0.0", "255.255.255.255", "::ffff:1.2.3.4"}, {"::1", "::1.2.3.4", "unix"}},
    {"128.0.0.0/1", {"128.0.0.0", "255.255.255.255"}, {"127.255.255.255", "8000::"}},
    {"::1", {"::1"}, {"::2", "127.0.0.1", "0.0.0.1", "::"}},
    {"::1/128", {"::1"}, {"::2", "::"}},
    {"2001:db8::/32",
     {"2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"},
     {"2001:db7:ffff::", "2001:db9::", "32.1.13.184"}},
    {"2001:db8::8000/113", {"2001:db8::8000", "2001:db8::ffff"}, {"2001:db8::7fff"}},
    {"::/0", {"::", "::1", "ffff::", "::1.2.3.4"}, {"1.2.3.4", "::ffff:1.2.3.4", "unix"}},
    {"::ffff:10.0.0.0/104", {"10.1.2.3", "::ffff:10.1.2.3"}, {"11.0.0.0", "::1"}},
    {"::ffff:0:0/96", {"1.2.3.4", "::ffff:1.2.3.4"}, {"::1"}},
    {"::ffff:127.0.0.1", {"127.0.0.1"}, {"127.0.0.2", "::1"}},
    {"unix", {"unix"}, {"127.0.0.1", "::1", "::", "0.0.0.0"}},
    {"127.0.0.1,::1", {"127.0.0.1", "::1"}, {"127.0.0.2", "::2", "unix"}},
    {" 127.0.0.1 ,\t10.0.0.0/8 , unix\t", {"127.0.0.1", "10.9.8.7", "unix"}, {"::1", "8.8.8.8"}},
};

START_TEST(an_address_is_in_a_network_or_not)
{
    ck_assert_int_eq(sxe_cidr_add(&list, lists[_i].networks, NULL), 0);
    for (unsigned i = 0; i < 4 && lists[_i].inside[i] != NULL; i++)
        ck_assert_msg(matches(lists[_i].inside[i]), "%s", lists[_i].inside[i]);
    for (unsigned i = 0; i < 6 && lists[_i].outside[i] != NULL; i++)
        ck_assert_msg(!matches(lists[_i].outside[i]), "%s", lists[_i].outside[i]);
}
END_TEST

START_TEST(each_number_of_bits_is_a_network_twice_as_large)
{
    for (int bits = 0; bits <= 128; bits++) {
        struct sockaddr_in6 first = {.sin6_family = AF_INET6};
        struct sockaddr_in6 beyond;
        char text[INET6_ADDRSTRLEN + 16];

        if (bits > 0)
            first.sin6_addr.s6_addr[(bits - 1) / 8] = (uint8_t)(0x80 >> (bits - 1) % 8);
        inet_ntop(AF_INET6, &first.sin6_addr, text, INET6_ADDRSTRLEN);
        snprintf(text + strlen(text), 16, "/%d", bits);
        list.number = 0;
        ck_assert_int_eq(sxe_cidr_add(&list, text, NULL), 0);
        ck_assert_msg(sxe_cidr_match(&list, (struct sockaddr *)&first), "%s", text);
        beyond = first;
        if (bits > 0)
            beyond.sin6_addr.s6_addr[(bits - 1) / 8] = 0;
        ck_assert_int_eq(sxe_cidr_match(&list, (struct sockaddr *)&beyond), bits == 0);
        beyond = first;
        beyond.sin6_addr.s6_addr[15] |= 1;
        ck_assert_int_eq(sxe_cidr_match(&list, (struct sockaddr *)&beyond), true);
    }
}
END_TEST

START_TEST(nothing_is_in_an_empty_list)
{
    ck_assert(!matches("127.0.0.1"));
    ck_assert(!matches("::1"));
    ck_assert(!matches("unix"));
}
END_TEST

START_TEST(no_address_is_in_no_list)
{
    struct sockaddr other = {.sa_family = AF_UNSPEC};

    ck_assert_int_eq(sxe_cidr_add(&list, "0.0.0.0/0,::/0,unix", NULL), 0);
    ck_assert(!sxe_cidr_match(&list, NULL));
    ck_assert(!sxe_cidr_match(&list, &other));
    other.sa_family = AF_NETLINK;
    ck_assert(!sxe_cidr_match(&list, &other));
}
END_TEST

/* ---- Lists of networks ---- */

static const struct {
    const char *networks;
    const char *wrong;
} refused[] = {
    {"", ""},
    {" ", ""},
    {",", ""},
    {"::1,", ""},
    {",::1", ""},
    {"::1,,::2", ""},
    {"::1, ,::2", ""},
    {"localhost", "localhost"},
    {"UNIX", "UNIX"},
    {"unix:", "unix:"},
    {"127.0.0", "127.0.0"},
    {"127.0.0.01", "127.0.0.01"},
    {"127.0.0.256", "127.0.0.256"},
    {"127.0.0.1 ::1", "127.0.0.1"},
    {"127.0.0.1;::1", "127.0.0.1;::1"},
    {"127.0.0.1:80", "127.0.0.1:80"},
    {"[::1]", "[::1]"},
    {"fe80::1%lo", "fe80::1%lo"},
    {"/8", "/8"},
    {"10.0.0.0/", "10.0.0.0/"},
    {"10.0.0.0/33", "10.0.0.0/33"},
    {"10.0.0.0/-1", "10.0.0.0/-1"},
    {"10.0.0.0/+8", "10.0.0.0/+8"},
    {"10.0.0.0/8x", "10.0.0.0/8x"},
    {"10.0.0.0/8/8", "10.0.0.0/8/8"},
    {"10.0.0.0/0008", "10.0.0.0/0008"},
    {"10.0.0.0/255.0.0.0", "10.0.0.0/255.0.0.0"},
    {"10.0.0.0/4294967304", "10.0.0.0/4294967304"},
    {"::/129", "::/129"},
    {"::/999", "::/999"},
    {"unix/8", "unix/8"},
    {"10.0.0.1/8", "10.0.0.1/8"},
    {"10.0.0.0/6", "10.0.0.0/6"},
    {"10.0.0.1/31", "10.0.0.1/31"},
    {"1.2.3.4/0", "1.2.3.4/0"},
    {"::1/127", "::1/127"},
    {"::ffff:0:0/95", "::ffff:0:0/95"},
    {"::1, 1:2:3:4:5:6:7:8:9 ,::2", "1:2:3:4:5:6:7:8:9"},
    {"::1,1111:2222:3333:4444:5555:6666:123.123.123.123/128,10.0.0.0/9,unix,x", "x"},
    {"1111:2222:3333:4444:5555:6666:123.123.123.123/128 ", NULL},
    {"1111:2222:3333:4444:5555:6666:0123.123.123.123/1281", "1111:2222:3333:4444:5555:6666:0123."
                                                            "123.123.123/1281"},
};

START_TEST(what_is_no_network_is_named_and_leaves_the_list_as_it_was)
{
    struct sxe_span wrong = {NULL, 0};
    int result = sxe_cidr_add(&list, "192.0.2.1", NULL);

    ck_assert_int_eq(result, 0);
    result = sxe_cidr_add(&list, refused[_i].networks, &wrong);
    if (refused[_i].wrong == NULL) {
        ck_assert_int_eq(result, 0);
        return;
    }
    ck_assert_int_eq(result, -EINVAL);
    ck_assert_uint_eq(wrong.length, strlen(refused[_i].wrong));
    ck_assert_mem_eq(wrong.base, refused[_i].wrong, wrong.length);
    ck_assert_uint_eq(list.number, 1);
    ck_assert(matches("192.0.2.1"));
    ck_assert(!matches("::1"));
    ck_assert(!matches("unix"));
    ck_assert_int_eq(sxe_cidr_add(&list, refused[_i].networks, NULL), -EINVAL);
}
END_TEST

START_TEST(a_list_has_room_for_64_networks)
{
    struct sxe_span wrong;

    for (int i = 0; i < SXE_CIDR_MAX - 1; i++) {
        char text[32];

        snprintf(text, sizeof(text), "10.0.%d.0/24", i);
        ck_assert_int_eq(sxe_cidr_add(&list, text, NULL), 0);
    }
    ck_assert_int_eq(sxe_cidr_add(&list, "::1,::2,::3", &wrong), -ENOSPC);
    ck_assert_mem_eq(wrong.base, "::2", 3);
    ck_assert(!matches("::1"));
    ck_assert_int_eq(sxe_cidr_add(&list, "::1", NULL), 0);
    ck_assert_int_eq(sxe_cidr_add(&list, "::2", NULL), -ENOSPC);
    ck_assert_int_eq(sxe_cidr_add(&list, "unix", NULL), 0);
    ck_assert(matches("10.0.0.1"));
    ck_assert(matches("10.0.62.1"));
    ck_assert(matches("::1"));
    ck_assert(matches("unix"));
    ck_assert(!matches("::2"));
}
END_TEST

/* ---- The internet ---- */

static const struct {
    const char *address;
    bool is_public;
} addresses[] = {
    {"8.8.8.8", true},
    {"0.0.0.0", false},
    {"10.1.2.3", false},
    {"100.63.0.1", true},
    {"100.64.0.1", false},
    {"127.1.2.3", false},
    {"169.254.1.1", false},
    {"172.15.0.1", true},
    {"172.31.0.1", false},
    {"172.32.0.1", true},
    {"192.168.0.1", false},
    {"198.18.0.1", false},
    {"224.0.0.1", false},
    {"255.255.255.255", false},
    {"::", false},
    {"::1", false},
    {"fe80::1", false},
    {"fc00::1", false},
    {"ff02::1", false},
    {"2001:4860::1", true},
    {"2001:db8::1", false},
    {"3fff:fff::1", false},
    {"3fff:1000::1", true},
    {"2001::1", false},
    {"2001:200::1", true},
    {"::ffff:10.0.0.1", false},
    {"::ffff:8.8.8.8", true},
    {"64:ff9b::7f00:1", false},
    {"2002:0a00:1::", false},
    {"2002:0808:808::", true},
    {"", false},
    {"no address", false},
};

START_TEST(addresses_of_the_internet_are_public)
{
    ck_assert(sxe_cidr_is_public(addresses[_i].address) == addresses[_i].is_public);
}
END_TEST

#define COUNT(table) (sizeof(table) / sizeof(table[0]))

int
main(void)
{
    Suite *suite = suite_create("sxe-cidr");
    TCase *tcase = tcase_create("networks");

    tcase_add_loop_test(tcase, an_address_is_in_a_network_or_not, 0, COUNT(lists));
    tcase_add_test(tcase, each_number_of_bits_is_a_network_twice_as_large);
    tcase_add_test(tcase, nothing_is_in_an_empty_list);
    tcase_add_test(tcase, no_address_is_in_no_list);
    tcase_add_loop_test(tcase, what_is_no_network_is_named_and_leaves_the_list_as_it_was, 0,
                        COUNT(refused));
    tcase_add_test(tcase, a_list_has_room_for_64_networks);
    tcase_add_loop_test(tcase, addresses_of_the_internet_are_public, 0, COUNT(addresses));
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
