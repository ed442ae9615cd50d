/* SPDX-License-Identifier: MIT
 *
 * Making lines of the access log.
 */
#include "log-line.h"

#include <stdio.h>
#include <string.h>

#include "secure.h"
#include "sxe-json.h"

#define TEXT_MAX   1200u /* the most bytes of an escaped text; its last escape may go beyond this */
#define WORD       8     /* bytes that are tested for escapes together */
#define DIGITS_MAX 20    /* the most digits of a number */
#define PART_MAX   64u   /* the most bytes of a variable, without the texts of clients in it */

_Static_assert(LOG_FORMAT_TEXTS *(TEXT_MAX + sizeof("\\u00ff")) + LOG_FORMAT_PARTS * PART_MAX +
                       LOG_FORMAT_BYTES + LOG_FORMAT_SHORT <=
                   LOG_LINE_SIZE,
               "every line has room: none is cut where it would not be JSON");

/* ---- Bytes ---- */

static void
add_line_bytes(struct log_line *line, const char *bytes, size_t length)
{
    memcpy(line->text + line->length, bytes, length);
    line->length += (unsigned)length;
}

/* If the text is a literal, the compiler knows its length. */
static inline void
add_line_text(struct log_line *line, const char *text)
{
    add_line_bytes(line, text, strlen(text));
}

/* Add a number from 1,000 on. A copy of fixed length is no call. */
static __attribute__((noinline)) void
add_large(struct log_line *line, unsigned long long number)
{
    char digits[2 * DIGITS_MAX] = {0};
    char *const end = digits + DIGITS_MAX;
    char *at = end;

    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    memcpy(line->text + line->length, at, DIGITS_MAX);
    line->length += (unsigned)(end - at);
}

/* Add three digits of a number below 1,000. */
static inline void
add_three_digits(struct log_line *line, unsigned number)
{
    char *to = line->text + line->length;

    to[0] = (char)('0' + number / 100);
    to[1] = (char)('0' + number / 10 % 10);
    to[2] = (char)('0' + number % 10);
    line->length += 3;
}

/* Most numbers of a line are short, such as the status. The copy in add_large waits until the
 * digits have reached the cache, so short numbers are written in place. */
static inline void
add_decimal(struct log_line *line, unsigned long long number)
{
    if (number >= 1000) {
        add_large(line, number);
    } else if (number >= 100) {
        add_three_digits(line, (unsigned)number);
    } else {
        if (number >= 10)
            line->text[line->length++] = (char)('0' + number / 10);
        line->text[line->length++] = (char)('0' + number % 10);
    }
}

/* Add the literal text of a part. Most of these are short. */
static inline void
add_literal(struct log_line *line, const struct log_format *format, const struct log_part *part)
{
    char *to = line->text + line->length;
    const char *from = format->bytes + part->start;

    if (SXE_LIKELY(part->length <= LOG_FORMAT_SHORT))
        memcpy(to, from, LOG_FORMAT_SHORT);
    else
        memcpy(to, from, part->length);
    line->length += part->length;
}

static struct sxe_span
span_of(const char *text)
{
    return (struct sxe_span){text, strlen(text)};
}

static void
add_json_value(struct log_line *line, struct sxe_span text)
{
    line->length += (unsigned)sxe_json_escape(line->text + line->length, TEXT_MAX, text.base,
                                              &text.length, SXE_JSON_LATIN1);
}

/* Whether texts of this part are between double quotes, so that a blank in them, and a name of a
 * method, need no escape. */
static bool
are_quotes_around(const struct log_part *part)
{
    return part->is_quoted && part->before == '"' && part->after == '"';
}

static inline bool
must_escape(const struct log_part *part, unsigned char byte)
{
    return byte < ' ' + !part->is_quoted || byte >= 0x7f || byte == '"' || byte == '\\' ||
           byte == (unsigned char)part->before || byte == (unsigned char)part->after;
}

/* Copy eight bytes if none of them must be escaped. They are tested together: in one of the sums
 * each byte that must be escaped sets the top bit of its place. A carry may set the top bit of
 * another place, too; then add_escaped looks at each byte. */
