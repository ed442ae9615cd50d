/* SPDX-License-Identifier: MIT
 *
 * The lines of a head. Each state reads one part and leads to the next; when bytes run out, `at` is
 * where reading goes on, and `mark` where the part begins.
 *
 *     EMPTY -> METHOD -> TARGET -> VERSION ---------------> LINE_END -> NAME -> BLANKS -> VALUE
 *                                  VERSION -> STATUS -> REASON -^       | ^                 |
 *                                                                DONE <-+ +-----------------+
 *
 * Most heads come in one piece and need no states: whole_request_line() and whole_fields() read the
 * usual lines. The states read all other lines, the invalid ones among them.
 */
#include "sxe-http-private.h"

#include <string.h>

enum state {
    EMPTY, /* empty lines may come before a request */
    METHOD,
    TARGET,
    VERSION,
    STATUS,
    REASON,
    LINE_END,
    NAME,
    BLANKS, /* between the colon and the value */
    VALUE,
    DONE,
    REFUSED
};

enum { BAD = -1, MORE = 0, NEXT = 1, FIELDS_MAX = 255, STATUS_LENGTH = 3, ESCAPE_LENGTH = 3 };

_Static_assert(SXE_HTTP_FIELD_IDS <= 32, "`repeated` has a bit for each well-known field");
_Static_assert(sizeof(struct sxe_http_field) == 8, "there are many of them");
_Static_assert(sizeof(struct sxe_http_parser) <= 128, "each request clears it");

void
sxe_http_parser_next(struct sxe_http_parser *parser)
{
    static const uint8_t first_state[] = {EMPTY, VERSION, NAME};

    /* Two calls of memset, because for one large call the compiler would use a slow string
     * instruction. */
    memset((char *)parser + offsetof(struct sxe_http_parser, state), 0,
           offsetof(struct sxe_http_parser, known) - offsetof(struct sxe_http_parser, state));
    memset(parser->known, 0, sizeof(parser->known));
    parser->state = first_state[parser->kind];
}

void
sxe_http_parser_init(struct sxe_http_parser *parser, enum sxe_http_kind kind,
                     struct sxe_http_field *fields, uint16_t room,
                     const struct sxe_http_limits *limits)
{
    static const struct sxe_http_limits usual = SXE_HTTP_LIMITS;

    parser->fields = fields;
    parser->limits = limits == NULL ? usual : *limits;
    parser->kind = (uint8_t)kind;
    if (parser->limits.fields_max > FIELDS_MAX)
        parser->limits.fields_max = FIELDS_MAX;
    if (fields != NULL && parser->limits.fields_max > room)
        parser->limits.fields_max = room;
    sxe_http_parser_next(parser);
}

/* The offset before which the first line must end, because of line_max. */
static size_t
line_limit(const struct sxe_http_parser *parser)
{
    return (size_t)parser->line + parser->limits.line_max;
}

int
sxe__http_refuse(struct sxe_http_parser *parser, enum sxe_http_refusal why, size_t at)
{
    parser->refusal = (uint8_t)why;
    parser->refused_at = (uint16_t)at;
    parser->state = REFUSED;
    return BAD;
}

/* More bytes are needed. All bytes before `at` were read. */
static int
need_more_bytes(struct sxe_http_parser *parser, size_t at)
{
    parser->at = (uint16_t)at;
    return MORE;
}

/* Go to a state. The part of the head that the state reads begins at `at`. */
static int
go_to_state(struct sxe_http_parser *parser, enum state state, size_t at)
{
    parser->state = (uint8_t)state;
    parser->at = parser->mark = (uint16_t)at;
    return NEXT;
}

static inline struct sxe_http_text
text_between(size_t begin, size_t end)
{
    return (struct sxe_http_text){(uint16_t)begin, (uint16_t)(end - begin)};
}

/* The reason to refuse byte `c`, which should have been the CR at a line's end: `otherwise`, unless
 * `c` is a control byte. */
