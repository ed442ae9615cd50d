/* SPDX-License-Identifier: MIT
 *
 * Tests the PROXY protocol: each header is read at the edge of a page, and split at each place.
 */
#include "sxe-proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "page-edge.h"
#include "test-main.h"

static struct sxe_proxy proxy;

static int
parse(const char *bytes, size_t length)
{
    return sxe_proxy_parse(page_edge_bytes(bytes, length), length, &proxy);
}

/* The address as text: "192.0.2.1:80", "[2001:db8::1]:80", "/path", "@abstract", "" for none. */
static const char *
text_of(const struct sockaddr_storage *address)
{
    static char text[200];
    char ip[INET6_ADDRSTRLEN];
    const struct sockaddr_in *in4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
    const struct sockaddr_un *un = (const struct sockaddr_un *)address;

    text[0] = '\0';
    if (address->ss_family == AF_INET)
        snprintf(text, sizeof(text), "%s:%u", inet_ntop(AF_INET, &in4->sin_addr, ip, sizeof(ip)),
                 ntohs(in4->sin_port));
    else if (address->ss_family == AF_INET6)
        snprintf(text, sizeof(text), "[%s]:%u",
                 inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof(ip)), ntohs(in6->sin6_port));
    else if (address->ss_family == AF_UNIX)
        snprintf(text, sizeof(text), "%s%s", un->sun_path[0] == '\0' ? "@" : "",
                 un->sun_path + (un->sun_path[0] == '\0'));
    return text;
}

/* The header is complete with its last byte, not before; bytes that follow make no difference. */
static void
check_good(const char *bytes, size_t length, const char *source, const char *destination)
{
    char followed[SXE_PROXY_MAX + 8];

    for (size_t cut = 0; cut < length; cut++)
        ck_assert_msg(parse(bytes, cut) == 0, "not 0 for the first %zu bytes", cut);
    ck_assert_int_eq(parse(bytes, length), (int)length);
    ck_assert_str_eq(text_of(&proxy.source), source);
    ck_assert_str_eq(text_of(&proxy.destination), destination);
    memcpy(followed, bytes, length);
    memset(followed + length, '\n', 8);
    ck_assert_int_eq(parse(followed, length + 8), (int)length);
    ck_assert_str_eq(text_of(&proxy.source), source);
}

/* Check that the header is refused as soon as one of its bytes has come, whatever follows that
 * byte. Returns how many bytes had come. */
static size_t
check_refused(const char *bytes, size_t length)
{
    size_t cut = 0;
    size_t refused;

    while (cut < length && parse(bytes, cut) == 0)
        cut++;
    refused = cut;
    for (; cut <= length; cut++)
        ck_assert_msg(parse(bytes, cut) == -1, "%d for the first %zu bytes", parse(bytes, cut),
                      cut);
    return refused;
}

/* ---- Version 1 ---- */

#define LONGEST_IP "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"

static const struct {
    const char *line;
    const char *source;
    const char *destination;
} lines[] = {
    {"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n", "192.168.0.1:56324", "192.168.0.11:443"},
    {"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", "255.255.255.255:65535",
     "255.255.255.255:65535"},
    {"PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n", "0.0.0.0:0", "0.0.0.0:0"},
    {"PROXY TCP6 2001:db8::1 ::1 1 2\r\n", "[2001:db8::1]:1", "[::1]:2"},
    {"PROXY TCP6 2001:DB8:0:0:0:0:0:1 2001:0db8::0001 1 2\r\n", "[2001:db8::1]:1",
     "[2001:db8::1]:2"},
    {"PROXY TCP6 ::ffff:192.0.2.1 ::ffff:c000:202 1 2\r\n", "[::ffff:192.0.2.1]:1",
     "[::ffff:192.0.2.2]:2"},
    {"PROXY TCP6 " LONGEST_IP " " LONGEST_IP " 65535 65535\r\n", "[" LONGEST_IP "]:65535",
     "[" LONGEST_IP "]:65535"},
    {"PROXY UNKNOWN\r\n", "", ""},
    {"PROXY UNKNOWN \r\n", "", ""},
    {"PROXY UNKNOWN " LONGEST_IP " " LONGEST_IP " 65535 65535\r\n", "", ""},
    {"PROXY UNKNOWN  any\tthing \x01\xff 1.2.3.4\r\n", "", ""},
};

