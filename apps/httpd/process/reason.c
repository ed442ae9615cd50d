/* SPDX-License-Identifier: MIT
 *
 * If loads fail again and again for the same reason, the reason is printed only once.
 */
#include "reason.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "keyed-digest.h"
#include "sxe-libc-internal.h"
#include "sxe-workers-handover-internal.h"

static struct {
    uint32_t told; /* the digest of the reason that was printed last; 0: none was printed */
    bool is_retry;
    bool is_told;
    /* The members below are for a process that loads. */
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

/* Keep the text in reason.text. If this load is no retry, also write it to standard error, as
 * write(2) does. */
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

/* Replace stderr by a stream that keeps the text. The stream is never closed, because Lua's
 * io.stderr uses it. */
void
reason_watch(void)
{
    FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = hold_back_text});

    if (stream != NULL && SXE__LIBC_SET_STREAM(stderr, stream)) {
        setvbuf(stream, NULL, _IONBF, 0);
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
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_REASON};

    if (!reason.is_watched)
        return;
    message.value = (uint32_t)keyed_digest(key, reason.text, reason.length).half[0] | 1;
    end_watch(message.value != reason.told);
    (void)sxe__handover_send(link, &message, -1);
}
