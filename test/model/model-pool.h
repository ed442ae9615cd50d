/* SPDX-License-Identifier: MIT
 *
 * What: a small shared pool, the calls that processes make to it, and what must hold at the end.
 *
 * Place: compiles the library's own source (sxe-pool-change-private.h, sxe-pool-shared.c, -lease.c,
 * -lock.c, -walker.c, -watch.c) with the memory accesses of model-run.h, and replaces the kernel:
 * which processes live, what time it is, datagrams. model-history.h judges the results of the
 * calls.
 *
 * Limits: 4 elements, 3 states, 2 shards; 3 calls for each process.
 */
#ifndef MODEL_POOL_H
#define MODEL_POOL_H

#include "model-run.h"

#define SXE__POOL_SPINS 3 /* two looks at a lock, with pauses of 1 and 2 between them */

#include "sxe-pool-sharing-private.h"
#include "sxe-time-internal.h"

/* The "threads" of the model are coroutines of one thread. Each has its own copy of these
 * variables, which is put in their place when the coroutine goes on. */
#define _Thread_local __attribute__((section("model_locals")))
#define sxe__time_turn_ns model_now
static uint64_t model_now(void);

#include "sxe-pool.c"

#include "sxe-pool-shared.c"

#include "sxe-pool-lease.c"
#include "sxe-pool-lock.c"
#include "sxe-pool-walker.c"
#undef _Thread_local
#undef sxe__time_turn_ns

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A locked instruction on a word that others watch: it is made after a step of the search. */
#define __atomic_fetch_and(place, value, order) (model_step(), __sync_fetch_and_and(place, value))
#define __atomic_fetch_or(place, value, order)  (model_step(), __sync_fetch_and_or(place, value))
#define socket(domain, type, protocol)          MODEL_SOCKET
#define bind(fd, address, length)               ((void)(address), (void)(length), 0)
#define recv(fd, bytes, size, flags)            ((void)(bytes), model_recv())
#define sendto(fd, bytes, size, flags, address, length) \
    ((void)(fd), (void)(length), model_send(address))
#define MODEL_SOCKET 100
static ssize_t model_recv(void);
static ssize_t model_send(const struct sockaddr *address);
#include "sxe-pool-watch.c"
#undef __atomic_fetch_and
#undef __atomic_fetch_or
#undef socket
#undef bind
#undef recv
#undef sendto

extern char __start_model_locals[];
extern char __stop_model_locals[];

#define MODEL_ELEMENTS 4u
#define MODEL_STATES   3u
#define MODEL_SHARDS   2u
#define MODEL_CALLS    3u /* the most calls of one process */
#define MODEL_LOCALS   64u
#define MODEL_TIME     1000000u

enum model_verb {
    MODEL_NOTHING,
    MODEL_SET,
    MODEL_TAKE,
    MODEL_EXACT,
    MODEL_TOUCH,
    MODEL_WALK,
    MODEL_WAIT,
    MODEL_LEASE, /* a take with a lease */
    MODEL_END    /* moves with the lease that call number `id` of this process got */
};

/* How the processes' clocks differ. */
enum model_clock { MODEL_FROZEN, MODEL_SKEWED, MODEL_TICKING };

struct model_order {
    enum model_verb verb;
    unsigned id;
    unsigned from;
    unsigned to;
};

struct model_case {
    const char *name;
    unsigned elements;
    unsigned states;
    unsigned shards;
    unsigned deaths;
    bool threads; /* threads of one process: nobody dies, no intents are written */
    bool tso;
    enum model_clock clock;
    unsigned begin[MODEL_ELEMENTS]; /* the state of each element */
    struct model_order orders[MODEL_PROCESSES][MODEL_CALLS];
};

/* The record of a call: its answer, and which calls had been answered before it began. */
struct model_call {
    uint32_t result;
    uint32_t state;  /* the state that try_to_set found */
    uint32_t before; /* one bit for each call that had been answered */
    uint8_t begun;
    uint8_t ended;
    uint8_t met;   /* the elements that a walk met, one bit for each */
    uint8_t twice; /* a walk met an element more than once */
    uint8_t cut;   /* a walk ended early */
    uint8_t timed;
    uint8_t unused[6];
    uint64_t now;      /* the time that the call read */
    uint64_t lease_id; /* the lease that the process has after the call; all bytes are hashed */
    uint64_t lease_stamp;
};

