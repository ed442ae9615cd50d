/* SPDX-License-Identifier: MIT
 *
 * What: the traced calls that this thread is in, outermost first.
 *
 * Shape: the stack grows down, so a call made later has a lower frame address; a call that the
 * compiler inlined shares its caller's. Hence, seen from a function with frame F, all entries below
 * F are over, however they ended (return without a trace, longjmp), and those at F may go on.
 *
 *     calls[0] main 0x7ff0 | calls[1] f 0x7fa0 | calls[2] g 0x7fa0, inlined | ...     addresses
 * fall
 *
 * depth may pass SXE_LOG_TRACE_MAX: calls are then counted and not remembered.
 */
#include "sxe-log-private.h"

static SXE__HOT_TLS unsigned depth;
static _Thread_local struct sxe__trace_call calls[SXE_LOG_TRACE_MAX];

static unsigned
remembered(void)
{
    return depth < SXE_LOG_TRACE_MAX ? depth : SXE_LOG_TRACE_MAX;
}

void
sxe__trace_forget(uintptr_t frame)
{
    unsigned live = remembered();

    if (live == 0 || calls[live - 1].frame > frame)
        return;
    while (live > 0 && calls[live - 1].frame < frame)
        live--;
    depth = live;
}

unsigned
sxe__trace_indent(void)
{
    unsigned indent = 0;

    for (unsigned i = 0; i < remembered(); i++)
        indent += sxe_log_shown(calls[i].site->control, calls[i].site->level) ? 1 : 0;
    return indent;
}

/* Functions called one after the other from one place of the stack have equal frames too, but they
 * return to different addresses; what was inlined returns where its caller does. __func__ is one
 * object in each function, so names are compared as addresses. */
unsigned
sxe__trace_enter(const struct sxe__trace_call *call)
{
    sxe__trace_forget(call->frame);
    for (unsigned i = remembered(); i > 0 && calls[i - 1].frame == call->frame; i--) {
        if (calls[i - 1].return_address != call->return_address ||
            calls[i - 1].site->function == call->site->function)
            depth = i - 1;
    }

    unsigned indent = sxe__trace_indent();

    if (depth < SXE_LOG_TRACE_MAX)
        calls[depth] = *call;
    depth++;
    return indent;
}

/* The call of the function that has this frame, or depth. */
static unsigned
find_call(const char *function, uintptr_t frame)
{
    for (unsigned i = remembered(); i > 0 && calls[i - 1].frame == frame; i--) {
        if (calls[i - 1].site->function == function)
            return i - 1;
    }
    return depth;
}

unsigned
sxe__trace_leave(const struct sxe_log_site *site, uintptr_t frame)
{
    sxe__trace_forget(frame);

    unsigned call = find_call(site->function, frame);
    bool is_remembered = call < depth;

    if (is_remembered)
        depth = call + 1;
    unsigned indent = sxe__trace_indent();
    if (is_remembered || depth > SXE_LOG_TRACE_MAX)
        depth--;
    return indent;
}

const struct sxe__trace_call *
sxe__trace_call(unsigned nth)
{
    return nth < remembered() ? &calls[remembered() - 1 - nth] : NULL;
}

unsigned
sxe__trace_deeper(void)
{
    return depth - remembered();
}

unsigned
sxe_log_trace_mark(void)
{
    return depth;
}

void
sxe_log_trace_release(unsigned mark)
{
    if (mark < depth)
        depth = mark;
}