static bool
is_word_copied(char *to, const char *from, const struct log_part *part)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word;
    uint64_t found;

    memcpy(&word, from, sizeof(word));
    found = word - (part->is_quoted ? ' ' : ' ' + 1) * ones;
    found |= (word ^ '"' * ones) - ones;
    found |= (word ^ '\\' * ones) - ones;
    found |= (word ^ (unsigned char)part->before * ones) - ones;
    found |= (word ^ (unsigned char)part->after * ones) - ones;
    found |= word + ones; /* finds DEL (0x7f) */
    memcpy(to, &word, sizeof(word));
    return ((found | word) & 0x80 * ones) == 0;
}

static char *
put_hex_escape(char *to, unsigned char byte)
{
    static const char digits[] = "0123456789ABCDEF";

    *to++ = '\\';
    *to++ = 'x';
    *to++ = digits[byte >> 4];
    *to++ = digits[byte & 15];
    return to;
}

static __attribute__((noinline)) void
add_escaped(struct log_line *line, const struct log_part *part, struct sxe_span text)
{
    const char *from = text.base;
    const char *const end = from + text.length;
    char *to = line->text + line->length;
    const char *const limit = to + TEXT_MAX;

    while (from < end && to < limit) {
        if (end - from >= WORD && limit - to >= WORD && is_word_copied(to, from, part)) {
            from += WORD;
            to += WORD;
        } else if (must_escape(part, (unsigned char)*from)) {
            to = put_hex_escape(to, (unsigned char)*from++);
        } else {
            *to++ = *from++;
        }
    }
    line->length = (unsigned)(to - line->text);
}

/* ---- The request ---- */

static struct sxe_span
peer_of(const struct sxe_http_request *request)
{
    /* the form in which a listener on :: sees an IPv4 address */
    static const char mapped[] = "::ffff:";
    const char *ip = sxe_http_peer_ip(request);

    if (*ip == '\0')
        ip = "unix";
    else if (*ip == ':' && strncmp(ip, mapped, sizeof(mapped) - 1) == 0 && strchr(ip, '.') != NULL)
        ip += sizeof(mapped) - 1;
    return span_of(ip);
}

/* The status for the log. If the client left before its reply began, there is none: then it is 499,
 * as in nginx. */
static unsigned
status_of(const struct sxe_http_summary *summary)
{
    return summary->status != 0 ? summary->status : 499;
}

/* How many bytes of the body were sent. For HEAD there are none, although the summary has the
 * length of the body that a GET would get. */
static unsigned long long
body_bytes(const struct log_entry *entry)
{
    return entry->request->head.method == SXE_HTTP_HEAD ? 0 : entry->summary->body_length;
}

static unsigned long long
duration_us(const struct log_entry *entry)
{
    return entry->summary->duration_ns / SXE_NS_PER_US;
}

/* Whether the version is known. It may be unknown if the request line was refused or incomplete. */
static bool
has_version(const struct log_entry *entry)
{
    const struct sxe_http_parser *head = &entry->request->head;

    return head->number > 0 ||
           (head->refusal == SXE_HTTP_NOT_REFUSED && entry->summary->status != 408);
}

static const char *
scheme_of(const struct sxe_http_request *request)
{
    const char *scheme = sxe_http_forwarded_scheme(request);

    if (*scheme != '\0')
        return scheme;
    return *secure_version(sxe_http_socket(request)) == '\0' ? "http" : "https";
}

/* The host of the request without its port; an IPv6 address keeps its brackets. */
static struct sxe_span
host_of_line(const struct sxe_http_request *request)
{
    struct sxe_span host = sxe_http_authority(request);
    const char *colon = host.length == 0 ? NULL : memrchr(host.base, ':', host.length);

    if (colon != NULL && memchr(colon, ']', (size_t)(host.base + host.length - colon)) == NULL)
        host.length = (size_t)(colon - host.base);
    return host;
}

/* ---- Lines by a format ---- */

/* Add a text of the request. If it is missing, write "-", or in JSON "". An empty text is also
 * written as "-", unless it is in quotes, which show that it is empty. */
static inline void
add_text(struct log_line *line, const struct log_format *format, const struct log_part *part,
         struct sxe_span text)
{
    if (format->is_json)
        add_json_value(line, text);
    else if (text.base == NULL || (text.length == 0 && !part->is_quoted))
        add_line_bytes(line, "-", 1);
    else
        add_escaped(line, part, text);
}

static void
add_http_version(struct log_line *line, const struct log_entry *entry)
{
    add_line_text(line, "HTTP/1.");
    add_decimal(line, entry->request->head.minor);
}