static enum sxe_http_refusal
not_an_end(char c, enum sxe_http_refusal otherwise)
{
    uint8_t byte = (uint8_t)c;

    if (byte == '\n')
        return SXE_HTTP_REFUSED_BARE_LF;
    return (byte < ' ' && byte != '\t') || byte == 0x7F ? SXE_HTTP_REFUSED_CONTROL_BYTE : otherwise;
}

/* Read CR LF, whose CR is at `at`. NEXT: CR and LF are there. */
static int
line_feed(struct sxe_http_parser *parser, const struct sxe__http_input *in, size_t at)
{
    if (at + 1 == in->end)
        return need_more_bytes(parser, at);
    if (in->data[at + 1] != '\n')
        return sxe__http_refuse(parser, SXE_HTTP_REFUSED_BARE_CR, at);
    return NEXT;
}

/* Skip empty lines before a request (RFC 9112, 2.2). */
static int
skip_empty_lines(struct sxe_http_parser *parser, struct sxe__http_input *in)
{
    while (parser->line < in->end && in->data[parser->line] == '\r') {
        int result = line_feed(parser, in, parser->line);

        if (result != NEXT)
            return result;
        parser->line = (uint16_t)(parser->line + 2);
    }
    return parser->line == in->end ? MORE : go_to_state(parser, METHOD, parser->line);
}

static int
parse_method(struct sxe_http_parser *parser, struct sxe__http_input *in)
{
    size_t at = sxe__http_stop(in, SXE__HTTP_TOKEN, parser->at);

    if (at == in->end)
        return need_more_bytes(parser, at);
    if (in->data[at] != ' ' || at == parser->mark)
        return sxe__http_refuse(parser, SXE_HTTP_REFUSED_BAD_METHOD, at);
    parser->method_name = text_between(parser->mark, at);
    parser->method =
        (uint8_t)sxe__http_method_of(in->data + parser->mark, parser->method_name.length);
    return go_to_state(parser, TARGET, at + 1);
}

/* The byte at `at` is outside the target's set. Returns how many bytes to accept there: those of an
 * escape, or one byte that browsers send unescaped in a query (WHATWG URL, 1.3), such as a % that
 * begins no escape. 0: refuse the byte. */
static size_t
accept_unusual_bytes(struct sxe_http_parser *parser, const struct sxe__http_input *in, size_t at)
{
    const char *data = in->data;
    const size_t left = in->end - at;

    if (data[at] == '%' && left >= ESCAPE_LENGTH && sxe__http_is_escape(data + at + 1))
        return ESCAPE_LENGTH;
    if (memchr("%\\^`{}", data[at], 6) == NULL)
        return 0;
    if (!parser->in_query)
        parser->in_query = memchr(data + parser->mark, '?', at - parser->mark) != NULL;
    if (!parser->in_query && data[at] == '%' && left < ESCAPE_LENGTH)
        return ESCAPE_LENGTH; /* when more bytes come, it may be an escape */
    return parser->in_query;
}

static int
parse_target(struct sxe_http_parser *parser, struct sxe__http_input *in)
{
    size_t at = sxe__http_stop(in, SXE__HTTP_TARGET, parser->at);
    size_t length;

    while (at < in->end && (length = accept_unusual_bytes(parser, in, at)) > 0) {
        if (in->end - at < length)
            return need_more_bytes(parser, at);
        at = sxe__http_stop(in, SXE__HTTP_TARGET, at + length);
    }
    if (at == in->end)
        return need_more_bytes(parser, at);
    if (in->data[at] != ' ' || at == parser->mark)
        return sxe__http_refuse(parser, SXE_HTTP_REFUSED_BAD_TARGET, at);
    parser->target = text_between(parser->mark, at);
    if (!sxe__http_target(parser, in->data))
        return sxe__http_refuse(parser, SXE_HTTP_REFUSED_BAD_TARGET, parser->mark);
    return go_to_state(parser, VERSION, at + 1);
}

