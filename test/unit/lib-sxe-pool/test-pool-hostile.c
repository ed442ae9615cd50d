/* SPDX-License-Identifier: MIT
 *
 * Another process writes random words into all memory that it shares with this one. The calls of
 * this process may return anything, but they return soon, and touch no memory outside the pool,
 * which the sanitizers of the coverage flavour check.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sxe-pool-sharing-private.h"
#include "sxe-time.h"
#include "test-main.h"

#define NUMBER      64u
#define STATES      3u
#define SHARDS      4u
#define ROUNDS      10000u
#define SECONDS_MAX 2.0  /* seconds of CPU time for one call */
#define HANG_MAX    60.0 /* seconds for one call, on a busy machine */

struct element {
    uint64_t words[4];
};

static struct element *pool;
static char why[SXE_POOL_WHY_SIZE];

/* The part of the pool that only this process has: no call may change it. */
static struct sxe__pool_header own_header;

static uint32_t
random_bits(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return (uint32_t)(*seed * UINT64_C(2685821657736338717) >> 32);
}

static void
begin(void)
{
    const SXE_POOL_SPEC spec = {.name = "prey",
                                .number = NUMBER,
                                .element_size = sizeof(struct element),
                                .states = STATES,
                                .shards = SHARDS,
                                .extra_size = 64,
                                .state_names = "FREE BUSY DONE"};

    sxe_log_set_level(SXE_LOG_FATAL);
    pool = sxe_pool_open(&spec, why);
    ck_assert_msg(pool != NULL, "%s", why);
    own_header = *sxe__pool_header(pool);
}

static void
end(void)
{
    ck_assert_int_eq(memcmp(&own_header, sxe__pool_header(pool), sizeof(own_header)), 0);
    sxe_pool_delete(pool);
}

/* ---- The process that writes ---- */

struct part {
    uint32_t *words;
    size_t count;
};

/* The parts that every process may write: fields of the head, shards, elements, nodes and extra. */
static unsigned
find_parts(struct part parts[3])
{
    const struct sxe__pool_sharing *sharing = sxe__pool_header(pool)->sharing;

    parts[0] =
        (struct part){(uint32_t *)(void *)sharing->head, sizeof(*sharing->head) / sizeof(uint32_t)};
    parts[1] = (struct part){(uint32_t *)(void *)sharing->shards,
                             SHARDS * sizeof(sharing->shards[0]) / sizeof(uint32_t)};
    parts[2] = (struct part){(uint32_t *)(void *)sharing->nodes,
                             sharing->end * sizeof(sharing->nodes[0]) / sizeof(uint32_t)};
    return 3;
}

/* A random word: as often near a valid value as far from it. */
static uint32_t
hostile_word(uint64_t *seed)
{
    const struct sxe__pool_sharing *sharing = sxe__pool_header(pool)->sharing;
    const uint32_t bits = random_bits(seed);

    switch (bits & 7) {
    case 0:
        return bits;
    case 1:
        return UINT32_MAX - (bits >> 30);
    case 2:
        return NUMBER - 2 + (bits >> 30);
    case 3:
        return sharing->end - 2 + (bits >> 30);
    case 4:
        return bits >> 30;
    case 5:
        return sharing->token;
    default:
        return (bits >> 8) % sharing->end;
    }
}

static void
scribble(uint64_t *seed)
{
    struct part parts[3];
    const unsigned count = find_parts(parts);
    const struct part *part = &parts[random_bits(seed) % count];
    uint32_t *word = &part->words[random_bits(seed) % part->count];

    __atomic_store_n(word, hostile_word(seed), __ATOMIC_RELAXED);
}

/* ---- This process ---- */