struct model_memory {
    struct sxe__pool_shard shards[MODEL_SHARDS];
    struct sxe__pool_node nodes[MODEL_ELEMENTS + MODEL_STATES * MODEL_SHARDS];
};

/* Waiting processes and wake-ups: copies of what is in the pool's head, in pages, and in
 * sockets. */
struct model_waits {
    uint64_t watching;
    uint64_t watched[MODEL_PROCESSES];
    uint32_t last[MODEL_PROCESSES]; /* the process that each of them woke last */
    /* datagrams that were sent to the process, and that it has not received yet */
    uint32_t datagrams[MODEL_PROCESSES];
    uint32_t woken[MODEL_PROCESSES]; /* how often the process was woken */
    uint32_t unused;
};

/* A process's own page. */
struct model_page {
    struct sxe__pool_sharing sharing;
    struct sxe__pool_header header __attribute__((aligned(64)));
    char array[64];
};

static struct model_world {
    const struct model_case *model;
    struct model_memory memory;
    struct model_memory first;
    struct model_call calls[MODEL_PROCESSES * MODEL_CALLS];
    uint64_t ticks;
    uint8_t locals[MODEL_PROCESSES + 1][MODEL_LOCALS];
    struct model_waits waits;
    uint8_t first_locals[MODEL_PROCESSES + 1][MODEL_LOCALS];
    /* The last page is that of the process that survives. */
    struct model_page pages[MODEL_PROCESSES + 1];
    struct sxe__pool_head head;
    char said[200]; /* what is wrong */
} model_world;

/* ---- The kernel ---- */

static uint64_t
model_now(void)
{
    struct model_process *process = model_run.current;
    uint64_t now = MODEL_TIME;

    if (process == NULL)
        return now;
    if (model_world.model->clock == MODEL_TICKING)
        now += 1000 * ++model_world.ticks;
    else if (model_world.model->clock == MODEL_SKEWED)
        now += 1000 * (MODEL_PROCESSES - model_index(process));
    struct model_call *call =
        &model_world.calls[model_index(process) * MODEL_CALLS + process->call];
    call->now = now;
    call->timed = 1;
    process->seen = model_mix(process->seen, now);
    return now;
}

bool
sxe__pool_is_owner_alive(const struct sxe__pool_sharing *sharing, uint32_t token)
{
    struct model_process *process = model_next_access(NULL);
    const unsigned owner = token & (SXE_POOL_SLOTS - 1);
    bool lives = owner >= MODEL_PROCESSES || model_run.processes[owner].status != MODEL_DEAD ||
                 model_world.model->threads;

    (void)sharing;
    if (process == NULL)
        return lives;
    if (model_run.mutant != NULL && model_run.mutant->fault == MODEL_BLIND)
        lives = false;
    process->seen = model_mix(process->seen, lives + 4);
    if (model_run.tell)
        printf("    %u: process %u is %s\n", model_index(process), owner, lives ? "alive" : "dead");
    return lives;
}

/* Functions of the library that the model does not need. */
bool
sxe__pool_attach_again(struct sxe__pool_sharing *sharing)
{
    (void)sharing;
    abort();
}

void
sxe_pool_write_part(void *array, unsigned id, size_t offset, size_t size, const void *value)
{
    (void)array;
    (void)id;
    (void)offset;
    (void)size;
    (void)value;
    abort();
}

void *
sxe_pool_open_sized(const SXE_POOL_SPEC *spec, size_t size, char *why)
{
    (void)spec;
    (void)size;
    (void)why;
    return NULL;
}

void
sxe__pool_close(struct sxe__pool_header *pool)
{
    (void)pool;
}

static void
model_get_waits(struct model_waits *waits)
{
    *waits = model_world.waits;
    waits->watching = model_world.head.watching;
    for (unsigned i = 0; i < MODEL_PROCESSES; i++) {
        waits->watched[i] = model_world.head.slots[i].watched;
        waits->last[i] = model_world.pages[i].sharing.woken;
    }
}

static void
model_set_waits(const struct model_waits *waits)
{
    model_world.waits = *waits;
    model_world.head.watching = waits->watching;
    for (unsigned i = 0; i < MODEL_PROCESSES; i++) {
        model_world.head.slots[i].watched = waits->watched[i];
        model_world.pages[i].sharing.woken = waits->last[i];
    }
}

