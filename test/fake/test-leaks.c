/* SPDX-License-Identifier: MIT
 *
 * Makes LeakSanitizer faster in test programs; it still finds each leak. It does not search a
 * process that ends with as many bytes allocated as it began with: nothing has leaked there. In
 * other processes it skips pages of static memory that were never touched. Each case is a process,
 * and LeakSanitizer searches it at its end. Up to 240 MB of a program are static arrays, of which a
 * case uses little. To read all of them would take nine tenths of the time of such programs.
 *
 * LeakSanitizer asks dl_iterate_phdr for the writable segments of the program and its libraries.
 * The function of that name below, which it finds first, reports the touched parts of each segment
 * as segments. A page that was not touched since the program began is as it is in the file, and so
 * has no pointer to an allocation. If /proc cannot be read, LeakSanitizer sees the whole segments.
 *
 * The programs of apps/ have this file, too, compiled with SXE_PROGRAM; they end as cases do.
 *
 * A case ends after its last handler and after LeakSanitizer's search. Destructors would come then,
 * and take a quarter of the time of a short case: ASan's forgets each global variable.
 */
#include "sxe-util.h"

#if SXE_HAVE_ASAN
#    include <dlfcn.h>
#    include <fcntl.h>
#    include <link.h>
#    include <pthread.h>
#    include <stdint.h>
#    include <stdio.h>
#    include <stdlib.h>
#    include <string.h>
#    include <sys/syscall.h>
#    include <unistd.h>

/* The parts of a file's segments that are told apart: the last part has all that follows. */
#    define RANGES_MAX 256
#    define GAP        0x8000 /* bytes; touched parts that are nearer to each other count as one */
#    define ENTRIES    512

/* The first calls come before ASan has its shadow memory, and the last ones while all else stands
 * still: nothing here is instrumented, and calls to the system do not go through the fakes. */
#    define UNCHECKED __attribute__((no_sanitize_address))

typedef int visit(struct dl_phdr_info *info, size_t size, void *data);

struct look {
    visit *visit;
    void *data;
    int pagemap;
};

struct ranges {
    ElfW(Phdr) segment[RANGES_MAX];
    ElfW(Half) number;
};

#    ifdef SXE_PROGRAM
#        define __real_syscall syscall
#    else
long __real_syscall(long number, ...);
#    endif
size_t __sanitizer_get_current_allocated_bytes(void);
void __lsan_do_leak_check(void);
#    ifdef SXE_COVERAGE
void __gcov_dump(void);
#    endif
int __lsan_is_turned_off(void);

/* how many bytes were allocated when this process began; 0 in the program itself */
static size_t bytes_before;
static pid_t program;
static uid_t first_user;

static void
note_bytes(void)
{
    bytes_before = __sanitizer_get_current_allocated_bytes();
    if (getppid() == program)
        bytes_before += 4096; /* stdio's buffer for the message that libcheck writes first */
}

/* Overwrite what functions that have returned left on the stack: LeakSanitizer would take an
 * address there for one that is in use. */
UNCHECKED static void
forget_stack(void)
{
    char left[0x4000];

    memset(left, 0, sizeof(left));
    __asm__ volatile("" : : "r"(left) : "memory");
}

/* The last handler, after those of the case and of libraries. Destructors of libraries come after
 * it, and those of this program, which are libgcov's and ASan's. */
static void
end_case(int status, void *unused)
{
    (void)unused;
#    ifndef SXE_PROGRAM
    if (getpid() == program)
        return;
#    endif
#    ifdef SXE_COVERAGE
    __gcov_dump(); /* where test-counters.c does not keep the counters */
#    endif
    fflush(NULL);
    forget_stack();
    __lsan_do_leak_check();
    _exit(status);
}

/* It comes before other constructors, because the handler that is set first runs last. */
__attribute__((constructor(101))) static void
note_program(void)
{
    program = getpid();
    first_user = geteuid();
    pthread_atfork(NULL, NULL, note_bytes);
    on_exit(end_case, NULL);
}

/* LeakSanitizer asks at the end of each process. It cannot trace one that has changed its user. */
__attribute__((visibility("default"))) int
__lsan_is_turned_off(void)
{
    return geteuid() != first_user ||
           (bytes_before != 0 && bytes_before == __sanitizer_get_current_allocated_bytes());
}

UNCHECKED static void
add_range(struct ranges *ranges, ElfW(Addr) begin, ElfW(Addr) end)
{
    ElfW(Phdr) *last = &ranges->segment[ranges->number == 0 ? 0 : ranges->number - 1];

    if (ranges->number > 0 &&
        (ranges->number == RANGES_MAX || begin - (last->p_vaddr + last->p_memsz) < GAP)) {
        last->p_memsz = end - last->p_vaddr;
        return;
    }
    last = &ranges->segment[ranges->number++];
    last->p_type = PT_LOAD;
    last->p_flags = PF_R | PF_W;
    last->p_vaddr = begin;
    last->p_memsz = end - begin;
}

/* An entry of /proc/self/pagemap is 8 bytes; its upper two bits say that the page is in memory or
 * in swap. */
UNCHECKED static void
add_touched(struct ranges *ranges, int pagemap, ElfW(Addr) base, const ElfW(Phdr) * segment)
{
    const ElfW(Addr) page = (ElfW(Addr))sysconf(_SC_PAGESIZE);
    const ElfW(Addr) end = base + segment->p_vaddr + segment->p_memsz;
    ElfW(Addr) at = (base + segment->p_vaddr) & ~(page - 1);
    uint64_t entries[ENTRIES];

    while (at < end) {
        size_t wanted = (end - at + page - 1) / page;
        long got = __real_syscall(SYS_pread64, pagemap, entries,
                                  8 * (wanted < ENTRIES ? wanted : ENTRIES), at / page * 8);
        if (got <= 0) {
            add_range(ranges, at - base, end - base);
            return;
        }
        for (long i = 0; i < got / 8; i++, at += page)
            if (entries[i] >> 62 != 0)
                add_range(ranges, at - base, (at + page < end ? at + page : end) - base);
    }
}

UNCHECKED static int
visit_touched(struct dl_phdr_info *info, size_t size, void *data)
{
    const struct look *look = data;
    struct dl_phdr_info touched = *info;
    struct ranges ranges;

    ranges.number = 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) != 0)
            add_touched(&ranges, look->pagemap, info->dlpi_addr, segment);
    }
    touched.dlpi_phdr = ranges.segment;
    touched.dlpi_phnum = ranges.number;
    return look->visit(&touched, size, look->data);
}

/* Only LeakSanitizer asks for segments from inside of a first call, in which it has stopped all
 * threads. */
__attribute__((visibility("default"))) UNCHECKED int
dl_iterate_phdr(visit *callback, void *data)
{
    static int (*real)(visit *, void *);
    static _Thread_local unsigned depth;
    struct look look = {.visit = callback, .data = data, .pagemap = -1};

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    if (++depth == 2)
        look.pagemap = (int)__real_syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY);
    int result = look.pagemap < 0 ? real(callback, data) : real(visit_touched, &look);
    if (look.pagemap >= 0)
        __real_syscall(SYS_close, look.pagemap);
    depth--;
    return result;
}
#endif
