/* SPDX-License-Identifier: MIT
 *
 * Range, If-Range, Content-Range: tables by section of RFC 9110.
 */
#include <errno.h>
#include <inttypes.h>

#include "conditional-request.h"

/* The expected reply as text: "200", "416", or "206" with first+length of each range. */
static void
say_ranges(char said[ROOM], int number, const struct sxe_http_range *ranges)
{
    size_t length;

    ck_assert_int_le(number, RANGES);
    ck_assert(number >= 0 || number == -ERANGE);
    length = (size_t)snprintf(said, ROOM, "%s", number < 0 ? "416" : number == 0 ? "200" : "206");
    for (int i = 0; i < number; i++)
        length += (size_t)snprintf(said + length, ROOM - length, " %" PRIu64 "+%" PRIu64,
                                   ranges[i].first, ranges[i].length);
}

#define HUGE_DIGITS "99999999999999999999999999999999999999"

static const struct {
    const char *title;
    const char *range;
    uint64_t length;
    const char *wanted;
} ranges[] = {
    {"14.1.2 the first bytes", "bytes=0-499", 1000, "206 0+500"},
    {"14.1.2 some in the middle", "bytes=500-599", 1000, "206 500+100"},
    {"14.1.2 one byte", "bytes=7-7", 1000, "206 7+1"},
    {"14.1.2 the last byte", "bytes=999-999", 1000, "206 999+1"},
    {"14.1.2 to the end", "bytes=900-", 1000, "206 900+100"},
    {"14.1.2 all", "bytes=0-", 1000, "206 0+1000"},
    {"14.1.2 after the end it is cut", "bytes=900-5000", 1000, "206 900+100"},
    {"14.1.2 the end itself is cut", "bytes=0-1000", 1000, "206 0+1000"},
    {"14.1.2 a suffix", "bytes=-300", 1000, "206 700+300"},
    {"14.1.2 a suffix of one", "bytes=-1", 1000, "206 999+1"},
    {"14.1.2 a suffix as long as all", "bytes=-1000", 1000, "206 0+1000"},
    {"14.1.2 a longer suffix is all", "bytes=-1001", 1000, "206 0+1000"},
    {"14.1.2 leading zeros", "bytes=000-0099", 1000, "206 0+100"},
    {"14.1.2 no suffix", "bytes=-0", 1000, "416"},
    {"14.1.2 begins at the end", "bytes=1000-", 1000, "416"},
    {"14.1.2 begins after the end", "bytes=2000-3000", 1000, "416"},
    {"14.1.2 the last bytes of nothing are all", "bytes=-5", 0, "200"},
    {"14.1.2 no suffix of nothing", "bytes=-0", 0, "416"},
    {"14.1.2 nothing has no first byte", "bytes=0-", 0, "416"},
    {"14.1.2 one byte is there", "bytes=0-5", 1, "206 0+1"},

    {"14.1 the unit has no case", "BYTES=0-1", 1000, "206 0+2"},
    {"14.2 another unit", "items=0-1", 1000, "200"},
    {"14.2 a unit that begins alike", "bytes2=0-1", 1000, "200"},
    {"14.2 no unit", "0-1", 1000, "200"},
    {"14.2 no ranges", "bytes", 1000, "200"},
    {"14.2 an empty set", "bytes=", 1000, "416"},
    {"14.2 an empty set with commas", "bytes=, ,", 1000, "416"},
    {"14.2 an empty field", "", 1000, "200"},
    {"14.1.1 a blank before =", "bytes =0-1", 1000, "200"},
    {"14.1.1 a dash alone", "bytes=-", 1000, "416"},
    {"14.1.1 no dash", "bytes=5", 1000, "416"},
    {"14.1.1 two dashes", "bytes=0--1", 1000, "416"},
    {"14.1.1 two dashes before", "bytes=--1", 1000, "416"},
    {"14.1.1 three numbers", "bytes=0-1-2", 1000, "416"},
    {"14.1.1 a suffix with an end", "bytes=-1-2", 1000, "416"},
    {"14.1.1 last before first", "bytes=5-4", 1000, "416"},
    {"14.1.1 last before first, after the end", "bytes=5000-4000", 1000, "416"},
    {"14.1.1 a blank inside", "bytes=0 -1", 1000, "416"},
    {"14.1.1 a sign", "bytes=+0-1", 1000, "416"},
    {"14.1.1 hexadecimal", "bytes=0x0-0x1", 1000, "416"},
    {"14.1.1 letters", "bytes=a-b", 1000, "416"},
    {"14.1.1 quotes", "bytes=\"0-1\"", 1000, "416"},
    {"14.1.1 another range-spec", "bytes=0-1,first", 1000, "416"},
    {"14.1.1 one bad, one unsatisfiable", "bytes=5000-, 5-4", 1000, "416"},

    {"14.1.2 two", "bytes=0-9,20-29", 1000, "206 0+10 20+10"},
    {"14.1.2 blanks and empty elements", "bytes= 0-9 ,,\t20-29 ,", 1000, "206 0+10 20+10"},
    {"14.1.2 first and last byte", "bytes=0-0,-1", 1000, "206 0+1 999+1"},
    {"15.3.7.2 the order is the request's", "bytes=500-599,0-99", 1000, "206 500+100 0+100"},
    {"15.3.7.2 what is after the end is left out", "bytes=0-9,5000-,-0", 1000, "206 0+10"},
    {"14.1.2 all are after the end", "bytes=1000-,5000-6000,-0", 1000, "416"},
    {"15.3.7.2 the same twice", "bytes=0-9,0-9", 1000, "206 0+10"},
    {"15.3.7.2 overlapping", "bytes=0-9,5-14", 1000, "206 0+15"},
    {"15.3.7.2 overlapping, downwards", "bytes=5-14,0-9", 1000, "206 0+15"},
    {"15.3.7.2 adjacent", "bytes=0-4,5-9", 1000, "206 0+10"},
    {"15.3.7.2 adjacent, downwards", "bytes=5-9,0-4", 1000, "206 0+10"},
    {"15.3.7.2 one byte between", "bytes=0-4,6-9", 1000, "206 0+5 6+4"},
    {"15.3.7.2 one inside another", "bytes=10-19,0-989", 1000, "206 0+990"},
    {"15.3.7.2 one that joins two", "bytes=0-9,50-59,20-29,5-25", 1000, "206 0+30 50+10"},
    {"15.3.7.2 one that joins the last two", "bytes=0-9,50-59,20-29,25-52", 1000, "206 0+10 20+40"},
    {"15.3.7.2 one that joins all", "bytes=0-9,20-29,40-49,0-969", 1000, "206 0+970"},
    {"17.15 16 ranges",
     "bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14,16-16,18-18,20-20,22-22,24-24,26-26,28-28,30-30",
     1000, "206 0+1 2+1 4+1 6+1 8+1 10+1 12+1 14+1 16+1 18+1 20+1 22+1 24+1 26+1 28+1 30+1"},
    {"17.15 17 ranges are ignored",
     "bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14,16-16,18-18,20-20,22-22,24-24,26-26,28-28,30-30,"
     "32-32",
     1000, "200"},
    {"17.15 the same bytes again and again (CVE-2011-3192)",
     "bytes=0-,5-0,5-1,5-2,5-3,5-4,5-5,5-6,5-7,5-8,5-9,5-10", 1000, "416"},
    {"17.15 overlapping many times", "bytes=0-,5-5,5-6,5-7,5-8,5-9,5-10,5-11", 1000, "200"},
    {"17.15 as many bytes as there are", "bytes=0-499,500-999", 1000, "206 0+1000"},
    {"17.15 one byte more is all", "bytes=0-499,499-999", 1000, "200"},
    {"17.15 what is not there is not counted", "bytes=1000-,0-499,2000-,500-", 1000, "206 0+1000"},

    {"14.1.2 a number of more than 64 bits is after the end", "bytes=" HUGE_DIGITS "-", 1000,
     "416"},
    {"14.1.2 a last one of them is cut", "bytes=1-" HUGE_DIGITS, 1000, "206 1+999"},
    {"14.1.2 a suffix of them is all", "bytes=-" HUGE_DIGITS, 1000, "206 0+1000"},
    {"14.1.2 64 bits, one less", "bytes=18446744073709551614-18446744073709551615", UINT64_MAX,
     "206 18446744073709551614+1"},
    {"14.1.2 64 bits", "bytes=18446744073709551615-", UINT64_MAX, "416"},
    {"14.1.2 64 bits, all", "bytes=0-18446744073709551615", UINT64_MAX,
     "206 0+18446744073709551615"},
    {"14.1.2 sums do not overflow (CVE-2017-7529)",
     "bytes=-9223372036854775608,-9223372036854775608", 1000, "200"},
    {"14.1.2 nor at the greatest length", "bytes=0-1,-18446744073709551600,5-", UINT64_MAX, "200"},
    {"14.1.2 all but a byte at the greatest length", "bytes=0-1,3-", UINT64_MAX,
     "206 0+2 3+18446744073709551612"},
};

