/* SPDX-License-Identifier: MIT
 *
 * What: makes a line of JSON from an event. The keys that follow the message are made before it, so
 * that the message can be cut to the room that they leave.
 */
#include "sxe-log-private.h"

#include <string.h>
#include <unistd.h>

#include "sxe-json.h"

enum { FILE_MAX = 200, TAIL_MAX = FILE_MAX + SXE_LOG_REQUEST_MAX + 120 };

#define REQUEST_KEY "request_id\":\""
#define FILE_KEY    "file\":\""

/* Append text, escaped, up to the limit. If it does not fit, cut it and append "..". Returns the
 * new end. */
static char *
append_json(char *end, const char *limit, const char *text, size_t length)
{
    const size_t room = (size_t)(limit - end);
    size_t taken = length;
    size_t written = sxe_json_escape(end, room, text, &taken, SXE_JSON_ASCII);

    if (taken == length)
        return end + written;
    taken = length;
    end += sxe_json_escape(end, room - 2, text, &taken, SXE_JSON_ASCII);
    memcpy(end, "..", 2);
    return end + 2;
}

static size_t
make_tail(char tail[TAIL_MAX], const struct sxe__log_event *event)
{
    const char *file = sxe__log_basename(event->site->file);
    char id[32] = "";

    if (event->id != SXE_NO_ID)
        snprintf(id, sizeof(id), "\"id\":%u,", event->id);
    int length = snprintf(tail, TAIL_MAX, "\",\"pid\":%d,%s\"", (int)getpid(), id);
    char *end = tail + length;
    if (event->request != NULL) {
        end = mempcpy(end, REQUEST_KEY, SXE_LITERAL_LENGTH(REQUEST_KEY));
        end = append_json(end, end + SXE_LOG_REQUEST_MAX, event->request, strlen(event->request));
        end = mempcpy(end, "\",\"", 3);
    }
    end = mempcpy(end, FILE_KEY, SXE_LITERAL_LENGTH(FILE_KEY));
    end = append_json(end, end + FILE_MAX, file, strlen(file));
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
    end = append_json(end, limit, event->text, event->length);
    memcpy(end, tail, tail_length);
    return (size_t)(end - line) + tail_length;
}
