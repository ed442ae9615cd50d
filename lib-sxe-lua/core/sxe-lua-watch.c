/* SPDX-License-Identifier: MIT
 *
 * One thread a process looks after all states. It touches nothing of Lua: what has to happen to a
 * state happens in its own thread, in a hook, which a signal sets (lua_sethook may be called
 * there). So Lua runs without a hook as long as it does not run for long.
 *
 * The thread sleeps while no state runs Lua, so that an idle program does not wake up. It says that
 * it is asleep, and then looks whether a state runs. A loop that begins to run Lua says so, and
 * then looks whether the thread is asleep. One of them sees the other, because membarrier(2) orders
 * the loops' stores and loads for the thread. Beginning to run costs a load.
 */
#include "sxe-lua-core-private.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TICK_MS = 10, QUIET_TICKS = 10, BLOCKED_MS = 100, REST = 4, SHOWN = 12 };

#define SIGNAL SIGRTMIN

static struct {
    pthread_mutex_t lock; /* of all of this */
    struct sxe_lua *first;
    bool has_thread; /* it ends when it finds no state */
    bool may_sleep;  /* the kernel has membarrier(2) */
    unsigned quiet;  /* ticks since a state was seen to run Lua */
    uint32_t asleep; /* atomic, a futex: 1 while the thread sleeps */
} dog = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define LOAD(field)         __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define STORE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELEASE)

/* ---- In the loop's thread ---- */

static uint64_t
thread_cpu_ns(void)
{
    struct timespec used = {0};

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * SXE_NS_PER_SECOND + (uint64_t)used.tv_nsec;
}

static enum sxe__lua_demand
demand_of(const struct sxe__lua_watch *watch)
{
    if (LOAD(watch->asked_sequence) != LOAD(watch->sequence))
        return SXE__LUA_NO_DEMAND;
    return (enum sxe__lua_demand)LOAD(watch->demand);
}

/* Where L is, for messages: the script's line, and if a function of C returns to it, its name. */
static void
push_place(lua_State *L, lua_Debug *ar)
{
    lua_Debug caller = *ar;
    const char *name;
    int level = 0;

    lua_getinfo(L, "nS", ar);
    do
        lua_getinfo(L, "Sl", &caller);
    while (caller.currentline < 0 && lua_getstack(L, ++level, &caller));
    if (caller.currentline < 0) {
        lua_pushliteral(L, "a function of C");
        return;
    }
    name = level > 0 ? ar->name : NULL;
    lua_pushfstring(L, "%s%s%s:%d", name != NULL ? name : "", name != NULL ? " at " : "",
                    caller.short_src, caller.currentline);
}

static void
log_if_blocked(lua_State *L, lua_Debug *ar, uint64_t asked_ns)
{
    uint64_t late_ms = (sxe_time_ns() - asked_ns) / SXE_NS_PER_MS;

    if (late_ms < BLOCKED_MS)
        return;
    push_place(L, ar);
    SXE_WARN("loop blocked %llu ms in %s", (unsigned long long)late_ms, lua_tostring(L, -1));
    lua_pop(L, 1);
}

/* Whether a script's top level goes on though its time slice is over: to make way would start the
 * loop, and then it is too late for servers, routes and files. Without a limit of its CPU time it
 * goes on for a second, because signals and other tasks wait for the loop. */
static bool
is_planning(uint64_t used_ns)
{
    return sxe_loop() == NULL && sxe__lua_is_top_level() &&
           (sxe__lua_config()->cpu_ms != UINT32_MAX || used_ns < SXE_NS_PER_SECOND);
}

static void
make_way_for_tasks(lua_State *L, struct sxe__lua_watch *watch)
{
    uint64_t used = LOAD(watch->asked_cpu_ns) - LOAD(watch->start_cpu_ns);

    if (sxe__lua_end_computing(L) || !sxe__lua_may_yield(L) || is_planning(used))
        return;
    *watch->top->spent_ns += used;
    watch->top->spent_ns = NULL;
    sxe__lua_make_way(L);
}