START_TEST(rfc_9110_14_ranges)
{
    struct sxe_http_representation selected = representation(STRONG);
    struct sxe_http_conditions asked = {.method = SXE_HTTP_GET};
    struct sxe_http_range found[RANGES];
    char said[ROOM];

    asked.range = page_edge(ranges[_i].range);
    selected.length = ranges[_i].length;
    say_ranges(said, sxe_http_select_ranges(&asked, &selected, found, RANGES), found);
    ck_assert_msg(strcmp(said, ranges[_i].wanted) == 0, "%s: %s", ranges[_i].title, said);
}
END_TEST

START_TEST(there_are_no_more_ranges_than_the_caller_has_room_for)
{
    struct sxe_http_representation selected = representation(STRONG);
    struct sxe_http_conditions asked = conditions_of("GET", "Range: bytes=0-1,5-6\r\n");
    struct sxe_http_range found[2];

    ck_assert_int_eq(sxe_http_select_ranges(&asked, &selected, found, 2), 2);
    ck_assert_int_eq(sxe_http_select_ranges(&asked, &selected, found, 1), 0);
    ck_assert_int_eq(sxe_http_select_ranges(&asked, &selected, NULL, 0), 0);
}
END_TEST

START_TEST(ranges_that_are_not_there_need_no_room)
{
    struct sxe_http_representation selected = representation(STRONG);
    struct sxe_http_conditions asked =
        conditions_of("GET", "Range: bytes=9000-,0-1,9000-,5-6,9000-\r\n");
    struct sxe_http_range found[2];

    ck_assert_int_eq(sxe_http_select_ranges(&asked, &selected, found, 2), 2);
    asked = conditions_of("GET", "Range: bytes=9000-,0-1,5-6,9-9,9000-\r\n");
    ck_assert_int_eq(sxe_http_select_ranges(&asked, &selected, found, 2), 0);
    asked = conditions_of("GET", "Range: bytes=9000-,-0\r\n");
    ck_assert_int_eq(sxe_http_select_ranges(&asked, &selected, found, 1), -ERANGE);
}
END_TEST

