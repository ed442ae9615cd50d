/* SPDX-License-Identifier: MIT
 *
 * If loads fail again and again for the same reason, tells it only once.
 */
#include "reason.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "handover.h"
#include "keyed-digest.h"

static struct {
    uint32_t told; /* digest of the latest reason that was told; 0: none */
    bool is_retry;
    bool is_told;
    /* In a process that loads. */
    bool is_watched;
    size_t length;
    char text[REASON_MAX];
} reason;

/* ---- In the supervisor ---- */

void
reason_begin_load(bool is_retry)
{
    reason.is_retry = is_retry;
    reason.is_told = false;
    if (!is_retry)
        reason.told = 0;
}

void
reason_note(uint32_t digest)
{
    reason.is_told = digest == reason.told;
    reason.told = digest;
}

bool
reason_is_told(void)
{
    return reason.is_told;
}

/* ---- In a process that loads ---- */

/* Write to standard error like write(2), but hold the text back while a retry loads. */
static ssize_t
hold_back_text(void *cookie, const char *bytes, size_t length)
{
    const size_t room = sizeof(reason.text) - reason.length;
    const size_t part = length < room ? length : room;

    (void)cookie;
    if (reason.is_watched) {
        memcpy(reason.text + reason.length, bytes, part);
        reason.length += part;
    }
    if (!reason.is_watched || !reason.is_retry)
        return write(STDERR_FILENO, bytes, length);
    return (ssize_t)length;
}

/* Watch stderr. The stream is never closed, because Lua's io.stderr keeps it. */
void
reason_watch(void)
{
    FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = hold_back_text});

    if (stream != NULL) {
        setvbuf(stream, NULL, _IONBF, 0);
        stderr = stream;
        reason.is_watched = true;
    }
}

static void
end_watch(bool is_shown)
{
    reason.is_watched = false;
    if (is_shown && reason.is_retry)
        fwrite(reason.text, 1, reason.length, stderr);
}

void
reason_end(void)
{
    if (reason.is_watched)
        end_watch(true);
}

void
reason_fail(int link)
{
    static const uint64_t key[2];
    struct handover_message message = {.kind = HANDOVER_REASON};

    if (!reason.is_watched)
        return;
    message.value = (uint32_t)keyed_digest(key, reason.text, reason.length).half[0] | 1;
    end_watch(message.value != reason.told);
    (void)handover_send(link, &message, -1);
}
