/* SPDX-License-Identifier: MIT
 *
 * Dates: tables by section of RFC 9110, and comparisons with the calendar of the C library.
 */
#include "sxe-http-date.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fake-time.h"
#include "page-edge.h"
#include "sxe-time.h"
#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

/* The example of RFC 9110: Sun, 06 Nov 1994 08:49:37 GMT. */
#define EXAMPLE  INT64_C(784111777)
#define IN_2026  INT64_C(1767225600)     /* Thu, 01 Jan 2026 00:00:00 GMT */
#define EARLIEST (-INT64_C(62167219200)) /* Sat, 01 Jan 0000 00:00:00 GMT */
#define LATEST   INT64_C(253402300799)   /* Fri, 31 Dec 9999 23:59:59 GMT */
#define NONE     INT64_MIN

/* ---- Writing ---- */

static const struct {
    int64_t seconds;
    const char *text;
} written[] = {
    {EXAMPLE, "Sun, 06 Nov 1994 08:49:37 GMT"},
    {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
    {-1, "Wed, 31 Dec 1969 23:59:59 GMT"},
    {951782400, "Tue, 29 Feb 2000 00:00:00 GMT"},
    {951868800, "Wed, 01 Mar 2000 00:00:00 GMT"},
    {4107542400, "Mon, 01 Mar 2100 00:00:00 GMT"},
    {4107542399, "Sun, 28 Feb 2100 23:59:59 GMT"},
    {INT64_C(1) << 31, "Tue, 19 Jan 2038 03:14:08 GMT"},
    {EARLIEST, "Sat, 01 Jan 0000 00:00:00 GMT"},
    {EARLIEST - 1, "Sat, 01 Jan 0000 00:00:00 GMT"},
    {INT64_MIN, "Sat, 01 Jan 0000 00:00:00 GMT"},
    {LATEST, "Fri, 31 Dec 9999 23:59:59 GMT"},
    {LATEST + 1, "Fri, 31 Dec 9999 23:59:59 GMT"},
    {INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT"},
};

START_TEST(rfc_9110_5_6_7_a_time_is_written_as_imf_fixdate)
{
    char *text = page_edge_bytes("#############################", SXE_HTTP_DATE_LENGTH);

    sxe_http_date_format(written[_i].seconds, text);
    ck_assert_mem_eq(text, written[_i].text, SXE_HTTP_DATE_LENGTH);
}
END_TEST

/* ---- Reading ---- */

static const struct {
    const char *title;
    const char *text;
    int64_t seconds; /* NONE: the text is refused */
} dates[] = {
    {"IMF-fixdate", "Sun, 06 Nov 1994 08:49:37 GMT", EXAMPLE},
    {"asctime", "Sun Nov  6 08:49:37 1994", EXAMPLE},
    {"asctime, a day of two digits", "Sun Nov 06 08:49:37 1994", EXAMPLE},
    {"asctime, a late day", "Wed Nov 16 08:49:37 1994", EXAMPLE + 10 * 86400},
    {"RFC 850", "Sunday, 06-Nov-94 08:49:37 GMT", EXAMPLE},
    {"RFC 850, the shortest day", "Friday, 01-Jan-70 00:00:00 GMT", INT64_C(3155760000)},
    {"RFC 850, the longest day", "Wednesday, 01-Jan-25 00:00:00 GMT", IN_2026 - 365 * 86400},
    {"RFC 850, every day", "Monday, 06-Nov-94 08:49:37 GMT", EXAMPLE},
    {"RFC 850, every day", "Tuesday, 06-Nov-94 08:49:37 GMT", EXAMPLE},
    {"RFC 850, every day", "Thursday, 06-Nov-94 08:49:37 GMT", EXAMPLE},
    {"RFC 850, every day", "Saturday, 06-Nov-94 08:49:37 GMT", EXAMPLE},
    {"another weekday makes no difference", "Mon, 06 Nov 1994 08:49:37 GMT", EXAMPLE},
    {"the year 0", "Sat, 01 Jan 0000 00:00:00 GMT", EARLIEST},
    {"the year 9999", "Fri, 31 Dec 9999 23:59:59 GMT", LATEST},
    {"a leap day", "Tue, 29 Feb 2000 00:00:00 GMT", 951782400},
    {"a leap second", "Sat, 31 Dec 2016 23:59:60 GMT", 1483228800},
    {"a leap second elsewhere", "Sat, 31 Dec 2016 22:59:60 GMT", NONE},
    {"a leap second at another minute", "Sat, 31 Dec 2016 23:58:60 GMT", NONE},
    {"no leap day in 1900", "Thu, 29 Feb 1900 00:00:00 GMT", NONE},
    {"no leap day in 2023", "Wed, 29 Feb 2023 00:00:00 GMT", NONE},
    {"no 31st of April", "Mon, 31 Apr 2023 00:00:00 GMT", NONE},
    {"no 32nd of December", "Mon, 32 Dec 2023 00:00:00 GMT", NONE},
    {"no day 0", "Mon, 00 Jan 2023 00:00:00 GMT", NONE},
    {"no hour 24", "Sun, 06 Nov 1994 24:00:00 GMT", NONE},
    {"no minute 60", "Sun, 06 Nov 1994 08:60:37 GMT", NONE},
    {"no second 61", "Sun, 06 Nov 1994 23:59:61 GMT", NONE},
    {"nothing", "", NONE},
    {"three bytes", "Sun", NONE},
    {"a weekday alone", "Sun,", NONE},
    {"no weekday", "Son, 06 Nov 1994 08:49:37 GMT", NONE},
    {"a small weekday", "sun, 06 Nov 1994 08:49:37 GMT", NONE},
    {"a small month", "Sun, 06 nov 1994 08:49:37 GMT", NONE},
    {"no month", "Sun, 06 Nof 1994 08:49:37 GMT", NONE},
    {"a month across two names", "Sun, 06 anF 1994 08:49:37 GMT", NONE},
    {"another zone", "Sun, 06 Nov 1994 08:49:37 UTC", NONE},
    {"a zone in small letters", "Sun, 06 Nov 1994 08:49:37 gmt", NONE},
    {"an offset", "Sun, 06 Nov 1994 08:49:37 +0000", NONE},
    {"no zone", "Sun, 06 Nov 1994 08:49:37", NONE},
    {"something after", "Sun, 06 Nov 1994 08:49:37 GMT;", NONE},
    {"a blank after", "Sun, 06 Nov 1994 08:49:37 GMT ", NONE},
    {"a blank before", " Sun, 06 Nov 1994 08:49:37 GMT", NONE},
    {"two blanks", "Sun,  06 Nov 1994 08:49:37 GMT", NONE},
    {"a day of one digit", "Sun, 6 Nov 1994 08:49:37 GMT", NONE},
    {"a day with a sign", "Sun, +6 Nov 1994 08:49:37 GMT", NONE},
    {"a year of two digits", "Sun, 06 Nov 94 08:49:37 GMT", NONE},
    {"an hour of one digit", "Sun, 06 Nov 1994 8:49:37 GMT", NONE},
    {"a digit that is none", "Sun, 06 Nov 199: 08:49:37 GMT", NONE},
    {"no seconds", "Sun, 06 Nov 1994 08:49 GMT", NONE},
    {"dots in the time", "Sun, 06 Nov 1994 08.49.37 GMT", NONE},
    {"dashes of RFC 850", "Sun, 06-Nov-1994 08:49:37 GMT", NONE},
    {"RFC 850, a short weekday", "Sun, 06-Nov-94 08:49:37 GMT", NONE},
    {"RFC 850, a long year", "Sunday, 06-Nov-1994 08:49:37 GMT", NONE},
    {"RFC 850, no zone", "Sunday, 06-Nov-94 08:49:37", NONE},
    {"RFC 850, no day", "Sonntag, 06-Nov-94 08:49:37 GMT", NONE},
    {"asctime with a zone", "Sun Nov  6 08:49:37 1994 GMT", NONE},
    {"asctime with one blank before a digit", "Sun Nov 6 08:49:37 1994", NONE},
    {"asctime with a blank digit too many", "Sun Nov  16 08:49:37 1994", NONE},
    {"asctime, a short year", "Sun Nov  6 08:49:37 94", NONE},
    {"seconds since 1970", "784111777", NONE},
};

START_TEST(rfc_9110_5_6_7_three_forms_are_read_and_nothing_else)
{
    int64_t seconds = -7;
    int result = sxe_http_date_parse(page_edge(dates[_i].text), IN_2026, &seconds);
    int64_t wanted = dates[_i].seconds;

    ck_assert_msg(result == (wanted == NONE ? -EINVAL : 0), "%s", dates[_i].title);
    ck_assert_msg(seconds == (wanted == NONE ? -7 : wanted), "%s: is %lld", dates[_i].title,
                  (long long)seconds);
}
END_TEST

START_TEST(a_date_that_is_cut_is_refused)
{
    static const char *const texts[] = {"Sun, 06 Nov 1994 08:49:37 GMT",
                                        "Sunday, 06-Nov-94 08:49:37 GMT",
                                        "Sun Nov  6 08:49:37 1994"};
    size_t length = strlen(texts[_i]);
    int64_t seconds;

    for (size_t cut = 0; cut < length; cut++) {
        struct sxe_span text = {page_edge_bytes(texts[_i], cut), cut};

        ck_assert_int_eq(sxe_http_date_parse(text, IN_2026, &seconds), -EINVAL);
    }
}
END_TEST

START_TEST(a_date_with_any_other_byte_is_refused)
{
    static const char text[] = "Sun, 06 Nov 1994 08:49:37 GMT";
    char changed[sizeof(text)];
    int64_t seconds;

    memcpy(changed, text, sizeof(text));
    for (size_t i = 0; i < SXE_HTTP_DATE_LENGTH; i++) {
        changed[i] = '!';
        ck_assert_int_eq(sxe_http_date_parse(page_edge(changed), IN_2026, &seconds), -EINVAL);
        changed[i] = text[i];
    }
}
END_TEST

/* The year that two digits mean depends on the present year. */
static const struct {
    const char *now;
    const char *text;
    unsigned year;
} centuries[] = {
    {"Thu, 01 Jan 2026 00:00:00 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", 1994},
    {"Thu, 01 Jan 2026 00:00:00 GMT", "Sunday, 01-Jan-26 00:00:01 GMT", 2026},
    {"Thu, 01 Jan 2026 00:00:00 GMT", "Sunday, 31-Dec-75 23:59:59 GMT", 2075},
    {"Thu, 01 Jan 2026 00:00:00 GMT", "Sunday, 01-Jan-76 00:00:00 GMT", 2076},
    {"Thu, 01 Jan 2026 00:00:00 GMT", "Sunday, 01-Jan-76 00:00:01 GMT", 1976},
    {"Thu, 01 Jan 2026 00:00:00 GMT", "Sunday, 01-Jan-77 00:00:00 GMT", 1977},
    {"Thu, 01 Jan 2026 00:00:00 GMT", "Sunday, 01-Jan-00 00:00:00 GMT", 2000},
    {"Thu, 01 Jan 2099 00:00:00 GMT", "Sunday, 01-Jan-01 00:00:00 GMT", 2101},
    {"Thu, 01 Jan 2099 00:00:00 GMT", "Sunday, 01-Jan-99 00:00:00 GMT", 2099},
    {"Thu, 01 Jan 2099 00:00:00 GMT", "Sunday, 02-Jan-49 00:00:00 GMT", 2049},
    {"Thu, 29 Feb 2024 12:00:00 GMT", "Sunday, 28-Feb-74 12:00:00 GMT", 2074},
    {"Thu, 29 Feb 2024 12:00:00 GMT", "Sunday, 01-Mar-74 00:00:00 GMT", 1974},
    {"Wed, 31 Dec 1969 23:59:59 GMT", "Sunday, 01-Jan-20 00:00:00 GMT", 2020},
    {"Fri, 31 Dec 9999 23:59:59 GMT", "Sunday, 01-Jan-49 00:00:00 GMT", 10049},
};

START_TEST(rfc_9110_5_6_7_a_year_of_two_digits_is_at_most_50_years_ahead)
{
    int64_t now;
    int64_t seconds;
    time_t time;
    struct tm tm;

    ck_assert_int_eq(sxe_http_date_parse(page_edge(centuries[_i].now), 0, &now), 0);
    ck_assert_int_eq(sxe_http_date_parse(page_edge(centuries[_i].text), now, &seconds), 0);
    time = seconds;
    gmtime_r(&time, &tm);
    ck_assert_int_eq(tm.tm_year + 1900, (int)centuries[_i].year);
}
END_TEST

/* ---- Comparing with the calendar of the C library ---- */

/* The generator xorshift, which gives the same numbers on each machine. */
static uint64_t
random_number(void)
{
    static uint64_t state = UINT64_C(88172645463325252);

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Whether both agree, in both directions. It is no ck_assert, which would be slow. */
static bool
is_as_in_libc(int64_t seconds)
{
    time_t time = seconds;
    char ours[SXE_HTTP_DATE_LENGTH];
    char theirs[3][80];
    bool is_good = true;
    size_t length;
    struct tm tm;

    gmtime_r(&time, &tm);
    strftime(theirs[0], sizeof(theirs[0]), "%a, %d %b %Y %H:%M:%S GMT", &tm);
    strftime(theirs[1], sizeof(theirs[1]), "%a %b %e %H:%M:%S %Y", &tm);
    length = strftime(theirs[2], sizeof(theirs[2]), "%A, %d-%b-", &tm);
    snprintf(theirs[2] + length, sizeof(theirs[2]) - length, "%02d %.8s GMT", tm.tm_year % 100,
             theirs[0] + 17);
    sxe_http_date_format(seconds, ours);
    for (unsigned i = 0; i < 3; i++) {
        struct sxe_span text = {theirs[i], strlen(theirs[i])};
        int64_t back = NONE;

        is_good &= sxe_http_date_parse(text, seconds, &back) == 0 && back == seconds;
    }
    return is_good && timegm(&tm) == seconds && memcmp(ours, theirs[0], sizeof(ours)) == 0;
}

START_TEST(every_day_of_a_cycle_of_400_years_is_what_the_c_library_says)
{
    for (int64_t day = 0; day < 146097; day++) {
        int64_t seconds = day * 86400 + (int64_t)(random_number() % 86400);

        if (!is_as_in_libc(seconds))
            ck_abort_msg("%lld", (long long)seconds);
    }
}
END_TEST

START_TEST(random_times_of_8000_years_are_what_the_c_library_says)
{
    for (unsigned i = 0; i < 100000; i++) {
        int64_t seconds = (int64_t)(random_number() % (LATEST + 1));

        if (!is_as_in_libc(seconds))
            ck_abort_msg("%lld", (long long)seconds);
    }
}
END_TEST

START_TEST(what_is_written_is_read_as_the_same_time)
{
    for (unsigned i = 0; i < 100000; i++) {
        int64_t seconds = EARLIEST + (int64_t)(random_number() % (uint64_t)(LATEST - EARLIEST + 1));
        char text[SXE_HTTP_DATE_LENGTH];
        int64_t back = NONE;

        sxe_http_date_format(seconds, text);
        if (sxe_http_date_parse((struct sxe_span){text, sizeof(text)}, 0, &back) != 0 ||
            back != seconds)
            ck_abort_msg("%lld", (long long)seconds);
    }
}
END_TEST

START_TEST(zone_and_locale_of_the_process_make_no_difference)
{
    char text[SXE_HTTP_DATE_LENGTH];
    int64_t seconds;

    setenv("TZ", "Asia/Kathmandu", 1);
    tzset();
    sxe_http_date_format(EXAMPLE, text);
    ck_assert_mem_eq(text, "Sun, 06 Nov 1994 08:49:37 GMT", sizeof(text));
    ck_assert_int_eq(sxe_http_date_parse(page_edge("Sun Nov  6 08:49:37 1994"), 0, &seconds), 0);
    ck_assert_int_eq(seconds, EXAMPLE);
}
END_TEST

/* ---- The present date ---- */

static void
check_now(struct sxe_http_date_cache *cache, int64_t seconds)
{
    char wanted[SXE_HTTP_DATE_LENGTH];

    sxe_http_date_format(seconds, wanted);
    ck_assert_mem_eq(sxe_http_date(cache, sxe_time_ns()), wanted, sizeof(wanted));
    ck_assert_int_eq(cache->seconds, seconds);
}

START_TEST(the_date_of_now_changes_when_the_wall_clock_changes_its_second)
{
    struct sxe_http_date_cache cache = {.until_ns = 0};

    fake_time_start(5 * SXE_NS_PER_SECOND, (uint64_t)EXAMPLE * SXE_NS_PER_SECOND + 300000000);
    check_now(&cache, EXAMPLE);
    fake_time_advance(699999999);
    check_now(&cache, EXAMPLE);
    fake_time_advance(1);
    check_now(&cache, EXAMPLE + 1);
    fake_time_advance(100 * SXE_NS_PER_SECOND);
    check_now(&cache, EXAMPLE + 101);
    fake_time_stop();
}
END_TEST

START_TEST(a_wall_clock_that_is_set_is_noticed_within_a_second)
{
    struct sxe_http_date_cache cache = {.until_ns = 0};

    fake_time_start(5 * SXE_NS_PER_SECOND, (uint64_t)EXAMPLE * SXE_NS_PER_SECOND);
    check_now(&cache, EXAMPLE);
    fake_time_step_wall(-3600 * (int64_t)SXE_NS_PER_SECOND);
    check_now(&cache, EXAMPLE);
    fake_time_advance(SXE_NS_PER_SECOND);
    check_now(&cache, EXAMPLE - 3599);
    fake_time_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-date");
    TCase *tcase = tcase_create("date");

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, rfc_9110_5_6_7_a_time_is_written_as_imf_fixdate, 0, COUNT(written));
    tcase_add_loop_test(tcase, rfc_9110_5_6_7_three_forms_are_read_and_nothing_else, 0,
                        COUNT(dates));
    tcase_add_loop_test(tcase, a_date_that_is_cut_is_refused, 0, 3);
    tcase_add_test(tcase, a_date_with_any_other_byte_is_refused);
    tcase_add_loop_test(tcase, rfc_9110_5_6_7_a_year_of_two_digits_is_at_most_50_years_ahead, 0,
                        COUNT(centuries));
    tcase_add_test(tcase, every_day_of_a_cycle_of_400_years_is_what_the_c_library_says);
    tcase_add_test(tcase, random_times_of_8000_years_are_what_the_c_library_says);
    tcase_add_test(tcase, what_is_written_is_read_as_the_same_time);
    tcase_add_test(tcase, zone_and_locale_of_the_process_make_no_difference);
    tcase_add_test(tcase, the_date_of_now_changes_when_the_wall_clock_changes_its_second);
    tcase_add_test(tcase, a_wall_clock_that_is_set_is_noticed_within_a_second);
    return sxe_test_main(suite);
}