static const struct {
    const char *title;
    const char *method;
    const char *lines;
    int kind;
    bool is_part;
} if_ranges[] = {
    {"14.2 GET", "GET", "", STRONG, true},
    {"14.2 Range of HEAD is ignored", "HEAD", "", STRONG, false},
    {"14.2 Range of POST is ignored", "POST", "", STRONG, false},
    {"14.2 Range of a method of others is ignored", "LOCK", "", STRONG, false},
    {"14.2 two Ranges are ignored", "GET", "Range: bytes=0-1\r\n", STRONG, false},
    {"13.1.5 the tag", "GET", "If-Range: \"x\"\r\n", STRONG, true},
    {"13.1.5 another tag", "GET", "If-Range: \"y\"\r\n", STRONG, false},
    {"13.1.5 theirs is weak", "GET", "If-Range: W/\"x\"\r\n", STRONG, false},
    {"13.1.5 ours is weak", "GET", "If-Range: \"x\"\r\n", WEAK, false},
    {"13.1.5 both are weak", "GET", "If-Range: W/\"x\"\r\n", WEAK, false},
    {"13.1.5 we have no tag", "GET", "If-Range: \"x\"\r\n", NO_ETAG, false},
    {"13.1.5 a list", "GET", "If-Range: \"x\", \"y\"\r\n", STRONG, false},
    {"13.1.5 *", "GET", "If-Range: *\r\n", STRONG, false},
    {"13.1.5 empty", "GET", "If-Range:\r\n", STRONG, false},
    {"13.1.5 twice", "GET", "If-Range: \"x\"\r\nIf-Range: \"x\"\r\n", STRONG, false},
    {"13.1.5 the date", "GET", "If-Range: " SAME "\r\n", STRONG, true},
    {"13.1.5 the date in another form", "GET", "If-Range: Sun Nov  6 08:49:37 1994\r\n", STRONG,
     true},
    {"13.1.5 an earlier date", "GET", "If-Range: " EARLIER "\r\n", STRONG, false},
    {"13.1.5 a later date", "GET", "If-Range: " LATER "\r\n", STRONG, false},
    {"13.1.5 no date", "GET", "If-Range: today\r\n", STRONG, false},
    {"13.1.5 we have no date", "GET", "If-Range: " SAME "\r\n", NO_DATE, false},
};

