/* SPDX-License-Identifier: MIT
 *
 * What: runs processes as coroutines that stop before every access to shared memory, so that a
 * search can choose which of them goes on, and which dies.
 *
 * Place: included before the sources that are checked: it defines SXE__POOL_GET and the like, which
 * sxe-pool-internal.h otherwise defines as plain atomic accesses. model-search.h makes the choices.
 *
 * Shape: a choice is a step of one process, its death, or (with the memory model TSO, total store
 * order) the arrival of its oldest store in memory:
 *
 *     process 0: code --put--> [ store, store, store ] --arrive--> shared memory
 *                code <--get-- its own youngest store of that word, or else shared memory
 *
 * The next step of a process is determined by all that it has read since its call began. Therefore
 * a hash of what it read (`seen`) stands for its registers and stack, and two schedules that lead
 * to the same memory, the same `seen` and the same history of calls are one state, searched once.
 *
 * Why this covers x86: a processor shows its stores to others in program order, from a queue that
 * only its own later loads may overtake; a locked instruction empties the queue first. This is TSO.
 * The holder of a shard's lock took it by a locked instruction, and all others stay out until its
 * last store, the unlock, has arrived; so within the lock the order makes no difference. For what
 * is read without the lock, cases run under TSO as well. There a call is over, for others, when its
 * last store has arrived: before that, nothing that they see tells them. SIGKILL arrives between
 * two instructions, and all stores before it are on their way to memory. That the compiler keeps
 * the order of the stores is up to the release stores and the fence in sxe-pool-change-private.h;
 * test-pool-crash.c steps through the machine code.
 *
 * Limits: x86-64 (other processors: see MODEL_POSSIBLE); 3 processes, one thread.
 */
#ifndef MODEL_RUN_H
#define MODEL_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#    include <sanitizer/asan_interface.h>
#endif

#ifdef __x86_64__
#    define MODEL_POSSIBLE 1
#else
#    define MODEL_POSSIBLE 0
#endif

#define MODEL_PROCESSES  3u
#define MODEL_STORES     96u
#define MODEL_STACK_SIZE (64u * 1024)

/* A line of the library that reads or writes shared memory. */
struct model_site {
    const char *text;
    int line;
    uint64_t used;
};

struct model_store {
    void *place;
    uint32_t size;
    uint32_t call;
    uint64_t value;
};

enum model_status { MODEL_READY, MODEL_DONE, MODEL_DEAD };

struct model_process {
    void *stack_pointer;
    char *stack;
    enum model_status status;
    bool in_call; /* the process has made the first access of its current call */
    bool asleep;  /* the process sleeps until a datagram comes for it */
    unsigned call;
    uint64_t seen;
    unsigned stored;
    struct model_store stores[MODEL_STORES];
};

/* A fault that is put into the library, to see whether the search notices it. */
enum model_fault {
    MODEL_SOUND,
    /* The store `site` is not made. If it is a store of two words, one of them is still written. */
    MODEL_DROP,
    MODEL_HOIST,   /* the store `site` is made early, right before the store `before` */
    MODEL_READ,    /* the load `site` returns `value` */
    MODEL_BLIND,   /* living processes are taken for dead */
    MODEL_UNLOCKED /* every lock looks free to a process that wants it */
};

struct model_mutant {
    const char *name;
    enum model_fault fault;
    const char *site;
    const char *before;
    uint64_t value;
};

struct model_run {
    struct model_process processes[MODEL_PROCESSES];
    struct model_process *current; /* NULL: no process runs, accesses are plain */
    void *scheduler;
    bool tso;
    bool tell; /* print every access */
    const struct model_mutant *mutant;
};

static struct model_run model_run;

/* Functions that model-pool.h defines. */
static void model_begin_call(struct model_process *process);
static void model_process_main(struct model_process *process);
static uint64_t model_locks(void);
static void model_unlock_for(struct model_process *process);
static void model_swap_locals(struct model_process *process);
static bool model_is_fixed(const void *place);
static void model_hoist(struct model_process *process, const char *site);

static unsigned
model_index(const struct model_process *process)
{
    return (unsigned)(process - model_run.processes);
}

static inline uint64_t
model_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* ---- Coroutines ---- */

#if MODEL_POSSIBLE
void model_switch(void **from, void *to);

__asm__(".text\n"
        ".globl model_switch\n"
        ".type model_switch, @function\n"
        "model_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n"
        "    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n"
        "    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size model_switch, . - model_switch\n");