static void
add_blank(struct log_line *line, const struct log_format *format, const struct log_part *part)
{
    if (format->is_json || are_quotes_around(part))
        line->text[line->length++] = ' ';
    else
        add_escaped(line, part, (struct sxe_span){" ", 1});
}

static void
add_method_part(struct log_line *line, const struct log_format *format, const struct log_part *part,
                const struct log_entry *entry)
{
    const struct sxe_span method = sxe_http_method_text(entry->request);

    if (entry->request->head.method != SXE_HTTP_OTHER && are_quotes_around(part))
        add_line_bytes(line, method.base, method.length);
    else
        add_text(line, format, part, method.length > 0 ? method : (struct sxe_span){NULL, 0});
}

/* Add method, target and version, as far as they are known. If the variable is not in quotes, the
 * blanks between them are escaped, so that the field is one word. */
static void
add_request(struct log_line *line, const struct log_format *format, const struct log_part *part,
            const struct log_entry *entry)
{
    const struct sxe_span target = sxe_http_target(entry->request);

    add_method_part(line, format, part, entry);
    if (target.length == 0)
        return;
    add_blank(line, format, part);
    add_text(line, format, part, target);
    if (has_version(entry)) {
        add_blank(line, format, part);
        add_http_version(line, entry);
    }
}

static void
add_user(struct log_line *line, const struct log_format *format, const struct log_part *part,
         const struct log_entry *entry)
{
    struct sxe_http_basic basic;

    add_text(line, format, part, sxe_http_user(entry->request, &basic));
}

static struct sxe_span
text_of_part(const struct log_format *format, const struct log_part *part,
             const struct sxe_http_request *request)
{
    switch (part->variable) {
    case LOG_REMOTE_ADDR:
        return peer_of(request);
    case LOG_REQUEST_METHOD:
        return sxe_http_method_text(request);
    case LOG_REQUEST_URI:
        return sxe_http_target(request);
    case LOG_HOST:
        return host_of_line(request);
    case LOG_REQUEST_ID:
        return span_of(sxe_http_request_id(request));
    default:
        return part->field != SXE_HTTP_FIELD_OTHER
                   ? sxe_http_known_value(request, part->field)
                   : sxe_http_field_value(request, format->bytes + part->start);
    }
}

/* Add a text that the server itself made, and that needs no escapes. */
static void
add_own_text(struct log_line *line, const struct log_format *format, const char *text)
{
    if (*text == '\0' && !format->is_json)
        text = "-";
    add_line_text(line, text);
}

static void
add_trace_id(struct log_line *line, const struct log_format *format, const struct log_part *part,
             const struct log_entry *entry)
{
    const struct sxe_http_trace *trace = sxe_http_trace(entry->request);
    const char *text = "";

    if (trace != NULL)
        text = part->variable == LOG_TRACE_ID ? trace->trace_id : trace->span_id;
    add_own_text(line, format, text);
}

static void
add_variable(struct log_line *line, const struct log_format *format, const struct log_part *part,
             const struct log_entry *entry)
{
    switch (part->variable) {
    case LOG_TIME_LOCAL:
        add_own_text(line, format, entry->clock->local);
        break;
    case LOG_TIME_ISO8601:
        add_own_text(line, format, entry->clock->iso);
        break;
    case LOG_REQUEST:
        add_request(line, format, part, entry);
        break;
    case LOG_SERVER_PROTOCOL:
        if (has_version(entry))
            add_http_version(line, entry);
        else
            add_own_text(line, format, "");
        break;
    case LOG_STATUS:
        add_decimal(line, status_of(entry->summary));
        break;
    case LOG_BODY_BYTES_SENT:
        add_decimal(line, body_bytes(entry));
        break;
    case LOG_REQUEST_TIME:
        add_decimal(line, duration_us(entry) / 1000000);
        add_line_text(line, ".");
        add_three_digits(line, (unsigned)(duration_us(entry) / 1000 % 1000));
        break;
    case LOG_DURATION_US:
        add_decimal(line, duration_us(entry));
        break;
    case LOG_TRACE_ID:
    case LOG_SPAN_ID:
        add_trace_id(line, format, part, entry);
        break;
    case LOG_SCHEME:
        add_own_text(line, format, scheme_of(entry->request));
        break;
    case LOG_SSL_PROTOCOL:
        add_own_text(line, format, secure_version(sxe_http_socket(entry->request)));
        break;
    case LOG_WORKER:
        add_decimal(line, entry->worker);
        break;
    case LOG_REMOTE_USER:
        add_user(line, format, part, entry);
        break;
    case LOG_LITERAL: /* log_line_make has added it */
    case LOG_HEADER:
    case LOG_REMOTE_ADDR:
    case LOG_REQUEST_METHOD:
    case LOG_REQUEST_URI:
    case LOG_HOST:
    case LOG_REQUEST_ID:
        add_text(line, format, part, text_of_part(format, part, entry->request));
        break;
    }
}

