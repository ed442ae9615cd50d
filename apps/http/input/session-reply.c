/* SPDX-License-Identifier: MIT
 *
 * What: reads what a user needs from a reply: cookies, values, and the target of a redirect.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "session-private.h"

/* Store what is wrong with the reply, unless a reason was stored already. */
SXE_PRINTF(3, 4)
static void
fail_user(struct load_sessions *sessions, struct load_user *user, const char *format, ...)
{
    va_list arguments;

    if (!user->has_failed) {
        va_start(arguments, format);
        vsnprintf(sessions->why, sizeof(sessions->why), format, arguments);
        va_end(arguments);
    }
    user->has_failed = true;
}

/* ---- Fields ---- */

static struct sxe_span
trim_field_blanks(struct sxe_span text)
{
    while (text.length > 0 && memchr(" \t", *text.base, 2) != NULL) {
        text.base++;
        text.length--;
    }
    while (text.length > 0 && memchr(" \t\r", text.base[text.length - 1], 3) != NULL)
        text.length--;
    return text;
}

bool
load_session_find_field(struct sxe_span head, const char *name, size_t *at, struct sxe_span *value)
{
    size_t length = strlen(name);

    while (*at < head.length) {
        const char *line = head.base + *at;
        const char *end = memchr(line, '\n', head.length - *at);
        size_t line_length = (size_t)((end == NULL ? head.base + head.length : end) - line);

        *at += line_length + (end != NULL);
        if (line_length > length && line[length] == ':' && ((*line ^ *name) & 0xDF) == 0 &&
            strncasecmp(line, name, length) == 0) {
            *value =
                trim_field_blanks((struct sxe_span){line + length + 1, line_length - length - 1});
            return true;
        }
    }
    return false;
}

static void
take_cookies(const struct load_sessions *sessions, struct load_user *user, struct sxe_span head)
{
    struct load_jar_origin origin = {sessions->host, {user->target, user->target_length}};
    struct timespec now = {0, 0};
    struct sxe_span value;
    size_t at = 0;

    while (load_session_find_field(head, "Set-Cookie", &at, &value)) {
        if (now.tv_sec == 0)
            clock_gettime(CLOCK_REALTIME_COARSE, &now);
        load_jar_take(&user->jar, &origin, value.base, value.length, now.tv_sec);
    }
}

/* ---- Values ---- */

/* Remove the bytes of the value with this index, which it has from an earlier reply. */
static void
remove_value(struct load_sessions *sessions, struct load_user *user, unsigned value)
{
    unsigned at = user->values[value].at, length = user->values[value].length;

    if (length == 0)
        return;
    memmove(user->text + at, user->text + at + length, (size_t)user->used - at - length);
    user->used = (uint16_t)(user->used - length);
    for (unsigned i = 0; i < sessions->names_number; i++)
        if (user->values[i].at > at)
            user->values[i].at = (uint16_t)(user->values[i].at - length);
}

static void
keep_taken_value(struct load_sessions *sessions, struct load_user *user,
                 const struct load_take *take, struct sxe_span value)
{
    remove_value(sessions, user, take->value);
    if (user->used + value.length > LOAD_TAKEN_ROOM) {
        fail_user(sessions, user, "take.%s: the values of a session have more than %d bytes",
                  take->name, LOAD_TAKEN_ROOM);
        return;
    }
    memcpy(user->text + user->used, value.base, value.length);
    user->values[take->value].at = user->used;
    user->values[take->value].length = (uint16_t)value.length;
    user->used = (uint16_t)(user->used + value.length);
}

static enum load_json_found
find_taken_value(const struct load_take *take, struct sxe_span head, struct sxe_span body,
                 struct sxe_span *value, char room[LOAD_TAKEN_MAX])
{
    struct load_json_value text = {room, LOAD_TAKEN_MAX, 0};
    enum load_json_found found = LOAD_JSON_FOUND;
    size_t at = 0;
    bool is_found = true;

    if (take->json != NULL) {
        found = load_json_find(take->json, body.base, body.length, &text);
        *value = (struct sxe_span){room, text.length};
    } else if (take->pattern != NULL) {
        is_found = load_pattern_find(take->pattern, body.base, body.length, value);
    } else {
        is_found = load_session_find_field(head, take->header, &at, value);
    }
    if (!is_found)
        return LOAD_JSON_MISSING;
    return found == LOAD_JSON_FOUND && value->length > LOAD_TAKEN_MAX ? LOAD_JSON_TOO_LONG : found;
}

static void
take_session_value(struct load_sessions *sessions, struct load_user *user,
                   const struct load_take *take, struct sxe_span head, struct sxe_span body)
{
    static const char *const texts[] = {
        [LOAD_JSON_MISSING] = "is not in the reply",
        [LOAD_JSON_NULL] = "is null",
        [LOAD_JSON_BROKEN] = "cannot be found, for the body is no JSON",
        [LOAD_JSON_TOO_LONG] = "has more than 4096 bytes",
    };
    char room[LOAD_TAKEN_MAX];
    struct sxe_span value = {NULL, 0};
    enum load_json_found found = find_taken_value(take, head, body, &value, room);

    if (found == LOAD_JSON_FOUND)
        keep_taken_value(sessions, user, take, value);
    else
        fail_user(sessions, user, "take.%s: %s %s", take->name, take->what, texts[found]);
}

/* ---- Redirects ---- */

static bool
is_redirect_status(unsigned status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static void
follow_redirect(struct load_sessions *sessions, struct load_user *user, unsigned status,
                struct sxe_span location)
{
    const struct load_user_step *step = &sessions->steps[user->step];
    const char *wrong = NULL;

    if (user->hops == step->follow)
        fail_user(sessions, user, "it is redirected more than %u times (follow)", step->follow);
    else if ((wrong = load_session_follow(sessions, user, location)) != NULL)
        fail_user(sessions, user, "the Location '%.*s' %s",
                  (int)(location.length < 80 ? location.length : 80), location.base, wrong);
    if (user->has_failed)
        return;
    /* 307 and 308 keep the method of the last query, which may already be a GET because of an
     * earlier redirect. */
    user->is_get = status < 307 || (user->is_hop && user->is_get);
    user->is_hop = true;
    user->hops++;
}

enum load_reading
load_session_read_reply(struct load_sessions *sessions, struct load_user *user,
                        const struct load_exchange *exchange)
{
    const struct load_user_step *step = &sessions->steps[user->step];
    struct sxe_span head = {exchange->head, exchange->head_length};
    struct sxe_span body = {exchange->body, exchange->body_length};
    struct sxe_span location;
    size_t at = 0;

    if (sessions->has_cookies)
        take_cookies(sessions, user, head);
    if (step->follow > 0 && is_redirect_status(exchange->status) &&
        load_session_find_field(head, "Location", &at, &location)) {
        follow_redirect(sessions, user, exchange->status, location);
        return user->has_failed ? LOAD_READ_ASTRAY : LOAD_READ_FOLLOW;
    }
    user->is_hop = false;
    for (unsigned i = 0; i < step->takes_number; i++)
        take_session_value(sessions, user, &step->takes[i], head, body);
    return user->has_failed ? LOAD_READ_FAILED : LOAD_READ_JUDGE;
}
