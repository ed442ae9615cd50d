/* SPDX-License-Identifier: MIT
 *
 * Source addresses: lists, ranges, networks, and the nth address of them.
 */
#include "local-addresses.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake-os.h"
#include "page-edge.h"
#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

static const char *
parse(struct load_local_addresses *local, const char *text)
{
    return load_local_addresses_parse(local, page_edge_bytes(text, strlen(text) + 1));
}

static const struct {
    const char *text;
    uint64_t number;
    const char *first;
    uint64_t nth;
    const char *nth_text;
    const char *last;
} lists[] = {
    {"127.0.0.1", 1, "127.0.0.1", 5, "127.0.0.1", "127.0.0.1"},
    {"127.0.0.1-127.0.0.8", 8, "127.0.0.1", 2, "127.0.0.3", "127.0.0.8"},
    {"127.0.0.1-127.0.0.1", 1, "127.0.0.1", 0, "127.0.0.1", "127.0.0.1"},
    {"127.0.0.1 - 127.0.0.3", 3, "127.0.0.1", 1, "127.0.0.2", "127.0.0.3"},
    {"127.0.0.254-127.0.1.1", 4, "127.0.0.254", 2, "127.0.1.0", "127.0.1.1"},
    {"127.0.0.0/28", 14, "127.0.0.1", 1, "127.0.0.2", "127.0.0.14"},
    {"127.0.0.4/30", 2, "127.0.0.5", 1, "127.0.0.6", "127.0.0.6"},
    {"127.0.0.4/31", 2, "127.0.0.4", 1, "127.0.0.5", "127.0.0.5"},
    {"127.0.0.4/32", 1, "127.0.0.4", 1, "127.0.0.4", "127.0.0.4"},
    {"10.0.0.0/8", 16777214, "10.0.0.1", 65535, "10.1.0.0", "10.255.255.254"},
    {"::1", 1, "::1", 1, "::1", "::1"},
    {"2001:db8::1-2001:db8::1:0", 65536, "2001:db8::1", 1, "2001:db8::2", "2001:db8::1:0"},
    {"2001:db8::/126", 2, "2001:db8::1", 1, "2001:db8::2", "2001:db8::2"},
    {"2001:db8::/127", 2, "2001:db8::", 1, "2001:db8::1", "2001:db8::1"},
    {"2001:db8::ffff:ffff:ffff:ffff-2001:db8:0:1::", UINT64_C(1) << 56,
     "2001:db8::ffff:ffff:ffff:ffff", 1, "2001:db8:0:1::", "2001:db8:0:1:ff:ffff:ffff:fffe"},
    {"2001:db8::-2001:db8::ffff:ffff:ffff:ffff", UINT64_C(1) << 56, "2001:db8::", 1, "2001:db8::1",
     "2001:db8::ff:ffff:ffff:ffff"},
    {"2001:db8::/64", UINT64_C(1) << 56, "2001:db8::1", 65535, "2001:db8::1:0",
     "2001:db8:0:0:100::"},
    {"2001:db8::/72", (UINT64_C(1) << 56) - 2, "2001:db8::1", 1, "2001:db8::2",
     "2001:db8::ff:ffff:ffff:fffe"},
    {"::ffff:127.0.0.1", 1, "127.0.0.1", 0, "127.0.0.1", "127.0.0.1"},
    {"127.0.0.1,127.0.0.1", 2, "127.0.0.1", 1, "127.0.0.1", "127.0.0.1"},
    {" 127.0.0.1 , 127.0.0.8-127.0.0.9,10.0.0.0/30 ", 5, "127.0.0.1", 2, "127.0.0.9", "10.0.0.2"},
};

static void
check_nth(const struct load_local_addresses *local, uint64_t nth, const char *wanted)
{
    char text[INET6_ADDRSTRLEN];

    load_local_addresses_text(local, nth, text, sizeof(text));
    ck_assert_str_eq(text, wanted);
}

START_TEST(each_list_has_its_addresses)
{
    struct load_local_addresses local;
    const char *wrong = parse(&local, lists[_i].text);

    ck_assert_msg(wrong == NULL, "%s: %s", lists[_i].text, wrong);
    ck_assert_uint_eq(local.number, lists[_i].number);
    ck_assert_int_eq(local.family, strchr(lists[_i].first, ':') != NULL ? AF_INET6 : AF_INET);
    check_nth(&local, 0, lists[_i].first);
    check_nth(&local, lists[_i].nth, lists[_i].nth_text);
    check_nth(&local, lists[_i].number - 1, lists[_i].last);
    check_nth(&local, lists[_i].number, lists[_i].first);
}
END_TEST