/* Slots of the head that no process of the model has never change. */
static bool
model_is_fixed(const void *place)
{
    const struct sxe__pool_slot *slots = model_world.head.slots;

    return (uintptr_t)place >= (uintptr_t)&slots[MODEL_PROCESSES] &&
           (uintptr_t)place < (uintptr_t)&slots[SXE_POOL_SLOTS];
}

/* The words that a locked instruction may change: locks, and bits of watched states. */
static uint64_t
model_locks(void)
{
    const struct sxe__pool_head *head = &model_world.head;
    uint64_t hash =
        (uint64_t)model_world.memory.shards[0].lock << 32 | model_world.memory.shards[1].lock;

    for (unsigned i = 0; i < MODEL_PROCESSES; i++)
        hash += (head->slots[i].watched + 3 * head->watching) << (8 * i + 12);
    return hash;
}

/* ---- Sockets: a datagram arrives at once, or is refused because the receiver is dead ---- */

static ssize_t
model_recv(void)
{
    struct model_process *process = model_next_access(NULL);
    uint32_t *datagrams = &model_world.waits.datagrams[process == NULL ? 0 : model_index(process)];

    if (process == NULL || *datagrams == 0)
        return -1;
    process->seen = model_mix(process->seen, 5);
    --*datagrams;
    return 1;
}

/* The receiver's slot is the last part of the socket's name. */
static ssize_t
model_send(const struct sockaddr *address)
{
    struct model_process *process = model_next_access(NULL);
    const char *path = ((const struct sockaddr_un *)(const void *)address)->sun_path + 1;
    const unsigned slot = (unsigned)strtoul(strrchr(path, '-') + 1, NULL, 16) % SXE_POOL_SLOTS;

    errno = ECONNREFUSED;
    if (process == NULL || slot >= MODEL_PROCESSES ||
        model_run.processes[slot].status == MODEL_DEAD)
        return -1;
    process->seen = model_mix(process->seen, 6);
    model_world.waits.datagrams[slot]++;
    model_world.waits.woken[slot]++;
    if (model_run.tell)
        printf("    %u: wakes %u\n", model_index(process), slot);
    return 1;
}

/* Sleep until there is a datagram; the search does not let the process run before. */
static void
model_sleep(void)
{
    model_run.current->asleep = true;
    model_stop();
    model_run.current->asleep = false;
}

static bool
model_can_run(const struct model_process *process)
{
    return process->status == MODEL_READY &&
           (!process->asleep || model_world.waits.datagrams[model_index(process)] != 0);
}

static void
model_unlock_for(struct model_process *process)
{
    (void)process;
    model_world.memory.shards[0].lock = 0;
    model_world.memory.shards[1].lock = 0;
}

/* Make a store to shard 0 early, with the value that it would have at its own place. */
static void
model_hoist(struct model_process *process, const char *site)
{
    struct sxe__pool_shard *shard = &model_world.memory.shards[0];
    const uint64_t now = model_world.calls[model_index(process) * MODEL_CALLS + process->call].now;

    if (strcmp(site, "*lock") == 0)
        model_put_now(process, &shard->lock, sizeof(shard->lock), 0);
    else if (strcmp(site, "intent->stamp") == 0)
        model_put_now(process, &shard->intent.stamp, sizeof(shard->intent.stamp),
                      now > shard->last_stamp ? now : shard->last_stamp + 1);
    else
        model_put_now(process, &shard->last_stamp, sizeof(shard->last_stamp), shard->intent.stamp);
}

static void
model_swap_locals(struct model_process *process)
{
    const size_t size = (size_t)(__stop_model_locals - __start_model_locals);
    uint8_t *mine = model_world.locals[model_index(process)];
    uint8_t theirs[MODEL_LOCALS];

    if (size > MODEL_LOCALS)
        abort();
    memcpy(theirs, __start_model_locals, size);
    memcpy(__start_model_locals, mine, size);
    memcpy(mine, theirs, size);
}

/* ---- Calls ---- */

static void *
model_array(unsigned process)
{
    return model_world.pages[model_world.model->threads ? 0 : process].array;
}

