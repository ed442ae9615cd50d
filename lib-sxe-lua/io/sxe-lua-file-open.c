/* SPDX-License-Identifier: MIT
 *
 * What: file.open: files that stay open from call to call.
 *
 *     handle, a userdata: index, generation ----> element: job with the descriptor, its own
 *                                                   ^
 *     read, write, close ---- one at a time --------'   the others wait in the element's line
 *
 * When a call is over and others wait, the file is kept for the first of them. close, <close> and
 * the collector end the generation: calls that wait, or come later, fail with "closed". A file on
 * which a thread works is closed when the thread is done.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "sxe-lua-file-private.h"

#define CLASS "sxe.file.handle"

enum { FILES = 256 };

enum state { FREE, OPEN, STATES };

struct file {
    struct sxe__lua_file_job job;
    struct sxe__lua_line line;
    uint32_t generation;
    bool is_used;    /* a task uses the file, or the file is kept for the first task in the line */
    bool is_working; /* the file's job has begun, and is not over */
    bool is_left;    /* no script can use the file any more: close the file when its job is over */
    bool is_urgent;  /* close the file in this thread, without waiting for a thread of sxe-work.c */
};

struct handle {
    uint32_t index;
    uint32_t generation;
};

/* The array of this thread's pool of files. The array outlives the state while a thread works on a
 * file. */
static _Thread_local struct file *files;

static const struct sxe__lua_file_call closing = {"close", SXE__LUA_FILE_PATH, sxe__lua_file_close,
                                                  NULL, NULL};

/* The file of the handle at 1; NULL: the file is closed. */
static struct file *
file_of_handle(lua_State *L)
{
    const struct handle *handle = luaL_checkudata(L, 1, CLASS);
    struct file *file = files == NULL ? NULL : &files[handle->index];

    return file == NULL || file->generation != handle->generation ? NULL : file;
}

/* ---- Closing ---- */

static void
end_generation(struct file *file)
{
    file->generation++;
    sxe__lua_wake_all(&file->line);
}

/* Continue after a file's job, or without one: close and free the file if no script can use it any
 * more, or let the next task use the file. */
static void
settle_job(struct sxe__lua_file_job *job)
{
    struct file *file = (struct file *)(void *)job;

    file->is_working = false;
    sxe__lua_file_release(job);
    if (job->fd < 0) {
        end_generation(file);
        sxe_pool_move(files, (unsigned)(file - files), OPEN, FREE);
    } else if (file->is_left) {
        job->call = &closing;
        job->task = 0;
        file->is_working = true;
        if (!file->is_urgent && sxe_work_submit(&job->work) == 0)
            return;
        (void)sxe__lua_file_close(job);
        settle_job(job);
    } else if (!sxe__lua_wake_first(&file->line)) {
        file->is_used = false;
    }
}

static void
leave_file(struct file *file, bool is_urgent)
{
    end_generation(file);
    file->is_left = true;
    file->is_urgent = is_urgent;
    if (!file->is_working)
        settle_job(&file->job);
}

static int
l_file_leave(lua_State *L)
{
    struct file *file = file_of_handle(L);

    if (file != NULL)
        leave_file(file, false);
    return 0;
}

static int
collect_file(lua_State *L)
{
    struct file *file = file_of_handle(L);

    if (file != NULL)
        leave_file(file, true);
    return 0;
}

void
sxe__lua_file_close_all(void)
{
    for (unsigned i = 0; files != NULL && i < FILES; i++) {
        if (sxe_pool_get_state(files, i) != OPEN)
            continue;
        leave_file(&files[i], true);
        if (files[i].is_working)
            sxe__lua_file_forget(&files[i].job);
    }
    if (files == NULL || sxe_pool_get_count(files, OPEN) > 0)
        return;
    sxe_pool_delete(files);
    files = NULL;
}

/* ---- Calls ---- */

enum { HANDLE = 1, VALUE, DEADLINE };

/* Push the bytes that were read; nil at the end of the file. */
static void
push_read_bytes(lua_State *L, const struct sxe__lua_file_job *job)
{
    if (job->length > 0 || job->wish.length == 0)
        lua_pushlstring(L, job->length > 0 ? job->data : "", job->length);
    else
        lua_pushnil(L);
}

static const struct sxe__lua_file_call reading = {"read", SXE__LUA_FILE_PATH, sxe__lua_file_get,
                                                  push_read_bytes, NULL};
static const struct sxe__lua_file_call writing = {"write", SXE__LUA_FILE_DATA, sxe__lua_file_put,
                                                  NULL, NULL};

/* Fill in the job of a call: 0, or -ENOMEM. */
static int
fill_in_handle_job(lua_State *L, struct sxe__lua_file_job *job,
                   const struct sxe__lua_file_call *call)
{
    const char *data;
    size_t length;
    int result;

    sxe__lua_file_prepare(job, call, settle_job);
    job->length = 0;
    if (call != &writing) {
        job->wish.length = (uint64_t)lua_tointeger(L, VALUE);
        return call == &reading ? sxe__lua_file_reserve(job, job->wish.length) : 0;
    }
    data = lua_tolstring(L, VALUE, &length);
    result = sxe__lua_file_reserve(job, length);
    if (result == 0 && length > 0)
        memcpy(job->data, data, length);
    job->length = result == 0 ? length : 0;
    return result;
}

static int
begin_call(lua_State *L, struct file *file, const struct sxe__lua_file_call *call)
{
    file->is_working = true;
    return sxe__lua_file_begin(L, &file->job, fill_in_handle_job(L, &file->job, call),
                               (uint64_t)lua_tointeger(L, DEADLINE));
}