/* Whether the function is one of libsxe's message handlers. They make the text of the error that
 * ends the script, so that error must not be followed by another one in them. */
static bool
is_message_handler(lua_State *L, lua_Debug *ar)
{
    lua_CFunction function;

    lua_getinfo(L, "f", ar);
    function = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    return function == sxe__lua_message_handler || function == sxe__lua_task_message_handler;
}

static int
raise_exceeded(lua_State *L, lua_Debug *ar)
{
    push_place(L, ar);
    if (LOAD(sxe__lua_current()->watch.is_ending))
        return luaL_error(L, "%s: the worker was stopped", lua_tostring(L, -1));
    return luaL_error(L, "%s: handler exceeded %d ms of CPU", lua_tostring(L, -1),
                      (int)sxe__lua_config()->cpu_ms);
}

static void interrupt_task(lua_State *L, lua_Debug *ar);

/* Called by the signal handler, too. */
static void
set_hook(struct sxe__lua_watch *watch, lua_State *L)
{
    /* After an error, a return from a function of C needs no hook, except in a sandbox: there its
     * caller may be one that does not return. */
    const bool is_last = LOAD(watch->demand) == SXE__LUA_END && !sxe__lua_config()->is_sandbox;
    const int mask = is_last ? LUA_MASKCOUNT : LUA_MASKCOUNT | LUA_MASKRET;

    if (lua_gethook(L) != interrupt_task)
        watch->replaced =
            (struct sxe__lua_hook){L, lua_gethook(L), lua_gethookmask(L), lua_gethookcount(L)};
    /* Keep a hook of lines: Lua may be counting for it right now, and would not see that the count
     * becomes 1. */
    lua_sethook(L, interrupt_task, mask | (watch->replaced.mask & LUA_MASKLINE), 1);
}

/* Set the script's hook again, unless another coroutine was hooked since: then set that of the main
 * state, which new coroutines have. */
static void
clear_hook(const struct sxe__lua_hook *replaced, lua_State *L)
{
    lua_State *main = sxe__lua_current()->main;

    if (replaced->L == L)
        lua_sethook(L, replaced->function, replaced->mask, replaced->count);
    else
        lua_sethook(L, lua_gethook(main), lua_gethookmask(main), lua_gethookcount(main));
}

static void
interrupt_task(lua_State *L, lua_Debug *ar)
{
    struct sxe_lua *lua = sxe__lua_current();
    struct sxe__lua_watch *watch = &lua->watch;
    enum sxe__lua_demand demand = demand_of(watch);
    const bool is_line = ar->event == LUA_HOOKLINE;
    const bool can_leave = is_line || ar->event == LUA_HOOKCOUNT;

    const bool stays = demand == SXE__LUA_END || (demand == SXE__LUA_MAKE_WAY && !can_leave);

    if (!stays) { /* if it stays, do not set it again: that costs time for each call that L is in */
        clear_hook(&watch->replaced, L);
        STORE(watch->demand, SXE__LUA_NO_DEMAND);
    }
    if (is_line && !stays && lua_gethook(L) != NULL)
        lua_gethook(L)(L, ar);
    if (demand == SXE__LUA_NO_DEMAND)
        return;
    log_if_blocked(L, ar, LOAD(watch->asked_ns));
    STORE(watch->asked_ns, sxe_time_ns());
    if (demand == SXE__LUA_END) { /* message handlers and __close functions get no more time */
        if (is_message_handler(L, ar))
            return;
        sxe__lua_allow_hooks(L);
    }
    if (demand >= SXE__LUA_RAISE)
        raise_exceeded(L, ar);
    if (demand == SXE__LUA_MAKE_WAY && can_leave)
        make_way_for_tasks(L, watch);
}

void
sxe__lua_watch_poll(lua_State *L)
{
    struct sxe__lua_watch *watch = &sxe__lua_current()->watch;
    const enum sxe__lua_demand demand = demand_of(watch);
    lua_Debug ar;

    if (SXE_LIKELY(demand < SXE__LUA_RAISE) || !lua_getstack(L, 0, &ar))
        return;
    if (demand == SXE__LUA_RAISE)
        STORE(watch->demand, SXE__LUA_NO_DEMAND);
    raise_exceeded(L, &ar);
}

