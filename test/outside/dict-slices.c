/* SPDX-License-Identifier: MIT
 *
 * Calls of other processes while one process works in slices, by docs/dict.md: it releases a
 * snapshot that kept many versions, or measures all chains. No case depends on a time: the child
 * works until the reader has seen as many gaps as it needs. A gap is a call that finds the lock
 * free between two that do not, all within one call of the child. Without gaps the reader would get
 * the lock by chance in one of some thousand calls, and the case would time out.
 */
#include "outside.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sxe-dict.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum {
    SLICE = 1024,
    KEYS = 20 * SLICE,
    CELLS = 2 * KEYS + SLICE,
    CHAINS_CELLS = 256 * SLICE,
    GAPS = 20,
    CALLS_PER_GAP = 50 /* how many calls are made at most for each gap */
};

static SXE_DICT *dict;
/* a count in memory that is shared with the child; odd: the child is in a call that works in
 * slices */
static uint32_t *calls;
static pid_t child;

static uint32_t
calls_now(void)
{
    return __atomic_load_n(calls, __ATOMIC_SEQ_CST);
}

static void
begin_or_end_call(void)
{
    __atomic_fetch_add(calls, 1, __ATOMIC_SEQ_CST);
}

static void
open_of(unsigned cells)
{
    const SXE_DICT_SPEC spec = {.name = "slices", .cells = cells, .cell_size = 128};
    char why[SXE_POOL_WHY_SIZE];

    calls = mmap(NULL, sizeof(*calls), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(calls != MAP_FAILED);
    dict = sxe_dict_open(&spec, why);
    ck_assert_msg(dict != NULL, "%s", why);
}

/* ---- The child ---- */

static void
need(bool is_good)
{
    if (!is_good)
        _exit(EXIT_FAILURE);
}

static void
put_all(uint32_t value)
{
    for (uint32_t key = 0; key < KEYS; key++)
        need(sxe_dict_put(dict, &key, sizeof(key), &value, sizeof(value), 0) == 0);
}

static void
release_once(void)
{
    SXE_DICT_SNAPSHOT *snapshot = sxe_dict_snapshot_take(dict);

    need(snapshot != NULL);
    put_all(*calls);
    begin_or_end_call();
    sxe_dict_snapshot_release(snapshot);
    begin_or_end_call();
}

static void
measure_once(void)
{
    SXE_DICT_CHAINS chains;

    begin_or_end_call();
    need(sxe_dict_get_chains(dict, &chains) == 0);
    need(chains.versions == KEYS);
    begin_or_end_call();
}

static void
start_child(void (*work)(void))
{
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child > 0)
        return;
    need(sxe_dict_set_wait(dict, SXE_POOL_WAIT_MAX) == 0);
    put_all(0);
    for (;;)
        work();
}

static void
end_child(void)
{
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_int_eq(sxe_dict_check(dict, NULL), 0);
    sxe_dict_close(dict);
    munmap(calls, sizeof(*calls));
}

/* The child must still run: it ends only if one of its calls fails. */
static void
check_child(void)
{
    siginfo_t info = {.si_pid = 0};

    ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    ck_assert_int_eq(info.si_pid, 0);
}

/* ---- The reader ---- */

static ssize_t
get(uint32_t key)
{
    uint32_t value;

    return sxe_dict_get(dict, &key, sizeof(key), &value, sizeof(value));
}

/* Make calls that do not wait, until enough of them found the lock free between two that did
 * not. */
static void
meet_gaps(void)
{
    enum { NOTHING, WAS_LOCKED, WAS_FREE } seen = NOTHING;
    uint32_t seen_in = 0;
    unsigned gaps = 0;
    unsigned failed = 0;

    for (uint32_t i = 0; gaps < GAPS || failed > CALLS_PER_GAP * gaps; i++) {
        const uint32_t call = calls_now();
        const ssize_t result = get(i % KEYS);

        if (call % 2 == 0 || calls_now() != call || seen_in != call) {
            check_child();
            seen = NOTHING;
            seen_in = call;
        } else if (result == -EAGAIN) {
            gaps += seen == WAS_FREE;
            failed++;
            seen = WAS_LOCKED;
            usleep(200);
        } else {
            ck_assert_int_eq((int)result, sizeof(uint32_t));
            seen = seen == NOTHING ? NOTHING : WAS_FREE;
        }
    }
}

/* promise: docs/dict.md: Between two slices, if another process wants the lock, the release leaves
 * it free until a process has taken it, or for some 1.2 ms, which is longer than the longest sleep
 * of a waiting process. */
START_TEST(calls_that_do_not_wait_get_the_lock_between_the_slices_of_a_release)
{
    open_of(CELLS);
    start_child(release_once);
    meet_gaps();
    end_child();
}
END_TEST

/* How many versions the release in progress has freed. */
static unsigned
freed(void)
{
    const unsigned free_cells = sxe_pool_get_count(sxe_dict_get_pool(dict), 0);

    return free_cells < CELLS - 2 * KEYS ? 0 : free_cells - (CELLS - 2 * KEYS);
}

/* promise: docs/dict.md: So a call that waits is answered during the release. */
START_TEST(calls_that_wait_return_in_the_midst_of_a_release)
{
    unsigned in_the_midst = 0;

    open_of(CELLS);
    ck_assert_int_eq(sxe_dict_set_wait(dict, SXE_POOL_WAIT_MAX), 0);
    start_child(release_once);
    for (uint32_t i = 0; in_the_midst < GAPS; i++) {
        const uint32_t call = calls_now();
        const unsigned freed_before = freed();
        const ssize_t result = get(i % KEYS);
        const unsigned freed_after = freed();

        in_the_midst += call % 2 == 1 && freed_before > SLICE && freed_after > freed_before &&
                        freed_after <= KEYS - SLICE && calls_now() == call;
        ck_assert(result == sizeof(uint32_t) || (call == 0 && result == -ENOENT));
        check_child();
    }
    end_child();
}
END_TEST

/* promise: docs/dict.md: `sxe_dict_get_chains` (`d:chains()`) looks at all chains, as a walk does.
 * It holds a lock for 1,024 buckets at a time, and leaves it free in between, like a release. */
START_TEST(calls_get_the_lock_between_the_slices_of_chains)
{
    open_of(CHAINS_CELLS);
    start_child(measure_once);
    meet_gaps();
    end_child();
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {calls_that_do_not_wait_get_the_lock_between_the_slices_of_a_release,
                            calls_that_wait_return_in_the_midst_of_a_release,
                            calls_get_the_lock_between_the_slices_of_chains, NULL};

    return outside_run("dict-slices", cases);
}
