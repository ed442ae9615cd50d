/* SPDX-License-Identifier: MIT
 *
 * Days are counted from the first of January of the year 0, which is a leap year and begins the
 * Gregorian calendar's cycle of 400 years.
 */
#include "sxe-http-date.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "sxe-time.h"

enum {
    SECONDS_PER_DAY = 86400,
    YEARS_PER_CYCLE = 400,
    DAYS_PER_CYCLE = 146097,
    DAYS_TO_1970 = 719528,
    DAYS_TO_10000 = 25 * DAYS_PER_CYCLE,
    WEEKDAY_OF_DAY_0 = 6, /* the day 0 was a Saturday */
    YEARS_AHEAD_MAX = 50
};

#define EARLIEST (INT64_C(-1) * DAYS_TO_1970 * SECONDS_PER_DAY)
#define LATEST   (INT64_C(1) * (DAYS_TO_10000 - DAYS_TO_1970) * SECONDS_PER_DAY - 1)

struct date {
    unsigned year;
    unsigned month; /* 0 to 11 */
    unsigned day;   /* 1 to 31 */
    unsigned hour;
    unsigned minute;
    unsigned second;
};

static const char *const weekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};
static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

/* ---- The calendar ---- */

static bool
is_leap_year(unsigned year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static unsigned
days_before_year(unsigned year)
{
    return year * 365 + (year + 3) / 4 - (year + 99) / 100 + (year + 399) / 400;
}

/* How many days of the year come before a month. Month 12 gives the days of the whole year. */
static unsigned
days_before_month(unsigned year, unsigned month)
{
    static const uint16_t days[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};

    return days[month] + (month > 1 && is_leap_year(year) ? 1u : 0u);
}

static int64_t
seconds_of_date(const struct date *date)
{
    int64_t day = (int64_t)days_before_year(date->year) +
                  days_before_month(date->year, date->month) + date->day - 1;

    return (day - DAYS_TO_1970) * SECONDS_PER_DAY + (date->hour * 60 + date->minute) * INT64_C(60) +
           date->second;
}

/* Fill in *date from the number of a day. Returns the weekday; 0 is Sunday. */
static unsigned
date_of(int64_t seconds, struct date *date)
{
    int64_t since = (seconds < EARLIEST ? EARLIEST
                     : seconds > LATEST ? LATEST
                                        : seconds) -
                    EARLIEST;
    unsigned day = (unsigned)(since / SECONDS_PER_DAY);
    unsigned second = (unsigned)(since % SECONDS_PER_DAY);
    unsigned weekday = (day + WEEKDAY_OF_DAY_0) % 7;

    /* An estimate, which may be one year too high, because each cycle begins with a leap year. */
    date->year = (unsigned)(day * UINT64_C(1) * YEARS_PER_CYCLE / DAYS_PER_CYCLE);
    while (days_before_year(date->year) > day)
        date->year--;
    while (days_before_year(date->year + 1) <= day)
        date->year++;
    day -= days_before_year(date->year);
    for (date->month = 0; days_before_month(date->year, date->month + 1) <= day;)
        date->month++;
    date->day = day - days_before_month(date->year, date->month) + 1;
    date->hour = second / 3600;
    date->minute = second / 60 % 60;
    date->second = second % 60;
    return weekday;
}

/* ---- Writing ---- */

static void
put_date_number(char *text, unsigned value, unsigned digits)
{
    for (; digits > 0; value /= 10)
        text[--digits] = (char)('0' + value % 10);
}

void
sxe_http_date_format(int64_t seconds, char text[SXE_HTTP_DATE_LENGTH])
{
    struct date date;
    unsigned weekday = date_of(seconds, &date);

    memcpy(text, "ddd, DD MMM YYYY hh:mm:ss GMT", SXE_HTTP_DATE_LENGTH);
    memcpy(text, weekdays[weekday], 3);
    put_date_number(text + 5, date.day, 2);
    memcpy(text + 8, months + 3 * date.month, 3);
    put_date_number(text + 12, date.year, 4);
    put_date_number(text + 17, date.hour, 2);
    put_date_number(text + 20, date.minute, 2);
    put_date_number(text + 23, date.second, 2);
}

void
sxe_http_date_refresh(struct sxe_http_date_cache *cache, uint64_t now_ns)
{
    struct timespec wall;

    clock_gettime(CLOCK_REALTIME, &wall);
    cache->seconds = wall.tv_sec;
    cache->until_ns = now_ns + SXE_NS_PER_SECOND - (uint64_t)wall.tv_nsec;
    sxe_http_date_format(wall.tv_sec, cache->text);
}

/* ---- Reading: each function takes a part off the front of the text, if it is there ---- */

static bool
take_wanted_text(struct sxe_span *text, const char *wanted, size_t length)
{
    if (text->length < length || memcmp(text->base, wanted, length) != 0)
        return false;
    text->base += length;
    text->length -= length;
    return true;
}

/* Read the name of a day: its first `abbreviated` letters; 0: the whole name. */
static bool
take_weekday(struct sxe_span *text, size_t abbreviated)
{
    for (unsigned i = 0; i < 7; i++) {
        if (take_wanted_text(text, weekdays[i],
                             abbreviated > 0 ? abbreviated : strlen(weekdays[i])))
            return true;
    }
    return false;
}

static bool
take_date_month(struct sxe_span *text, unsigned *month)
{
    for (*month = 0; *month < 12; ++*month) {
        if (take_wanted_text(text, months + 3 * *month, 3))
            return true;
    }
    return false;
}

static bool
take_date_number(struct sxe_span *text, size_t digits, unsigned *value)
{
    if (text->length < digits)
        return false;
    *value = 0;
    for (size_t i = 0; i < digits; i++) {
        unsigned digit = (unsigned)(uint8_t)text->base[i] - '0';

        if (digit > 9)
            return false;
        *value = *value * 10 + digit;
    }
    text->base += digits;
    text->length -= digits;
    return true;
}

static bool
take_date_time(struct sxe_span *text, struct date *date)
{
    return take_date_number(text, 2, &date->hour) && take_wanted_text(text, ":", 1) &&
           take_date_number(text, 2, &date->minute) && take_wanted_text(text, ":", 1) &&
           take_date_number(text, 2, &date->second);
}

static bool
take_imf_fixdate(struct sxe_span *text, struct date *date)
{
    return take_weekday(text, 3) && take_wanted_text(text, ", ", 2) &&
           take_date_number(text, 2, &date->day) && take_wanted_text(text, " ", 1) &&
           take_date_month(text, &date->month) && take_wanted_text(text, " ", 1) &&
           take_date_number(text, 4, &date->year) && take_wanted_text(text, " ", 1) &&
           take_date_time(text, date) && take_wanted_text(text, " GMT", 4);
}

static bool
take_asctime(struct sxe_span *text, struct date *date)
{
    return take_weekday(text, 3) && take_wanted_text(text, " ", 1) &&
           take_date_month(text, &date->month) && take_wanted_text(text, " ", 1) &&
           take_date_number(text, take_wanted_text(text, " ", 1) ? 1 : 2, &date->day) &&
           take_wanted_text(text, " ", 1) && take_date_time(text, date) &&
           take_wanted_text(text, " ", 1) && take_date_number(text, 4, &date->year);
}

static bool
take_rfc_850(struct sxe_span *text, struct date *date)
{
    return take_weekday(text, 0) && take_wanted_text(text, ", ", 2) &&
           take_date_number(text, 2, &date->day) && take_wanted_text(text, "-", 1) &&
           take_date_month(text, &date->month) && take_wanted_text(text, "-", 1) &&
           take_date_number(text, 2, &date->year) && take_wanted_text(text, " ", 1) &&
           take_date_time(text, date) && take_wanted_text(text, " GMT", 4);
}

static bool
is_possible_date(const struct date *date)
{
    unsigned days =
        days_before_month(date->year, date->month + 1) - days_before_month(date->year, date->month);
    bool is_leap_second = date->second == 60 && date->hour == 23 && date->minute == 59;

    return date->day >= 1 && date->day <= days && date->hour < 24 && date->minute < 60 &&
           (date->second < 60 || is_leap_second);
}

/* A number by which two dates of one year can be compared. */
static unsigned
place_in_year(const struct date *date)
{
    unsigned minute = ((date->month * 31 + date->day) * 24 + date->hour) * 60 + date->minute;

    return minute * 61 + date->second;
}

/* Find the year of a date whose year has two digits: the latest year with these digits in which the
 * date is at most 50 years after now. */
static void
find_century(struct date *date, int64_t now)
{
    struct date today;
    unsigned year_max;

    date_of(now > 0 ? now : 0, &today);
    year_max = today.year + YEARS_AHEAD_MAX;
    if (place_in_year(date) > place_in_year(&today))
        year_max--;
    date->year = year_max - (year_max % 100 + 100 - date->year) % 100;
}

int
sxe_http_date_parse(struct sxe_span text, int64_t now, int64_t *seconds)
{
    struct date date;
    bool is_good;

    if (text.length < 4)
        return -EINVAL;
    if (text.base[3] == ',') {
        is_good = take_imf_fixdate(&text, &date);
    } else if (text.base[3] == ' ') {
        is_good = take_asctime(&text, &date);
    } else {
        is_good = take_rfc_850(&text, &date);
        if (is_good)
            find_century(&date, now);
    }
    if (!is_good || text.length > 0 || !is_possible_date(&date))
        return -EINVAL;
    *seconds = seconds_of_date(&date);
    return 0;
}
