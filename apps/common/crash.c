/* SPDX-License-Identifier: MIT
 *
 * Reports the signals that end a process because of an error in its own code.
 */
#include "crash.h"

#include <elf.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "backtrace.h"
#include "sxe-util.h"

enum { CALLS_MAX = 64, TEXT_MAX = 512, BUILD_ID_MAX = 20, STACK_SIZE = 64 * 1024 };

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGSEGV, "Segmentation fault"},
               {SIGBUS, "Bus error"},
               {SIGILL, "Illegal instruction"},
               {SIGFPE, "Floating point exception"},
               {SIGABRT, "Aborted"}};
#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

static const char *program = "?"; /* the program's name */
static char build_id[2 * BUILD_ID_MAX + 1] = "unknown";
/* the handlers run on this stack: on the normal stack, its overflow could not be reported */
static char stack[STACK_SIZE];

/* ---- Texts, without a function that may allocate or lock ---- */

struct text {
    size_t used;
    char room[TEXT_MAX];
};

static void
add_crash_text(struct text *text, const char *what)
{
    size_t length = strlen(what);

    memcpy(text->room + text->used, what, length);
    text->used += length;
}

static void
add_number_text(struct text *text, uintptr_t number, unsigned base)
{
    char digits[24];
    char *at = digits + sizeof(digits) - 1;

    *at = '\0';
    do
        *--at = "0123456789abcdef"[number % base];
    while ((number /= base) > 0);
    add_crash_text(text, at);
}

/* ---- The build id: a note that the linker left in the program ---- */

static void
take_note(const char *note, size_t size)
{
    ElfW(Nhdr) head;
    size_t used = 0;

    while (size - used >= sizeof(head)) {
        memcpy(&head, note + used, sizeof(head));
        used += sizeof(head) + ((head.n_namesz + 3) & ~3u);
        if (head.n_type == NT_GNU_BUILD_ID && head.n_descsz <= BUILD_ID_MAX) {
            for (unsigned i = 0; i < head.n_descsz; i++) {
                const unsigned char byte = (unsigned char)note[used + i];

                build_id[2 * i] = "0123456789abcdef"[byte >> 4];
                build_id[2 * i + 1] = "0123456789abcdef"[byte & 15];
            }
        }
        used += (head.n_descsz + 3) & ~3u;
    }
}

/* dl_iterate_phdr would call this function for the program and then for each shared library. Only
 * the program is wanted: returning 1 ends the iteration after it. */
static int
look_at_program(struct dl_phdr_info *info, size_t size, void *user)
{
    SXE_UNUSED_PARAMETER(size);
    SXE_UNUSED_PARAMETER(user);
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type == PT_NOTE)
            take_note((const char *)(info->dlpi_addr + part->p_vaddr), part->p_memsz);
    }
    return 1;
}

/* ---- The report ---- */

void
crash_report(int fd, int signal_number, const void *address)
{
    struct text text = {.used = 0};
    void *calls[CALLS_MAX];
    const char *name = "";

    for (size_t i = 0; i < SIGNALS; i++) {
        if (signals[i].number == signal_number)
            name = signals[i].name;
    }
    add_crash_text(&text, program);
    add_crash_text(&text, " " SXE_VERSION " (build id ");
    add_crash_text(&text, build_id);
    add_crash_text(&text, "): process ");
    add_number_text(&text, (uintptr_t)getpid(), 10);
    add_crash_text(&text, " crashed with signal ");
    add_number_text(&text, (uintptr_t)signal_number, 10);
    add_crash_text(&text, " (");
    add_crash_text(&text, name);
    add_crash_text(&text, ") at address 0x");
    add_number_text(&text, (uintptr_t)address, 16);
    add_crash_text(&text, "; the calls that led there, last first:\n");
    (void)!write(fd, text.room, text.used);
    backtrace_symbols_fd(calls, backtrace(calls, CALLS_MAX), fd);
}

/* Write the report, then send the signal again. SA_RESETHAND has restored the default action, so
 * the signal ends the process when the handler returns. */
static void
on_crash(int signal_number, siginfo_t *info, void *context)
{
    SXE_UNUSED_PARAMETER(context);
    crash_report(STDERR_FILENO, signal_number, info->si_addr);
    kill(getpid(), signal_number);
}

void
crash_begin(const char *name)
{
    struct sigaction action = {.sa_sigaction = on_crash,
                               .sa_flags = (int)(SA_SIGINFO | SA_RESETHAND | SA_ONSTACK)};
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction before;
    stack_t other;
    void *call;

    program = name;
    /* The first call of backtrace loads a library, which a signal handler must not do: call it
     * now. */
    (void)backtrace(&call, 1);
    dl_iterate_phdr(look_at_program, NULL);
    if (sigaltstack(NULL, &other) == 0 && (other.ss_flags & SS_DISABLE))
        (void)sigaltstack(&own, NULL);
    for (size_t i = 0; i < SIGNALS; i++) {
        if (sigaction(signals[i].number, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(signals[i].number, &action, NULL);
    }
}
