/* SPDX-License-Identifier: MIT
 *
 * What: makes a line in the format of 2010 from an event. Written by hand where a library function
 * would take a lock (localtime) or most of the line's time (printf).
 */
#include "sxe-log-private.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PID_DIGITS = 8, ID_WIDTH = 6, ID_DIGITS_MAX = 10 };

static const char hex_digits[] = "0123456789abcdef";

static char *
put_line_bytes(char *end, const char *bytes, size_t length)
{
    memcpy(end, bytes, length);
    return end + length;
}

static char *
put_decimal_digits(char *end, unsigned value, unsigned width)
{
    for (unsigned i = width; i > 0; i--, value /= 10)
        end[i - 1] = (char)('0' + value % 10);
    return end + width;
}

/* ---- Date and time ---- */

/* Convert the number of days since 1970 to a date. Years begin in March here: the leap day is then
 * the last of a year, and a linear formula gives the lengths of all months. The calendar repeats
 * after 400 years, an era. */
void
sxe__log_date(char digits[14], int64_t second)
{
    int64_t day = second / 86400 - (second % 86400 < 0);
    unsigned of_day = (unsigned)(second - day * 86400);
    int64_t from_march_0 = day + 719468;
    int64_t era = from_march_0 / 146097 - (from_march_0 % 146097 < 0);
    unsigned of_era = (unsigned)(from_march_0 - era * 146097);
    unsigned year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    unsigned of_year = of_era - (365 * year + year / 4 - year / 100);
    unsigned month = (5 * of_year + 2) / 153;
    bool is_next_year = month >= 10;

    year = (unsigned)((era % 25 + 25) * 400 % 10000) + year + is_next_year;
    digits = put_decimal_digits(digits, year, 4);
    digits = put_decimal_digits(digits, is_next_year ? month - 9 : month + 3, 2);
    digits = put_decimal_digits(digits, of_year - (153 * month + 2) / 5 + 1, 2);
    digits = put_decimal_digits(digits, of_day / 3600, 2);
    digits = put_decimal_digits(digits, of_day / 60 % 60, 2);
    put_decimal_digits(digits, of_day % 60, 2);
}

char *
sxe__log_put_now(char *end, const char *shape)
{
    /* the text of `second` and the milliseconds; "": no line was made yet */
    static SXE__HOT_TLS char digits[14 + 3];
    static SXE__HOT_TLS int64_t second;
    const char *digit = digits;
    struct timespec now = {0};

    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != second || digits[0] == '\0') {
        sxe__log_date(digits, now.tv_sec);
        second = now.tv_sec;
    }
    put_decimal_digits(digits + 14, (unsigned)(now.tv_nsec / 1000000), 3);
    for (; *shape != '\0'; shape++)
        *end++ = *shape == '0' ? *digit++ : *shape;
    return end;
}

/* ---- The message ---- */

static bool
is_plain_byte(unsigned char byte)
{
    return byte >= ' ' && byte <= '~' && byte != '\\';
}

/* Write the escape or the character (at most 4 bytes) that stands for one byte. Returns its
 * length. */
static size_t
encode_byte(char *item, unsigned char byte)
{
    static const char named[] = "\nn\rr\tt\\\\";

    item[0] = (char)byte;
    if (is_plain_byte(byte))
        return 1;
    item[0] = '\\';
    for (const char *name = named; *name != '\0'; name += 2) {
        if ((char)byte == *name) {
            item[1] = name[1];
            return 2;
        }
    }
    item[1] = 'x';
    item[2] = hex_digits[byte >> 4];
    item[3] = hex_digits[byte & 15];
    return 4;
}

/* Append text, in which all but plain bytes are escaped, up to the limit. If the text does not fit,
 * cut it between two escapes and append "..". Returns the new end. */
static char *
append_encoded_text(char *end, const char *limit, const char *text, size_t length)
{
    char *cut = end; /* the place for ".." if the next bytes do not fit */

    for (size_t i = 0; i < length; i++) {
        char item[4];
        size_t item_length = encode_byte(item, (unsigned char)text[i]);

        if (item_length > (size_t)(limit - end))
            return put_line_bytes(cut, "..", 2);
        end = put_line_bytes(end, item, item_length);
        if (limit - end >= 2)
            cut = end;
    }
    return end;
}

/* ---- The line ---- */

static char *
put_line_head(char *end)
{
    unsigned pid = (unsigned)getpid();

    end = sxe__log_put_now(end, "00000000 000000.000 P");
    for (unsigned i = PID_DIGITS; i > 0; i--, pid /= 16)
        end[i - 1] = hex_digits[pid % 16];
    end[PID_DIGITS] = ' ';
    return end + PID_DIGITS + 1;
}

static char *
put_id(char *end, uint32_t id)
{
    char digits[ID_DIGITS_MAX];
    unsigned first = ID_DIGITS_MAX - 1;

    if (id == SXE_NO_ID)
        return put_line_bytes(end, "------ ", ID_WIDTH + 1);
    memset(digits, ' ', sizeof(digits));
    put_decimal_digits(digits + first, id, 1);
    while ((id /= 10) > 0)
        put_decimal_digits(digits + --first, id, 1);
    if (first > ID_DIGITS_MAX - ID_WIDTH)
        first = ID_DIGITS_MAX - ID_WIDTH;
    end = put_line_bytes(end, digits + first, ID_DIGITS_MAX - first);
    *end++ = ' ';
    return end;
}

size_t
sxe__log_text(char line[SXE_LOG_LINE_MAX], const struct sxe__log_event *event)
{
    const char *limit = line + SXE_LOG_LINE_MAX - 1;
    char *end = put_id(put_line_head(line), event->id);

    *end++ = (char)('0' + event->site->level);
    *end++ = ' ';
    memset(end, ' ', 2 * (size_t)event->indent);
    end = put_line_bytes(end + 2 * (size_t)event->indent, event->mark, 2);
    if (event->request != NULL) {
        end = append_encoded_text(end, end + SXE_LOG_REQUEST_MAX, event->request,
                                  strlen(event->request));
        *end++ = ' ';
    }
    if (event->is_row)
        end = put_line_bytes(end, event->text, event->length);
    else
        end = append_encoded_text(end, limit, event->text, event->length);
    *end++ = '\n';
    return (size_t)(end - line);
}

const char *
sxe__log_basename(const char *file)
{
    const char *slash = strrchr(file, '/');

    return slash == NULL ? file : slash + 1;
}