/* ---- Objects with all members that have a value ---- */

/* Add a member whose value is a text. name: all that is before the text. */
static inline void
add_member(struct log_line *line, const char *name, struct sxe_span text)
{
    if (text.length == 0)
        return;
    add_line_text(line, name);
    add_json_value(line, text);
    add_line_text(line, "\"");
}

static void
add_numbers(struct log_line *line, const struct log_entry *entry)
{
    add_line_text(line, "{\"time\":\"");
    add_line_text(line, entry->clock->iso);
    add_line_text(line, "\",\"status\":");
    add_decimal(line, status_of(entry->summary));
    add_line_text(line, ",\"bytes\":");
    add_decimal(line, body_bytes(entry));
    add_line_text(line, ",\"duration_us\":");
    add_decimal(line, duration_us(entry));
}

static void
add_ids(struct log_line *line, const struct log_entry *entry)
{
    const struct sxe_http_trace *trace = sxe_http_trace(entry->request);

    if (entry->has_id)
        add_member(line, ",\"request_id\":\"", span_of(sxe_http_request_id(entry->request)));
    if (trace == NULL)
        return;
    add_member(line, ",\"trace_id\":\"", span_of(trace->trace_id));
    add_member(line, ",\"span_id\":\"", span_of(trace->span_id));
}

static void
add_object(struct log_line *line, const struct log_entry *entry)
{
    const struct sxe_http_request *request = entry->request;
    const struct sxe_http_parser *head = &request->head;
    struct sxe_http_basic basic;

    add_numbers(line, entry);
    add_member(line, ",\"peer\":\"", peer_of(request));
    add_member(line, ",\"user\":\"", sxe_http_user(request, &basic));
    add_member(line, ",\"method\":\"", sxe_http_method_text(request));
    add_member(line, ",\"target\":\"", sxe_http_target(request));
    if (has_version(entry)) {
        add_line_text(line, ",\"version\":\"1.");
        add_decimal(line, head->minor);
        add_line_text(line, "\"");
    }
    add_member(line, ",\"host\":\"", sxe_http_known_value(request, SXE_HTTP_FIELD_HOST));
    add_member(line, ",\"referer\":\"", sxe_http_field_value(request, "Referer"));
    add_member(line, ",\"user_agent\":\"",
               sxe_http_known_value(request, SXE_HTTP_FIELD_USER_AGENT));
    add_ids(line, entry);
    if (entry->sample_rate > 0)
        line->length += (unsigned)snprintf(line->text + line->length, PART_MAX,
                                           ",\"sample_rate\":%g", entry->sample_rate);
    if (head->refusal != SXE_HTTP_NOT_REFUSED)
        add_member(line, ",\"refused\":\"",
                   span_of(sxe_http_refusal_text((enum sxe_http_refusal)head->refusal)));
    if (entry->summary->result < 0)
        add_member(line, ",\"error\":\"", span_of(strerror(-entry->summary->result)));
    add_line_text(line, "}");
}

/* ---- The line ---- */

void
log_clock_set(struct log_clock *clock, time_t now)
{
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct tm tm;

    if (now == clock->second)
        return;
    clock->second = now;
    gmtime_r(&now, &tm);
    snprintf(clock->iso, sizeof(clock->iso), "%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900,
             tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
    snprintf(clock->local, sizeof(clock->local), "%02d/%s/%04d:%02d:%02d:%02d +0000", tm.tm_mday,
             months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

void
log_line_make(struct log_line *line, const struct log_format *format, const struct log_entry *entry)
{
    line->length = 0;
    if (format->is_object)
        add_object(line, entry);
    for (unsigned i = 0; i < format->number; i++) {
        const struct log_part *part = &format->parts[i];

        if (part->variable == LOG_LITERAL)
            add_literal(line, format, part);
        else
            add_variable(line, format, part, entry);
    }
    line->text[line->length++] = '\n';
}