START_TEST(rfc_9110_13_1_5_if_range)
{
    struct sxe_http_representation selected = representation(if_ranges[_i].kind);
    struct sxe_http_range found[RANGES];
    struct sxe_http_conditions asked;
    char lines[ROOM];

    snprintf(lines, sizeof(lines), "Range: bytes=0-1\r\n%s", if_ranges[_i].lines);
    asked = conditions_of(if_ranges[_i].method, lines);
    ck_assert_msg(sxe_http_select_ranges(&asked, &selected, found, RANGES) == if_ranges[_i].is_part,
                  "%s", if_ranges[_i].title);
}
END_TEST

START_TEST(rfc_9110_8_8_2_2_a_date_that_is_no_strong_validator_is_not_enough_for_if_range)
{
    struct sxe_http_representation selected = representation(STRONG);
    struct sxe_http_conditions asked =
        conditions_of("GET", "Range: bytes=0-1\r\nIf-Range: " SAME "\r\n");
    struct sxe_http_range found[RANGES];

    selected.modified_is_weak = true;
    ck_assert_int_eq(sxe_http_select_ranges(&asked, &selected, found, RANGES), 0);
}
END_TEST

START_TEST(rfc_9110_13_1_5_if_range_without_range_is_ignored)
{
    struct sxe_http_representation selected = representation(STRONG);
    struct sxe_http_conditions asked = conditions_of("GET", "If-Range: \"y\"\r\n");
    struct sxe_http_range found[RANGES];

    ck_assert_int_eq(sxe_http_select_ranges(&asked, &selected, found, RANGES), 0);
}
END_TEST

static const struct {
    struct sxe_http_range range; /* length 0: no range */
    uint64_t length;
    const char *text;
} content_ranges[] = {
    {{0, 500}, 1234, "bytes 0-499/1234"},
    {{734, 500}, 1234, "bytes 734-1233/1234"},
    {{7, 1}, 8, "bytes 7-7/8"},
    {{0, 0}, 1234, "bytes */1234"},
    {{0, 0}, 0, "bytes */0"},
    {{UINT64_MAX - 1, 1},
     UINT64_MAX,
     "bytes 18446744073709551614-18446744073709551614/18446744073709551615"},
};

START_TEST(rfc_9110_14_4_content_range)
{
    const struct sxe_http_range *range = &content_ranges[_i].range;
    char *room = page_edge_bytes("", 0) - SXE_HTTP_CONTENT_RANGE_MAX;
    size_t length =
        sxe_http_content_range(range->length > 0 ? range : NULL, content_ranges[_i].length, room);

    ck_assert_str_eq(room, content_ranges[_i].text);
    ck_assert_uint_eq(length, strlen(room));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-range");
    TCase *tcase = tcase_create("range");

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, rfc_9110_14_ranges, 0, COUNT(ranges));
    tcase_add_test(tcase, there_are_no_more_ranges_than_the_caller_has_room_for);
    tcase_add_test(tcase, ranges_that_are_not_there_need_no_room);
    tcase_add_loop_test(tcase, rfc_9110_13_1_5_if_range, 0, COUNT(if_ranges));
    tcase_add_test(tcase,
                   rfc_9110_8_8_2_2_a_date_that_is_no_strong_validator_is_not_enough_for_if_range);
    tcase_add_test(tcase, rfc_9110_13_1_5_if_range_without_range_is_ignored);
    tcase_add_loop_test(tcase, rfc_9110_14_4_content_range, 0, COUNT(content_ranges));
    return sxe_test_main(suite);
}
