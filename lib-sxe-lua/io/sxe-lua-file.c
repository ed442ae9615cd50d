/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.file": calls that block, done in the threads of sxe-work.
 *
 *     task ---- call: takes a job, parks ----> thread: job->call->run
 *       ^                                           |
 *       '---- finish: pushes, gives it <---- done: wakes
 *
 * Data to write is copied, and data that was read belongs to the job until the task resumes, so
 * neither depends on Lua while the thread has it. A task that is cancelled or times out forgets its
 * job, which is free again once the thread is done with it. A state that is deleted forgets its
 * jobs, too. While all jobs are taken, tasks wait in a line. A file that stays open
 * (sxe-lua-file-open.c) has a job of its own. Before sxe_init there are no threads, and no client
 * who would have to wait; so calls then block: a script's top level reads its settings.
 *
 * A short file that the kernel has in its caches is read by the loop: that takes less time than to
 * wake a thread and be woken. No disk is waited for, neither for the name nor for the bytes; but a
 * file system that asks a process for each open, as FUSE does, keeps the loop waiting. The task
 * does not give up its turn, so this is tried only TRIES_IN_A_TURN times in a turn of the loop.
 */
#include "sxe-lua-file-private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sxe-lua-clock.h"

enum { JOBS = 32, TRIES_IN_A_TURN = 32 };

#define MAX_DEFAULT ((lua_Integer)64 << 20)
#define MAX_MOST    ((lua_Integer)1 << 40)

enum state { FREE, BUSY, STATES };

/* Places in the stack of a call. */
enum { PATH = 1, SECOND, OPTIONS, DEADLINE, WISH };

/* The jobs of this thread. The jobs outlive their state while a thread works on one of them. */
struct files {
    struct sxe__lua_file_job *jobs; /* the array of a pool */
    struct sxe__lua_line waiting;   /* tasks that wait for a free job */
    uint64_t held;
    unsigned group;   /* the group of threads that do the jobs */
    bool has_threads; /* the module was required before the loop began */
    unsigned turn;    /* the loop's turn in which the last read was */
    unsigned tries;   /* number of reads without a thread in that turn */
};

static _Thread_local struct files files;

static void
give_back_job(struct sxe__lua_file_job *job)
{
    sxe__lua_file_release(job);
    if (job->fd >= 0) /* opened by a call that ended before it had read */
        (void)sxe__lua_file_close(job);
    sxe_pool_move(files.jobs, (unsigned)(job - files.jobs), BUSY, FREE);
    sxe__lua_wake_first(&files.waiting);
}

static void
run_job(struct sxe_work *work)
{
    struct sxe__lua_file_job *job = (struct sxe__lua_file_job *)(void *)work;

    job->result = job->call->run(job);
}

static void
on_file_done(struct sxe_work *work)
{
    struct sxe__lua_file_job *job = (struct sxe__lua_file_job *)(void *)work;

    if (job->task == 0)
        job->give(job);
    else
        sxe__lua_wake(job->task, SXE__LUA_EVENT);
}

void
sxe__lua_file_forget(void *what)
{
    struct sxe__lua_file_job *job = what;

    job->task = 0;
    if (sxe_work_cancel(&job->work) != -EBUSY)
        job->give(job);
}

/* ---- Results ---- */

static void
push_file_content(lua_State *L, const struct sxe__lua_file_job *job)
{
    lua_pushlstring(L, job->length > 0 ? job->data : "", job->length);
}

static void
push_names(lua_State *L, const struct sxe__lua_file_job *job)
{
    const char *end = job->data + job->length;
    lua_Integer i = 0;

    lua_newtable(L);
    for (const char *name = job->data; name < end; name += strlen(name) + 1) {
        lua_pushstring(L, name);
        lua_rawseti(L, -2, ++i);
    }
}

static const char *
type_of(mode_t mode)
{
    if (S_ISREG(mode))
        return "file";
    if (S_ISDIR(mode))
        return "directory";
    return S_ISLNK(mode) ? "link" : "other";
}