static bool
is_version_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Read HTTP-version (RFC 9112, 2.3). In a response, also read the space after the version. */
static int
parse_version(struct sxe_http_parser *parser, struct sxe__http_input *in)
{
    static const char pattern[] = "HTTP/d.d ";
    size_t length = parser->kind == SXE_HTTP_RESPONSE ? 9 : 8;
    size_t mark = parser->mark;
    size_t at = parser->at;

    if (in->end - mark >= length && memcmp(in->data + mark, "HTTP/1.1", 8) == 0)
        at = mark + 8;
    for (; at - mark < length; at++) {
        char wanted = pattern[at - mark];

        if (at == in->end)
            return need_more_bytes(parser, at);
        if (wanted == 'd' ? !is_version_digit(in->data[at]) : in->data[at] != wanted)
            return sxe__http_refuse(parser, SXE_HTTP_REFUSED_BAD_VERSION, at);
    }
    if (in->data[mark + 5] != '1')
        return sxe__http_refuse(parser, SXE_HTTP_REFUSED_UNKNOWN_VERSION, mark + 5);
    parser->minor = (uint8_t)(in->data[mark + 7] - '0');
    return go_to_state(parser, length == 9 ? STATUS : LINE_END, mark + length);
}

/* Read three digits and a space; servers that send no reason may leave the space out (RFC 9112,
 * 4). */
static int
parse_status_code(struct sxe_http_parser *parser, struct sxe__http_input *in)
{
    size_t at = parser->at;

    for (; at - parser->mark < STATUS_LENGTH; at++) {
        if (at == in->end)
            return need_more_bytes(parser, at);
        if (!is_version_digit(in->data[at]))
            return sxe__http_refuse(parser, SXE_HTTP_REFUSED_BAD_STATUS, at);
    }
    if (at == in->end)
        return need_more_bytes(parser, at);
    if (in->data[parser->mark] == '0')
        return sxe__http_refuse(parser, SXE_HTTP_REFUSED_BAD_STATUS, parser->mark);
    for (size_t i = parser->mark; i < at; i++)
        parser->status = (uint16_t)(parser->status * 10 + (in->data[i] - '0'));
    if (in->data[at] == ' ')
        return go_to_state(parser, REASON, at + 1);
    if (in->data[at] == '\r')
        return go_to_state(parser, LINE_END, at);
    return sxe__http_refuse(parser, SXE_HTTP_REFUSED_BAD_STATUS, at);
}

static int
reason_of_state(struct sxe_http_parser *parser, struct sxe__http_input *in)
{
    size_t at = sxe__http_stop(in, SXE__HTTP_VALUE, parser->at);

    if (at == in->end)
        return need_more_bytes(parser, at);
    parser->reason = text_between(parser->mark, at);
    return go_to_state(parser, LINE_END, at);
}

static int
take_line_end(struct sxe_http_parser *parser, struct sxe__http_input *in)
{
    size_t at = parser->at;
    int result;

    if (at == in->end)
        return MORE;
    if (in->data[at] != '\r')
        return sxe__http_refuse(parser, not_an_end(in->data[at], SXE_HTTP_REFUSED_BAD_VERSION), at);
    result = line_feed(parser, in, at);
    return result == NEXT ? go_to_state(parser, NAME, at + 2) : result;
}

/* No name with a colon begins at `at`: the line there is the empty line that ends the head, or is
 * incomplete or wrong. */
static int
not_a_name(struct sxe_http_parser *parser, const struct sxe__http_input *in, size_t at)
{
    char c = in->data[at];
    bool is_blank = c == ' ' || c == '\t';

    if (at > parser->mark)
        return sxe__http_refuse(
            parser, is_blank ? SXE_HTTP_REFUSED_BLANK_BEFORE_COLON : SXE_HTTP_REFUSED_BAD_NAME, at);
    if (is_blank)
        return sxe__http_refuse(parser, SXE_HTTP_REFUSED_FOLDED_LINE, at);
    if (c != '\r')
        return sxe__http_refuse(parser, not_an_end(c, SXE_HTTP_REFUSED_BAD_NAME), at);
    return line_feed(parser, in, at);
}

