/* SPDX-License-Identifier: MIT
 *
 * Formats a line, a dump or a failed assertion, and hands it to the sink.
 */
#if __SIZEOF_POINTER__ < 8
#    error "libsxe needs a machine of 64 bits: pools and dicts keep counts and offsets of 64 bits"
#endif

#include "sxe-log-private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "sxe-always-internal.h"

enum { ROW_BYTES = 16, ROW_TEXT_MAX = 16 + 3 * ROW_BYTES + 1 + ROW_BYTES + 1 };

struct message {
    size_t length;
    /* a longer message is cut to this size; making the line may cut it further */
    char text[SXE_LOG_LINE_MAX];
};

static _Atomic(sxe_log_fatal_hook) fatal_hook;
static SXE__HOT_TLS const char *current_request;

/* ---- Messages ---- */

/* Append formatted text. A message that cannot be formatted (it has an invalid wide character)
 * becomes its format. */
static SXE_PRINTF(2, 0) void add_formatted(struct message *message, const char *format,
                                           va_list arguments)
{
    char *end = message->text + message->length;
    size_t room = sizeof(message->text) - message->length;
    int length = vsnprintf(end, room, format, arguments);

    if (length < 0)
        length = snprintf(end, room, "%s", format);
    message->length += (size_t)length < room ? (size_t)length : room - 1;
}

static SXE_PRINTF(2, 3) void add_to_message(struct message *message, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add_formatted(message, format, arguments);
    va_end(arguments);
}

static void
emit_line(const struct sxe_log_site *site, uint32_t id, unsigned indent, const char *mark,
          const struct message *message)
{
    struct sxe__log_event event = {
        .site = site,
        .mark = mark,
        .text = message->text,
        .length = message->length,
        .request = current_request,
        .id = id,
        .indent = indent,
    };

    sxe__log_emit(&event);
}

static void
emit_brace(const struct sxe_log_site *site, uint32_t id, unsigned indent, const char *mark)
{
    struct message message;

    message.length = 0;
    add_to_message(&message, "// %s:%d", sxe__log_basename(site->file), site->line);
    emit_line(site, id, indent, mark, &message);
}

const char *
sxe_log_set_request(const char *id)
{
    const char *before = current_request;

    current_request = id;
    return before;
}

const char *
sxe_log_get_request(void)
{
    return current_request;
}

/* ---- Functions that the macros call ---- */

void
sxe_log_line(const struct sxe_log_site *site, const struct sxe_log_frame *frame, uint32_t id,
             const char *format, ...)
{
    int saved_errno = errno;
    struct message message;
    va_list arguments;

    message.length = 0;
    va_start(arguments, format);
    add_formatted(&message, format, arguments);
    va_end(arguments);
    sxe__trace_forget(frame);
    emit_line(site, id, sxe__trace_indent(), "- ", &message);
    errno = saved_errno;
}

/* Make a row of a dump: address, hex, text: "080552a0 47 45 54 ... GET ...". */
static size_t
make_row(char text[ROW_TEXT_MAX], const unsigned char *bytes, size_t number)
{
    int end = snprintf(text, ROW_TEXT_MAX, "%08" PRIxPTR, (uintptr_t)bytes);

    for (size_t i = 0; i < number; i++)
        end += snprintf(text + end, (size_t)(ROW_TEXT_MAX - end), " %02x", bytes[i]);
    end += snprintf(text + end, (size_t)(ROW_TEXT_MAX - end), "%*s",
                    (int)(3 * (ROW_BYTES - number) + 1), "");
    for (size_t i = 0; i < number; i++)
        text[end++] = bytes[i] >= ' ' && bytes[i] <= '~' ? (char)bytes[i] : '.';
    return (size_t)end;
}

void
sxe_log_dump(const struct sxe_log_site *site, const struct sxe_log_frame *frame, uint32_t id,
             const void *data, size_t length)
{
    const unsigned char *bytes = data;
    int saved_errno = errno;
    char text[ROW_TEXT_MAX];
    struct sxe__log_event row = {.site = site, .mark = "- ", .text = text, .id = id};

    sxe__trace_forget(frame);
    row.indent = sxe__trace_indent();
    row.is_row = true;
    for (size_t done = 0; done < length; done += ROW_BYTES) {
        row.length =
            make_row(text, bytes + done, length - done < ROW_BYTES ? length - done : ROW_BYTES);
        sxe__log_emit(&row);
    }
    errno = saved_errno;
}