static void
push_file_status(lua_State *L, const struct sxe__lua_file_job *job)
{
    const struct stat *status = &job->status;

    lua_createtable(L, 0, 4);
    lua_pushstring(L, type_of(status->st_mode));
    lua_setfield(L, -2, "type");
    lua_pushinteger(L, status->st_size);
    lua_setfield(L, -2, "size");
    lua_pushinteger(L, status->st_mode & 07777);
    lua_setfield(L, -2, "mode");
    lua_pushnumber(L, (lua_Number)status->st_mtim.tv_sec + 1e-9 * (double)status->st_mtim.tv_nsec);
    lua_setfield(L, -2, "mtime");
}

/* Arguments: the job, and the first argument of the call. */
static int
push_job_result(lua_State *L)
{
    const struct sxe__lua_file_job *job = lua_touserdata(L, 1);

    if (job->result < 0)
        return sxe__lua_fail_errno(L, -job->result, job->path);
    if (job->call->push != NULL)
        job->call->push(L, job);
    else
        lua_pushboolean(L, 1);
    return 1;
}

/* Push the results of a job. The job is given back even if pushing raises an error. */
static int
finish_job(lua_State *L, struct sxe__lua_file_job *job)
{
    int top = lua_gettop(L);
    int status;

    lua_pushcfunction(L, push_job_result);
    lua_pushlightuserdata(L, job);
    lua_pushvalue(L, PATH);
    status = lua_pcall(L, 2, LUA_MULTRET, 0);
    job->give(job);
    return status == LUA_OK ? lua_gettop(L) - top : lua_error(L);
}