/* lua_sethook() visits all calls that L is in, and half a million may take longer than a tick: then
 * signal would follow signal, and the script never go on. So it gets four times that time first. */
static void
set_hook_seldom(struct sxe__lua_watch *watch, lua_State *L)
{
    const uint64_t start_ns = watch->cpu_ns();
    uint64_t took_ns;

    if (start_ns < watch->rest_ns)
        return;
    set_hook(watch, L);
    took_ns = watch->cpu_ns() - start_ns;
    watch->rest_ns = start_ns + took_ns + REST * took_ns;
}

/* Set the hook. A script that does not end may be in a handler of the last error, with hooks
 * off. */
static void
on_watch_signal(int number)
{
    struct sxe_lua *lua = sxe__lua_current();
    const enum sxe__lua_demand demand = lua != NULL ? demand_of(&lua->watch) : SXE__LUA_NO_DEMAND;

    (void)number;
    if (demand == SXE__LUA_NO_DEMAND)
        return;
    set_hook_seldom(&lua->watch, lua->watch.running);
    if (demand >= SXE__LUA_RAISE)
        sxe__lua_allow_hooks(lua->watch.running);
}

void
sxe__lua_watch_switch(struct sxe_lua *lua, lua_State *running)
{
    lua->watch.running = running;
    if (SXE_UNLIKELY(LOAD(lua->watch.demand) != SXE__LUA_NO_DEMAND) &&
        demand_of(&lua->watch) != SXE__LUA_NO_DEMAND)
        set_hook(&lua->watch, running);
}