/* Whether all stores of a process up to the end of a call have arrived in memory. */
static bool
model_has_arrived(const struct model_process *process, unsigned call)
{
    return process->stored == 0 || process->stores[0].call > call;
}

static void
model_begin_call(struct model_process *process)
{
    struct model_call *calls = model_world.calls;
    struct model_call *call = &calls[model_index(process) * MODEL_CALLS + process->call];

    call->begun = 1;
    for (unsigned i = 0; i < MODEL_PROCESSES * MODEL_CALLS; i++) {
        const struct model_process *other = &model_run.processes[i / MODEL_CALLS];

        if (calls[i].ended && (other == process || model_has_arrived(other, i % MODEL_CALLS)))
            call->before |= 1u << i;
    }
}

static void
model_walk(struct model_call *call, void *array, unsigned state)
{
    SXE_POOL_WALKER walker;

    sxe_pool_walker_construct(&walker, array, state);
    for (;;) {
        const unsigned id = sxe_pool_walker_step(&walker);

        if (id >= MODEL_ELEMENTS) {
            call->cut = id == SXE_POOL_LOCK_NOT_TAKEN;
            call->result = call->cut ? SXE_POOL_NO_INDEX : id;
            return;
        }
        if ((call->met & 1u << id) != 0) {
            call->twice = 1;
            return;
        }
        call->met |= (uint8_t)(1u << id);
    }
}

/* Wait until there may be an element in a state. */
static void
model_wait(void *array, unsigned state)
{
    if (sxe_pool_watch(array, state) != 0)
        return;
    model_sleep();
    sxe_pool_watch_read(array);
}

/* The lease for a move: the lease that an earlier call of the same process got. */
static SXE_POOL_LEASE
model_lease_of(const struct model_order *order, const struct model_call *call)
{
    const unsigned number = (unsigned)(call - model_world.calls);

    const struct model_call *leased = &model_world.calls[number - number % MODEL_CALLS + order->id];

    return (SXE_POOL_LEASE){.id = (unsigned)leased->lease_id, .stamp = leased->lease_stamp};
}

static void
model_keep_lease(struct model_call *call, const SXE_POOL_LEASE *lease)
{
    call->lease_id = lease->id;
    call->lease_stamp = lease->stamp;
}

static void
model_make_call(struct model_call *call, const struct model_order *order, void *array)
{
    const struct sxe__pool_header *pool = sxe__pool_header(array);
    SXE_POOL_LEASE lease;

    switch (order->verb) {
    case MODEL_NOTHING:
        break;
    case MODEL_SET:
        call->state = order->to;
        call->result = sxe__pool_shared_set(pool, order->id, order->from, &call->state);
        break;
    case MODEL_TAKE:
        call->result = sxe__pool_shared_take(pool, order->from, order->to);
        break;
    case MODEL_EXACT:
        call->result = sxe_pool_take_exact(array, order->from, order->to);
        break;
    case MODEL_TOUCH:
        call->state = SXE__POOL_ANY_STATE;
        call->result = sxe__pool_shared_set(pool, order->id, SXE__POOL_ANY_STATE, &call->state);
        break;
    case MODEL_WALK:
        model_walk(call, array, order->from);
        break;
    case MODEL_WAIT:
        model_wait(array, order->from);
        break;
    case MODEL_LEASE:
        call->result = sxe_pool_lease_oldest(array, order->from, order->to, NULL, &lease);
        model_keep_lease(call, &lease);
        break;
    case MODEL_END:
        lease = model_lease_of(order, call);
        call->result = sxe_pool_lease_move(array, &lease, order->to, NULL);
        model_keep_lease(call, &lease);
        break;
    }
}

static void
model_process_main(struct model_process *process)
{
    const unsigned index = model_index(process);
    const struct model_order *orders = model_world.model->orders[index];
    void *array = model_array(index);

    for (; process->call < MODEL_CALLS && orders[process->call].verb != MODEL_NOTHING;
         process->call++) {
        struct model_call *call = &model_world.calls[index * MODEL_CALLS + process->call];

        process->seen = 0;
        process->in_call = false;
        model_make_call(call, &orders[process->call], array);
        call->ended = 1;
    }
    process->in_call = false;
}

/* ---- The beginning ---- */