#else
static void
model_switch(void **from, void *to)
{
    (void)from;
    (void)to;
    abort();
}
#endif

static void
model_stop(void)
{
    model_switch(&model_run.current->stack_pointer, model_run.scheduler);
}

static void
model_entry(void)
{
    struct model_process *process = model_run.current;

    model_process_main(process);
    process->status = MODEL_DONE;
    model_stop();
    abort();
}

/* Let a process run up to its next access. */
static void
model_go_on(struct model_process *process)
{
    model_run.current = process;
    model_swap_locals(process);
    model_switch(&model_run.scheduler, process->stack_pointer);
    model_swap_locals(process);
    model_run.current = NULL;
}

/* Start a process and let it run up to its first access. */
static void
model_start(struct model_process *process)
{
    char *stack = process->stack;

    if (stack == NULL && (stack = aligned_alloc(64, MODEL_STACK_SIZE)) == NULL)
        abort();
#ifdef __SANITIZE_ADDRESS__
    ASAN_UNPOISON_MEMORY_REGION(stack, MODEL_STACK_SIZE);
#endif
    *process = (struct model_process){.stack = stack};
    /* The stack as model_switch leaves it: the return address, and below it six registers. */
    void **top = (void **)(void *)(stack + MODEL_STACK_SIZE) - 2;
    *top = (void *)(uintptr_t)model_entry;
    memset(top - 6, 0, 6 * sizeof(*top));
    process->stack_pointer = top - 6;
    model_go_on(process);
}

/* ---- Memory ---- */

static uint64_t
model_load(const void *place, size_t size)
{
    return size == 4 ? *(const uint32_t *)place : *(const uint64_t *)place;
}

static void
model_store(void *place, size_t size, uint64_t value)
{
    if (size == 4)
        *(uint32_t *)place = (uint32_t)value;
    else
        *(uint64_t *)place = value;
}

static void
model_arrive(struct model_process *process)
{
    const struct model_store *store = &process->stores[0];

    model_store(store->place, store->size, store->value);
    process->stored--;
    memmove(&process->stores[0], &process->stores[1], process->stored * sizeof(*store));
}

static void
model_arrive_all(struct model_process *process)
{
    while (process->stored > 0)
        model_arrive(process);
}

static void
model_kill(struct model_process *process)
{
    model_arrive_all(process);
    process->status = MODEL_DEAD;
}

static void
model_put_now(struct model_process *process, void *place, size_t size, uint64_t value)
{
    if (!model_run.tso) {
        model_store(place, size, value);
        return;
    }
    if (process->stored == MODEL_STORES)
        abort();
    process->stores[process->stored++] = (struct model_store){
        .place = place, .size = (uint32_t)size, .call = process->call, .value = value};
}

/* ---- Accesses of the library to memory ---- */

static bool
model_is(enum model_fault fault, const char *name, const struct model_site *site)
{
    return model_run.mutant != NULL && model_run.mutant->fault == fault &&
           strcmp(site->text, name) == 0;
}

static struct model_process *
model_next_access(struct model_site *site)
{
    struct model_process *process = model_run.current;

    if (site != NULL)
        site->used++;
    if (process == NULL)
        return NULL;
    model_stop();
    if (!process->in_call) {
        process->in_call = true;
        model_begin_call(process);
    }
    return process;
}

/* Read from a store that is still in the queue, if it was to this place or to a word around it. */
static void
model_forward(const struct model_store *store, const void *place, size_t size, uint64_t *value)
{
    const uintptr_t at = (uintptr_t)place;
    const uintptr_t first = (uintptr_t)store->place;

    if (at + size <= first || at >= first + store->size)
        return;
    if (at < first || at + size > first + store->size)
        abort();
    memcpy(value, (const char *)&store->value + (at - first), size);
}

static uint64_t
model_get(struct model_site *site, const void *place, size_t size)
{
    struct model_process *process = model_is_fixed(place) ? NULL : model_next_access(site);
    uint64_t value = model_load(place, size);

    for (unsigned i = 0; process != NULL && i < process->stored; i++)
        model_forward(&process->stores[i], place, size, &value);
    if (model_run.mutant != NULL && model_is(MODEL_READ, model_run.mutant->site, site))
        value = model_run.mutant->value;
    if (process == NULL)
        return value;
    process->seen = model_mix(process->seen, value + 2);
    if (model_run.tell)
        printf("    %u: get %s (line %d): %llu\n", model_index(process), site->text, site->line,
               (unsigned long long)value);
    return value;
}

