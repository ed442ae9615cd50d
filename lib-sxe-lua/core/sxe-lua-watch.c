/* SPDX-License-Identifier: MIT
 *
 * One thread a process looks after all states. It touches nothing of Lua: what has to happen to a
 * state happens in its own thread, in a hook, which a signal sets (lua_sethook may be called
 * there). So Lua runs without a hook as long as it does not run for long.
 *
 * The thread sleeps while no state runs Lua, so that an idle program does not wake up. It says that
 * it is asleep, and then looks whether a state runs. A loop that begins to run Lua says so, and
 * then looks whether the thread is asleep. At least one of the two sees what the other said,
 * because membarrier(2) orders the loops' stores and loads for the thread. So when a loop begins to
 * run Lua, the check costs only one load.
 */
#include "sxe-lua-core-private.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TICK_MS = 10, QUIET_TICKS = 10, REST = 4, SHOWN = 12 };

#define SIGNAL SIGRTMIN

static struct {
    pthread_mutex_t lock; /* protects all of this struct */
    struct sxe_lua *first;
    bool has_thread; /* the thread exists; it ends when it finds no state */
    bool may_sleep;  /* the kernel has membarrier(2) */
    unsigned quiet;  /* ticks since a state was seen to run Lua */
    uint32_t asleep; /* atomic, a futex: 1 while the thread sleeps */
} dog = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- In the loop's thread ---- */

static uint64_t
thread_cpu_ns(void)
{
    struct timespec used = {0};

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * SXE_NS_PER_SECOND + (uint64_t)used.tv_nsec;
}

enum sxe__lua_demand
sxe__lua_watch_demand(const struct sxe__lua_watch *watch)
{
    if (SXE__LUA_LOAD(watch->asked_sequence) != SXE__LUA_LOAD(watch->sequence))
        return SXE__LUA_NO_DEMAND;
    return (enum sxe__lua_demand)SXE__LUA_LOAD(watch->demand);
}

enum sxe__lua_demand
sxe__lua_watch_realm_demand(const struct sxe__lua_watch *watch, lua_State *L)
{
    const struct sxe__lua_realm_watch *realm = &watch->realm;

    if (SXE__LUA_LOAD(realm->asked_call) != realm->call || realm->call == 0 ||
        !(realm->takes_results || sxe__lua_is_realm(L)))
        return SXE__LUA_NO_DEMAND;
    return (enum sxe__lua_demand)SXE__LUA_LOAD(realm->demand);
}

/* The greater one of the demands on the task and on the realm that runs in L. */
static enum sxe__lua_demand
demand_on(const struct sxe__lua_watch *watch, lua_State *L)
{
    const enum sxe__lua_demand task = sxe__lua_watch_demand(watch);
    const enum sxe__lua_demand realm = sxe__lua_watch_realm_demand(watch, L);

    return realm > task ? realm : task;
}

/* Set the hook. The signal handler calls this, too. */
static void
set_hook(struct sxe__lua_watch *watch, lua_State *L)
{
    /* If the task must end, an error comes at every instruction, so the hook need not be called at
     * returns from functions of C. In a sandbox it must also be called at returns: the caller may
     * be a function of C that does not return. */
    const bool is_last = SXE__LUA_LOAD(watch->demand) == SXE__LUA_END &&
                         !sxe__lua_config()->is_sandbox && !sxe__lua_is_realm(L);
    const int mask = is_last ? LUA_MASKCOUNT : LUA_MASKCOUNT | LUA_MASKRET;
    const lua_Hook interrupt = sxe__lua_current()->contents->interrupt;

    if (sxe__lua_is_realm(L)) {
        lua_sethook(L, interrupt, mask, 1); /* a realm has no hooks of its own */
        return;
    }
    if (lua_gethook(L) != interrupt)
        watch->replaced =
            (struct sxe__lua_hook){L, lua_gethook(L), lua_gethookmask(L), lua_gethookcount(L)};
    /* If the script has a hook for lines, keep LUA_MASKLINE: Lua may be counting lines right now,
     * and without the mask it would not see that the count of instructions becomes 1. */
    lua_sethook(L, interrupt, mask | (watch->replaced.mask & LUA_MASKLINE), 1);
}

void
sxe__lua_watch_clear_hook(const struct sxe__lua_watch *watch, lua_State *L)
{
    const struct sxe__lua_hook *replaced = &watch->replaced;
    lua_State *main = sxe__lua_current()->main;

    if (sxe__lua_is_realm(L)) {
        lua_sethook(L, NULL, 0, 0);
        return;
    }
    /* A coroutine that is made while our hook is set has our hook, too. Then the main state may
     * still have it, and nothing to copy. */
    if (replaced->L == L || lua_gethook(main) == sxe__lua_current()->contents->interrupt)
        lua_sethook(L, replaced->function, replaced->mask, replaced->count);
    else
        lua_sethook(L, lua_gethook(main), lua_gethookmask(main), lua_gethookcount(main));
}

