/* SPDX-License-Identifier: MIT
 *
 * A process is killed after every instruction of a call on a shared pool that changes the pool. A
 * death after another instruction leaves the same memory, so it need not be tried. After each kill
 * another process gets the lock at once, finds all lists in order, and the element in its old or
 * its new state. Then processes are killed at random; `make soak` does that for an hour.
 *
 * The test steps a child through the call by ptrace. In a debug build a call has some ten times as
 * many instructions: there the child is killed at every so-many-th instruction only.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../soak/pool-kills.h"
#include "stepped.h"
#include "sxe-pool-sharing-private.h"
#include "sxe-time.h"
#include "test-main.h"
#include "test-sweep.h"

#define ELEMENTS    8u
#define ELEMENT     48u /* bytes */
#define WAIT_NS_MAX (100 * SXE_NS_PER_MS)
#define TRIES_MAX   20u /* how often a slow step is tried again: other processes may take the CPU */
#define STEPS_MAX   200000u

#if defined(__OPTIMIZE__) && !SXE_HAVE_ASAN
#    define IS_FAST 1
#else
#    define IS_FAST 0
#endif
/* A step is an instruction; if the stride is 1, one that changes the pool. */
#define STRIDE       (!IS_FAST ? 1997u : sxe_test_is_thin() ? 397u : 1u)
#define RANDOM_KILLS (!IS_FAST || sxe_test_is_thin() ? 50u : 150u)

enum { FREE, BUSY, DONE, STATES };

static char *pool;
static const void *shared; /* all of the pool's memory */
static size_t shared_size;
static char image[1 << 16]; /* a copy of it */

struct call {
    const char *name;
    void (*make)(void);
    unsigned shards;
    unsigned id; /* the element that the call moves */
    unsigned from;
    unsigned to;
};

static char old_value[ELEMENT];
static char new_value[ELEMENT];

/* ---- Calls ---- */

static void
set(void)
{
    sxe_pool_move(pool, 3, FREE, BUSY);
}

static void
set_many(void)
{
    const unsigned ids[] = {1, 2, 3};

    sxe_pool_move_many(pool, ids, 3, FREE, BUSY);
}

static void
take(void)
{
    sxe_pool_take(pool, BUSY, DONE);
}

static void
take_exactly(void)
{
    sxe_pool_take_exact(pool, BUSY, DONE);
}

static void
touch(void)
{
    sxe_pool_touch(pool, 3);
}

static void
walk(void)
{
    SXE_POOL_WALKER walker;

    sxe_pool_walker_construct(&walker, pool, FREE);
    for (unsigned i = 0; i < 3; i++)
        sxe_pool_walker_step(&walker);
}

static void
write_whole(void)
{
    sxe_pool_write_element(pool, 3, new_value);
}

/* A lease of the element as it is now; no other process changes it. */
static SXE_POOL_LEASE
lease_of(unsigned id)
{
    return (SXE_POOL_LEASE){.id = id, .stamp = sxe_pool_get_time(pool, id)};
}

static void
move_with_lease(void)
{
    SXE_POOL_LEASE lease = lease_of(3);

    sxe_pool_lease_move(pool, &lease, DONE, new_value);
}

static void
take_with_lease(void)
{
    SXE_POOL_LEASE lease;

    sxe_pool_lease_oldest(pool, BUSY, DONE, new_value, &lease);
}

static void
write_with_lease(void)
{
    SXE_POOL_LEASE lease = lease_of(3);

    sxe_pool_lease_write(pool, &lease, 0, ELEMENT, new_value);
}

static const struct call calls[] = {
    {"set", set, 1, 3, FREE, BUSY},
    {"take", take, 1, 3, BUSY, DONE},
    {"set many", set_many, 1, 3, FREE, BUSY},
    {"take, several shards", take, 4, 3, BUSY, DONE},
    {"take the exact oldest", take_exactly, 4, 3, BUSY, DONE},
    {"touch", touch, 1, 3, FREE, FREE},
    {"walk", walk, 1, 3, FREE, FREE},
    {"write", write_whole, 1, 3, FREE, FREE},
    {"move with a lease", move_with_lease, 1, 3, BUSY, DONE},
    {"take with a lease, several shards", take_with_lease, 4, 3, BUSY, DONE},
    {"write with a lease", write_with_lease, 1, 3, FREE, FREE},
};