static void
model_make_page(struct model_page *page, unsigned slot, const struct model_case *model)
{
    const unsigned each = model->elements / model->shards;

    *page = (struct model_page){
        .sharing = {.head = &model_world.head,
                    .shards = model_world.memory.shards,
                    .nodes = model_world.memory.nodes,
                    .end = model->elements + model->states * model->shards,
                    .shard_mask = model->shards - 1,
                    .shard_shift = each == 2 && model->shards > 1,
                    .token = 1u << 7 | slot,
                    .survives = !model->threads,
                    .fd = -1,
                    .watch_fd = MODEL_SOCKET,
                    .watch_token = 1u << 7 | slot},
        .header = {.magic = SXE__POOL_MAGIC,
                   .version = SXE__POOL_VERSION,
                   .header_size = sizeof(page->header),
                   .number = model->elements,
                   .states = model->states,
                   .element_size = 1,
                   .nodes_offset = (uintptr_t)model_world.memory.nodes - (uintptr_t)page->array,
                   .name = "model",
                   .sharing = &page->sharing},
    };
}

static void
model_make_lists(struct model_memory *memory, const struct model_case *model)
{
    const struct sxe__pool_header *pool = &model_world.pages[0].header;
    const struct sxe__pool_sharing *sharing = pool->sharing;

    memset(memory, 0, sizeof(*memory));
    for (unsigned state = 0; state < model->states; state++) {
        for (unsigned shard = 0; shard < model->shards; shard++) {
            const uint32_t list = sxe__pool_shard_list(pool, sharing, state, shard);
            memory->nodes[list] =
                (struct sxe__pool_node){.next = list, .prev = list, .state = state};
        }
    }
    for (unsigned id = 0; id < model->elements; id++) {
        const unsigned shard = sxe__pool_shard_of(sharing, id);
        const uint32_t list = sxe__pool_shard_list(pool, sharing, model->begin[id], shard);
        struct sxe__pool_node *nodes = memory->nodes;

        memory->shards[shard].last_stamp = id + 1;
        nodes[id] = (struct sxe__pool_node){.next = list,
                                            .prev = nodes[list].prev,
                                            .state = model->begin[id],
                                            .generation = 1,
                                            .stamp = id + 1};
        nodes[nodes[list].prev].next = id;
        nodes[list].prev = id;
        nodes[list].count++;
    }
}

/* Fill in the thread-local variables with the values that they have after a first call. */
static void
model_make_locals(unsigned index)
{
    const size_t size = (size_t)(__stop_model_locals - __start_model_locals);

    if (size > MODEL_LOCALS)
        abort();
    memset(__start_model_locals, 0, size);
    (void)sxe__pool_shared_take(&model_world.pages[index].header, 0, 0);
    memcpy(model_world.first_locals[index], __start_model_locals, size);
}

static void
model_make_world(const struct model_case *model)
{
    model_world.model = model;
    for (unsigned i = 0; i < MODEL_PROCESSES; i++)
        model_world.head.slots[i].generation = 1;
    for (unsigned i = 0; i <= MODEL_PROCESSES; i++)
        model_make_page(&model_world.pages[i], i, model);
    for (unsigned i = 0; i <= MODEL_PROCESSES; i++) {
        model_make_lists(&model_world.memory, model);
        model_make_locals(i);
    }
    model_make_lists(&model_world.first, model);
    model_run.tso = model->tso;
}

static void
model_reset_world(void)
{
    model_world.memory = model_world.first;
    model_set_waits(&(struct model_waits){0});
    model_world.ticks = 0;
    memset(model_world.calls, 0, sizeof(model_world.calls));
    memcpy(model_world.locals, model_world.first_locals, sizeof(model_world.locals));
    for (unsigned i = 0; i < MODEL_PROCESSES; i++)
        model_start(&model_run.processes[i]);
}

/* ---- The end ---- */

#define MODEL_SAY(...) \
    (snprintf(model_world.said, sizeof(model_world.said), __VA_ARGS__), model_world.said)