static int
parse_field_name(struct sxe_http_parser *parser, struct sxe__http_input *in)
{
    size_t at = parser->at;

    if (at == in->end)
        return MORE;
    if (parser->number == parser->limits.fields_max && in->data[parser->mark] != '\r')
        return sxe__http_refuse(parser, SXE_HTTP_REFUSED_TOO_MANY_FIELDS, parser->mark);
    at = sxe__http_stop(in, SXE__HTTP_TOKEN, at);
    if (at == in->end)
        return need_more_bytes(parser, at);
    if (in->data[at] != ':' || at == parser->mark)
        return not_a_name(parser, in, at);
    parser->name = text_between(parser->mark, at);
    return go_to_state(parser, BLANKS, at + 1);
}

/* The end of the value, without the blanks after it. The value's line ends at `at`. */
static size_t
value_end(const char *data, size_t value, size_t at)
{
    while (at > value && (data[at - 1] == ' ' || data[at - 1] == '\t'))
        at--;
    return at;
}

/* Store a field whose line was read in one step. */
static inline void
keep_field(struct sxe_http_parser *parser, const char *data, struct sxe_http_text name,
           struct sxe_http_text value)
{
    enum sxe_http_field_id id = sxe__http_field_id_of(data + name.offset, name.length);

    if (parser->fields != NULL) {
        parser->fields[parser->number] =
            (struct sxe_http_field){name.offset, name.length, value.offset, value.length};
        if (parser->known[id] == 0)
            parser->known[id] = (uint8_t)(parser->number + 1);
        else
            parser->repeated |= UINT32_C(1) << id;
    }
    parser->number++;
}

static int
parse_value(struct sxe_http_parser *parser, struct sxe__http_input *in)
{
    size_t at = parser->at;
    int result;

    if (parser->state == BLANKS) {
        while (at < in->end && (in->data[at] == ' ' || in->data[at] == '\t'))
            at++;
        if (at == in->end)
            return need_more_bytes(parser, at);
        go_to_state(parser, VALUE, at);
    }
    at = sxe__http_stop(in, SXE__HTTP_VALUE, at);
    if (at == in->end)
        return need_more_bytes(parser, at);
    if (in->data[at] != '\r')
        return sxe__http_refuse(parser, not_an_end(in->data[at], SXE_HTTP_REFUSED_CONTROL_BYTE),
                                at);
    result = line_feed(parser, in, at);
    if (result != NEXT)
        return result;
    keep_field(parser, in->data, parser->name,
               text_between(parser->mark, value_end(in->data, parser->mark, at)));
    return go_to_state(parser, NAME, at + 2);
}

/* Fast path: read whole and valid lines up to the end of the head. Stops before any other line, for
 * parse_field_name() and parse_value() to examine. */
static void
whole_fields(struct sxe_http_parser *parser, struct sxe__http_input *in)
{
    const char *data = in->data;
    size_t line = parser->mark;

    while (parser->number < parser->limits.fields_max) {
        size_t colon = sxe__http_stop(in, SXE__HTTP_TOKEN, line);
        size_t begin = colon + 1;
        size_t end;

        if (colon == line || colon == in->end || data[colon] != ':')
            break;
        /* Search for the line's end from the beginning of the line, not of the value. A value may
         * contain all bytes of a name, so the result is the same, and the processor need not find
         * the colon first. */
        end = sxe__http_stop(in, SXE__HTTP_VALUE, line > in->base ? line : in->base);
        if (in->end - end < 2 || data[end] != '\r' || data[end + 1] != '\n')
            break;
        while (data[begin] == ' ' || data[begin] == '\t')
            begin++;
        keep_field(parser, data, text_between(line, colon),
                   text_between(begin, value_end(data, begin, end)));
        line = end + 2;
    }
    if (in->end - line >= 2 && memcmp(data + line, "\r\n", 2) == 0)
        go_to_state(parser, DONE, line + 2);
    else
        go_to_state(parser, NAME, line);
}

