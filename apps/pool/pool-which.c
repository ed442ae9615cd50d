/* SPDX-License-Identifier: MIT
 *
 * Finds the pool that the argument POOL names: a path, a name in /dev/shm, a process, or a process
 * and its descriptor.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pool-peek.h"
#include "pool-text.h"
#include "pool-tool.h"
#include "program.h"
#include "sxe-process-internal.h"
#include "sxe-time.h"

enum { CHOICES_SIZE = 256 };

int
pool_fail(const char *format, ...)
{
    va_list arguments;

    fflush(stdout);
    fprintf(stderr, "sxe-pool: ");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    return EXIT_FAILURE;
}

/* ---- Signals ---- */

static int ended_by;

sigset_t
pool_ending_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    if (!sxe__signal_is_ignored(SIGHUP))
        sigaddset(&signals, SIGHUP);
    return signals;
}

void
pool_hold_signals(int how)
{
    const sigset_t signals = pool_ending_signals();

    sigprocmask(how, &signals, NULL);
}

bool
pool_wait(uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / SXE_NS_PER_SECOND),
                                  .tv_nsec = (long)(ns % SXE_NS_PER_SECOND)};
    const sigset_t signals = pool_ending_signals();
    const int signal_number = sigtimedwait(&signals, NULL, &time);

    if (signal_number > 0)
        ended_by = signal_number;
    return signal_number > 0;
}

bool
pool_is_over(void)
{
    return ended_by != 0 || pool_wait(0);
}

int
pool_ended_by(void)
{
    return ended_by;
}

/* ---- Pools of processes ---- */

/* Parse "12" (a process) or "12:5" (a process and its descriptor). Without a colon, *descriptor
 * becomes -1. False: the text is neither. */
static bool
is_process(const char *which, int *process, int *descriptor)
{
    char *end;
    const long value = isdigit((unsigned char)*which) ? strtol(which, &end, 10) : 0;

    if (value <= 0 || value > INT_MAX)
        return false;
    *process = (int)value;
    *descriptor = -1;
    if (*end == ':' && isdigit((unsigned char)end[1])) {
        const long open = strtol(end + 1, &end, 10);
        *descriptor = open > INT_MAX ? INT_MAX : (int)open;
    }
    return *end == '\0';
}

/* The pools that a process has open. */
struct choice {
    int descriptor;          /* the descriptor of the first pool */
    char text[CHOICES_SIZE]; /* a list of the pools: "12:5 (jobs), 12:7 (cache)" */
    struct pool_seen seen;
};

static void
choose_pool(void *user, const struct pool_peek *peek)
{
    struct choice *choice = user;
    const size_t used = strlen(choice->text);

    if (!pool_peek_is_new(peek, &choice->seen))
        return;
    if (choice->seen.number == 1)
        choice->descriptor = peek->descriptor;
    snprintf(choice->text + used, sizeof(choice->text) - used, "%s%d:%d (%s)",
             used == 0 ? "" : ", ", peek->process, peek->descriptor, pool_plain_text(peek->name));
}

/* The descriptor of the only pool that a process has open. -1 after a message: the process has no
 * pool open, or several. */
static int
choose_descriptor(int process)
{
    static struct choice choice;
    const int error = pool_peek_process(process, choose_pool, &choice);

    if (error == ENOENT)
        pool_fail("there is no process %d", process);
    else if (error != 0)
        pool_fail("cannot look at process %d: %s", process, strerror(error));
    else if (choice.seen.number == 0)
        pool_fail("process %d has no shared pool open; sxe-pool list prints all pools", process);
    else if (choice.seen.number > 1)
        pool_fail("process %d has several pools open: %s; give one as PROCESS:DESCRIPTOR", process,
                  choice.text);
    else
        return choice.descriptor;
    return -1;
}

/* Wait for a process that is opening or closing the file. sxe_pool_open would wait as long, but a
 * signal could not end its wait. False after a message. */
static bool
wait_for_others(const char *path)
{
    unsigned patience_ms;

    for (unsigned waited_ms = 0; (patience_ms = pool_peek_busy_ms(path)) > waited_ms; waited_ms++) {
        if (pool_wait(SXE_NS_PER_MS))
            break;
    }
    if (patience_ms > 0)
        pool_fail("pool %s: another process is opening or closing it: try again, or continue it "
                  "(SIGCONT) if it is stopped",
                  pool_plain_text(path));
    return patience_ms == 0;
}