/* Check that a process which only takes finds every element. NULL, or an error. */
static const char *
model_check_takes(void)
{
    const struct model_case *model = model_world.model;
    const struct sxe__pool_header *pool = &model_world.pages[MODEL_PROCESSES].header;
    unsigned taken = 0;

    for (unsigned state = 0; state < model->states; state++) {
        const unsigned to = state == 0 && model->states > 1 ? 1 : 0;
        for (unsigned i = 0; i <= model->elements; i++) {
            const unsigned id = sxe__pool_shared_take(pool, state, to);

            if (id == SXE_POOL_NO_INDEX)
                break;
            if (id >= model->elements)
                return MODEL_SAY("take of state %u answers %u", state, id);
            taken += state != 0;
            if (model->states == 1 && i + 1 == model->elements)
                return NULL;
        }
    }
    if (model->states > 1 && taken != model->elements)
        return MODEL_SAY("of %u elements, takes find %u", model->elements, taken);
    return NULL;
}

static const char *
model_check_list(uint32_t list, unsigned state, unsigned shard, unsigned *total)
{
    const struct sxe__pool_header *pool = &model_world.pages[0].header;
    const struct sxe__pool_node *nodes = model_world.memory.nodes;
    uint64_t stamp = 0;
    unsigned count = 0;
    uint32_t prev = list;

    for (uint32_t id = nodes[list].next; id != list; prev = id, id = nodes[id].next) {
        if (id >= pool->number || count > pool->number)
            return MODEL_SAY("list %u of shard %u leads to %u", state, shard, id);
        if (nodes[id].state != state || sxe__pool_shard_of(pool->sharing, id) != shard)
            return MODEL_SAY("element %u is on list %u of shard %u", id, state, shard);
        if (nodes[id].prev != prev)
            return MODEL_SAY("element %u has %u before it, not %u", id, nodes[id].prev, prev);
        if (nodes[id].stamp <= stamp ||
            nodes[id].stamp > model_world.memory.shards[shard].last_stamp)
            return MODEL_SAY("element %u is not in time order", id);
        stamp = nodes[id].stamp;
        count++;
    }
    if (nodes[list].prev != prev || nodes[list].count != count)
        return MODEL_SAY("list %u of shard %u has %u elements, not %u", state, shard, count,
                         nodes[list].count);
    *total += count;
    return NULL;
}

/* Check that every lock can be taken, and that all lists are in order then. NULL, or an error. */
static const char *
model_check_lists(void)
{
    const struct sxe__pool_header *pool = &model_world.pages[MODEL_PROCESSES].header;
    const struct model_case *model = model_world.model;
    unsigned total = 0;

    for (unsigned shard = 0; shard < model->shards; shard++) {
        const unsigned got = sxe__pool_lock_shard(pool, shard);
        if (got != SXE_POOL_LOCK_TAKEN)
            return MODEL_SAY("the lock of shard %u cannot be had: %u", shard, got);
        sxe__pool_unlock_shard(pool, shard);
        if (sxe__pool_is_begun(&model_world.memory.shards[shard]))
            return MODEL_SAY("a change of shard %u is begun and not done", shard);
        for (unsigned state = 0; state < model->states; state++) {
            const uint32_t list = sxe__pool_shard_list(pool, pool->sharing, state, shard);
            const char *wrong = model_check_list(list, state, shard, &total);
            if (wrong != NULL)
                return wrong;
        }
    }
    return total == model->elements ? NULL : MODEL_SAY("%u elements are on lists", total);
}

/* Whether a process that was killed may have lost a wake-up: one that was sent to it, or one that
 * it was about to send. */
static bool
model_wake_died(void)
{
    for (unsigned i = 0; i < MODEL_PROCESSES; i++) {
        const struct model_process *process = &model_run.processes[i];
        const struct model_order *order = &model_world.model->orders[i][process->call];

        if (process->status == MODEL_DEAD &&
            (model_world.waits.woken[i] != 0 || order->verb != MODEL_WAIT))
            return true;
    }
    return false;
}

/* Check that no process sleeps while the pool has what it waits for. NULL, or an error. */
static const char *
model_check_sleepers(void)
{
    const struct sxe__pool_header *pool = &model_world.pages[MODEL_PROCESSES].header;

    for (unsigned i = 0; i < MODEL_PROCESSES; i++) {
        const struct model_process *process = &model_run.processes[i];
        const unsigned state = model_world.model->orders[i][process->call].from;

        if (process->status == MODEL_READY && process->asleep &&
            sxe__pool_shared_count(pool, state) != 0 && !model_wake_died())
            return MODEL_SAY("process %u sleeps, and state %u is not empty", i, state);
    }
    return NULL;
}

#endif