START_TEST(a_line_of_version_1_says_who_the_client_is)
{
    check_good(lines[_i].line, strlen(lines[_i].line), lines[_i].source, lines[_i].destination);
    ck_assert_uint_eq(proxy.version, 1);
    ck_assert_int_eq(proxy.command, SXE_PROXY_PROXY);
}
END_TEST

static const char *const bad_lines[] = {
    "GET / HTTP/1.1\r\n",
    "proxy TCP4 1.2.3.4 1.2.3.4 1 2\r\n",
    " PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n",
    "PROXY\r\n",
    "PROXY \r\n",
    "PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n",
    "PROXY\tTCP4 1.2.3.4 1.2.3.4 1 2\r\n",
    "PROXY TCP4\r\n",
    "PROXY TCP4 \r\n",
    "PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n",
    "PROXY TCP 1.2.3.4 1.2.3.4 1 2\r\n",
    "PROXY tcp4 1.2.3.4 1.2.3.4 1 2\r\n",
    "PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n",
    "PROXY UNKNOWNS\r\n",
    "PROXY UNKNOW\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n",
    "PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n",
    "PROXY TCP4 1.2.3.4  1.2.3.4 1 2\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4  1 2\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 1  2\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4\t1 2\r\n",
    "PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n",
    "PROXY TCP4 1.2.3.4.5 1.2.3.4 1 2\r\n",
    "PROXY TCP4 1.2.3.256 1.2.3.4 1 2\r\n",
    "PROXY TCP4 1.2.3.04 1.2.3.4 1 2\r\n",
    "PROXY TCP4 1.2.3.0x4 1.2.3.4 1 2\r\n",
    "PROXY TCP4 16909060 1.2.3.4 1 2\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4, 1 2\r\n",
    "PROXY TCP4 1.2.3.4 ::1 1 2\r\n",
    "PROXY TCP4 ::1 ::1 1 2\r\n",
    "PROXY TCP4 ::ffff:1.2.3.4 1.2.3.4 1 2\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 00 2\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 -1 2\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 0x1 2\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 65536 2\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 1 4294967297\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 1 2a\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 1 \r\n",
    "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
    "PROXY TCP6 ::1 1.2.3.4 1 2\r\n",
    "PROXY TCP6 ::1 1::2::3 1 2\r\n",
    "PROXY TCP6 ::1 1:2:3:4:5:6:7:8:9 1 2\r\n",
    "PROXY TCP6 ::1 1:2:3:4:5:6:7 1 2\r\n",
    "PROXY TCP6 ::1 12345:: 1 2\r\n",
    "PROXY TCP6 ::1 ::g 1 2\r\n",
    "PROXY TCP6 [::1] ::1 1 2\r\n",
    "PROXY TCP6 ::1 fe80::1%lo 1 2\r\n",
    "PROXY TCP6 ::1 ::1 1 2 more\r\n",
    "PROXY UNKNOWN\n",
    "PROXY UNKNOWN\rGET",
    "PROXY UNKNOWN\r\r\n",
    "PROXY UNKNOWN a\nb\r\n",
    "PROXY UNKNOWN a\rb\r\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n",
    "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r \n",
    "PROXY UNKNOWN " LONGEST_IP " " LONGEST_IP " 65535 65535 \r\n",
    "PROXY UNKNOWN " LONGEST_IP " " LONGEST_IP " 65535 65535  and more, without an end",
};

START_TEST(what_is_not_exactly_version_1_is_refused)
{
    check_refused(bad_lines[_i], strlen(bad_lines[_i]));
}
END_TEST