/* Whether the last process that used the pool was killed. Opening the pool then checks all of it,
 * which takes long; a signal may end this process meanwhile, which leaves the pool as it is. */
static bool
is_left_open(const struct pool_peek *peek)
{
    return peek->why[0] == '\0' && peek->users == 0 && !peek->is_closed;
}

/* Open a file as a dict or a pool, according to its head. fd: the open file; -1: open the path. */
static bool
open_as(const char *path, int fd, unsigned pool_options, struct pool_opened *opened)
{
    const SXE_DICT_SPEC dict = {.file = path, .options = pool_options};
    const SXE_POOL_SPEC pool = {.file = path, .options = pool_options};
    char why[SXE_POOL_WHY_SIZE] = "";
    struct pool_peek peek;

    *opened = (struct pool_opened){0};
    if (!wait_for_others(path))
        return false;
    const bool is_pool = pool_peek_file(path, &peek);
    if (is_left_open(&peek))
        pool_hold_signals(SIG_UNBLOCK);
    if (is_pool && pool_peek_is_dict(&peek)) {
        opened->dict = fd == -1 ? sxe_dict_open(&dict, why) : sxe_dict_open_fd(fd, &dict, why);
        opened->array = opened->dict == NULL ? NULL : sxe_dict_get_pool(opened->dict);
    } else {
        opened->array = fd == -1 ? sxe_pool_open(&pool, why) : sxe_pool_open_fd(fd, &pool, why);
    }
    pool_hold_signals(SIG_BLOCK);
    if (opened->array == NULL)
        pool_fail("%s", pool_plain_text(why));
    else if (why[0] != '\0') /* here `why` says which damage was found and repaired */
        printf("%s\n", pool_plain_text(why));
    return opened->array != NULL;
}

static bool
open_of_process(int process, int descriptor, unsigned pool_options, struct pool_opened *opened)
{
    char path[64];
    struct stat status;

    if (descriptor == -1 && (descriptor = choose_descriptor(process)) == -1)
        return false;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", process, descriptor);
    if (stat(path, &status) != 0) {
        pool_fail("process %d: cannot look at descriptor %d: %s", process, descriptor,
                  strerror(errno));
        return false;
    }
    const int fd = S_ISREG(status.st_mode) ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd == -1) {
        pool_fail("%d:%d cannot be opened: %s", process, descriptor,
                  S_ISREG(status.st_mode) ? strerror(errno) : "it is neither file nor memory");
        return false;
    }
    const bool is_open = open_as(path, fd, pool_options, opened);
    close(fd);
    return is_open;
}

/* ---- The meaning of POOL ---- */

/* A name without a slash is a name in /dev/shm, but it looks like a file in the current directory.
 * If the current directory has a file of this name, print which of the two is used. False after a
 * message: the file is only in the current directory. */
static bool
is_the_one_meant(const char *which, const char *path)
{
    if (strchr(which, '/') != NULL || access(which, F_OK) != 0)
        return true;
    if (access(path, F_OK) != 0) {
        (void)pool_fail("there is no %s in /dev/shm; for the file in this directory write ./%s",
                        which, which);
        return false;
    }
    fprintf(stderr, "sxe-pool: this is %s; for the file in this directory say ./%s\n", path, which);
    return true;
}

static void
write_path(const char *which, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s%s", strchr(which, '/') == NULL ? "/dev/shm/" : "", which);
}

bool
pool_find_file(const char *which, char path[PATH_MAX])
{
    int process;
    int descriptor;

    write_path(which, path);
    if (is_process(which, &process, &descriptor) && access(path, F_OK) != 0) {
        pool_fail("%s is a process, and a file is needed: give its path, or its name in /dev/shm",
                  which);
        return false;
    }
    return is_the_one_meant(which, path);
}

bool
pool_open(const struct pool_options *options, unsigned pool_options, struct pool_opened *opened)
{
    const char *which = options->words[1];
    char path[PATH_MAX];
    int process;
    int descriptor;

    write_path(which, path);
    if (is_process(which, &process, &descriptor) && access(path, F_OK) != 0)
        return open_of_process(process, descriptor, pool_options, opened);
    if (!is_the_one_meant(which, path))
        return false;
    return open_as(path, -1, pool_options, opened);
}

void
pool_close(const struct pool_opened *opened)
{
    if (opened->dict != NULL)
        sxe_dict_close(opened->dict);
    else
        sxe_pool_delete(opened->array);
}
