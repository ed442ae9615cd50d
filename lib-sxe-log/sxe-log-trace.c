/* SPDX-License-Identifier: MIT
 *
 * What: the traced calls that have not returned in this thread, outermost first.
 *
 * Shape: the stack grows down, so a call made later has a lower frame address. An inlined function
 * has the frame address and the return address of its caller. Functions called one after the other
 * from one place may have the same frame address, but different return addresses. Hence, seen from
 * a running function, these calls are over, however they ended (by a return without SXE_LEAVE, by
 * longjmp): all with lower frame addresses, and those with the same frame address but another
 * return address.
 *
 *     calls[0] main 0x7ff0 | calls[1] f 0x7fa0 | calls[2] g 0x7fa0, inlined in f | ...
 *
 * depth may pass SXE_LOG_TRACE_MAX: calls are then counted and not remembered.
 *
 * A thread's calls[] is allocated by its first traced call, and freed at its end: thread-local
 * memory of that size would keep dlopen from loading the library. Without memory nothing is traced.
 */
#include "sxe-log-private.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static SXE__HOT_TLS unsigned depth; /* 0 while calls is NULL */
static SXE__HOT_TLS struct sxe__trace_call *calls;

static pthread_once_t key_made = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* a key whose destructor frees a thread's calls */

/* Called at a thread's end. */
static void
free_calls(void *memory)
{
    calls = NULL;
    depth = 0;
    free(memory);
}

static void
make_thread_key(void)
{
    (void)pthread_key_create(&key, free_calls);
}

static bool
allocate_calls(void)
{
    int saved_errno = errno;

    pthread_once(&key_made, make_thread_key);
    calls = calloc(SXE_LOG_TRACE_MAX, sizeof(*calls));
    if (calls != NULL)
        (void)pthread_setspecific(key, calls);
    errno = saved_errno;
    return calls != NULL;
}

static unsigned
remembered_depth(void)
{
    return depth < SXE_LOG_TRACE_MAX ? depth : SXE_LOG_TRACE_MAX;
}

static bool
is_call_over(const struct sxe_log_frame *call, const struct sxe_log_frame *running)
{
    if (call->address == running->address)
        return call->return_address != running->return_address;
    return (uintptr_t)call->address < (uintptr_t)running->address;
}

void
sxe__trace_forget(const struct sxe_log_frame *frame)
{
    unsigned live = remembered_depth();

    if (frame == NULL || live == 0)
        return;
    while (live > 0 && is_call_over(&calls[live - 1].frame, frame))
        live--;
    /* If the running function is the last one that is remembered, the calls that were too deep to
     * be remembered have ended. */
    if (live < remembered_depth() || calls[live - 1].frame.address == frame->address)
        depth = live;
}

unsigned
sxe__trace_indent(void)
{
    unsigned indent = 0;

    for (unsigned i = 0; i < remembered_depth(); i++)
        indent += sxe_log_shown(calls[i].site->control, calls[i].site->level) ? 1 : 0;
    return indent;
}

/* Find a remembered call by its function and frame. Returns its index; depth: it is not remembered.
 * Names are compared as addresses, because __func__ is one object in each function. */
static unsigned
find_call(const char *function, const struct sxe_log_frame *frame)
{
    for (unsigned i = remembered_depth(); i > 0; i--) {
        if (calls[i - 1].frame.address != frame->address)
            break;
        if (calls[i - 1].site->function == function)
            return i - 1;
    }
    return depth;
}

unsigned
sxe__trace_enter(const struct sxe__trace_call *call)
{
    if (calls == NULL && !allocate_calls())
        return 0;
    sxe__trace_forget(&call->frame);
    depth = find_call(call->site->function, &call->frame);

    unsigned indent = sxe__trace_indent();

    if (depth < SXE_LOG_TRACE_MAX)
        calls[depth] = *call;
    depth++;
    return indent;
}

unsigned
sxe__trace_leave(const struct sxe_log_site *site, const struct sxe_log_frame *frame)
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
    return nth < remembered_depth() ? &calls[remembered_depth() - 1 - nth] : NULL;
}

unsigned
sxe__trace_deeper(void)
{
    return depth - remembered_depth();
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