START_TEST(a_zero_byte_does_not_end_a_word)
{
    static const char inside[] = "PROXY TCP4 1.2.3.4\0 1.2.3.4 1 2\r\n";
    static const char after[] = "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\0 \r\n";

    check_refused(inside, sizeof(inside) - 1);
    check_refused(after, sizeof(after) - 1);
}
END_TEST

START_TEST(a_line_without_an_end_is_refused_at_107_bytes)
{
    char line[200];

    memset(line, 'x', sizeof(line));
    memcpy(line, "PROXY UNKNOWN ", 14);
    ck_assert_uint_eq(check_refused(line, sizeof(line)), 107);
    line[106] = '\r';
    line[107] = '\n';
    ck_assert_uint_eq(check_refused(line, sizeof(line)), 107);
    line[105] = '\r';
    line[106] = '\n';
    ck_assert_int_eq(parse(line, 107), 107);
}
END_TEST

/* ---- Version 2 ---- */

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define IPV4      "\xc0\0\2\1\xc0\0\2\2\xdc\4\1\xbb"
#define ZEROS(n)  ((const char[n]){0})

struct bytes {
    char data[SXE_PROXY_MAX + 64];
    size_t length;
};

static void
add(struct bytes *bytes, const void *data, size_t length)
{
    ck_assert_uint_le(bytes->length + length, sizeof(bytes->data));
    memcpy(bytes->data + bytes->length, data, length);
    bytes->length += length;
}
#define ADD(bytes, literal) add(bytes, literal, sizeof(literal) - 1)

/* The fixed part of a header of version 2; end() sets its length. */
static struct bytes
begin(int version_and_command, int family_and_transport)
{
    struct bytes bytes = {.length = 0};

    ADD(&bytes, SIGNATURE);
    bytes.data[12] = (char)version_and_command;
    bytes.data[13] = (char)family_and_transport;
    bytes.length = 16;
    return bytes;
}

static void
end(struct bytes *bytes)
{
    bytes->data[14] = (char)((bytes->length - 16) >> 8);
    bytes->data[15] = (char)(bytes->length - 16);
}

static void
check_good_bytes(struct bytes *bytes, const char *source, const char *destination)
{
    end(bytes);
    check_good(bytes->data, bytes->length, source, destination);
    ck_assert_uint_eq(proxy.version, 2);
    ck_assert_int_eq(proxy.command, bytes->data[12] & 15);
}

static size_t
check_refused_bytes(struct bytes *bytes)
{
    end(bytes);
    return check_refused(bytes->data, bytes->length);
}

START_TEST(version_2_says_ipv4_addresses)
{
    struct bytes bytes = begin(0x21, _i == 0 ? 0x11 : 0x12);

    ADD(&bytes, IPV4);
    check_good_bytes(&bytes, "192.0.2.1:56324", "192.0.2.2:443");
}
END_TEST

