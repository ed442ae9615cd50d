/* SPDX-License-Identifier: MIT
 *
 * What: composes a query from a step's pieces and a user's values.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "session-private.h"
#include "sxe-json.h"

/* One byte becomes at most as many bytes by an escape. */
#define ESCAPED_MAX 6

/* Room for the part of a head whose length is not measured: version, Content-Length, Content-Type
 * with a boundary. */
#define HEAD_ROOM   512
#define LENGTH_ROOM 48

/* ---- Values ---- */

static void
put_request_bytes(struct load_bytes *to, const char *bytes, size_t length)
{
    memcpy(to->bytes + to->length, bytes, length);
    to->length += length;
}

static void
put_request_text(struct load_bytes *to, const char *text)
{
    put_request_bytes(to, text, strlen(text));
}

static bool
is_alphanumeric(char byte)
{
    char letter = (char)(byte | 0x20);

    return (letter >= 'a' && letter <= 'z') || (byte >= '0' && byte <= '9');
}

static void
put_percent(struct load_bytes *to, char byte)
{
    static const char digits[] = "0123456789ABCDEF";

    to->bytes[to->length++] = '%';
    to->bytes[to->length++] = digits[(unsigned char)byte >> 4];
    to->bytes[to->length++] = digits[byte & 15];
}

static void
put_url(struct load_bytes *to, char byte)
{
    if (is_alphanumeric(byte) || byte == '-' || byte == '.' || byte == '_' || byte == '~')
        to->bytes[to->length++] = byte;
    else
        put_percent(to, byte);
}

/* Escape bytes that RFC 9112 does not allow in a target. # is escaped, too, because it would begin
 * a fragment, which is not sent. */
static void
put_raw(struct load_bytes *to, char byte)
{
    if (byte > ' ' && byte < '\177' && memchr("\"#<>\\^`{|}", byte, 10) == NULL)
        to->bytes[to->length++] = byte;
    else
        put_percent(to, byte);
}

static void
put_form(struct load_bytes *to, char byte)
{
    if (is_alphanumeric(byte) || byte == '*' || byte == '-' || byte == '.' || byte == '_')
        to->bytes[to->length++] = byte;
    else if (byte == ' ')
        to->bytes[to->length++] = '+';
    else
        put_percent(to, byte);
}

static void
put_json(struct load_bytes *to, struct sxe_span value)
{
    size_t length = value.length;

    to->length += sxe_json_escape(to->bytes + to->length, ESCAPED_MAX * length, value.base, &length,
                                  SXE_JSON_AS_IS);
}

static void
put_field(struct load_bytes *to, char byte)
{
    bool is_control = ((unsigned char)byte < ' ' && byte != '\t') || byte == '\177';

    to->bytes[to->length++] = is_control ? ' ' : byte;
}

/* Whether a % begins an escape %XX, which is allowed in a target. */
static bool
is_escaped(struct sxe_span value, size_t at)
{
    return value.length - at > 2 && isxdigit((unsigned char)value.base[at + 1]) &&
           isxdigit((unsigned char)value.base[at + 2]);
}

void
load_session_put(struct load_bytes *to, enum load_escape escape, struct sxe_span value)
{
    static void (*const puts[])(struct load_bytes *, char) = {
        [LOAD_ESCAPE_URL] = put_url,
        [LOAD_ESCAPE_RAW] = put_raw,
        [LOAD_ESCAPE_FIELD] = put_field,
        [LOAD_ESCAPE_FORM] = put_form,
    };

    if (escape == LOAD_ESCAPE_NONE) {
        put_request_bytes(to, value.base, value.length);
        return;
    }
    if (escape == LOAD_ESCAPE_JSON) {
        put_json(to, value);
        return;
    }
    for (size_t i = 0; i < value.length; i++) {
        if (escape == LOAD_ESCAPE_RAW && value.base[i] == '%' && !is_escaped(value, i))
            put_percent(to, '%');
        else
            puts[escape](to, value.base[i]);
    }
}

