/* SPDX-License-Identifier: MIT
 *
 * What: dates as HTTP writes and reads them (RFC 9110, 5.6.7): seconds since 1970 to text and back,
 * and a cache for the Date of every reply. Neither locale nor time zone matters.
 *
 * Place: the server asks the cache once a reply; conditional requests and static files parse and
 * format. Pure, but for the cache, which reads the wall clock when its second is over.
 *
 * Shape: one form is written, and three are read:
 *
 *     Sun, 06 Nov 1994 08:49:37 GMT        IMF-fixdate, 29 bytes
 *     Sunday, 06-Nov-94 08:49:37 GMT       RFC 850: at most 50 years ahead of now
 *     Sun Nov  6 08:49:37 1994             asctime()
 *
 * Limits: written years are 0000 to 9999; a time outside is written as the nearest one inside. The
 * day of the week is not compared with the date that is read: nothing depends on it.
 *
 * Example:
 *     static struct sxe_http_date_cache dates;
 *     printf("Date: %.*s\r\n", SXE_HTTP_DATE_LENGTH, sxe_http_date(&dates, sxe_time_turn_ns()));
 */
#ifndef SXE_HTTP_DATE_H
#define SXE_HTTP_DATE_H

#include <stdint.h>

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_HTTP_DATE_LENGTH 29

/* Write an IMF-fixdate, exactly 29 bytes, none of them NUL. */
SXE_PUBLIC void sxe_http_date_format(int64_t seconds, char text[SXE_HTTP_DATE_LENGTH]);

/* Read any of the three forms, strictly: with the case shown above, no extra blanks, a day that the
 * month has, second 60 only in the last minute of a day. `now` (seconds since 1970) is for years of
 * two digits. 0; -EINVAL: *seconds is unchanged. */
SXE_PUBLIC SXE_MUST_USE int sxe_http_date_parse(struct sxe_span text, int64_t now,
                                                int64_t *seconds);

/* ---- The date of now ---- */

/* Initialise a cache with zeros. Each thread needs a cache of its own. */
struct sxe_http_date_cache {
    uint64_t until_ns;               /* private: the monotonic time at which the second ends */
    int64_t seconds;                 /* ro: the second that the text shows, since 1970 */
    char text[SXE_HTTP_DATE_LENGTH]; /* ro: without a NUL */
};

/* Read the wall clock into the cache. */
SXE_PUBLIC void sxe_http_date_refresh(struct sxe_http_date_cache *cache, uint64_t now_ns);

/* The present date, 29 bytes that stay until the next call. now_ns is monotonic, from
 * sxe_time_turn_ns(). Most calls only compare two times; the wall clock is read once a second, so a
 * change of the wall clock shows within a second. */
static inline const char *
sxe_http_date(struct sxe_http_date_cache *cache, uint64_t now_ns)
{
    if (SXE_UNLIKELY(now_ns >= cache->until_ns))
        sxe_http_date_refresh(cache, now_ns);
    return cache->text;
}

#ifdef __cplusplus
}
#endif

#endif
