/* SPDX-License-Identifier: MIT
 *
 * HyperLogLog, by docs/sketch.md: many processes, kills, merges, damaged files, malformed strings.
 */
#include "outside.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sxe-hll.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { WORKERS = 3, ROUNDS = 20, EACH = 400 };

static char why[SXE_POOL_WHY_SIZE];

static SXE_HLL *
open_of(unsigned precision, unsigned options, const char *file)
{
    const SXE_HLL_SPEC spec = {
        .name = "outside", .precision = precision, .options = options, .file = file};
    SXE_HLL *hll = sxe_hll_open(&spec, why);

    ck_assert_msg(hll != NULL, "%s", why);
    return hll;
}

static int
add_number(SXE_HLL *hll, uint64_t number)
{
    return sxe_hll_add(hll, &number, sizeof(number));
}

static bool
is_equal(const SXE_HLL *one, const SXE_HLL *other)
{
    static char left[SXE_HLL_REDIS_MAX], right[SXE_HLL_REDIS_MAX];
    const ssize_t size = sxe_hll_export(one, left, sizeof(left));

    return size > 0 && sxe_hll_export(other, right, sizeof(right)) == size &&
           memcmp(left, right, (size_t)size) == 0;
}

/* ---- Kills ---- */

struct progress { /* The work that one worker has done, in shared memory. */
    uint64_t begun;
    uint64_t done;
};

static uint64_t
thing_of(unsigned worker, uint64_t number)
{
    return (uint64_t)(worker + 1) << 40 | number;
}

static void
work(SXE_HLL *hll, unsigned worker, struct progress *progress)
{
    const uint64_t end = progress->done + EACH;

    for (uint64_t i = progress->done; i < end; i++) {
        __atomic_store_n(&progress->begun, i + 1, __ATOMIC_SEQ_CST);
        add_number(hll, thing_of(worker, i));
        __atomic_store_n(&progress->done, i + 1, __ATOMIC_SEQ_CST);
    }
    for (;;)
        pause(); /* wait until the parent kills all workers */
}

/* Start workers, and kill each when it has added for a while; meanwhile count the sketch. */
static void
run_and_kill(SXE_HLL *hll, struct progress *progress, unsigned round)
{
    pid_t children[WORKERS];
    uint64_t enough[WORKERS];
    double before = sxe_hll_count(hll);

    for (unsigned i = 0; i < WORKERS; i++) {
        enough[i] = progress[i].done + round * 37 % (EACH - WORKERS) + i;
        children[i] = fork();
        if (children[i] == 0)
            work(hll, i, &progress[i]);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        while (__atomic_load_n(&progress[i].done, __ATOMIC_SEQ_CST) < enough[i]) {
            const double count = sxe_hll_count(hll);

            ck_assert_msg(count >= before * (1 - 1e-9), "%g after %g", count, before);
            before = count;
        }
        kill(children[i], SIGKILL);
    }
    for (unsigned i = 0; i < WORKERS; i++)
        ck_assert_int_eq(waitpid(children[i], NULL, 0), children[i]);
}

/* The sketch must hold all finished adds, and nothing else but the add that a kill interrupted. */
static void
expect_all(SXE_HLL *hll, const struct progress *progress)
{
    SXE_HLL *most = open_of(14, SXE_POOL_OPTION_LOCKED, NULL);
    SXE_HLL *both = open_of(14, SXE_POOL_OPTION_LOCKED, NULL);

    ck_assert_int_eq(sxe_hll_merge(both, hll), 0);
    for (unsigned i = 0; i < WORKERS; i++) {
        ck_assert_uint_le(progress[i].begun, progress[i].done + 1);
        for (uint64_t number = 0; number < progress[i].done; number++)
            ck_assert_int_eq(add_number(both, thing_of(i, number)), 0);
        for (uint64_t number = 0; number < progress[i].begun; number++)
            add_number(most, thing_of(i, number));
    }
    ck_assert_int_eq(sxe_hll_merge(both, most), 0);
    ck_assert(is_equal(both, most));
    sxe_hll_close(most);
    sxe_hll_close(both);
}

/* promise: docs/sketch.md: A process may be killed at any instruction of any call: the sketch stays
 * intact, and at most the one update that the process was making is lost. */