/* Fast path: a whole line with GET, a path and HTTP/1.1. */
static void
whole_request_line(struct sxe_http_parser *parser, struct sxe__http_input *in)
{
    static const char method[] = "GET ";
    static const char version[] = " HTTP/1.1\r\n";
    const size_t target = sizeof(method) - 1;
    const size_t version_length = sizeof(version) - 1;
    const char *data = in->data;
    size_t end;

    if (in->end <= target || memcmp(data, method, target) != 0 || data[target] != '/')
        return;
    end = sxe__http_stop(in, SXE__HTTP_TARGET, target);
    if (in->end - end < version_length || end + version_length > line_limit(parser) ||
        memcmp(data + end, version, version_length) != 0)
        return;
    parser->method = SXE_HTTP_GET;
    parser->method_name = text_between(0, target - 1);
    parser->target = text_between(target, end);
    parser->minor = 1;
    go_to_state(parser, NAME, end + version_length);
}

/* Continue to read the first line. NEXT: the line is whole. */
static int
first_line(struct sxe_http_parser *parser, struct sxe__http_input *in)
{
    int result = NEXT;

    if (parser->state == METHOD)
        result = parse_method(parser, in);
    if (result == NEXT && parser->state == TARGET)
        result = parse_target(parser, in);
    if (result == NEXT && parser->state == VERSION)
        result = parse_version(parser, in);
    if (result == NEXT && parser->state == STATUS)
        result = parse_status_code(parser, in);
    if (result == NEXT && parser->state == REASON)
        result = reason_of_state(parser, in);
    if (result == NEXT && parser->state == LINE_END)
        result = take_line_end(parser, in);
    return result;
}

/* Continue to read the fields. NEXT: the head is whole. */
static int
field_lines(struct sxe_http_parser *parser, struct sxe__http_input *in)
{
    int result = NEXT;

    in->sets = SXE__HTTP_TARGET;
    while (result == NEXT && parser->state != DONE) {
        if (parser->state == NAME && parser->at == parser->mark)
            whole_fields(parser, in);
        if (parser->state != DONE)
            result = parser->state == NAME ? parse_field_name(parser, in) : parse_value(parser, in);
    }
    return result;
}

/* Read all lines. Do not read bytes beyond the first line's limit before the first line is whole,
 * so that the result does not depend on how many bytes have arrived. */
static int
read_head_lines(struct sxe_http_parser *parser, const char *data, size_t end)
{
    struct sxe__http_input in = SXE__HTTP_INPUT(data, end);
    int result = NEXT;

    if (parser->state == EMPTY)
        whole_request_line(parser, &in);
    if (parser->state == EMPTY)
        result = skip_empty_lines(parser, &in);
    if (result == NEXT && parser->state <= LINE_END) {
        if (end > line_limit(parser))
            in.end = line_limit(parser);
        result = first_line(parser, &in);
        if (in.end < end)
            in = (struct sxe__http_input)SXE__HTTP_INPUT(data, end);
    }
    return result == NEXT ? field_lines(parser, &in) : result;
}

/* More bytes are needed: refuse the head if its bytes so far have reached its limit. */
static int
within_limits(struct sxe_http_parser *parser, size_t end)
{
    if (parser->state <= LINE_END && end >= line_limit(parser))
        return sxe__http_refuse(parser,
                                parser->state == METHOD ? SXE_HTTP_REFUSED_METHOD_TOO_LONG
                                                        : SXE_HTTP_REFUSED_LINE_TOO_LONG,
                                line_limit(parser));
    if (end >= parser->limits.head_max)
        return sxe__http_refuse(parser, SXE_HTTP_REFUSED_HEAD_TOO_LARGE, end);
    return MORE;
}

int
sxe_http_parse(struct sxe_http_parser *parser, const char *data, size_t length)
{
    size_t end = length < parser->limits.head_max ? length : parser->limits.head_max;
    int result;

    if (parser->state >= DONE)
        return parser->state == DONE ? parser->at : BAD;
    result = read_head_lines(parser, data, end);
    if (result == MORE)
        return within_limits(parser, end);
    if (result == NEXT)
        result = sxe__http_frame(parser, data);
    return result == NEXT ? parser->at : BAD;
}
