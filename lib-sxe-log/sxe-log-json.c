/* SPDX-License-Identifier: MIT
 *
 * What: from an event to a line of JSON. The keys that follow the message are made first, because
 * the message gets the room that they leave.
 */
#include "sxe-log-private.h"

#include <string.h>
#include <unistd.h>

#include "sxe-utf8.h"

enum { FILE_MAX = 200, TAIL_MAX = FILE_MAX + 100 };

static size_t
put_unicode(char *item, unsigned unit)
{
    char escape[8];

    snprintf(escape, sizeof(escape), "\\u%04x", unit & 0xffff);
    memcpy(item, escape, 6);
    return 6;
}

static size_t
encode_json(char *item, size_t *item_length, const unsigned char *in, size_t left)
{
    static const char named[] = "\nn\rr\tt\\\\\"\"";
    uint32_t character;
    size_t taken;

    for (const char *name = named; *name != '\0'; name += 2) {
        if ((char)*in == *name) {
            item[0] = '\\';
            item[1] = name[1];
            *item_length = 2;
            return 1;
        }
    }
    taken = sxe_utf8_decode(&character, in, left);
    if (taken == 0) {
        character = 0xfffd;
        taken = 1;
    }
    if (character < 0x10000) {
        *item_length = put_unicode(item, character);
    } else {
        *item_length = put_unicode(item, 0xd800 + ((character - 0x10000) >> 10));
        *item_length += put_unicode(item + 6, 0xdc00 + (character & 0x3ff));
    }
    return taken;
}

static size_t
make_tail(char tail[TAIL_MAX], const struct sxe__log_event *event)
{
    const char *file = sxe__log_basename(event->site->file);
    char id[32] = "";

    if (event->id != SXE_NO_ID)
        snprintf(id, sizeof(id), "\"id\":%u,", event->id);
    int length = snprintf(tail, TAIL_MAX, "\",\"pid\":%d,%s\"file\":\"", (int)getpid(), id);
    char *end = tail + length;
    end = sxe__log_append(end, end + FILE_MAX, file, strlen(file), encode_json);
    length = snprintf(end, (size_t)(tail + TAIL_MAX - end), "\",\"line\":%d}\n", event->site->line);
    return (size_t)(end + length - tail);
}

size_t
sxe__log_json(char line[SXE_LOG_LINE_MAX], const struct sxe__log_event *event)
{
    static const char *const levels[] = {"",      "fatal", "error", "warning", "information",
                                         "debug", "trace", "dump"};
    char tail[TAIL_MAX];
    size_t tail_length = make_tail(tail, event);
    const char *limit = line + SXE_LOG_LINE_MAX - tail_length;
    char *end = sxe__log_put_now(line, "{\"ts\":\"0000-00-00T00:00:00.000Z\",\"level\":\"");

    end += snprintf(end, (size_t)(limit - end), "%s\",\"msg\":\"%s", levels[event->site->level],
                    event->mark[0] == '-' ? "" : event->mark);
    end = sxe__log_append(end, limit, event->text, event->length, encode_json);
    memcpy(end, tail, tail_length);
    return (size_t)(end - line) + tail_length;
}