START_TEST(kills_lose_nothing_that_was_added)
{
    struct progress *progress = mmap(NULL, WORKERS * sizeof(*progress), PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    SXE_HLL *hll = open_of(14, 0, outside_path("kills.hll"));

    for (unsigned round = 0; round < ROUNDS; round++) {
        run_and_kill(hll, progress, round);
        if (round % 3 == 0) { /* in the other rounds the sketch stays open in this process */
            sxe_hll_close(hll);
            hll = open_of(14, 0, outside_path("kills.hll"));
        }
        ck_assert_msg(sxe_pool_check(sxe_hll_get_pool(hll), why) == 0, "%s", why);
        expect_all(hll, progress);
    }
    sxe_hll_close(hll);
    unlink(outside_path("kills.hll"));
}
END_TEST

/* ---- Merging ---- */

/* promise: docs/sketch.md: The result of a merge is the sketch of both streams together. Other
 * processes may continue to add to both sketches. */
START_TEST(a_merge_while_others_add_loses_nothing)
{
    enum { THINGS = 20000 };
    SXE_HLL *into = open_of(14, 0, outside_path("into.hll"));
    SXE_HLL *from = open_of(14, 0, outside_path("from.hll"));
    SXE_HLL *all = open_of(14, SXE_POOL_OPTION_LOCKED, NULL);
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        for (uint64_t i = 0; i < THINGS; i++)
            add_number(i % 2 == 0 ? into : from, i);
        _exit(0);
    }
    while (waitpid(child, &status, WNOHANG) == 0)
        ck_assert_int_eq(sxe_hll_merge(into, from), 0);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(sxe_hll_merge(into, from), 0);
    for (uint64_t i = 0; i < THINGS; i++)
        add_number(all, i);
    ck_assert(is_equal(into, all));
    sxe_hll_close(into);
    sxe_hll_close(from);
    sxe_hll_close(all);
    unlink(outside_path("into.hll"));
    unlink(outside_path("from.hll"));
}
END_TEST

/* ---- Damage ---- */

/* promise: docs/sketch.md: If a bit of a closed file changed, the file is refused with
 * `EUCLEAN`, unless the bit has no effect. */
START_TEST(a_file_in_which_a_bit_changed_is_refused_or_unchanged_in_effect)
{
    const SXE_HLL_SPEC spec = {.name = "outside", .precision = 14, .file = outside_path("d.hll")};
    SXE_HLL *all = open_of(14, SXE_POOL_OPTION_LOCKED, NULL);
    SXE_HLL *hll = open_of(14, 0, spec.file);

    for (uint64_t i = 0; i < 5000; i++) {
        add_number(all, i);
        add_number(hll, i);
    }
    sxe_hll_close(hll);
    const int fd = open(spec.file, O_RDWR);
    const off_t size = lseek(fd, 0, SEEK_END);

    char *bytes = malloc((size_t)size);
    ck_assert_int_eq(pread(fd, bytes, (size_t)size, 0), size);
    for (off_t at = 3; at < size; at += 97) {
        const char byte = (char)(bytes[at] ^ 1 << at % 8);

        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
        hll = sxe_hll_open(&spec, why);
        ck_assert_msg(hll != NULL || errno == EUCLEAN, "%s", why);
        ck_assert(hll == NULL || is_equal(hll, all));
        sxe_hll_close(hll);
        ck_assert_int_eq(pwrite(fd, bytes, (size_t)size, 0), size);
    }
    free(bytes);
    close(fd);
    sxe_hll_close(all);
    unlink(outside_path("d.hll"));
}
END_TEST

/* promise: docs/sketch.md: A string that Redis cannot have written is refused with `-EINVAL`, and
 * nothing is merged. */
START_TEST(a_string_that_is_too_short_or_too_long_is_refused)
{
    char string[SXE_HLL_REDIS_MAX + 1];
    SXE_HLL *hll = open_of(14, SXE_POOL_OPTION_LOCKED, NULL);
    SXE_HLL *into = open_of(14, SXE_POOL_OPTION_LOCKED, NULL);

    for (uint64_t things = 1; things <= 10000; things *= 100) {
        for (uint64_t i = 0; i < things; i++)
            add_number(hll, i);
        const ssize_t size = sxe_hll_export(hll, string, sizeof(string));

        for (ssize_t cut = 0; cut < size; cut++)
            ck_assert_int_eq(sxe_hll_import(into, string, (size_t)cut, why), -EINVAL);
        string[size] = 0;
        ck_assert_int_eq(sxe_hll_import(into, string, (size_t)size + 1, why), -EINVAL);
        ck_assert_double_le(sxe_hll_count(into), 0);
    }
    sxe_hll_close(hll);
    sxe_hll_close(into);
}
END_TEST

/* ---- Errors ---- */

/* promise: docs/sketch.md: The standard error is 1.04 / sqrt(2^precision). */
START_TEST(the_error_is_that_of_the_theory)
{
    enum { SETS = 200, THINGS = 30000 };
    SXE_HLL *hll = open_of(10, SXE_POOL_OPTION_LOCKED, NULL);
    double squares = 0;

    for (uint64_t set = 0; set < SETS; set++) {
        sxe_hll_clear(hll);
        for (uint64_t i = 0; i < THINGS; i++)
            add_number(hll, set << 32 | i);
        squares += pow(sxe_hll_count(hll) / THINGS - 1, 2);
    }
    /* With 200 sets, the measured standard error is itself off by some 5 %. */
    ck_assert_double_le(sqrt(squares / SETS), 1.04 / 32 * 1.15);
    ck_assert_double_ge(sqrt(squares / SETS), 1.04 / 32 * 0.85);
    sxe_hll_close(hll);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {kills_lose_nothing_that_was_added,
                            a_merge_while_others_add_loses_nothing,
                            a_file_in_which_a_bit_changed_is_refused_or_unchanged_in_effect,
                            a_string_that_is_too_short_or_too_long_is_refused,
                            the_error_is_that_of_the_theory,
                            NULL};

    return outside_run("sketch-hll", cases);
}