static int
go_on_after_file_job(lua_State *L, int status, lua_KContext job)
{
    SXE_UNUSED_PARAMETER(status);
    if (sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    return finish_job(L, (struct sxe__lua_file_job *)job);
}

/* ---- Calls ---- */

lua_Integer
sxe__lua_file_number(lua_State *L, int table, const char *name, lua_Integer value, lua_Integer most)
{
    if (lua_getfield(L, table, name) != LUA_TNIL) {
        int is_number;

        value = sxe__lua_option_integer(L, &is_number);
        if (!is_number || value < 0 || value > most)
            luaL_error(L, "%s: 0 to %I expected, got %s", name, most, luaL_tolstring(L, -1, NULL));
    }
    lua_pop(L, 1);
    return value;
}

/* Push a struct with the options of the call, which the stack keeps while the task waits for a free
 * job. */
static void
push_wish(lua_State *L, const struct sxe__lua_file_call *call)
{
    bool is_directory = call->run == sxe__lua_file_mkdir;
    char what[32];
    struct sxe__lua_file_wish *wish = lua_newuserdatauv(L, sizeof(*wish), 0);

    *wish = (struct sxe__lua_file_wish){
        .length = UINT64_MAX, .max = (uint64_t)MAX_DEFAULT, .mode = is_directory ? 0777 : 0666};
    if (lua_isnil(L, OPTIONS))
        return;
    snprintf(what, sizeof(what), "file.%s", call->name);
    sxe__lua_option_names(L, OPTIONS, call->options, what);
    wish->from = (uint64_t)sxe__lua_file_number(L, OPTIONS, "from", 0, INT64_MAX);
    wish->length = (uint64_t)sxe__lua_file_number(L, OPTIONS, "length", INT64_MAX, INT64_MAX);
    wish->max = (uint64_t)sxe__lua_file_number(L, OPTIONS, "max", MAX_DEFAULT, MAX_MOST);
    wish->has_mode = lua_getfield(L, OPTIONS, "mode") != LUA_TNIL;
    lua_pop(L, 1);
    wish->mode = (uint32_t)sxe__lua_file_number(L, OPTIONS, "mode", wish->mode, 07777);
    wish->is_atomic = sxe__lua_option_bool(L, OPTIONS, what, "atomic", false);
    wish->is_synced = sxe__lua_option_bool(L, OPTIONS, what, "sync", false);
    wish->is_link = sxe__lua_option_bool(L, OPTIONS, what, "link", false);
    wish->with_parents = sxe__lua_option_bool(L, OPTIONS, what, "parents", false);
}

int
sxe__lua_file_check_path(lua_State *L, int argument)
{
    size_t length;
    const char *path = luaL_checklstring(L, argument, &length);

    if (strlen(path) != length)
        return EINVAL;
    return length < PATH_MAX ? 0 : ENAMETOOLONG;
}

void
sxe__lua_file_prepare(struct sxe__lua_file_job *job, const struct sxe__lua_file_call *call,
                      void (*give)(struct sxe__lua_file_job *job))
{
    job->work = (struct sxe_work){.run = run_job, .done = on_file_done, .group = files.group};
    job->call = call;
    job->give = give;
    job->task = 0;
    job->held_max = sxe__lua_config()->memory_max;
    job->held = &files.held;
}

/* Fill in the job of a call: 0, or -ENOMEM. */
static int
fill_in_path_job(lua_State *L, struct sxe__lua_file_job *job, const struct sxe__lua_file_call *call)
{
    const char *path, *second;
    size_t length;
    int result;

    sxe__lua_file_prepare(job, call, give_back_job);
    job->fd = -1;
    job->wish = *(const struct sxe__lua_file_wish *)lua_touserdata(L, WISH);
    job->unique = sxe_lua_get_clock()->random();
    path = lua_tolstring(L, PATH, &length);
    memcpy(job->path, path, length + 1);
    if (call->arguments == SXE__LUA_FILE_PATH)
        return 0;
    second = lua_tolstring(L, SECOND, &length);
    if (call->arguments == SXE__LUA_FILE_PATHS) {
        memcpy(job->to, second, length + 1);
        return 0;
    }
    result = sxe__lua_file_reserve(job, length);
    if (result == 0 && length > 0)
        memcpy(job->data, second, length);
    job->length = result == 0 ? length : 0;
    return result;
}

/* Whether a file was read from the kernel's caches, in the loop's thread. If no threads could be
 * started, this is not tried, so that all calls fail in the same way, whether the file is cached or
 * not. */
static bool
is_read_cached(struct sxe__lua_file_job *job)
{
    unsigned turn = ev_iteration(sxe_loop());

    if (job->call->run != sxe__lua_file_read || !files.has_threads)
        return false;
    if (files.turn != turn)
        files.tries = 0;
    files.turn = turn;
    job->result = 0;
    return files.tries++ < TRIES_IN_A_TURN && sxe__lua_file_read_cached(job);
}

int
sxe__lua_file_begin(lua_State *L, struct sxe__lua_file_job *job, int error, uint64_t deadline_ns)
{
    int result = 0;

    if (error < 0 || sxe_loop() == NULL) {
        job->result = error < 0 ? error : job->call->run(job);
        return finish_job(L, job);
    }
    if (sxe__lua_may_wait(L)) {
        if (is_read_cached(job))
            return finish_job(L, job);
        result = sxe_work_submit(&job->work);
    }
    if (result < 0) {
        job->give(job);
        return result == -EINVAL
                   ? sxe__lua_fail(L, "no threads: require \"sxe.file\" where the script begins")
                   : sxe__lua_fail_errno(L, -result, "threads");
    }
    job->task = sxe__lua_running(L);
    return sxe__lua_park(L, deadline_ns, sxe__lua_file_forget, job, go_on_after_file_job,
                         (lua_KContext)job);
}

static int
take_file_job(lua_State *L, int status, lua_KContext context)
{
    const struct sxe__lua_file_call *call = (const struct sxe__lua_file_call *)context;
    uint64_t deadline_ns = (uint64_t)lua_tointeger(L, DEADLINE);
    struct sxe__lua_file_job *job;
    unsigned index;

    if (status == LUA_YIELD && sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    index = sxe_pool_take(files.jobs, FREE, BUSY);
    if (index == SXE_POOL_NO_INDEX)
        return sxe__lua_park_in(L, &files.waiting, deadline_ns, take_file_job, context);
    job = &files.jobs[index];
    return sxe__lua_file_begin(L, job, fill_in_path_job(L, job, call), deadline_ns);
}

/* A function of the module; its upvalue is the struct of its call. */
static int
call_job(lua_State *L)
{
    const struct sxe__lua_file_call *call_ = lua_touserdata(L, lua_upvalueindex(1));
    bool has_second = call_->arguments != SXE__LUA_FILE_PATH;
    int error = sxe__lua_file_check_path(L, PATH);
    uint64_t deadline_ns;

    if (files.jobs == NULL) /* the state is closed */
        return sxe__lua_fail(L, "closed");
    if (has_second)
        luaL_checkstring(L, SECOND);
    lua_settop(L, SECOND + has_second);
    if (!lua_isnil(L, -1))
        luaL_checktype(L, SECOND + has_second, LUA_TTABLE);
    deadline_ns = sxe__lua_option_deadline(L, SECOND + has_second);
    if (!has_second) {
        lua_pushnil(L);
        lua_insert(L, SECOND);
    }
    if (call_->arguments == SXE__LUA_FILE_PATHS && error == 0)
        error = sxe__lua_file_check_path(L, SECOND);
    if (error != 0)
        return sxe__lua_fail_errno(L, error, "path");
    lua_pushinteger(L, (lua_Integer)deadline_ns);
    push_wish(L, call_);
    return take_file_job(L, LUA_OK, (lua_KContext)call_);
}

/* ---- Opening ---- */

/* The state is closed, or a new one begins: no task waits for the jobs any more. */
static void
forget_all_files(void)
{
    for (unsigned i = 0; i < JOBS; i++) {
        if (sxe_pool_get_state(files.jobs, i) == BUSY)
            sxe__lua_file_forget(&files.jobs[i]);
    }
}

static int
close_files(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    sxe__lua_file_close_all();
    if (files.jobs == NULL)
        return 0;
    forget_all_files();
    if (sxe_pool_get_count(files.jobs, BUSY) > 0)
        return 0;
    sxe_pool_delete(files.jobs);
    files.jobs = NULL;
    return 0;
}

static void
open_jobs(lua_State *L)
{
    if (files.jobs != NULL)
        forget_all_files();
    else
        files.jobs =
            sxe_pool_new("files", JOBS, sizeof(*files.jobs), STATES, SXE_POOL_OPTION_UNLOCKED);
    if (files.jobs == NULL)
        luaL_error(L, "not enough memory");
}

static void
open_files(lua_State *L)
{
    static const char opened_key = 0;

    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &opened_key) == LUA_TNIL) {
        sxe__lua_at_end(L, close_files);
        open_jobs(L);
        sxe__lua_file_plan_open(L);
        lua_pushboolean(L, 1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &opened_key);
        files.has_threads = sxe_loop() == NULL;
        if (files.has_threads)
            files.group = sxe_work_register_group(SXE_WORK_THREADS);
    }
    lua_pop(L, 1);
}