/* Set the hook, but not again until the script has run for four times as long as lua_sethook()
 * took. lua_sethook() visits all calls that L is in. With half a million calls it may take longer
 * than 10 ms; without the pause one signal would follow another, and the script would never go
 * on. */
void
sxe__lua_watch_set_hook(struct sxe__lua_watch *watch, lua_State *L)
{
    const uint64_t start_ns = watch->cpu_ns();
    uint64_t took_ns;

    if (start_ns < watch->rest_ns)
        return;
    set_hook(watch, L);
    took_ns = watch->cpu_ns() - start_ns;
    watch->rest_ns = start_ns + took_ns + REST * took_ns;
}

/* Set the hook. If the task must end, also allow hooks: it may be in a handler of the last error,
 * where hooks are off. */
static void
on_watch_signal(int signal_number)
{
    struct sxe_lua *lua = sxe__lua_current();
    const enum sxe__lua_demand demand = lua != NULL && lua->watch.running != NULL
                                            ? demand_on(&lua->watch, lua->watch.running)
                                            : SXE__LUA_NO_DEMAND;

    (void)signal_number;
    if (demand == SXE__LUA_NO_DEMAND)
        return;
    sxe__lua_watch_set_hook(&lua->watch, lua->watch.running);
    if (demand >= SXE__LUA_RAISE)
        sxe__lua_allow_hooks(lua->watch.running);
}

/* Answer a profiler about a coroutine that does not run any more. Its hook is not needed then. */
static void
tell_calls_of_left(struct sxe_lua *lua, lua_State *left)
{
    sxe__lua_tell_calls(lua, left);
    if (left != NULL && lua_gethook(left) == lua->contents->interrupt &&
        sxe__lua_watch_demand(&lua->watch) == SXE__LUA_NO_DEMAND)
        sxe__lua_watch_clear_hook(&lua->watch, left);
}

void
sxe__lua_watch_switch(struct sxe_lua *lua, lua_State *running)
{
    lua_State *left = lua->watch.running;

    lua->watch.running = running;
    if (SXE_UNLIKELY(lua->watch.take_calls != NULL))
        tell_calls_of_left(lua, left);
    if (SXE_UNLIKELY((SXE__LUA_LOAD(lua->watch.demand) | SXE__LUA_LOAD(lua->watch.realm.demand)) !=
                     SXE__LUA_NO_DEMAND) &&
        running != NULL && demand_on(&lua->watch, running) != SXE__LUA_NO_DEMAND)
        set_hook(&lua->watch, running);
}

/* Wake the watchdog's thread. Harmless if the thread is awake. */
static void
wake_thread(void)
{
    if (__atomic_exchange_n(&dog.asleep, 0, __ATOMIC_SEQ_CST) == 1)
        syscall(SYS_futex, &dog.asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool
sxe__lua_watch_is_asleep(void)
{
    return SXE__LUA_LOAD(dog.asleep) == 1;
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
    SXE__LUA_STORE(watch->spent_ns, *spent_ns);
    SXE__LUA_STORE(watch->start_cpu_ns, *spent_ns > 0 ? watch->cpu_ns() : 0);
    SXE__LUA_STORE(watch->sequence, watch->sequence + 1);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SXE_UNLIKELY(SXE__LUA_LOAD(dog.asleep) == 1))
        wake_thread();
}

void
sxe__lua_watch_leave(struct sxe__lua_watched *watched)
{
    struct sxe_lua *lua = sxe__lua_current();
    struct sxe__lua_watch *watch = &lua->watch;

    if (watched->spent_ns != NULL) /* the task ended, or waits, and did not only make way */
        *watched->spent_ns = 0;
    watch->top = watched->interrupted;
    if (watch->top != NULL) {
        sxe__lua_watch_switch(lua, watched->running);
        return;
    }
    SXE__LUA_STORE(watch->sequence, watch->sequence + 1);
    sxe__lua_watch_switch(lua, NULL);
}

void
sxe__lua_watch_end(struct sxe_lua *lua)
{
    SXE__LUA_STORE(lua->watch.is_ending, true);
}

/* Demand that the running task makes way. If an older demand is about an earlier task, replace it,
 * and charge no CPU time for it. */
void
sxe__lua_watch_end_slice(void)
{
    struct sxe__lua_watch *watch = &sxe__lua_current()->watch;

    SXE__LUA_STORE(watch->asked_ns, sxe_time_ns());
    SXE__LUA_STORE(watch->asked_cpu_ns, SXE__LUA_LOAD(watch->start_cpu_ns));
    SXE__LUA_STORE(watch->demand, SXE__LUA_MAKE_WAY);
    SXE__LUA_STORE(watch->asked_sequence, SXE__LUA_LOAD(watch->sequence));
    set_hook(watch, watch->running);
}

/* The signal may have interrupted a call of Lua, so this function reads the state and changes
 * nothing. */
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
    const enum sxe__lua_demand pending = sxe__lua_watch_demand(watch);

    if (!SXE__LUA_LOAD(watch->is_ending) &&
        SXE__LUA_LOAD(watch->spent_ns) + used_ns < lua->config.cpu_ms * SXE_NS_PER_MS)
        return used_ns < lua->config.slice_ms * SXE_NS_PER_MS ? SXE__LUA_ANSWER : SXE__LUA_MAKE_WAY;
    if (watch->has_raised && pending != SXE__LUA_RAISE)
        return SXE__LUA_END;
    watch->has_raised = true;
    return SXE__LUA_RAISE;
}

