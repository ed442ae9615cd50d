/* SPDX-License-Identifier: MIT
 *
 * The free cells of a dict, by docs/dict.md: they are usable again after a death at any
 * instruction, and -ENOSPC means that there is none.
 */
#include "outside.h"

#include <errno.h>
#include <string.h>
#include <sxe-dict.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

enum { CELLS = 40, LONG = 300, STEPS_MAX = 5000000 };

/* With the address sanitizer a call has ten times as many instructions: there only every third call
 * is stepped through. */
#ifdef __SANITIZE_ADDRESS__
enum { CALLS_STEP = 3 };
#else
enum { CALLS_STEP = 1 };
#endif

static SXE_DICT *
open_of(unsigned cells, unsigned shards, bool evicts)
{
    SXE_DICT_SPEC spec = {
        .name = "outside", .cells = cells, .cell_size = 128, .shards = shards, .evicts = evicts};
    char why[SXE_POOL_WHY_SIZE];
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    ck_assert_msg(dict != NULL, "%s", why);
    return dict;
}

/* ---- A death after each instruction of a call ---- */

static SXE_DICT *dict;
static SXE_DICT_SNAPSHOT *snapshot;
static SXE_DICT_BATCH *batch;
static char bytes[LONG];

static void
put_long(unsigned key)
{
    while (sxe_dict_put(dict, &key, sizeof(key), bytes, LONG, 0) == -EAGAIN)
        continue;
}

static void
put_over_what_is_seen(void)
{
    snapshot = sxe_dict_snapshot_take(dict);
    put_long(0);
    put_long(1);
}

static void
note_some(void)
{
    put_over_what_is_seen();
    batch = sxe_dict_batch_new(dict);
    for (unsigned i = 0; i < 3; i++)
        (void)!sxe_dict_batch_put(batch, &i, sizeof(i), bytes, LONG / 2, 0);
}

static void
release(void)
{
    sxe_dict_snapshot_release(snapshot);
}

static void
take(void)
{
    snapshot = sxe_dict_snapshot_take(dict);
}

static void
commit(void)
{
    (void)!sxe_dict_batch_commit(batch);
}

static void
put_without_room(void)
{
    for (unsigned i = 100; i < 106; i++)
        put_long(i);
}

static void
remove_one(void)
{
    (void)!sxe_dict_remove(dict, &(unsigned){0}, sizeof(unsigned));
}

static const struct call {
    const char *name;
    void (*prepare)(void);
    void (*make)(void);
    bool evicts;
} calls[] = {
    {"release a snapshot", put_over_what_is_seen, release, false},
    {"take a snapshot", remove_one, take, false},
    {"commit", note_some, commit, false},
    {"put, which ends a snapshot", put_over_what_is_seen, put_without_room, false},
    {"put, which evicts", put_over_what_is_seen, put_without_room, true},
    {"remove", put_over_what_is_seen, remove_one, false},
};

/* Put as many entries as the dict was made for. (Hashes may fill one shard before the other.) */
static void
expect_full_room(SXE_DICT *copy, const char *name, unsigned step)
{
    char why[SXE_POOL_WHY_SIZE];

    ck_assert_msg(sxe_dict_check(copy, why) == 0, "%s, step %u: %s", name, step, why);
    for (unsigned i = 0; i < 110; i++)
        (void)!sxe_dict_remove(copy, &i, sizeof(i));
    for (unsigned i = 1000; sxe_dict_get_count(copy) < CELLS && i < 1000 + 100 * CELLS; i++)
        (void)!sxe_dict_put(copy, &i, sizeof(i), "v", 1, 0);
    ck_assert_msg(sxe_dict_get_count(copy) == CELLS, "%s, step %u: room for %zu of %u", name, step,
                  sxe_dict_get_count(copy), (unsigned)CELLS);
    ck_assert_msg(sxe_dict_check(copy, why) == 0, "%s, step %u: %s", name, step, why);
}

static pid_t
start(const struct call *call, volatile bool *is_over)
{
    const pid_t child = fork();

    if (child != 0)
        return child;
    call->prepare();
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(errno);
    raise(SIGSTOP);
    call->make();
    *is_over = true;
    _exit(0);
}

/* Execute a call instruction by instruction. After each one that changed memory, copy the memory:
 * the copy is what a process leaves that dies there. Open the copy, of which all users are dead. */