static double
cpu_seconds(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static void
expect_soon(uint64_t began_ns, double cpu, const char *call)
{
    const double seconds = (double)(sxe_time_ns() - began_ns) / (double)SXE_NS_PER_SECOND;

    ck_assert_msg(cpu < SECONDS_MAX && seconds < HANG_MAX, "%s took %.3f s, %.3f s of CPU time",
                  call, seconds, cpu);
}

static unsigned damaged;

static void
expect_answer(const char *call, unsigned result)
{
    damaged += result == SXE_POOL_DAMAGED;
    ck_assert_msg(result < NUMBER || result >= SXE_POOL_DAMAGED, "%s answers %u", call, result);
}

static void
call_changes(uint64_t *seed)
{
    const uint32_t bits = random_bits(seed);
    const unsigned id = bits % NUMBER;
    unsigned to = (bits >> 10) % STATES;

    expect_answer("take", sxe_pool_take(pool, (bits >> 8) % STATES, to));
    expect_answer("exact", sxe_pool_take_exact(pool, (bits >> 12) % STATES, to));
    expect_answer("touch", sxe_pool_touch(pool, id));
    expect_answer("try", sxe_pool_try_move(pool, id, (bits >> 14) % STATES, &to));
    expect_answer("set", sxe_pool_move(pool, (id + 7) % NUMBER, (bits >> 16) % STATES,
                                       (bits >> 18) % STATES));
}

static void
call_reads(uint64_t *seed)
{
    const uint32_t bits = random_bits(seed);
    const unsigned id = bits % NUMBER;
    const unsigned state = (bits >> 8) % STATES;
    struct element value;

    sxe_pool_get_count(pool, state);
    (void)sxe_pool_state_to_string(pool, sxe_pool_get_state(pool, id));
    expect_answer("oldest", sxe_pool_get_oldest(pool, state));
    expect_answer("youngest", sxe_pool_get_youngest(pool, state));
    sxe_pool_get_oldest_time(pool, state);
    expect_answer("handle", sxe_pool_handle_to_index(pool, sxe_pool_get_handle(pool, id)));
    if (sxe_pool_read_element(pool, id, &value) == 0)
        sxe_pool_write_element(pool, id, &value);
    sxe_pool_add_u64(pool, id, 8, bits);
    sxe_pool_is_torn(pool, id);
    sxe_pool_get_user(pool, bits % SXE_POOL_SLOTS);
}

static void
call_walk(uint64_t *seed)
{
    SXE_POOL_WALKER walker;
    unsigned steps = 0;
    unsigned id = 0;

    sxe_pool_walker_construct(&walker, pool, random_bits(seed) % STATES);
    for (; id < NUMBER && steps <= SHARDS * NUMBER; steps++) {
        id = sxe_pool_walker_step(&walker);
        expect_answer("walk", id);
    }
}

static void
call_rest(uint64_t *seed)
{
    const unsigned state = random_bits(seed) % STATES;

    (void)!sxe_pool_check(pool, why);
    if (sxe_pool_watch(pool, state) == 0)
        sxe_pool_watch_read(pool);
    sxe_pool_unwatch(pool, state);
}

static void
call_all(uint64_t *seed)
{
    static const struct {
        const char *name;
        void (*call)(uint64_t *);
    } calls[] = {
        {"changes", call_changes},
        {"reads", call_reads},
        {"a walk", call_walk},
        {"a check", call_rest},
    };

    for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        const uint64_t began_ns = sxe_time_ns();
        const double cpu = cpu_seconds();

        calls[i].call(seed);
        expect_soon(began_ns, cpu_seconds() - cpu, calls[i].name);
    }
}

/* Each round changes only a few words, so that calls do not stop at once. */
START_TEST(random_words_in_shared_memory_harm_nobody)
{
    uint64_t seed = 19700101;
    struct sxe__pool_sharing *sharing = sxe__pool_header(pool)->sharing;
    const size_t nodes_size = sharing->end * sizeof(sharing->nodes[0]);
    struct sxe__pool_node nodes[NUMBER + STATES * SHARDS];
    struct sxe__pool_shard shards[SHARDS];
    static struct sxe__pool_head head;

    ck_assert_uint_eq(nodes_size, sizeof(nodes));
    memcpy(nodes, sharing->nodes, sizeof(nodes));
    memcpy(shards, sharing->shards, sizeof(shards));
    head = *sharing->head;
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = random_bits(&seed) % 4; i < 4; i++)
            scribble(&seed);
        call_all(&seed);
        memcpy(sharing->nodes, nodes, sizeof(nodes));
        memcpy(sharing->shards, shards, sizeof(shards));
        *sharing->head = head;
    }
    ck_assert_int_eq(sxe_pool_check(pool, why), 0);
    printf("%u rounds, %u answers that the pool is damaged\n", ROUNDS, damaged);
    ck_assert_uint_gt(damaged, ROUNDS / 100);
}
END_TEST

START_TEST(process_that_scribbles_all_the_time_harms_nobody)
{
    uint64_t seed = 20260101;
    const pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            scribble(&seed);
    }
    ck_assert_int_gt(child, 0);
    const uint64_t end_ns = sxe_time_ns() + 5 * SXE_NS_PER_SECOND;
    unsigned rounds = 0;
    for (; rounds < ROUNDS && sxe_time_ns() < end_ns; rounds++)
        call_all(&seed);
    printf("%u rounds beside a process that scribbles\n", rounds);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-hostile");
    TCase *tcase = tcase_create("hostile");

    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, random_words_in_shared_memory_harm_nobody);
    tcase_add_test(tcase, process_that_scribbles_all_the_time_harms_nobody);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