/* Log that the loop is blocked. Only the loop's thread can say where it is, and does so when the
 * blocking call returns. asked_ns may be later than now_ns, if the loop's thread has answered since
 * now_ns was read. */
static void
log_blocked_loop(struct sxe__lua_watch *watch, uint64_t now_ns)
{
    const uint64_t asked_ns = SXE__LUA_LOAD(watch->asked_ns);
    const uint64_t blocked_ns = now_ns > asked_ns ? now_ns - asked_ns : 0;

    if (blocked_ns < watch->complain_ns)
        return;
    SXE_WARN("loop blocked %llu ms so far, by a function of C that does not return",
             (unsigned long long)(blocked_ns / SXE_NS_PER_MS));
    watch->complain_ns *= 2;
}

/* Whether the call into a realm that runs has used up its time; if so, demand its end. A call is
 * seen first at the tick after its beginning: its time counts from there. */
static bool
must_end_realm(struct sxe__lua_realm_watch *realm, uint64_t cpu_ns)
{
    const uint64_t call = SXE__LUA_LOAD(realm->call);
    const uint64_t max_ns = SXE__LUA_LOAD(realm->max_ns);
    uint64_t start_ns = SXE__LUA_LOAD(realm->start_cpu_ns);
    bool is_asked;

    if (call == 0 || SXE__LUA_LOAD(realm->call) != call) /* the values may be of two calls */
        return false;
    if (start_ns == 0) {
        __atomic_compare_exchange_n(&realm->start_cpu_ns, &start_ns, cpu_ns, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
        return false;
    }
    if (cpu_ns - start_ns < max_ns)
        return false;
    is_asked =
        SXE__LUA_LOAD(realm->asked_call) == call && SXE__LUA_LOAD(realm->demand) == SXE__LUA_RAISE;
    SXE__LUA_STORE(realm->demand,
                   realm->raised_call == call && !is_asked ? SXE__LUA_END : SXE__LUA_RAISE);
    SXE__LUA_STORE(realm->asked_call, call);
    realm->raised_call = call;
    return true;
}

void
sxe__lua_watch_look(struct sxe_lua *lua, uint64_t cpu_ns, uint64_t now_ns)
{
    struct sxe__lua_watch *watch = &lua->watch;
    uint32_t sequence = SXE__LUA_LOAD(watch->sequence);

    if (must_end_realm(&watch->realm, cpu_ns))
        pthread_kill(watch->thread, SIGNAL);
    if (sequence != watch->seen_sequence || sequence % 2 == 0) {
        watch->seen_sequence = sequence;
        watch->has_raised = false;
        watch->complain_ns = SXE_NS_PER_SECOND;
        if (SXE__LUA_LOAD(watch->start_cpu_ns) == 0)
            SXE__LUA_STORE(watch->start_cpu_ns, cpu_ns);
        return;
    }
    enum sxe__lua_demand demand = choose_demand(lua, cpu_ns - SXE__LUA_LOAD(watch->start_cpu_ns));

    if (sxe__lua_watch_demand(watch) == SXE__LUA_NO_DEMAND)
        SXE__LUA_STORE(watch->asked_ns, now_ns);
    else
        log_blocked_loop(watch, now_ns);
    SXE__LUA_STORE(watch->asked_cpu_ns, cpu_ns);
    SXE__LUA_STORE(watch->demand, demand);
    SXE__LUA_STORE(watch->asked_sequence, sequence);
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

/* Whether no state runs Lua, and no state has run Lua since the last look. */
static bool
is_quiet(void)
{
    for (const struct sxe_lua *lua = dog.first; lua != NULL; lua = lua->watch.next) {
        const uint32_t sequence = SXE__LUA_LOAD(lua->watch.sequence);

        if (sequence % 2 != 0 || sequence != lua->watch.seen_sequence)
            return false;
    }
    return true;
}

/* Whether the watchdog's thread may sleep: no state ran Lua for a while, and no state has begun to
 * run Lua since the thread announced that it is asleep. */
static bool
falls_asleep(void)
{
    dog.quiet = is_quiet() ? dog.quiet + 1 : 0;
    if (dog.quiet < QUIET_TICKS || !dog.may_sleep || dog.first == NULL)
        return false;
    dog.quiet = 0;
    SXE__LUA_STORE(dog.asleep, 1);
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

    sigaddset(&action.sa_mask, SIGPROF); /* its handler sets the hook, too */
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
    /* The process or thread that started this thread may have blocked the watchdog's signal, and a
     * signal mask outlives exec(2). With the signal blocked, nothing would end a script that
     * computes. */
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