static unsigned
step_through(const struct call *call)
{
    const int fd = sxe_pool_get_fd(sxe_dict_get_pool(dict));
    const size_t size = (size_t)lseek(fd, 0, SEEK_END);
    const int copy_fd = memfd_create("copy", MFD_CLOEXEC);
    volatile bool *is_over =
        mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const char *shared = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    char *image = calloc(1, size);
    const pid_t child = start(call, is_over);
    unsigned looks = 0;
    int status;

    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
        printf("skipped: ptrace: %s\n", strerror(WEXITSTATUS(status)));
        return 1;
    }
    for (unsigned step = 0; !*is_over && step < STEPS_MAX; step++) {
        if (memcmp(shared, image, size) != 0) {
            memcpy(image, shared, size);
            ck_assert_int_eq(pwrite(copy_fd, image, size, 0), (ssize_t)size);
            SXE_DICT *copy = sxe_dict_open_fd(copy_fd, NULL, NULL);
            ck_assert_msg(copy != NULL, "%s, step %u", call->name, step);
            expect_full_room(copy, call->name, step);
            sxe_dict_close(copy);
            looks++;
        }
        ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    munmap((void *)(uintptr_t)shared, size);
    munmap((void *)(uintptr_t)is_over, 1);
    free(image);
    close(copy_fd);
    return looks;
}

/* promise: docs/dict.md: No cell is lost. Each cell is FREE, or part of an entry, or part of a
 * version that a snapshot sees; the next put that finds no room frees all other cells. */
START_TEST(all_room_comes_back_after_a_death_at_any_instruction)
{
    for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i += CALLS_STEP) {
        dict = open_of(CELLS, 2, calls[i].evicts);
        for (unsigned key = 0; key < 5; key++)
            ck_assert_int_eq(sxe_dict_put(dict, &key, sizeof(key), "first", 5, 0), 0);
        ck_assert_uint_gt(step_through(&calls[i]), 0);
        sxe_dict_close(dict);
    }
}
END_TEST

/* ---- Cells that other processes free ---- */

enum { KEYS = 40, COMMITS = 500, WRITERS = 4, READERS = 2 };

static void
note_keys(unsigned first, unsigned number, unsigned value)
{
    for (unsigned i = 0; i < number; i++) {
        const unsigned key = (first + i) % KEYS;

        ck_assert_int_eq(sxe_dict_batch_put(batch, &key, sizeof(key), &value, sizeof(value), 0), 0);
    }
}

/* Fill the dict until a batch of all keys just fits in each shard, if no snapshot keeps old
 * values. */
static void
leave_room_for_one_batch(void)
{
    unsigned others = 0;
    int result;

    note_keys(0, KEYS, 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    for (unsigned i = 1000; i < 20000; i++)
        others += sxe_dict_put(dict, &i, sizeof(i), "other", 5, 0) == 0;
    ck_assert_uint_gt(others, 0);
    note_keys(0, KEYS, 1);
    for (unsigned i = 1000; (result = sxe_dict_batch_commit(batch)) == -ENOSPC; i++)
        (void)!sxe_dict_remove(dict, &i, sizeof(i));
    ck_assert_int_eq(result, 0);
    note_keys(0, KEYS, 2);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
}

static void
write_batches(unsigned seed)
{
    for (unsigned i = 0; i < COMMITS; i++) {
        int result;

        note_keys(seed * i, 1 + (seed * 7 + i * 13) % KEYS, i);
        while ((result = sxe_dict_batch_commit(batch)) == -EAGAIN)
            continue;
        if (result != 0)
            _exit(-result);
    }
    _exit(0);
}

static void
take_and_release(unsigned seed)
{
    for (;;) {
        SXE_DICT_SNAPSHOT *mine = sxe_dict_snapshot_take(dict);
        unsigned value;

        for (unsigned i = 0; mine != NULL && i < seed * 10; i++)
            (void)!sxe_dict_snapshot_get(mine, &i, sizeof(i), &value, sizeof(value));
        sxe_dict_snapshot_release(mine);
    }
}

/* promise: docs/dict.md: Before a call returns `-ENOSPC` it looks for room once more, so no call
 * fails because another process is just releasing a snapshot. */
START_TEST(batches_that_fit_always_find_room)
{
    pid_t child[WRITERS + READERS];
    int status;

    dict = open_of(300, 4, false);
    batch = sxe_dict_batch_new(dict);
    leave_room_for_one_batch();
    for (unsigned i = 0; i < WRITERS + READERS; i++) {
        child[i] = fork();
        if (child[i] == 0 && i < WRITERS)
            write_batches(i + 1);
        if (child[i] == 0)
            take_and_release(i - WRITERS);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        ck_assert_int_eq(waitpid(child[i], &status, 0), child[i]);
        ck_assert_msg(status == 0, "writer %u: %s", i, strerror(WEXITSTATUS(status)));
    }
    for (unsigned i = WRITERS; i < WRITERS + READERS; i++) {
        kill(child[i], SIGKILL);
        ck_assert_int_eq(waitpid(child[i], &status, 0), child[i]);
    }
    ck_assert_int_eq(sxe_dict_check(dict, NULL), 0);
    sxe_dict_batch_delete(batch);
    sxe_dict_close(dict);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {all_room_comes_back_after_a_death_at_any_instruction,
                            batches_that_fit_always_find_room, NULL};

    return outside_run("dict-room", cases);
}