struct sxe_span
load_session_value(const struct load_sessions *sessions, const struct load_user *user,
                   unsigned value)
{
    uint16_t column = sessions->names[value].column;

    if (column != LOAD_LITERAL)
        return load_rows_cell(sessions->rows, user->row, column);
    return (struct sxe_span){user->text + user->values[value].at, user->values[value].length};
}

/* ---- Room ---- */

static size_t
room_of(const struct load_sessions *sessions, struct load_pieces pieces)
{
    size_t room = 0;

    for (uint32_t i = 0; i < pieces.number; i++) {
        const struct load_piece *piece = &sessions->pieces[pieces.first + i];

        if (piece->value == LOAD_LITERAL)
            room += piece->length;
        else if (sessions->names[piece->value].column == LOAD_LITERAL)
            room += (size_t)ESCAPED_MAX * LOAD_TAKEN_MAX;
        else
            room += ESCAPED_MAX * sessions->rows->longest[sessions->names[piece->value].column];
    }
    return room;
}

void
load_session_measure(struct load_sessions *sessions)
{
    for (unsigned i = 0; i < sessions->number; i++) {
        const struct load_user_step *step = &sessions->steps[i];
        size_t head = strlen(step->method) + room_of(sessions, step->target) + LOAD_TARGET_MAX +
                      room_of(sessions, step->fields) + room_of(sessions, step->own_type) +
                      LOAD_JAR_TEXT_MAX + HEAD_ROOM;
        size_t body = room_of(sessions, step->body) + sizeof(sessions->boundary) + 8;

        for (unsigned part = 0; part < step->parts_number; part++)
            body += room_of(sessions, step->parts[part].head) +
                    room_of(sessions, step->parts[part].content) + sizeof(sessions->boundary) + 16;
        if (head + body > sessions->request_room)
            sessions->request_room = head + body;
    }
}

/* ---- Bodies ---- */

static void
put_pieces(const struct load_sessions *sessions, const struct load_user *user,
           struct load_bytes *to, struct load_pieces pieces)
{
    const struct load_piece *piece = &sessions->pieces[pieces.first];

    for (uint32_t i = 0; i < pieces.number; i++, piece++) {
        if (piece->value == LOAD_LITERAL)
            put_request_bytes(to, piece->text, piece->length);
        else
            load_session_put(to, (enum load_escape)piece->escape,
                             load_session_value(sessions, user, piece->value));
    }
}

/* The generator SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
uint64_t
load_session_random(struct load_sessions *sessions)
{
    uint64_t mixed = sessions->random += UINT64_C(0x9E3779B97F4A7C15);

    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ mixed >> 31;
}

void
load_session_new_boundary(struct load_sessions *sessions)
{
    snprintf(sessions->boundary, sizeof(sessions->boundary), "----sxe-http-%016llx",
             (unsigned long long)load_session_random(sessions));
    sessions->is_boundary_new = true;
}

static bool
has_boundary(const struct load_sessions *sessions, const char *bytes, size_t length)
{
    return memmem(bytes, length, sessions->boundary, strlen(sessions->boundary)) != NULL;
}

/* Write all parts of the body. False: a part contains the boundary (RFC 2046, 5.1.1), and another
 * boundary is needed. A constant part was checked before the run, so it is checked again only if
 * the boundary has changed. */
static bool
put_parts(const struct load_sessions *sessions, const struct load_user *user,
          const struct load_user_step *step, struct load_bytes *to)
{
    for (unsigned i = 0; i < step->parts_number; i++) {
        const struct load_form_part *part = &step->parts[i];
        size_t begin;

        put_request_text(to, "--");
        put_request_text(to, sessions->boundary);
        put_request_text(to, "\r\n");
        begin = to->length;
        put_pieces(sessions, user, to, part->head);
        put_request_text(to, "\r\n");
        put_pieces(sessions, user, to, part->content);
        if ((part->has_values || sessions->is_boundary_new) &&
            has_boundary(sessions, to->bytes + begin, to->length - begin))
            return false;
        put_request_text(to, "\r\n");
    }
    put_request_text(to, "--");
    put_request_text(to, sessions->boundary);
    put_request_text(to, "--\r\n");
    return true;
}