static const struct {
    const char *text;
    const char *says;
} refused[] = {
    {"", "'' is not an address"},
    {"localhost", "'localhost' is not an address"},
    {"127.0.0.1,", "'' is not an address"},
    {"127.0.0.1,,127.0.0.2", "'' is not an address"},
    {"127.0.0.1 127.0.0.2", "is not an address"},
    {"127.0.0.256", "'127.0.0.256' is not an address"},
    {"unix", "'unix' is not an address"},
    {"127.0.0.1/28", "after the prefix a network's bits are zero"},
    {"127.0.0.0/33", "is not an address"},
    {"127.0.0.8-127.0.0.1", "'127.0.0.8-127.0.0.1' is the wrong way round"},
    {"127.0.0.1-", "'' is not an address"},
    {"-127.0.0.1", "'' is not an address"},
    {"127.0.0.1-127.0.0.2-127.0.0.3", "is not an address"},
    {"127.0.0.0/28-127.0.0.64", "a range of networks"},
    {"127.0.0.0-127.0.0.64/28", "a range of networks"},
    {"127.0.0.1-::1", "begins with IPv4 and ends with IPv6"},
    {"::1-127.0.0.1", "begins with IPv4 and ends with IPv6, or the reverse"},
    {"127.0.0.1,::1", "'::1' is not of the same family"},
    {"::1,127.0.0.0/28", "'127.0.0.0/28' is not of the same family"},
    {"123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123"
     "4"
     "567890",
     "too long for an address"},
};

START_TEST(others_are_refused_and_named)
{
    struct load_local_addresses local;
    const char *wrong = parse(&local, refused[_i].text);

    ck_assert_msg(wrong != NULL, "'%s' is accepted", refused[_i].text);
    ck_assert_msg(strstr(wrong, refused[_i].says) != NULL, "'%s': %s", refused[_i].text, wrong);
}
END_TEST

START_TEST(the_last_range_that_fits_is_taken)
{
    const char *one = "127.0.0.1,";
    char text[(LOAD_LOCAL_ADDRESSES_MAX + 1) * 10 + 1] = "";
    struct load_local_addresses local;

    for (size_t i = 0; i < LOAD_LOCAL_ADDRESSES_MAX + 1; i++)
        memcpy(text + i * strlen(one), one, strlen(one));
    text[LOAD_LOCAL_ADDRESSES_MAX * strlen(one) - 1] = '\0';
    ck_assert_ptr_null(parse(&local, text));
    ck_assert_uint_eq(local.number, LOAD_LOCAL_ADDRESSES_MAX);
    text[LOAD_LOCAL_ADDRESSES_MAX * strlen(one) - 1] = ',';
    text[(LOAD_LOCAL_ADDRESSES_MAX + 1) * strlen(one) - 1] = '\0';
    ck_assert_ptr_nonnull(strstr(parse(&local, text), "is one too many"));
}
END_TEST

START_TEST(an_address_of_another_machine_is_named)
{
    struct load_local_addresses local;
    int fd = socket(AF_INET6, SOCK_DGRAM, 0);

    ck_assert_ptr_null(parse(&local, "127.0.0.1-127.0.0.9,192.0.2.1-192.0.2.2"));
    ck_assert_ptr_null(load_local_addresses_try(&local, 9));
    ck_assert_str_eq(load_local_addresses_try(&local, 10),
                     "'192.0.2.1' is no address of this machine");
    if (fd < 0)
        return; /* a kernel without IPv6 */
    close(fd);
    ck_assert_ptr_null(parse(&local, "2001:db8::1"));
    ck_assert_str_eq(load_local_addresses_try(&local, 1),
                     "'2001:db8::1' is no address of this machine");
}
END_TEST

START_TEST(not_all_of_many_are_tried)
{
    struct load_local_addresses local;

    ck_assert_ptr_null(parse(&local, "127.0.0.0/8"));
    ck_assert_ptr_null(load_local_addresses_try(&local, UINT64_MAX));
    ck_assert_uint_eq(fake_os_calls(FAKE_BIND), 1000);
}
END_TEST

START_TEST(what_cannot_be_tried_may_be_right)
{
    struct load_local_addresses local;

    ck_assert_ptr_null(parse(&local, "127.0.0.1"));
    fake_os_fail(FAKE_SOCKET, 1, 1, EMFILE);
    ck_assert_ptr_null(load_local_addresses_try(&local, 1));
    fake_os_fail(FAKE_BIND, 1, 1, EACCES);
    ck_assert_ptr_null(load_local_addresses_try(&local, 1));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-local-addresses");
    TCase *tcase = tcase_create("source");

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, each_list_has_its_addresses, 0, COUNT(lists));
    tcase_add_loop_test(tcase, others_are_refused_and_named, 0, COUNT(refused));
    tcase_add_test(tcase, the_last_range_that_fits_is_taken);
    tcase_add_test(tcase, an_address_of_another_machine_is_named);
    tcase_add_test(tcase, not_all_of_many_are_tried);
    tcase_add_test(tcase, what_cannot_be_tried_may_be_right);
    return sxe_test_main(suite);
}
