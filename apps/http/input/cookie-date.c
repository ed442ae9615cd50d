/* SPDX-License-Identifier: MIT
 *
 * Parsing the date of a cookie's Expires attribute (RFC 6265, 5.1.1).
 */
#include "cookie-date.h"

#include <strings.h>

/* The parts of the date that were found so far; -1: not found yet. */
struct date {
    int hour;
    int minute;
    int second;
    int day;
    int month; /* 0 to 11 */
    int year;
};

static bool
is_date_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Whether this byte separates tokens. */
static bool
is_delimiter(char byte)
{
    return byte == '\t' || (byte >= ' ' && byte <= '/') || (byte >= ';' && byte <= '@') ||
           (byte >= '[' && byte <= '`') || (byte >= '{' && byte <= '~');
}

/* Read a number of min to max digits at the front of the text, and remove it; -1: the text begins
 * with no number, or it has more digits. */
static int
take_cookie_number(struct sxe_span *token, size_t min, size_t max)
{
    size_t digits = 0;
    int value = 0;

    while (digits < token->length && digits < max && is_date_digit(token->base[digits]))
        value = value * 10 + (token->base[digits++] - '0');
    if (digits < min || (digits < token->length && is_date_digit(token->base[digits])))
        return -1;
    token->base += digits;
    token->length -= digits;
    return value;
}

static bool
take_colon(struct sxe_span *token)
{
    if (token->length == 0 || *token->base != ':')
        return false;
    token->base++;
    token->length--;
    return true;
}

/* Take "hour:minute:second". Numbers up to 99 are accepted here; the limits are checked at the end.
 */
static bool
take_cookie_time(struct date *date, struct sxe_span token)
{
    int hour = take_cookie_number(&token, 1, 2), minute, second;

    if (hour < 0 || !take_colon(&token))
        return false;
    minute = take_cookie_number(&token, 1, 2);
    if (minute < 0 || !take_colon(&token))
        return false;
    second = take_cookie_number(&token, 1, 2);
    if (second < 0)
        return false;
    date->hour = hour;
    date->minute = minute;
    date->second = second;
    return true;
}

static int
month_of(struct sxe_span token)
{
    static const char months[] = "janfebmaraprmayjunjulaugsepoctnovdec";

    for (int i = 0; i < 12 && token.length >= 3; i++)
        if (strncasecmp(token.base, months + 3 * i, 3) == 0)
            return i;
    return -1;
}

/* Store the token as the part of the date that it fits first, in the order of the RFC. If several
 * tokens fit a part, the first counts. */
static void
take_token(struct date *date, struct sxe_span token)
{
    struct sxe_span rest = token;
    int value;

    if (date->hour < 0 && take_cookie_time(date, token))
        return;
    if (date->day < 0 && (value = take_cookie_number(&rest, 1, 2)) >= 0) {
        date->day = value;
        return;
    }
    if (date->month < 0 && (value = month_of(token)) >= 0) {
        date->month = value;
        return;
    }
    rest = token;
    if (date->year < 0 && (value = take_cookie_number(&rest, 2, 4)) >= 0)
        date->year = value < 70 ? value + 2000 : value < 100 ? value + 1900 : value;
}

static bool
is_cookie_leap_year(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int
days_of(int month, int year)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month] + (month == 1 && is_cookie_leap_year(year));
}

static int64_t
seconds_of_cookie_date(const struct date *date)
{
    int64_t years = date->year - 1;
    int64_t days = years * 365 + years / 4 - years / 100 + years / 400 - 719162 + date->day - 1;

    for (int month = 0; month < date->month; month++)
        days += days_of(month, date->year);
    return ((days * 24 + date->hour) * 60 + date->minute) * 60 + date->second;
}

bool
load_cookie_date(struct sxe_span text, int64_t *seconds)
{
    struct date date = {-1, -1, -1, -1, -1, -1};
    size_t at = 0;

    while (at < text.length) {
        size_t begin;

        while (at < text.length && is_delimiter(text.base[at]))
            at++;
        for (begin = at; at < text.length && !is_delimiter(text.base[at]);)
            at++;
        if (at > begin)
            take_token(&date, (struct sxe_span){text.base + begin, at - begin});
    }
    if (date.hour < 0 || date.day < 1 || date.month < 0 || date.year < 1601 || date.hour > 23 ||
        date.minute > 59 || date.second > 59 || date.day > days_of(date.month, date.year))
        return false;
    *seconds = seconds_of_cookie_date(&date);
    return true;
}