/* ---- Killing ---- */

static void
open_pool(unsigned shards)
{
    char why[SXE_POOL_WHY_SIZE];
    const SXE_POOL_SPEC spec = {.name = "crash",
                                .number = ELEMENTS,
                                .element_size = ELEMENT,
                                .states = STATES,
                                .shards = shards};

    pool = sxe_pool_open(&spec, why);
    ck_assert_msg(pool != NULL, "%s", why);
    shared_size = (size_t)lseek(sxe_pool_get_fd(pool), 0, SEEK_END);
    ck_assert_uint_le(shared_size, sizeof(image));
    shared = mmap(NULL, shared_size, PROT_READ, MAP_SHARED, sxe_pool_get_fd(pool), 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    stepped_begin();
    /* The time stands still, so that each run of a call takes the same steps. */
    sxe_time_set_turn_ns(sxe_time_ns());
    memset(old_value, 'o', sizeof(old_value));
    memset(new_value, 'n', sizeof(new_value));
}

static void
close_pool(void)
{
    stepped_end();
    munmap((void *)(uintptr_t)shared, shared_size);
    sxe_pool_delete(pool);
}

/* Make a first call: it makes the child a user of the pool. */
static void
become_user(void)
{
    while (sxe_pool_touch(pool, 7) != SXE_POOL_LOCK_TAKEN) {
    }
}

/* Let the child go on until it has changed the pool. False: the call is over. */
static bool
step_to_change(pid_t child)
{
    memcpy(image, shared, shared_size);
    while (stepped_step(child))
        if (memcmp(image, shared, shared_size) != 0)
            return true;
    return false;
}

/* Let the child make this many steps of the call. Returns whether it was still in the call. */
static bool
kill_after(pid_t child, unsigned steps)
{
    bool is_in_it = true;

    for (unsigned i = 0; i < steps && is_in_it; i++)
        is_in_it = STRIDE == 1 ? step_to_change(child) : stepped_step(child);
    stepped_kill(child);
    return is_in_it;
}

/* ---- Checking the pool after a kill ---- */

/* A living process gets each lock at the first attempt. Returns how many ns that took. */
static uint64_t
take_locks_over(unsigned steps)
{
    const uint64_t begin = sxe_time_ns();

    for (unsigned id = 4; id < ELEMENTS; id++)
        ck_assert_msg(sxe_pool_touch(pool, id) == SXE_POOL_LOCK_TAKEN,
                      "killed after %u steps: the lock of element %u is not taken", steps, id);
    return sxe_time_ns() - begin;
}

static void
expect_order(unsigned steps)
{
    char why[SXE_POOL_WHY_SIZE];

    ck_assert_msg(sxe_pool_check(pool, why) == 0, "killed after %u steps: %s", steps, why);
    unsigned total = 0;
    for (unsigned state = 0; state < STATES; state++)
        total += sxe_pool_get_count(pool, state);
    ck_assert_uint_eq(total, ELEMENTS);
}

/* The contents must be old or new, or the pool must know that they are torn; then they can be
 * written again. */
static void
expect_contents(const struct call *call, unsigned steps)
{
    char value[ELEMENT];
    const int result = sxe_pool_read_element(pool, 3, value);

    if ((call->make == move_with_lease || call->make == take_with_lease) &&
        sxe_pool_get_state(pool, 3) == call->to)
        ck_assert_msg(result == 0 && memcmp(value, new_value, ELEMENT) == 0,
                      "killed after %u steps: moved, and not written", steps);

    ck_assert_msg(result == 0 || sxe_pool_is_torn(pool, 3), "killed after %u steps: %d", steps,
                  result);
    ck_assert_msg(result == -EBUSY || memcmp(value, old_value, ELEMENT) == 0 ||
                      memcmp(value, new_value, ELEMENT) == 0,
                  "killed after %u steps: the contents are torn", steps);
    sxe_pool_write_element(pool, 3, old_value);
    ck_assert_int_eq(sxe_pool_read_element(pool, 3, value), 0);
    ck_assert_int_eq(memcmp(value, old_value, ELEMENT), 0);
}

static void
make_ready(const struct call *call)
{
    for (unsigned id = 1; id <= call->id; id++) {
        const unsigned state = sxe_pool_get_state(pool, id);

        ck_assert_uint_eq(sxe_pool_move(pool, id, state, id == call->id ? call->from : FREE),
                          SXE_POOL_LOCK_TAKEN);
    }
    sxe_pool_write_element(pool, 3, old_value);
}

/* Kill a child after `steps` and check the pool. Returns whether the child was still in the
 * call. */
static bool
kill_and_look(const struct call *call, unsigned steps, uint64_t *ns)
{
    const pid_t child = stepped_start(become_user, call->make);

    if (child == -1)
        return false;
    const bool killed = kill_after(child, steps);
    *ns = take_locks_over(steps);
    expect_order(steps);
    expect_contents(call, steps);
    const unsigned state = sxe_pool_get_state(pool, call->id);
    ck_assert_msg(state == call->to || (killed && state == call->from),
                  "killed after %u steps: element %u is in state %u", steps, call->id, state);
    return killed;
}

/* Like kill_and_look, but also measure how long the locks take; a slow attempt is repeated, because
 * other processes may have had the CPU. */
static bool
kill_and_time(const struct call *call, unsigned steps, uint64_t *worst_ns)
{
    uint64_t ns = 0;
    bool killed = kill_and_look(call, steps, &ns);

    for (unsigned tries = 1; ns >= WAIT_NS_MAX && tries < TRIES_MAX; tries++) {
        make_ready(call);
        killed = kill_and_look(call, steps, &ns);
    }
    *worst_ns = ns > *worst_ns ? ns : *worst_ns;
    return killed;
}

START_TEST(process_killed_at_any_instruction_leaves_the_pool_whole)
{
    const struct call *call = &calls[_i];
    unsigned steps = 0;
    uint64_t worst_ns = 0;

    open_pool(call->shards);
    do {
        make_ready(call);
        steps += STRIDE;
    } while (kill_and_time(call, steps - STRIDE, &worst_ns) && steps < STEPS_MAX);
    printf("%s: killed after each of %u steps, by %u; locks taken over in %.3f ms at most\n",
           call->name, steps - STRIDE, STRIDE, (double)worst_ns / 1e6);
    ck_assert_uint_lt(steps, STEPS_MAX);
    ck_assert_uint_lt(worst_ns, WAIT_NS_MAX);
    close_pool();
}
END_TEST

/* ---- Killed while it completes the change of a killed process ---- */

/* Step over the system call that asks whether the lock's owner lives. */
static void
run_to_the_take_over(pid_t child)
{
    int status;

    for (unsigned half = 0; half < 2; half++) {
        ck_assert_int_eq(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
    }
}

static void
touch_another(void)
{
    sxe_pool_touch(pool, 5);
}

/* Kill the child `steps` after it has written its intent. */
static void
kill_in_the_middle(pid_t child, unsigned steps)
{
    const struct sxe__pool_shard *shard = sxe__pool_header(pool)->sharing->shards;

    while (!sxe__pool_is_begun(shard))
        stepped_step(child);
    for (unsigned i = 0; i < steps; i++)
        stepped_step(child);
    stepped_kill(child);
    ck_assert(sxe__pool_is_begun(shard));
}

/* Kill the first child in the middle of a change, the second `steps` after it took the lock
 * over. */
static bool
kill_both(const struct call *call, unsigned middle, unsigned steps)
{
    const pid_t second = stepped_start(become_user, touch_another);
    const pid_t first = second == -1 ? -1 : stepped_start(become_user, call->make);

    if (first == -1)
        return false;
    kill_in_the_middle(first, middle);
    run_to_the_take_over(second);
    const bool killed = kill_after(second, steps);
    take_locks_over(steps);
    expect_order(steps);
    ck_assert_uint_eq(sxe_pool_get_state(pool, call->id), call->to);
    return killed;
}

START_TEST(process_killed_while_it_completes_what_a_killed_one_began_leaves_the_pool_whole)
{
    const struct call *call = &calls[_i];
    const unsigned middle = (unsigned)_i * (IS_FAST ? 9 : 50);
    unsigned steps = 0;

    open_pool(call->shards);
    make_ready(call);
    while (kill_both(call, middle, steps)) {
        make_ready(call);
        steps += STRIDE;
        ck_assert_uint_lt(steps, STEPS_MAX);
    }
    printf("%s, killed %u steps after its intent was there; who completes it: killed after each of "
           "%u steps, by %u\n",
           call->name, middle, steps, STRIDE);
    close_pool();
}
END_TEST

/* ---- Killed while opening and closing ---- */

static char path[64];

static SXE_POOL_SPEC
file_spec(void)
{
    return (SXE_POOL_SPEC){.name = "crash",
                           .number = ELEMENTS,
                           .element_size = ELEMENT,
                           .states = STATES,
                           .shards = 2,
                           .file = path};
}

static void
open_and_close(void)
{
    const SXE_POOL_SPEC spec = file_spec();
    char why[SXE_POOL_WHY_SIZE];
    char *array = sxe_pool_open(&spec, why);

    if (array == NULL)
        printf("%s\n", why);
    sxe_pool_delete(array);
}

/* The state of a file: missing; closed; left in use by a killed process. */
enum before { MISSING, CLOSED, LEFT, BEFORE };

static void
prepare(enum before before)
{
    const SXE_POOL_SPEC spec = file_spec();

    unlink(path);
    if (before == MISSING)
        return;
    const pid_t child = fork();
    if (child == 0) {
        void *array = sxe_pool_open(&spec, NULL);

        sxe_pool_move(array, 3, FREE, BUSY);
        if (before == CLOSED)
            sxe_pool_delete(array);
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

/* Kill a child at its nth stop, before or after a system call. False: the child ended before it. */
static bool
kill_at_system_call(unsigned stops)
{
    const pid_t child = stepped_start(become_user, open_and_close);
    int status = 0;

    if (child == -1)
        return false;
    for (unsigned i = 0; i < stops && !*stepped_is_over; i++) {
        ck_assert_int_eq(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP, "status %x", status);
    }
    const bool called = *stepped_is_over;
    stepped_kill(child);
    return !called;
}

static void
expect_usable_file(enum before before, unsigned stops)
{
    const SXE_POOL_SPEC spec = file_spec();
    char why[SXE_POOL_WHY_SIZE];
    void *array = sxe_pool_open(&spec, why);

    ck_assert_msg(array != NULL, "killed at stop %u: %s", stops, why);
    ck_assert_msg(sxe_pool_check(array, why) == 0, "killed at stop %u: %s", stops, why);
    ck_assert_uint_eq(sxe_pool_get_state(array, 3), before == MISSING ? FREE : BUSY);
    ck_assert_int_ne(sxe_pool_get_found(array), SXE_POOL_REBUILT);
    sxe_pool_delete(array);
}

START_TEST(process_killed_while_it_opens_or_closes_leaves_the_file_usable)
{
    unsigned stops = 0;
    bool killed = true;

    snprintf(path, sizeof(path), "/dev/shm/test-pool-crash-%d", (int)getpid());
    open_pool(1);
    for (; killed && stops < 1000; stops++) {
        prepare((enum before)_i);
        killed = kill_at_system_call(stops);
        expect_usable_file((enum before)_i, stops);
    }
    unlink(path);
    printf("opened and closed: killed at each of %u stops in system calls\n", stops);
    ck_assert_uint_lt(stops, 1000);
    close_pool();
}
END_TEST

/* ---- Killed at random ---- */

START_TEST(processes_killed_at_random_leave_the_pool_whole)
{
    struct kills_result result;
    const uint64_t seed = 20100919u + STRIDE;

    kills_run(
        &(struct kills_plan){.seed = seed, .kills = RANDOM_KILLS, .seconds = 300, .processes = 8},
        &result);
    kills_print(&result, seed);
    ck_assert_uint_gt(result.kills, 8);
    ck_assert_msg(result.wrong[0] == '\0', "seed %llu: %s", (unsigned long long)seed, result.wrong);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-crash");
    TCase *tcase = tcase_create("crash");

    tcase_add_loop_test(tcase, process_killed_at_any_instruction_leaves_the_pool_whole, 0,
                        (int)(sizeof(calls) / sizeof(calls[0])));
    tcase_add_loop_test(
        tcase, process_killed_while_it_completes_what_a_killed_one_began_leaves_the_pool_whole, 0,
        2);
    tcase_add_loop_test(tcase, process_killed_while_it_opens_or_closes_leaves_the_file_usable, 0,
                        BEFORE);
    tcase_add_test(tcase, processes_killed_at_random_leave_the_pool_whole);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