/* Wake the watchdog's thread. Harmless if it is awake. */
static void
wake_thread(void)
{
    if (__atomic_exchange_n(&dog.asleep, 0, __ATOMIC_SEQ_CST) == 1)
        syscall(SYS_futex, &dog.asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool
sxe__lua_watch_is_asleep(void)
{
    return LOAD(dog.asleep) == 1;
}

void
sxe__lua_watch_enter(struct sxe__lua_watched *watched, lua_State *L, uint64_t *spent_ns)
{
    struct sxe_lua *lua = sxe__lua_current();
    struct sxe__lua_watch *watch = &lua->watch;

    *watched = (struct sxe__lua_watched){L, spent_ns, watch->top, watch->running};
    watch->top = watched;
    sxe__lua_watch_switch(lua, L);
    if (watched->interrupted != NULL)
        return;
    STORE(watch->spent_ns, *spent_ns);
    STORE(watch->start_cpu_ns, *spent_ns > 0 ? watch->cpu_ns() : 0);
    STORE(watch->sequence, watch->sequence + 1);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SXE_UNLIKELY(LOAD(dog.asleep) == 1))
        wake_thread();
}

void
sxe__lua_watch_leave(struct sxe__lua_watched *watched)
{
    struct sxe_lua *lua = sxe__lua_current();
    struct sxe__lua_watch *watch = &lua->watch;

    if (watched->spent_ns != NULL) /* it did not make way, but waits, or has ended */
        *watched->spent_ns = 0;
    watch->top = watched->interrupted;
    if (watch->top != NULL) {
        sxe__lua_watch_switch(lua, watched->running);
        return;
    }
    STORE(watch->sequence, watch->sequence + 1);
    watch->running = NULL;
}

void
sxe__lua_watch_end(struct sxe_lua *lua)
{
    STORE(lua->watch.is_ending, true);
}

/* Demand that the running task makes way. A demand that is still about the last task is replaced,
 * and no CPU time is charged. */
void
sxe__lua_watch_end_slice(void)
{
    struct sxe__lua_watch *watch = &sxe__lua_current()->watch;

    STORE(watch->asked_ns, sxe_time_ns());
    STORE(watch->asked_cpu_ns, LOAD(watch->start_cpu_ns));
    STORE(watch->demand, SXE__LUA_MAKE_WAY);
    STORE(watch->asked_sequence, LOAD(watch->sequence));
    set_hook(watch, watch->running);
}

/* The signal may have interrupted a call of Lua, so this reads the state and changes nothing. */
size_t
sxe_lua_describe_running(char *room, size_t size)
{
    struct sxe_lua *lua = sxe__lua_current();
    lua_State *L = lua != NULL ? lua->watch.running : NULL;
    size_t used = 0;
    lua_Debug ar;

    room[0] = '\0';
    for (int level = 0; L != NULL && level < SHOWN && lua_getstack(L, level, &ar); level++) {
        const char *separator = used > 0 ? ", " : "";
        int length = 0;

        lua_getinfo(L, "nSl", &ar);
        if (ar.currentline >= 0)
            length = snprintf(room + used, size - used, "%s%s:%d", separator, ar.short_src,
                              ar.currentline);
        else if (ar.name != NULL)
            length = snprintf(room + used, size - used, "%s%s", separator, ar.name);
        if ((size_t)length >= size - used)
            return size - 1;
        used += (size_t)length;
    }
    return used;
}

/* ---- In the watchdog's thread ---- */

static enum sxe__lua_demand
choose_demand(struct sxe_lua *lua, uint64_t used_ns)
{
    struct sxe__lua_watch *watch = &lua->watch;
    const enum sxe__lua_demand pending = demand_of(watch);

    if (!LOAD(watch->is_ending) &&
        LOAD(watch->spent_ns) + used_ns < lua->config.cpu_ms * SXE_NS_PER_MS)
        return used_ns < lua->config.slice_ms * SXE_NS_PER_MS ? SXE__LUA_ANSWER : SXE__LUA_MAKE_WAY;
    if (watch->has_raised && pending != SXE__LUA_RAISE)
        return SXE__LUA_END;
    watch->has_raised = true;
    return SXE__LUA_RAISE;
}

/* Log that the loop is blocked. Only the loop's thread can tell where, and does when the call is
 * back. It may have answered since now_ns was read. */
static void
log_blocked_loop(struct sxe__lua_watch *watch, uint64_t now_ns)
{
    const uint64_t asked_ns = LOAD(watch->asked_ns);
    const uint64_t blocked_ns = now_ns > asked_ns ? now_ns - asked_ns : 0;

    if (blocked_ns < watch->complain_ns)
        return;
    SXE_WARN("loop blocked %llu ms so far, by a function of C that does not return",
             (unsigned long long)(blocked_ns / SXE_NS_PER_MS));
    watch->complain_ns *= 2;
}

void
sxe__lua_watch_look(struct sxe_lua *lua, uint64_t cpu_ns, uint64_t now_ns)
{
    struct sxe__lua_watch *watch = &lua->watch;
    uint32_t sequence = LOAD(watch->sequence);

    if (sequence != watch->seen_sequence || sequence % 2 == 0) {
        watch->seen_sequence = sequence;
        watch->has_raised = false;
        watch->complain_ns = SXE_NS_PER_SECOND;
        if (LOAD(watch->start_cpu_ns) == 0)
            STORE(watch->start_cpu_ns, cpu_ns);
        return;
    }
    enum sxe__lua_demand demand = choose_demand(lua, cpu_ns - LOAD(watch->start_cpu_ns));

    if (demand_of(watch) == SXE__LUA_NO_DEMAND)
        STORE(watch->asked_ns, now_ns);
    else
        log_blocked_loop(watch, now_ns);
    STORE(watch->asked_cpu_ns, cpu_ns);
    STORE(watch->demand, demand);
    STORE(watch->asked_sequence, sequence);
    pthread_kill(watch->thread, SIGNAL);
}

static void
look_at_all_watches(void)
{
    uint64_t now_ns = sxe_time_ns();

    for (struct sxe_lua *lua = dog.first; lua != NULL; lua = lua->watch.next) {
        struct timespec used = {0};

        clock_gettime(lua->watch.thread_clock, &used);
        sxe__lua_watch_look(lua, (uint64_t)used.tv_sec * SXE_NS_PER_SECOND + (uint64_t)used.tv_nsec,
                            now_ns);
    }
}

/* Whether no state runs Lua, and none has run it since the last look. */
static bool
is_quiet(void)
{
    for (const struct sxe_lua *lua = dog.first; lua != NULL; lua = lua->watch.next) {
        const uint32_t sequence = LOAD(lua->watch.sequence);

        if (sequence % 2 != 0 || sequence != lua->watch.seen_sequence)
            return false;
    }
    return true;
}

/* Whether the thread is to sleep: all was quiet for a while, and nothing has begun since it said
 * that it is asleep. */
static bool
falls_asleep(void)
{
    dog.quiet = is_quiet() ? dog.quiet + 1 : 0;
    if (dog.quiet < QUIET_TICKS || !dog.may_sleep || dog.first == NULL)
        return false;
    dog.quiet = 0;
    STORE(dog.asleep, 1);
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0);
    return __atomic_and_fetch(&dog.asleep, is_quiet() ? 1u : 0u, __ATOMIC_SEQ_CST) == 1;
}