static void
put_body(struct load_sessions *sessions, const struct load_user *user,
         const struct load_user_step *step, struct load_bytes *to)
{
    put_pieces(sessions, user, to, step->body);
    while (step->content == LOAD_CONTENT_PARTS && !put_parts(sessions, user, step, to)) {
        to->length = 0;
        load_session_new_boundary(sessions);
    }
}

/* ---- Heads ---- */

/* Write the target, and store it in the user, because cookies and redirects need it. */
static void
put_target(const struct load_sessions *sessions, struct load_user *user,
           const struct load_user_step *step, struct load_bytes *to)
{
    size_t begin = to->length, length;

    if (user->is_hop) {
        put_request_bytes(to, user->target, user->target_length);
        return;
    }
    put_pieces(sessions, user, to, step->target);
    /* If the target begins with a value, its first slash may be missing. */
    if (to->length == begin || to->bytes[begin] != '/') {
        memmove(to->bytes + begin + 1, to->bytes + begin, to->length - begin);
        to->bytes[begin] = '/';
        to->length++;
    }
    length = to->length - begin;
    user->target_length = (uint16_t)(length < LOAD_TARGET_MAX ? length : LOAD_TARGET_MAX);
    memcpy(user->target, to->bytes + begin, user->target_length);
}

static void
put_cookies(const struct load_user *user, struct load_bytes *to)
{
    static const char name[] = "Cookie: ";
    size_t length = sizeof(name) - 1;
    struct timespec now = {0, 0};

    if (user->jar.has_times)
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
    memcpy(to->bytes + to->length, name, length);
    length = load_jar_write(&user->jar, (struct sxe_span){user->target, user->target_length},
                            now.tv_sec, to->bytes + to->length + length);
    if (length == 0)
        return;
    to->length += sizeof(name) - 1 + length;
    put_request_text(to, "\r\n");
}

static void
put_type(const struct load_sessions *sessions, const struct load_user *user,
         const struct load_user_step *step, struct load_bytes *to)
{
    if (step->has_own_type) {
        put_pieces(sessions, user, to, step->own_type);
    } else if (step->content == LOAD_CONTENT_FORM) {
        put_request_text(to, "Content-Type: application/x-www-form-urlencoded\r\n");
    } else if (step->content == LOAD_CONTENT_PARTS) {
        put_request_text(to, "Content-Type: multipart/form-data; boundary=");
        put_request_text(to, sessions->boundary);
        put_request_text(to, "\r\n");
    }
}

static void
put_content(const struct load_sessions *sessions, const struct load_user *user,
            const struct load_user_step *step, struct load_bytes *to, struct sxe_span body)
{
    put_type(sessions, user, step, to);
    /* a POST, PUT or PATCH without a body sends Content-Length: 0 (RFC 9110, 8.6) */
    if (step->content != LOAD_CONTENT_NONE || *step->method == 'P')
        to->length += (size_t)snprintf(to->bytes + to->length, LENGTH_ROOM,
                                       "Content-Length: %zu\r\n", body.length);
    put_request_text(to, "\r\n");
    put_request_bytes(to, body.base, body.length);
}

void
load_session_compose(struct load_sessions *sessions, struct load_user *user,
                     struct load_query *query)
{
    const struct load_user_step *step = &sessions->steps[user->step];
    bool is_get = user->is_hop && user->is_get && !step->is_head;
    struct load_bytes to = {sessions->request, 0};
    struct load_bytes body = {sessions->request + sessions->request_room, 0};

    if (!is_get)
        put_body(sessions, user, step, &body);
    put_request_text(&to, is_get ? "GET" : step->method);
    put_request_text(&to, " ");
    put_target(sessions, user, step, &to);
    put_request_text(&to, " HTTP/");
    put_request_text(&to, sessions->version);
    put_request_text(&to, "\r\n");
    put_pieces(sessions, user, &to, step->fields);
    if (sessions->has_cookies && user->jar.number > 0)
        put_cookies(user, &to);
    if (is_get)
        put_request_text(&to, "\r\n");
    else
        put_content(sessions, user, step, &to, (struct sxe_span){body.bytes, body.length});
    query->bytes = to.bytes;
    query->length = (unsigned)to.length;
}