void
sxe_log_enter(const struct sxe_log_site *site, const struct sxe_log_frame *frame, uint32_t id,
              const char *format, ...)
{
    const struct sxe__trace_call call = {site, *frame, id};
    unsigned indent = sxe__trace_enter(&call);
    int saved_errno = errno;
    struct message message;
    va_list arguments;

    if (!sxe_log_shown(site->control, site->level))
        return;
    message.length = 0;
    va_start(arguments, format);
    add_formatted(&message, format, arguments);
    va_end(arguments);
    emit_line(site, id, indent, "+ ", &message);
    emit_brace(site, id, indent + 1, "{ ");
    errno = saved_errno;
}

void
sxe_log_leave(const struct sxe_log_site *site, const struct sxe_log_frame *frame, uint32_t id,
              const char *format, ...)
{
    unsigned indent = sxe__trace_leave(site, frame);
    int saved_errno = errno;
    struct message message;
    va_list arguments;

    if (!sxe_log_shown(site->control, site->level))
        return;
    message.length = 0;
    va_start(arguments, format);
    add_formatted(&message, format, arguments);
    va_end(arguments);
    emit_line(site, id, indent, "- ", &message);
    emit_brace(site, id, indent, "} ");
    errno = saved_errno;
}

/* ---- Assertions ---- */

sxe_log_fatal_hook
sxe_log_set_fatal_hook(sxe_log_fatal_hook hook)
{
    return atomic_exchange(&fatal_hook, hook);
}

static void
emit_trace(const struct sxe_log_site *failed)
{
    const char *how = "in";
    const struct sxe__trace_call *call;
    struct message message;

    if (sxe__trace_deeper() > 0) {
        message.length = 0;
        add_to_message(&message, "       in %u calls too deep to be remembered",
                       sxe__trace_deeper());
        emit_line(failed, SXE_NO_ID, sxe__trace_indent(), "- ", &message);
        how = "called from";
    }
    for (unsigned nth = 0; (call = sxe__trace_call(nth)) != NULL; nth++, how = "called from") {
        message.length = 0;
        add_to_message(&message, "       %s function %s() at %s:%d", how, call->site->function,
                       call->site->file, call->site->line);
        emit_line(failed, call->id, sxe__trace_indent(), "- ", &message);
    }
}

static SXE_NORETURN void
fail_with_message(const struct sxe_log_site *site, uint32_t id, const struct message *message)
{
    emit_line(site, id, sxe__trace_indent(), "- ", message);
    emit_trace(site);

    sxe_log_fatal_hook hook = atomic_load(&fatal_hook);
    if (hook != NULL)
        hook();
    abort();
}

void
sxe_log_assert_failed(const struct sxe_log_site *site, const struct sxe_log_frame *frame,
                      uint32_t id, const char *expression, const char *format, ...)
{
    struct message message;
    va_list arguments;

    message.length = 0;
    add_to_message(&message, "ERROR: assertion '%s' failed at %s:%d; ", expression, site->file,
                   site->line);
    va_start(arguments, format);
    add_formatted(&message, format, arguments);
    va_end(arguments);
    sxe__trace_forget(frame);
    fail_with_message(site, id, &message);
}

void
sxe__not_always(const char *expression, const char *file, int line)
{
    const struct sxe_log_site site = {&SXE_LOG_CONTROL, file, "", line, SXE_LOG_FATAL};
    const struct sxe_log_frame frame = {__builtin_frame_address(0), __builtin_return_address(0)};
    struct message message;

    message.length = 0;
    add_to_message(&message, "ERROR: assertion '%s' failed at %s:%d; what cannot happen did",
                   expression, file, line);
    sxe__trace_forget(&frame);
    fail_with_message(&site, SXE_NO_ID, &message);
}
