/* SPDX-License-Identifier: MIT
 *
 * The calls that led to a place in the program. glibc has functions for them; musl has not, so
 * there the compiler's library finds them. The substitutes have names of their own, so that tests
 * compare them with glibc's.
 */
#ifndef BACKTRACE_H
#define BACKTRACE_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <unwind.h>

struct unwound_calls {
    void **calls;
    int count;
    int room;
};

static inline _Unwind_Reason_Code
add_unwound_call(struct _Unwind_Context *context, void *user)
{
    struct unwound_calls *unwound = user;

    void *call = (void *)_Unwind_GetIP(context);

    if (call == NULL || unwound->count == unwound->room) /* NULL called the first function */
        return _URC_END_OF_STACK;
    unwound->calls[unwound->count++] = call;
    return _URC_NO_REASON;
}

/* backtrace(3), without this function's own call. */
static inline int
unwind_calls(void **calls, int room)
{
    struct unwound_calls unwound = {.calls = calls, .room = room};

    _Unwind_Backtrace(add_unwound_call, &unwound);
    return unwound.count;
}

/* backtrace_symbols_fd(3): a line for each call, which addr2line(1) understands: the file and the
 * address in it. */
static inline void
write_calls(void *const *calls, int count, int fd)
{
    for (int i = 0; i < count; i++) {
        Dl_info info = {.dli_fname = NULL};

        if (dladdr(calls[i], &info) != 0 && info.dli_fname != NULL)
            dprintf(fd, "%s(+0x%zx)[%p]\n", info.dli_fname,
                    (size_t)((uintptr_t)calls[i] - (uintptr_t)info.dli_fbase), calls[i]);
        else
            dprintf(fd, "[%p]\n", calls[i]);
    }
}

#if __has_include(<execinfo.h>)
#    include <execinfo.h>
#else
#    define backtrace            unwind_calls
#    define backtrace_symbols_fd write_calls
#endif

#endif
