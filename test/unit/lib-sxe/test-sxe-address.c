/* SPDX-License-Identifier: MIT
 *
 * Tests addresses: which texts are read as one, and how addresses are shown as text.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "sxe-private.h"

#include "sxe-fixture.h"
#include "test-main.h"

static char ip[SXE__IP_SIZE];

/* ---- Text to address ---- */

static const struct {
    const char *text;
    const char *ip; /* NULL: not an address */
    int family;
} texts[] = {
    {"127.0.0.1", "127.0.0.1", AF_INET},
    {"255.255.255.255", "255.255.255.255", AF_INET},
    {"", "0.0.0.0", AF_INET},
    {NULL, "0.0.0.0", AF_INET},
    {"INADDR_ANY", "0.0.0.0", AF_INET},
    {"::", "::", AF_INET6},
    {"::1", "::1", AF_INET6},
    {"2001:DB8::00ff", "2001:db8::ff", AF_INET6},
    {"::ffff:1.2.3.4", "::ffff:1.2.3.4", AF_INET6},
    {"fe80::1%lo", "fe80::1", AF_INET6},
    {"fe80::1%no-such-zone", NULL, 0},
    {"fe80::1%", NULL, 0},
    {"inaddr_any", NULL, 0},
    {"localhost", NULL, 0},
    {"127.0.0", NULL, 0},
    {"127.0.0.256", NULL, 0},
    {"127.0.0.1 ", NULL, 0},
    {" 127.0.0.1", NULL, 0},
    {"127.0.0.1:80", NULL, 0},
    {"[::1]", NULL, 0},
    {":::", NULL, 0},
    {"1:2:3:4:5:6:7:8:9", NULL, 0},
    {"-1", NULL, 0},
    {"%", NULL, 0},
    {"0000:0000:0000:0000:0000:0000:0000:0000:0000:0001", NULL, 0},
};

START_TEST(text_is_an_address_or_it_is_refused)
{
    struct sockaddr_storage address;
    int result = sxe__address_parse(&address, texts[_i].text, 8080);

    if (texts[_i].ip == NULL) {
        ck_assert_int_eq(result, -EINVAL);
        return;
    }
    ck_assert_int_eq(result, 0);
    ck_assert_int_eq(address.ss_family, texts[_i].family);
    ck_assert_str_eq(sxe__address_ip(ip, &address, sxe__address_length(&address)), texts[_i].ip);
    ck_assert_uint_eq(sxe__address_port(&address), 8080);
}
END_TEST

START_TEST(a_bad_ip_makes_no_socket)
{
    plan_start(2);
    errno = 0;
    if (texts[_i].ip == NULL) {
        ck_assert_ptr_null(sxe_new_tcp(NULL, texts[_i].text, 1, NULL, NULL, NULL));
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_ptr_null(sxe_new_udp(NULL, texts[_i].text, 1, NULL));
    } else {
        ck_assert_ptr_nonnull(sxe_new_tcp(NULL, texts[_i].text, 1, NULL, NULL, NULL));
        ck_assert_ptr_nonnull(sxe_new_udp(NULL, texts[_i].text, 1, NULL));
    }
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_NEW), texts[_i].ip == NULL ? 0 : 2);
    plan_stop();
}
END_TEST

START_TEST(a_bad_ip_is_not_connected_to)
{
    SXE *s;

    if (texts[_i].ip != NULL)
        return;
    plan_start(1);
    s = sxe_new_tcp(NULL, "", 0, push_connected, NULL, push_close);
    ck_assert_int_eq(sxe_connect(s, texts[_i].text, 1), -EINVAL);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_NEW);
    ck_assert_int_eq(sxe_fd(s), -1);
    plan_stop();
}
END_TEST

START_TEST(a_zone_is_the_number_of_an_interface)
{
    struct sockaddr_storage address;

    ck_assert_int_eq(sxe__address_parse(&address, "fe80::1%lo", 1), 0);
    ck_assert_uint_eq(((struct sockaddr_in6 *)&address)->sin6_scope_id, if_nametoindex("lo"));
    ck_assert_int_eq(sxe__address_parse(&address, "fe80::1", 1), 0);
    ck_assert_uint_eq(((struct sockaddr_in6 *)&address)->sin6_scope_id, 0);
}
END_TEST

/* ---- Paths ---- */

static const struct {
    size_t length;
    char first;
    int error;
} paths[] = {
    {0, 'a', EINVAL},         {1, 'a', 0}, {107, 'a', 0}, {108, 'a', ENAMETOOLONG},
    {109, 'a', ENAMETOOLONG}, {1, '@', 0}, {107, '@', 0}, {108, '@', ENAMETOOLONG},
    {300, '@', ENAMETOOLONG},
};

START_TEST(a_path_has_1_to_107_bytes)
{
    char path[512];
    struct sockaddr_storage address;
    socklen_t length;

    memset(path, 'x', sizeof(path));
    path[0] = paths[_i].first;
    path[paths[_i].length] = '\0';
    ck_assert_int_eq(sxe__address_parse_path(&address, &length, path), -paths[_i].error);
    if (paths[_i].error == 0) {
        ck_assert_str_eq(sxe__address_ip(ip, &address, length), path);
        ck_assert_uint_eq(sxe__address_port(&address), 0);
    }
    plan_start(1);
    errno = 0;
    ck_assert_int_eq(sxe_new_unix(NULL, path, NULL, NULL, NULL) != NULL, paths[_i].error == 0);
    ck_assert_int_eq(errno, paths[_i].error);
    plan_stop();
}
END_TEST