static void *
watch_all_threads(void *unused)
{
    bool has_work = true;
    bool sleeps;

    while (has_work) {
        poll(NULL, 0, TICK_MS);
        pthread_mutex_lock(&dog.lock);
        sleeps = falls_asleep();
        look_at_all_watches();
        has_work = dog.first != NULL;
        dog.has_thread = has_work;
        pthread_mutex_unlock(&dog.lock);
        while (sleeps && sxe__lua_watch_is_asleep())
            syscall(SYS_futex, &dog.asleep, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
    }
    return unused;
}

/* ---- The thread ---- */

static void
lock_watch(void)
{
    pthread_mutex_lock(&dog.lock);
}

static void
unlock_watch(void)
{
    pthread_mutex_unlock(&dog.lock);
}

static void
restart_watch_in_child(void)
{
    dog.has_thread = false;
    dog.asleep = 0;
    unlock_watch();
}

static void
prepare_process(void)
{
    struct sigaction action = {.sa_handler = on_watch_signal, .sa_flags = SA_RESTART};

    sxe__lua_find_hook_flag();
    dog.may_sleep = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) == 0;
    sigaction(SIGNAL, &action, NULL);
    pthread_atfork(lock_watch, unlock_watch, restart_watch_in_child);
}

static int
start_thread(void)
{
    sigset_t all, before;
    pthread_t thread;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, NULL, watch_all_threads, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        pthread_detach(thread);
    dog.has_thread = error == 0;
    return -error;
}

static bool
is_watched(const struct sxe_lua *lua)
{
    const struct sxe_lua *listed = dog.first;

    while (listed != NULL && listed != lua)
        listed = listed->watch.next;
    return listed == lua;
}

int
sxe__lua_watch_start(struct sxe_lua *lua)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    sigset_t ours;
    int result = 0;

    pthread_once(&once, prepare_process);
    /* The process or thread that started this one may have blocked the watchdog's signal, and a
     * mask outlives exec(2): then nothing would end a script that computes. */
    sigemptyset(&ours);
    sigaddset(&ours, SIGNAL);
    pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
    lock_watch();
    lua->watch.thread = pthread_self();
    lua->watch.cpu_ns = thread_cpu_ns;
    lua->watch.rest_ns = 0;
    pthread_getcpuclockid(lua->watch.thread, &lua->watch.thread_clock);
    if (!is_watched(lua)) {
        lua->watch.next = dog.first;
        dog.first = lua;
    }
    if (!dog.has_thread)
        result = start_thread();
    unlock_watch();
    return result;
}

void
sxe__lua_watch_stop(struct sxe_lua *lua)
{
    struct sxe_lua **link = &dog.first;

    lock_watch();
    while (*link != lua)
        link = &(*link)->watch.next;
    *link = lua->watch.next;
    unlock_watch();
    wake_thread(); /* the watchdog's thread ends when it finds no state */
}