static int
go_on_kept(lua_State *L, int status, lua_KContext call)
{
    struct file *file = file_of_handle(L);

    SXE_UNUSED_PARAMETER(status);
    if (sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    if (file == NULL)
        return sxe__lua_fail(L, "closed");
    return begin_call(L, file, (const struct sxe__lua_file_call *)call);
}

/* Begin a call whose arguments were checked. */
static int
use_file(lua_State *L, const struct sxe__lua_file_call *call)
{
    uint64_t deadline_ns = sxe__lua_deadline(L, DEADLINE);
    struct file *file = file_of_handle(L);

    lua_settop(L, VALUE);
    lua_pushinteger(L, (lua_Integer)deadline_ns);
    if (file == NULL)
        return sxe__lua_fail(L, "closed");
    if (file->is_used)
        return sxe__lua_park_in(L, &file->line, deadline_ns, go_on_kept, (lua_KContext)call);
    file->is_used = true;
    return begin_call(L, file, call);
}

static int
l_file_read(lua_State *L)
{
    luaL_argcheck(L, luaL_checkinteger(L, VALUE) >= 0, VALUE, "a number of bytes expected");
    return use_file(L, &reading);
}

static int
l_file_write(lua_State *L)
{
    luaL_checkstring(L, VALUE);
    return use_file(L, &writing);
}

static int
l_file_close(lua_State *L)
{
    lua_settop(L, VALUE);
    lua_pushnil(L);
    lua_insert(L, VALUE);
    return use_file(L, &closing);
}

/* ---- Opening ---- */

/* The flags of a mode of fopen(3); -1: there is no such mode. */
static int
flags_of(const char *mode)
{
    bool is_both = *mode != '\0' && mode[1] == '+';
    int access = is_both ? O_RDWR : O_WRONLY;

    if (*mode != '\0' && mode[1 + is_both] != '\0')
        return -1;
    switch (*mode) {
    case 'r':
        return is_both ? O_RDWR : O_RDONLY;
    case 'w':
        return access | O_CREAT | O_TRUNC;
    case 'a':
        return access | O_CREAT | O_APPEND;
    default:
        return -1;
    }
}

static void
push_handle(lua_State *L, const struct sxe__lua_file_job *job)
{
    SXE_UNUSED_PARAMETER(job);
    lua_pushvalue(L, 2);
}

/* If there is no room for another file, collect garbage, which closes forgotten files. */
static unsigned
take_file_element(lua_State *L)
{
    unsigned index = sxe_pool_take(files, FREE, OPEN);

    if (index != SXE_POOL_NO_INDEX)
        return index;
    lua_gc(L, LUA_GCCOLLECT);
    return sxe_pool_take(files, FREE, OPEN);
}

/* Open a file and push its handle. The arguments were checked; the handle is at 4. */
static int
push_opened_file(lua_State *L, int flags, uint32_t mode, uint64_t deadline_ns)
{
    static const struct sxe__lua_file_call opening = {"open", SXE__LUA_FILE_PATH,
                                                      sxe__lua_file_open, push_handle, NULL};
    struct handle *handle = lua_touserdata(L, 4);
    unsigned index = take_file_element(L);
    size_t length;
    const char *path = lua_tolstring(L, 1, &length);
    struct file *file;

    if (index == SXE_POOL_NO_INDEX)
        return sxe__lua_fail_errno(L, EMFILE, path);
    file = &files[index];
    *handle = (struct handle){index, file->generation};
    sxe__lua_file_prepare(&file->job, &opening, settle_job);
    file->job.fd = -1;
    file->job.wish.flags = flags;
    file->job.wish.mode = mode;
    memcpy(file->job.path, path, length + 1);
    file->is_used = true;
    file->is_working = true;
    file->is_left = false;
    file->is_urgent = false;
    luaL_setmetatable(L, CLASS);
    lua_replace(L, 1);
    return sxe__lua_file_begin(L, &file->job, 0, deadline_ns);
}

int
sxe__lua_file_l_open(lua_State *L)
{
    static const char *const names[] = {"mode", "timeout", NULL};
    int error = sxe__lua_file_check_path(L, 1);
    int flags = flags_of(luaL_opt(L, sxe__lua_check_text, 2, "r"));
    uint64_t deadline_ns = sxe__lua_option_deadline(L, 3);
    uint32_t mode = 0666;

    luaL_argcheck(L, flags >= 0, 2, "r, w or a expected, perhaps with +");
    if (!lua_isnoneornil(L, 3)) {
        sxe__lua_option_names(L, 3, names, "file.open");
        mode = (uint32_t)sxe__lua_file_number(L, 3, "mode", mode, 07777);
    }
    if (files == NULL) /* the state is closed */
        return sxe__lua_fail(L, "closed");
    if (error != 0)
        return sxe__lua_fail_errno(L, error, "path");
    lua_settop(L, 3);
    lua_newuserdatauv(L, sizeof(struct handle), 0);
    return push_opened_file(L, flags, mode, deadline_ns);
}

void
sxe__lua_file_plan_open(lua_State *L)
{
    static const luaL_Reg methods[] = {{"read", l_file_read},   {"write", l_file_write},
                                       {"close", l_file_close}, {"__close", l_file_leave},
                                       {"__gc", collect_file},  {NULL, NULL}};

    sxe__lua_file_close_all();
    if (files == NULL)
        files = sxe_pool_new("open files", FILES, sizeof(*files), STATES, SXE_POOL_OPTION_UNLOCKED);
    if (files == NULL)
        luaL_error(L, "not enough memory");
    sxe__lua_new_class(L, CLASS);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}