START_TEST(no_address_is_an_empty_text)
{
    struct sockaddr_storage address = {0};

    ck_assert_str_eq(sxe__address_ip(ip, &address, 0), "");
    address.ss_family = AF_UNIX; /* as socketpair(2) gives it */
    ck_assert_str_eq(sxe__address_ip(ip, &address, sizeof(sa_family_t)), "");
}
END_TEST

/* A path that fills sun_path has no zero byte after it, and Linux reports one byte more than it. */
START_TEST(the_longest_path_of_a_stranger_is_shown_whole)
{
    struct sockaddr_storage address = {.ss_family = AF_UNIX};
    struct sockaddr_un *un = (struct sockaddr_un *)&address;
    char path[sizeof(un->sun_path) + 1] = "";

    memset(path, 'p', sizeof(path) - 1);
    memcpy(un->sun_path, path, sizeof(un->sun_path));
    ck_assert_str_eq(sxe__address_ip(ip, &address, sizeof(*un) + 1), path);
}
END_TEST

/* ---- Both ends of a connection ---- */

START_TEST(a_connection_knows_the_addresses_of_both_ends)
{
    struct sockaddr_in here;
    struct sockaddr_storage there;
    socklen_t length = sizeof(here);
    int peer;

    plan_start(4);
    SXE *listener = listen_tcp(push_read);
    SXE *s = accept_peer(listener, &peer);
    ck_assert_int_eq(getsockname(peer, (struct sockaddr *)&here, &length), 0);
    ck_assert_uint_eq(sxe_get_peer(s, &there), sizeof(here));
    ck_assert_mem_eq(&there, &here, sizeof(here));
    ck_assert_uint_eq(sxe_get_peer(listener, &there), 0);
    ck_assert_str_eq(SXE_PEER_ADDR(s), "127.0.0.1");
    ck_assert_uint_eq(SXE_PEER_PORT(s), ntohs(here.sin_port));
    ck_assert_str_eq(SXE_LOCAL_ADDR(s), "127.0.0.1");
    ck_assert_uint_eq(SXE_LOCAL_PORT(s), sxe_local_port(listener));
    ck_assert_str_eq(sxe_peer_ip(listener), "");
    ck_assert_uint_eq(sxe_peer_port(listener), 0);
    ck_assert_ptr_null(sxe_peer_address(s, &length));
    ck_assert_uint_eq(length, 0);
    close(peer);
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

START_TEST(a_socket_that_is_not_open_has_no_address)
{
    struct sockaddr_storage address;

    plan_start(1);
    SXE *s = sxe_new_tcp(NULL, "127.0.0.1", 80, NULL, NULL, NULL);

    ck_assert_uint_eq(sxe_get_peer(s, &address), 0);
    ck_assert_str_eq(sxe_local_ip(s), "");
    ck_assert_str_eq(sxe_peer_ip(s), "");
    ck_assert_uint_eq(sxe_local_port(s), 0);
    ck_assert_uint_eq(sxe_peer_port(s), 0);
    plan_stop();
}
END_TEST

START_TEST(ipv6_connects_and_shows_its_addresses)
{
    plan_start(4);
    SXE *listener = sxe_new_tcp(NULL, "::1", 0, push_connected, push_read, push_close);
    SXE *client = sxe_new_tcp(NULL, "::1", 0, push_connected, push_read, push_close);
    int result = sxe_listen(listener);

    if (result == -EADDRNOTAVAIL || result == -EAFNOSUPPORT) {
        printf("skipped: there is no ::1 here: %s\n", strerror(-result));
        plan_stop();
        return;
    }
    ck_assert_int_eq(result, 0);
    ck_assert_str_eq(sxe_local_ip(listener), "::1");
    ck_assert_int_eq(sxe_connect(client, "::1", sxe_local_port(listener)), 0);
    pump();
    turn(5);
    ck_assert_uint_eq(event_count(), 2);
    event_reset();
    ck_assert_str_eq(sxe_peer_ip(client), "::1");
    ck_assert_uint_eq(sxe_peer_port(client), sxe_local_port(listener));
    plan_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sxe-address");
    TCase *text = tcase_create("text");
    TCase *ends = tcase_create("ends");
    int texts_number = sizeof(texts) / sizeof(texts[0]);

    tcase_add_loop_test(text, text_is_an_address_or_it_is_refused, 0, texts_number);
    tcase_add_loop_test(text, a_bad_ip_makes_no_socket, 0, texts_number);
    tcase_add_loop_test(text, a_bad_ip_is_not_connected_to, 0, texts_number);
    tcase_add_test(text, a_zone_is_the_number_of_an_interface);
    tcase_add_loop_test(text, a_path_has_1_to_107_bytes, 0, sizeof(paths) / sizeof(paths[0]));
    tcase_add_test(text, no_address_is_an_empty_text);
    tcase_add_test(text, the_longest_path_of_a_stranger_is_shown_whole);
    suite_add_tcase(suite, text);
    tcase_add_test(ends, a_connection_knows_the_addresses_of_both_ends);
    tcase_add_test(ends, a_socket_that_is_not_open_has_no_address);
    tcase_add_test(ends, ipv6_connects_and_shows_its_addresses);
    suite_add_tcase(suite, ends);
    return sxe_test_main(suite);
}