/* A load of a word that no other process writes is no step: when it happens makes no difference. */
static uint64_t
model_own(const void *place, size_t size)
{
    struct model_process *process = model_run.current;
    uint64_t value = model_load(place, size);

    if (process == NULL)
        return value;
    for (unsigned i = 0; i < process->stored; i++)
        model_forward(&process->stores[i], place, size, &value);
    process->seen = model_mix(process->seen, value + 2);
    return value;
}

/* If a fault wants a store made early, before this one, make it. */
static void
model_hoist_before(struct model_process *process, const struct model_site *site)
{
    const struct model_mutant *mutant = model_run.mutant;

    if (mutant == NULL || !model_is(MODEL_HOIST, mutant->before, site))
        return;
    model_hoist(process, mutant->site);
    model_stop();
}

static bool
model_is_dropped(const struct model_site *site)
{
    return model_run.mutant != NULL && model_is(MODEL_DROP, model_run.mutant->site, site);
}

static void
model_tell_put(const struct model_process *process, const struct model_site *site, uint64_t value)
{
    if (model_run.tell)
        printf("    %u: put %s (line %d): %llu\n", model_index(process), site->text, site->line,
               (unsigned long long)value);
}

static void
model_put(struct model_site *site, void *place, size_t size, uint64_t value)
{
    struct model_process *process = model_next_access(site);

    if (process == NULL) {
        model_store(place, size, value);
        return;
    }
    process->seen = model_mix(process->seen, 1);
    model_tell_put(process, site, value);
    model_hoist_before(process, site);
    if (!model_is_dropped(site))
        model_put_now(process, place, size, value);
}

/* Write two words by one store, in one step. */
static void
model_put_pair(const struct model_site sites[2], uint32_t *words, uint32_t first, uint32_t second)
{
    struct model_process *process = model_next_access(NULL);

    if (process == NULL) {
        words[0] = first;
        words[1] = second;
        return;
    }
    process->seen = model_mix(process->seen, 1);
    model_tell_put(process, &sites[0], first);
    model_tell_put(process, &sites[1], second);
    model_hoist_before(process, &sites[0]);
    model_hoist_before(process, &sites[1]);
    if (model_is_dropped(&sites[0]))
        model_put_now(process, &words[1], 4, second);
    else if (model_is_dropped(&sites[1]))
        model_put_now(process, &words[0], 4, first);
    else
        model_put_now(process, words, 8, first | (uint64_t)second << 32);
}

/* The step before a locked instruction on a lock. */
static void
model_step(void)
{
    struct model_process *process = model_next_access(NULL);

    if (process == NULL)
        return;
    model_arrive_all(process);
    if (model_run.mutant != NULL && model_run.mutant->fault == MODEL_UNLOCKED)
        model_unlock_for(process);
    process->seen = model_mix(process->seen, model_locks() + 3);
    if (model_run.tell)
        printf("    %u: compare and swap; locks are %llx\n", model_index(process),
               (unsigned long long)model_locks());
}

#define MODEL_SITE(place)                                                         \
    __extension__({                                                               \
        static struct model_site model_site = {.text = #place, .line = __LINE__}; \
        &model_site;                                                              \
    })
#define SXE__POOL_STEP() model_step()
#define SXE__POOL_GET(place) \
    ((__typeof__(0 + (place)))model_get(MODEL_SITE(place), &(place), sizeof(place)))
#define SXE__POOL_OWN(word)             ((__typeof__(0 + (word)))model_own(&(word), sizeof(word)))
#define SXE__POOL_PUT(word, value)      model_put(MODEL_SITE(word), &(word), sizeof(word), value)
#define SXE__POOL_PUT_LAST(word, value) SXE__POOL_PUT(word, value)
#define SXE__POOL_GET_FIRST(place)      SXE__POOL_GET(place)
#define SXE__POOL_FENCE_LOADS()         ((void)0)
#define SXE__POOL_FENCE_STORES()        ((void)0)
#define SXE__POOL_PUT_PAIR(word, next_word, value, next)                                         \
    model_put_pair((const struct model_site[]){{#word, __LINE__, 0}, {#next_word, __LINE__, 0}}, \
                   &(word), (value), (next))
#define SXE__POOL_PUT_PAIR_LAST(word, next_word, value, next) \
    SXE__POOL_PUT_PAIR(word, next_word, value, next)

#endif
