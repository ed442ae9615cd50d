/* SPDX-License-Identifier: MIT
 *
 * Calls that compute for long (sxe-lua-offload-internal.h), in the threads of sxe-work.
 */
#include "sxe-lua-private.h"

#include <errno.h>
#include <unistd.h>

#include "sxe-lua-offload-internal.h"

/* The jobs of this thread. A job that a thread has outlives the state; its memory is found here,
 * and is freed when the job is done or, if the loop has ended, by the next state. */
static _Thread_local struct {
    struct sxe__lua_offload_job *first;
    size_t held;    /* how many bytes all jobs have together */
    unsigned group; /* the group of work threads */
} offloaded;

static void
add_offloaded(struct sxe__lua_offload_job *job)
{
    job->next = offloaded.first;
    job->prev = NULL;
    if (job->next != NULL)
        job->next->prev = job;
    offloaded.first = job;
    offloaded.held += job->size;
}

static void
remove_offloaded(struct sxe__lua_offload_job *job)
{
    if (job->prev != NULL)
        job->prev->next = job->next;
    else
        offloaded.first = job->next;
    if (job->next != NULL)
        job->next->prev = job->prev;
    offloaded.held -= job->size;
}

static void
discard_offloaded(struct sxe__lua_offload_job *job)
{
    remove_offloaded(job);
    job->discard(job);
}

/* The task does not wait any more. A job that a thread has is freed when the thread is done. */
static void
forget_offloaded(void *what)
{
    struct sxe__lua_offload_job *job = what;

    job->task = 0;
    if (sxe_work_cancel(&job->work) != -EBUSY)
        discard_offloaded(job);
}

static void
run_offloaded(struct sxe_work *work)
{
    struct sxe__lua_offload_job *job = work->user;

    job->run(job);
}

static void
on_offloaded(struct sxe_work *work)
{
    struct sxe__lua_offload_job *job = work->user;

    if (job->task == 0)
        discard_offloaded(job);
    else
        (void)sxe__lua_wake(job->task, SXE__LUA_EVENT);
}

static int
finish_offloaded(lua_State *L, int status, lua_KContext context)
{
    struct sxe__lua_offload_job *job = (struct sxe__lua_offload_job *)context;

    if (status == LUA_YIELD && sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    remove_offloaded(job);
    return job->finish(L, job);
}

/* Whether a thread does the job from now on. */
static bool
submit_offloaded(lua_State *L, struct sxe__lua_offload_job *job)
{
    job->work = (struct sxe_work){
        .run = run_offloaded, .done = on_offloaded, .user = job, .group = offloaded.group};
    return sxe__lua_may_wait(L) && sxe_work_submit(&job->work) == 0;
}

static int
begin_offloaded(lua_State *L, struct sxe__lua_offload_job *job)
{
    const bool is_cancelled =
        sxe__lua_running(L) != 0 && sxe__lua_may_yield(L) && !sxe__lua_may_wait(L);

    if (job->size > sxe__lua_config()->memory_max ||
        offloaded.held > sxe__lua_config()->memory_max - job->size) {
        job->discard(job);
        return luaL_error(L, "not enough memory: too many calls compute in threads");
    }
    add_offloaded(job);
    if (!is_cancelled && !submit_offloaded(L, job)) {
        job->run(job);
        return finish_offloaded(L, LUA_OK, (lua_KContext)job);
    }
    job->task = sxe__lua_running(L);
    return sxe__lua_park(L, 0, forget_offloaded, job, finish_offloaded, (lua_KContext)job);
}

/* No task waits any more: the state ends, or a new one begins. */
static int
forget_all_offloaded(lua_State *L)
{
    struct sxe__lua_offload_job *next;

    (void)L;
    for (struct sxe__lua_offload_job *job = offloaded.first; job != NULL; job = next) {
        next = job->next;
        forget_offloaded(job);
    }
    return 0;
}

/* One thread for each CPU, because the jobs compute, and do not wait. */
static unsigned
threads_for_cpus(void)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    return cpus < 1 ? 1 : cpus < SXE_WORK_THREADS ? (unsigned)cpus : SXE_WORK_THREADS;
}

void
sxe__lua_open_offload(lua_State *L)
{
    static const struct sxe__lua_offload offload = {begin_offloaded};

    if (lua_getfield(L, LUA_REGISTRYINDEX, SXE__LUA_OFFLOAD) == LUA_TNIL) {
        sxe__lua_at_end(L, forget_all_offloaded);
        (void)forget_all_offloaded(L);
        lua_pushlightuserdata(L, (void *)(uintptr_t)&offload);
        lua_setfield(L, LUA_REGISTRYINDEX, SXE__LUA_OFFLOAD);
        offloaded.group = sxe_loop() == NULL ? sxe_work_register_group(threads_for_cpus()) : 0;
    }
    lua_pop(L, 1);
}