int
sxe__lua_open_file(lua_State *L)
{
    static const char *const timeout[] = {"timeout", NULL};
    static const char *const part[] = {"timeout", "max", "from", "length", NULL};
    static const char *const whole[] = {"timeout", "atomic", "sync", "mode", NULL};
    static const char *const end[] = {"timeout", "sync", "mode", NULL};
    static const char *const names[] = {"timeout", "max", NULL};
    static const char *const status[] = {"timeout", "link", NULL};
    static const char *const directory[] = {"timeout", "parents", "mode", NULL};
    static const struct sxe__lua_file_call calls[] = {
        {"read", SXE__LUA_FILE_PATH, sxe__lua_file_read, push_file_content, part},
        {"write", SXE__LUA_FILE_DATA, sxe__lua_file_write, NULL, whole},
        {"append", SXE__LUA_FILE_DATA, sxe__lua_file_append, NULL, end},
        {"list", SXE__LUA_FILE_PATH, sxe__lua_file_list, push_names, names},
        {"stat", SXE__LUA_FILE_PATH, sxe__lua_file_stat, push_file_status, status},
        {"remove", SXE__LUA_FILE_PATH, sxe__lua_file_remove, NULL, timeout},
        {"rename", SXE__LUA_FILE_PATHS, sxe__lua_file_rename, NULL, timeout},
        {"mkdir", SXE__LUA_FILE_PATH, sxe__lua_file_mkdir, NULL, directory},
    };
    enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

    open_files(L);
    lua_createtable(L, 0, CALLS + 1);
    lua_pushcfunction(L, sxe__lua_file_l_open);
    lua_setfield(L, -2, "open");
    for (unsigned i = 0; i < CALLS; i++) {
        lua_pushlightuserdata(L, (void *)(uintptr_t)&calls[i]);
        lua_pushcclosure(L, call_job, 1);
        lua_setfield(L, -2, calls[i].name);
    }
    return 1;
}
