/* SPDX-License-Identifier: MIT
 *
 * Times of access logs and ISO 8601 times of HAR files.
 */
#include "replay-private.h"

#include <string.h>
#include <time.h>

#include "sxe-time.h"

enum { YEAR_MAX = 2200 };

/* Read the next byte of the text; '\0' at its end. After an error the text's base is NULL, and then
 * every read fails. */
static char
peek_byte(const struct sxe_span *text)
{
    return text->base != NULL && text->length > 0 ? *text->base : '\0';
}

static void
skip_byte(struct sxe_span *text)
{
    text->base++;
    text->length--;
}

static void
take_wanted_byte(struct sxe_span *text, char wanted)
{
    if (peek_byte(text) == wanted)
        skip_byte(text);
    else
        *text = (struct sxe_span){0};
}

static int
take_log_number(struct sxe_span *text, unsigned digits, int least, int greatest)
{
    int number = 0;

    for (; digits > 0 && peek_byte(text) >= '0' && peek_byte(text) <= '9'; digits--) {
        number = number * 10 + (*text->base - '0');
        skip_byte(text);
    }
    if (digits > 0 || number < least || number > greatest)
        *text = (struct sxe_span){0};
    return number;
}

static int
take_log_month(struct sxe_span *text)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

    for (int i = 0; i < 12; i++) {
        if (text->base != NULL && text->length > 3 && memcmp(text->base, months + 3 * i, 3) == 0) {
            *text = (struct sxe_span){text->base + 3, text->length - 3};
            return i;
        }
    }
    *text = (struct sxe_span){0};
    return 0;
}

static void
take_time_of_day(struct sxe_span *text, struct tm *tm)
{
    tm->tm_hour = take_log_number(text, 2, 0, 23);
    take_wanted_byte(text, ':');
    tm->tm_min = take_log_number(text, 2, 0, 59);
    take_wanted_byte(text, ':');
    tm->tm_sec = take_log_number(text, 2, 0, 60);
}

/* Read a zone: "Z", "-0700", "-07:00". Returns how many seconds it is ahead of UTC. */
static int
take_zone(struct sxe_span *text)
{
    int sign = peek_byte(text) == '-' ? -1 : 1;
    int hours;

    if (peek_byte(text) == 'Z') {
        skip_byte(text);
        return 0;
    }
    take_wanted_byte(text, sign < 0 ? '-' : '+');
    hours = take_log_number(text, 2, 0, 23);
    if (peek_byte(text) == ':')
        skip_byte(text);
    return sign * (hours * 3600 + take_log_number(text, 2, 0, 59) * 60);
}

/* Read a fraction of a second, of any number of digits, as nanoseconds. */
static uint64_t
take_fraction(struct sxe_span *text)
{
    uint64_t ns = 0;
    uint64_t unit = SXE_NS_PER_SECOND;

    if (peek_byte(text) != '.')
        return 0;
    skip_byte(text);
    for (; peek_byte(text) >= '0' && peek_byte(text) <= '9'; skip_byte(text)) {
        unit /= 10;
        ns += unit * (uint64_t)(*text->base - '0');
    }
    return ns;
}

/* Read the zone, with which the text must end, and apply it to the time. False: the text is no
 * time, or does not end there. */
static bool
end_time(struct sxe_span *text, struct tm *tm, uint64_t *ns)
{
    int64_t seconds = timegm(tm) - take_zone(text);

    if (text->base == NULL || text->length > 0 || seconds < 0)
        return false;
    *ns += (uint64_t)seconds * SXE_NS_PER_SECOND;
    return true;
}

bool
load_replay_log_time(struct sxe_span text, uint64_t *ns)
{
    struct tm tm = {0};

    tm.tm_mday = take_log_number(&text, 2, 1, 31);
    take_wanted_byte(&text, '/');
    tm.tm_mon = take_log_month(&text);
    take_wanted_byte(&text, '/');
    tm.tm_year = take_log_number(&text, 4, 1900, YEAR_MAX) - 1900;
    take_wanted_byte(&text, ':');
    take_time_of_day(&text, &tm);
    take_wanted_byte(&text, ' ');
    *ns = 0;
    return end_time(&text, &tm, ns);
}

bool
load_replay_iso_time(struct sxe_span text, uint64_t *ns)
{
    struct tm tm = {0};

    tm.tm_year = take_log_number(&text, 4, 1900, YEAR_MAX) - 1900;
    take_wanted_byte(&text, '-');
    tm.tm_mon = take_log_number(&text, 2, 1, 12) - 1;
    take_wanted_byte(&text, '-');
    tm.tm_mday = take_log_number(&text, 2, 1, 31);
    take_wanted_byte(&text, 'T');
    take_time_of_day(&text, &tm);
    *ns = take_fraction(&text);
    return end_time(&text, &tm, ns);
}
