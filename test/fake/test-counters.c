/* SPDX-License-Identifier: MIT
 *
 * Keeps the coverage counters of cases in memory that the cases share. A case is a process, and
 * libgcov, at the end of a process, merges its counters into a file for each source: some 150
 * files for each of 14,000 cases. Here a process adds its counters to the shared ones, and the
 * program adds these to its own when it ends, so that libgcov writes the files once.
 *
 * The programs of apps/, which scripts start thousands of times, have this file, too, compiled with
 * SXE_PROGRAM. If SXE_COUNTERS names a directory, as tools/run-tests.sh does, they add their
 * counters to a file in it. At the end of all tests each program is started with
 * SXE_COUNTERS_END=1, and adds what its file has to its own counters, which libgcov writes.
 *
 * The structures are those of libgcov.h in gcc 12 to 14. With other compilers each case writes
 * its files.
 */
#include <stdint.h>

#if defined(SXE_COVERAGE) && !defined(__clang__) && __GNUC__ >= 12 && __GNUC__ <= 14
#    include <errno.h>
#    include <fcntl.h>
#    include <stdio.h>
#    include <stdlib.h>
#    include <sys/mman.h>
#    include <unistd.h>

#    define KINDS (__GNUC__ == 14 ? 9 : 8) /* kinds of counters: GCOV_COUNTERS */
#    define UNCOUNTED \
        __attribute__((no_profile_instrument_function, no_sanitize_address, optimize("O2")))

struct values {
    unsigned number;
    int64_t *value;
};

struct function {
    /* this file; another one if the linker has dropped this copy of the function */
    const struct info *file;
    unsigned ident, lines_sum, blocks_sum;
    struct values values[]; /* one for each kind that the file has */
};

struct info { /* one source */
    unsigned version;
    struct info *next;
    unsigned stamp, sum;
    const char *name;
    void (*merge[KINDS])(int64_t *values, unsigned number); /* NULL: the file has no such kind */
    unsigned functions;
    const struct function *const *function;
};

extern struct {
    struct info *list;
    unsigned dumped : 1; /* 1: libgcov writes nothing at the end */
    unsigned run_counted : 1;
    void *next, *prev;
} __gcov_root;

void __real___gcov_dump(void);
void __wrap___gcov_dump(void);

static int64_t *shared; /* NULL: each process writes its own files */
static pid_t program;   /* its process writes the files of libgcov; 0: none does */

/* Add own counters to the shared ones, or, for the program at its end, the shared ones to its own.
 * Returns how many counters there are. */
UNCOUNTED static size_t
each_counter(int64_t *sums, int is_program)
{
    size_t number = 0;

    for (const struct info *info = __gcov_root.list; info != NULL; info = info->next) {
        unsigned kinds = 0;
        for (unsigned i = 0; i < KINDS; i++)
            kinds += info->merge[i] != NULL;
        for (unsigned f = 0; f < info->functions; f++) {
            const struct function *function = info->function[f];
            if (function == NULL || function->file != info)
                continue;
            for (unsigned k = 0; k < kinds; k++)
                for (unsigned i = 0; i < function->values[k].number; i++, number++) {
                    int64_t *value = &function->values[k].value[i];
                    if (sums != NULL && is_program)
                        *value += sums[number];
                    else if (sums != NULL && *value != 0)
                        __atomic_fetch_add(&sums[number], *value, __ATOMIC_RELAXED);
                }
        }
    }
    return number;
}

/* Called for libgcov's function, which is also what a fork or exec by our code calls. */
UNCOUNTED void
__wrap___gcov_dump(void)
{
    if (shared == NULL) {
        __real___gcov_dump();
    } else if (getpid() == program) {
        each_counter(shared, 1);
        __real___gcov_dump();
    } else if (!__gcov_root.dumped) {
        each_counter(shared, 0);
        __gcov_root.dumped = 1;
    }
}

/* The memory that processes share, zero at first; MAP_FAILED if there is none. */
UNCOUNTED static void *
counters_memory(size_t size)
{
#    ifdef SXE_PROGRAM
    const char *directory = getenv("SXE_COUNTERS");
    char path[4096];

    if (directory == NULL)
        return MAP_FAILED;
    snprintf(path, sizeof(path), "%s/%s", directory, program_invocation_short_name);
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    void *memory = fd < 0 || ftruncate(fd, (off_t)size) != 0
                       ? MAP_FAILED
                       : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return memory;
#    else
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
#    endif
}

UNCOUNTED __attribute__((constructor)) static void
share_counters(void)
{
    void *memory = counters_memory(each_counter(NULL, 0) * sizeof(*shared) + 1);

    if (memory == MAP_FAILED)
        return;
#    ifdef SXE_PROGRAM
    if (getenv("SXE_COUNTERS_END") != NULL)
#    endif
        program = getpid();
    shared = memory;
    atexit(__wrap___gcov_dump);
}
#endif