START_TEST(version_2_says_ipv6_addresses)
{
    struct bytes bytes = begin(0x21, _i == 0 ? 0x21 : 0x22);

    ADD(&bytes, "\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\1");
    ADD(&bytes, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
    ADD(&bytes, "\0\1\xff\xff");
    check_good_bytes(&bytes, "[2001:db8::1]:1", "[" LONGEST_IP "]:65535");
}
END_TEST

START_TEST(version_2_says_paths)
{
    struct bytes bytes = begin(0x21, _i == 0 ? 0x31 : 0x32);

    ADD(&bytes, "/run/client");
    add(&bytes, ZEROS(97), 97);
    ADD(&bytes, "\0server");
    add(&bytes, ZEROS(101), 101);
    check_good_bytes(&bytes, "/run/client", "@server");
}
END_TEST

START_TEST(a_path_may_fill_its_108_bytes)
{
    struct bytes bytes = begin(0x21, 0x31);
    char path[109] = "";

    memset(path, 'p', 108);
    add(&bytes, path, 108);
    memset(path, 'q', 108);
    add(&bytes, path, 108);
    end(&bytes);
    ck_assert_int_eq(parse(bytes.data, bytes.length), 232);
    ck_assert_str_eq(text_of(&proxy.destination), path);
    memset(path, 'p', 108);
    ck_assert_str_eq(text_of(&proxy.source), path);
}
END_TEST

START_TEST(local_means_the_connection_itself_whatever_it_carries)
{
    static const int families[] = {0x00, 0x11, 0x21, 0x31, 0x44, 0xff};
    struct bytes bytes = begin(0x20, families[_i]);

    check_good_bytes(&bytes, "", "");
    ADD(&bytes, "not an address and no TLV");
    check_good_bytes(&bytes, "", "");
}
END_TEST

START_TEST(an_unspecified_family_or_transport_means_the_connection_itself)
{
    static const int families[] = {0x00, 0x01, 0x02, 0x10, 0x20, 0x30};
    struct bytes bytes = begin(0x21, families[_i]);

    check_good_bytes(&bytes, "", "");
    ADD(&bytes, "\1\xff\xff");
    check_good_bytes(&bytes, "", "");
}
END_TEST

START_TEST(a_wrong_byte_of_the_signature_is_refused_at_once)
{
    struct bytes bytes = begin(0x21, 0x11);

    ADD(&bytes, IPV4);
    bytes.data[_i] ^= 0x20;
    ck_assert_uint_eq(check_refused_bytes(&bytes), (size_t)_i + 1);
}
END_TEST

static const struct {
    int version_and_command;
    int family_and_transport;
    size_t refused; /* after how many bytes the header is refused */
} bad_fixed[] = {
    {0x01, 0x11, 13}, {0x11, 0x11, 13}, {0x31, 0x11, 13}, {0x22, 0x11, 13}, {0x2f, 0x11, 13},
    {0x21, 0x41, 14}, {0x21, 0xf1, 14}, {0x21, 0x13, 14}, {0x21, 0x1f, 14}, {0x21, 0x03, 14},
};

START_TEST(an_unknown_version_command_family_or_transport_is_refused_at_once)
{
    struct bytes bytes =
        begin(bad_fixed[_i].version_and_command, bad_fixed[_i].family_and_transport);

    add(&bytes, ZEROS(216), 216);
    ck_assert_uint_eq(check_refused_bytes(&bytes), bad_fixed[_i].refused);
}
END_TEST

START_TEST(a_length_that_is_less_than_the_addresses_is_refused_at_once)
{
    static const size_t sizes[] = {12, 36, 216};

    for (size_t size = 0; size < sizes[_i]; size++) {
        struct bytes bytes = begin(0x21, (_i + 1) << 4 | 1);

        add(&bytes, ZEROS(216), size);
        ck_assert_uint_eq(check_refused_bytes(&bytes), 16);
    }
}
END_TEST

START_TEST(a_header_has_4096_bytes_at_most)
{
    struct bytes bytes = begin(0x20, 0);

    add(&bytes, ZEROS(4080), 4080);
    check_good_bytes(&bytes, "", "");
    ADD(&bytes, "x");
    ck_assert_uint_eq(check_refused_bytes(&bytes), 16);
}
END_TEST

/* ---- TLVs ---- */

START_TEST(tlvs_are_skipped)
{
    struct bytes bytes = begin(0x21, 0x11);

    ADD(&bytes, IPV4);
    ADD(&bytes, "\4\0\0");
    check_good_bytes(&bytes, "192.0.2.1:56324", "192.0.2.2:443");
    ADD(&bytes, "\1\0\2h2\2\0\7a.b.com\xe0\1\0");
    add(&bytes, ZEROS(256), 256);
    check_good_bytes(&bytes, "192.0.2.1:56324", "192.0.2.2:443");
}
END_TEST

static const struct {
    const char *data;
    size_t length;
} bad_tlvs[] = {
    {"\4", 1},         {"\4\0", 2},         {"\4\0\1", 3},           {"\4\0\2x", 4},
    {"\4\1\0x", 4},    {"\4\0\0\4", 4},     {"\4\0\0\4\0\1", 6},     {"\4\xff\xff", 3},
    {"\3\0\0", 3},     {"\3\0\3\0\0\0", 6}, {"\3\0\5\0\0\0\0\0", 8}, {"\3\0\4\0\0\0\0", 7},
    {"\4\0\0\xff", 4}, {"\3\0\4\0\0\0", 6}, {"\3\0\4", 3},
};

START_TEST(tlvs_that_do_not_fill_the_length_are_refused)
{
    struct bytes bytes = begin(0x21, 0x11);

    ADD(&bytes, IPV4);
    add(&bytes, bad_tlvs[_i].data, bad_tlvs[_i].length);
    ck_assert_uint_eq(check_refused_bytes(&bytes), bytes.length);
}
END_TEST

/* CRC-32c as RFC 9260 defines it, one bit at a time. */
static uint32_t
checksum(const char *data, size_t length)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < length; i++) {
        crc ^= (uint8_t)data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

START_TEST(a_checksum_is_verified)
{
    struct bytes bytes = begin(0x21, 0x11);
    uint32_t crc;
    size_t at;

    ck_assert_uint_eq(checksum("123456789", 9), 0xe3069283);
    ADD(&bytes, IPV4 "\2\0\3a.b\3\0\4");
    at = bytes.length;
    ADD(&bytes, "\0\0\0\0\4\0\1x");
    end(&bytes);
    crc = htonl(checksum(bytes.data, bytes.length));
    memcpy(bytes.data + at, &crc, sizeof(crc));
    check_good_bytes(&bytes, "192.0.2.1:56324", "192.0.2.2:443");
    for (size_t i = 16; i < bytes.length; i++) {
        bytes.data[i] ^= 1;
        /* If the TLV's type changes, the TLV is no checksum, and the header is accepted. */
        ck_assert_int_eq(parse(bytes.data, bytes.length), i == at - 3 ? (int)bytes.length : -1);
        bytes.data[i] ^= 1;
    }
    ck_assert_int_gt(parse(bytes.data, bytes.length), 0);
}
END_TEST

START_TEST(a_second_checksum_is_refused)
{
    struct bytes bytes = begin(0x21, 0x11);
    uint32_t crc;

    ADD(&bytes, IPV4 "\3\0\4\0\0\0\0\3\0\4\0\0\0\0");
    end(&bytes);
    crc = htonl(checksum(bytes.data, bytes.length));
    memcpy(bytes.data + bytes.length - 4, &crc, sizeof(crc));
    check_refused_bytes(&bytes);
}
END_TEST

/* ---- Writing ---- */

static struct sockaddr_storage
ipv4(const char *ip, uint16_t port)
{
    struct sockaddr_storage address = {.ss_family = AF_INET};

    ((struct sockaddr_in *)&address)->sin_port = htons(port);
    inet_pton(AF_INET, ip, &((struct sockaddr_in *)&address)->sin_addr);
    return address;
}

static struct sockaddr_storage
ipv6(const char *ip, uint16_t port)
{
    struct sockaddr_storage address = {.ss_family = AF_INET6};

    ((struct sockaddr_in6 *)&address)->sin6_port = htons(port);
    inet_pton(AF_INET6, ip, &((struct sockaddr_in6 *)&address)->sin6_addr);
    return address;
}

static struct sockaddr_storage
path(const char *name)
{
    struct sockaddr_storage address = {.ss_family = AF_UNIX};

    memcpy(((struct sockaddr_un *)&address)->sun_path, name, strlen(name));
    return address;
}

static ssize_t
write_to(const struct sxe_proxy *what, struct bytes *bytes)
{
    ssize_t length = sxe_proxy_write(what, bytes->data, SXE_PROXY_WRITE_MAX);

    bytes->length = length < 0 ? 0 : (size_t)length;
    return length;
}

/* A written header is read as the same value; a buffer that is one byte too small is refused. */
static void
check_round_trip(const struct sxe_proxy *what)
{
    struct bytes bytes;
    char source[200];

    ck_assert_int_gt(write_to(what, &bytes), 0);
    snprintf(source, sizeof(source), "%s", text_of(&what->source));
    check_good(bytes.data, bytes.length, source, text_of(&what->destination));
    ck_assert_mem_eq(&proxy.source, &what->source, sizeof(proxy.source));
    ck_assert_mem_eq(&proxy.destination, &what->destination, sizeof(proxy.destination));
    ck_assert_uint_eq(proxy.version, what->version);
    ck_assert_int_eq(proxy.command, what->command);
    ck_assert_int_eq(sxe_proxy_write(what, bytes.data, bytes.length), (int)bytes.length);
    ck_assert_int_eq(sxe_proxy_write(what, bytes.data, bytes.length - 1), -ENOSPC);
    ck_assert_int_eq(sxe_proxy_write(what, bytes.data, 0), -ENOSPC);
}

START_TEST(ip_addresses_are_read_as_they_were_written)
{
    const struct sxe_proxy what[] = {
        {1, SXE_PROXY_PROXY, ipv4("192.0.2.1", 56324), ipv4("192.0.2.2", 443)},
        {1, SXE_PROXY_PROXY, ipv4("255.255.255.255", 65535), ipv4("0.0.0.0", 0)},
        {1, SXE_PROXY_PROXY, ipv6("2001:db8::1", 56324), ipv6("::", 443)},
        {1, SXE_PROXY_PROXY, ipv6(LONGEST_IP, 65535), ipv6(LONGEST_IP, 65535)},
        {1, SXE_PROXY_PROXY, ipv6("::ffff:192.0.2.1", 1), ipv6("::192.0.2.1", 2)},
        {2, SXE_PROXY_PROXY, ipv4("192.0.2.1", 56324), ipv4("192.0.2.2", 443)},
        {2, SXE_PROXY_PROXY, ipv6("2001:db8::1", 56324), ipv6("::ffff:1.2.3.4", 443)},
    };

    for (unsigned i = 0; i < sizeof(what) / sizeof(what[0]); i++)
        check_round_trip(&what[i]);
}
END_TEST

START_TEST(paths_are_read_as_they_were_written)
{
    struct sxe_proxy what = {2, SXE_PROXY_PROXY, path("/run/a"), path("/run/b")};

    check_round_trip(&what);
    what.source = path("");
    check_round_trip(&what);
}
END_TEST

START_TEST(no_addresses_are_read_as_they_were_written)
{
    struct sxe_proxy what = {.version = 2, .command = SXE_PROXY_LOCAL};

    check_round_trip(&what);
    what.command = SXE_PROXY_PROXY;
    check_round_trip(&what);
    what.version = 1;
    check_round_trip(&what);
}
END_TEST

START_TEST(version_1_says_unknown_of_what_it_cannot_say)
{
    const struct sxe_proxy what[] = {
        {.version = 1, .command = SXE_PROXY_LOCAL},
        {1, SXE_PROXY_LOCAL, ipv4("192.0.2.1", 1), ipv4("192.0.2.2", 2)},
        {1, SXE_PROXY_PROXY, path("/run/a"), path("/run/b")},
    };
    struct bytes bytes;

    ck_assert_int_eq(write_to(&what[_i], &bytes), 15);
    ck_assert_mem_eq(bytes.data, "PROXY UNKNOWN\r\n", 15);
}
END_TEST

START_TEST(ipv6_is_written_without_dots)
{
    const struct sxe_proxy what = {1, SXE_PROXY_PROXY, ipv6("::ffff:192.0.2.1", 1), ipv6("::1", 2)};
    static const char line[] = "PROXY TCP6 0:0:0:0:0:ffff:c000:201 0:0:0:0:0:0:0:1 1 2\r\n";
    struct bytes bytes;

    ck_assert_int_eq(write_to(&what, &bytes), sizeof(line) - 1);
    ck_assert_mem_eq(bytes.data, line, sizeof(line) - 1);
}
END_TEST

START_TEST(what_is_no_header_is_not_written)
{
    const struct sxe_proxy what[] = {
        {0, SXE_PROXY_PROXY, ipv4("192.0.2.1", 1), ipv4("192.0.2.2", 2)},
        {3, SXE_PROXY_PROXY, ipv4("192.0.2.1", 1), ipv4("192.0.2.2", 2)},
        {2, SXE_PROXY_PROXY, ipv4("192.0.2.1", 1), ipv6("::1", 2)},
        {1, SXE_PROXY_PROXY, ipv4("192.0.2.1", 1), {.ss_family = AF_UNSPEC}},
        {2, SXE_PROXY_PROXY, {.ss_family = AF_NETLINK}, {.ss_family = AF_NETLINK}},
    };
    char none = 'x';

    ck_assert_int_eq(sxe_proxy_write(&what[_i], &none, 1), -EINVAL);
    ck_assert_int_eq(none, 'x');
}
END_TEST

#define COUNT(table) (sizeof(table) / sizeof(table[0]))

int
main(void)
{
    Suite *suite = suite_create("sxe-proxy");
    TCase *one = tcase_create("version 1");
    TCase *two = tcase_create("version 2");
    TCase *writing = tcase_create("writing");

    tcase_add_loop_test(one, a_line_of_version_1_says_who_the_client_is, 0, COUNT(lines));
    tcase_add_loop_test(one, what_is_not_exactly_version_1_is_refused, 0, COUNT(bad_lines));
    tcase_add_test(one, a_zero_byte_does_not_end_a_word);
    tcase_add_test(one, a_line_without_an_end_is_refused_at_107_bytes);
    suite_add_tcase(suite, one);
    tcase_add_loop_test(two, version_2_says_ipv4_addresses, 0, 2);
    tcase_add_loop_test(two, version_2_says_ipv6_addresses, 0, 2);
    tcase_add_loop_test(two, version_2_says_paths, 0, 2);
    tcase_add_test(two, a_path_may_fill_its_108_bytes);
    tcase_add_loop_test(two, local_means_the_connection_itself_whatever_it_carries, 0, 6);
    tcase_add_loop_test(two, an_unspecified_family_or_transport_means_the_connection_itself, 0, 6);
    tcase_add_loop_test(two, a_wrong_byte_of_the_signature_is_refused_at_once, 0, 12);
    tcase_add_loop_test(two, an_unknown_version_command_family_or_transport_is_refused_at_once, 0,
                        COUNT(bad_fixed));
    tcase_add_loop_test(two, a_length_that_is_less_than_the_addresses_is_refused_at_once, 0, 3);
    tcase_add_test(two, a_header_has_4096_bytes_at_most);
    tcase_add_test(two, tlvs_are_skipped);
    tcase_add_loop_test(two, tlvs_that_do_not_fill_the_length_are_refused, 0, COUNT(bad_tlvs));
    tcase_add_test(two, a_checksum_is_verified);
    tcase_add_test(two, a_second_checksum_is_refused);
    suite_add_tcase(suite, two);
    tcase_add_test(writing, ip_addresses_are_read_as_they_were_written);
    tcase_add_test(writing, paths_are_read_as_they_were_written);
    tcase_add_test(writing, no_addresses_are_read_as_they_were_written);
    tcase_add_loop_test(writing, version_1_says_unknown_of_what_it_cannot_say, 0, 3);
    tcase_add_test(writing, ipv6_is_written_without_dots);
    tcase_add_loop_test(writing, what_is_no_header_is_not_written, 0, 5);
    suite_add_tcase(suite, writing);
    return sxe_test_main(suite);
}
