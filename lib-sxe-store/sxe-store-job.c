/* SPDX-License-Identifier: MIT
 *
 * Jobs, and the tasks that wait for them.
 *
 *     COPY, OPEN ---------------------> a thread each ----------------> the task goes on
 *     CHANGES, SYNC --> file->line ---> file->taken: one thread ------> all their tasks go on
 *     RESIZE ---------> file->line ---> the loop, between two threads -> the task goes on
 *
 * If the task of a job is cancelled, or times out, a job that waits in the line is dropped; a job
 * that a thread has is completed, and its result is not used. Before sxe_init there are no threads,
 * and no other task can be delayed, so each job is done at once.
 */
#include "sxe-store-private.h"

#include <errno.h>
#include <stdlib.h>

#include "sxe-lua-internal.h"

enum { ADOPTIONS = 3 };

/* The jobs of this thread. The address of this variable also identifies the thread. */
static _Thread_local struct {
    struct sxe__store_job *first;
    size_t held;    /* how many bytes all jobs have together */
    unsigned group; /* the group of work threads */
} jobs;

static void run_alone(struct sxe_work *work);
static void on_alone(struct sxe_work *work);

/* ---- The life of a job ---- */

struct sxe__store_job *
sxe__store_job_new(struct sxe__store_file *file, enum sxe__store_kind kind, size_t size)
{
    struct sxe__store_job *job = NULL;

    if (size <= sxe__lua_config()->memory_max && jobs.held <= sxe__lua_config()->memory_max - size)
        job = calloc(1, sizeof(*job) + size);
    if (job == NULL)
        return NULL;
    job->work =
        (struct sxe_work){.run = run_alone, .done = on_alone, .group = jobs.group, .user = &jobs};
    job->kind = kind;
    job->size = size;
    job->file = file == NULL ? NULL : sxe__store_file_use(file);
    if (kind == SXE__STORE_COPY)
        file->copies++;
    job->next = jobs.first;
    if (jobs.first != NULL)
        jobs.first->prev = job;
    jobs.first = job;
    jobs.held += size;
    return job;
}

void
sxe__store_job_free(struct sxe__store_job *job)
{
    if (job->prev == NULL)
        jobs.first = job->next;
    else
        job->prev->next = job->next;
    if (job->next != NULL)
        job->next->prev = job->prev;
    jobs.held -= job->size;
    if (job->kind == SXE__STORE_COPY)
        job->file->copies--;
    if (job->file != NULL)
        sxe__store_file_leave(job->file);
    free(job);
}

/* A job is done. If a task waits for the job, the task goes on; otherwise free the job. */
static void
settle_done_jobs(struct sxe__store_job *job)
{
    job->is_done = true;
    if (job->task == 0)
        sxe__store_job_free(job);
    else
        sxe__lua_wake(job->task, SXE__LUA_EVENT);
}

/* ---- Jobs that have a thread each ---- */

static void
run_alone(struct sxe_work *work)
{
    struct sxe__store_job *job = (struct sxe__store_job *)(void *)work;

    job->result = job->kind == SXE__STORE_OPEN ? sxe__store_file_open(job) : sxe__store_copy(job);
}

static void
on_alone(struct sxe_work *work)
{
    settle_done_jobs((struct sxe__store_job *)(void *)work);
}

/* ---- The line of a file ---- */

static void
append_job(struct sxe__store_line *line, struct sxe__store_job *job)
{
    if (line->first == NULL)
        line->first = job;
    else
        line->last->line_next = job;
    line->last = job;
}

/* Take the first job of a line, which must not be empty. */
static struct sxe__store_job *
take_store_job(struct sxe__store_line *line)
{
    struct sxe__store_job *job = line->first;

    line->first = job->line_next;
    job->line_next = NULL;
    return job;
}

/* Take a job out of the line. False: the job is not in the line, because a thread has it. */
static bool
drop_from_line(struct sxe__store_line *line, const struct sxe__store_job *job)
{
    struct sxe__store_job *before = NULL;
    struct sxe__store_job *at = line->first;

    while (at != NULL && at != job) {
        before = at;
        at = at->line_next;
    }
    if (at == NULL)
        return false;
    if (before == NULL)
        line->first = at->line_next;
    else
        before->line_next = at->line_next;
    if (line->last == at)
        line->last = before;
    return true;
}

/* Move the first job to file->taken, and also the jobs after it that the same commit can do. */
static void
take_group(struct sxe__store_file *file)
{
    struct sxe__store_line group = {NULL, NULL};
    unsigned number = 0;

    do
        append_job(&group, take_store_job(&file->line));
    while (file->line.first != NULL && ++number < SXE__STORE_GROUP_MAX &&
           file->line.first->kind == SXE__STORE_CHANGES && group.first->kind == SXE__STORE_CHANGES);
    file->taken = group.first;
}

static void
settle_taken(struct sxe__store_file *file)
{
    struct sxe__store_job *job = file->taken;

    file->taken = NULL;
    while (job != NULL) {
        struct sxe__store_job *next = job->line_next;

        job->line_next = NULL;
        settle_done_jobs(job);
        job = next;
    }
}

static void
run_taken(struct sxe_work *work)
{
    sxe__store_write(work->user);
}

/* The map is smaller than the file, which another process enlarged: map the new size. Returns
 * whether the jobs can be done now. */
static bool
adopts_map(struct sxe__store_file *file)
{
    struct sxe__store_job *job = file->taken;

    if (job->result != MDB_MAP_RESIZED || sxe__store_file_resize(file, 0) != 0)
        return false;
    return job->adoptions++ < ADOPTIONS;
}

/* Give the next jobs to a thread. Jobs that the loop itself does are done before. */
static void
serve_line(struct sxe__store_file *file)
{
    while (!file->is_writing && file->line.first != NULL) {
        int result;

        if (file->line.first->kind == SXE__STORE_RESIZE) {
            struct sxe__store_job *job = take_store_job(&file->line);

            job->result = sxe__store_file_resize(file, job->map_size);
            settle_done_jobs(job);
            continue;
        }
        take_group(file);
        result = sxe_work_submit(&file->writing);
        file->is_writing = result == 0;
        if (file->is_writing)
            continue;
        for (struct sxe__store_job *job = file->taken; job != NULL; job = job->line_next)
            job->result = result == -EINVAL ? SXE__STORE_NO_THREADS : -result;
        settle_taken(file);
    }
}

static void
on_taken(struct sxe_work *work)
{
    struct sxe__store_file *file = sxe__store_file_use(work->user);

    file->is_writing = adopts_map(file) && sxe_work_submit(&file->writing) == 0;
    if (!file->is_writing) {
        settle_taken(file);
        serve_line(file);
    }
    sxe__store_file_leave(file);
}

/* ---- Waiting ---- */

/* The task does not wait any more: forget its job. */
static void
forget_job(void *what)
{
    struct sxe__store_job *job = what;
    bool is_thread = false;

    job->task = 0;
    if (job->kind == SXE__STORE_OPEN || job->kind == SXE__STORE_COPY)
        is_thread = sxe_work_cancel(&job->work) == -EBUSY;
    else
        is_thread = !job->is_done && !drop_from_line(&job->file->line, job);
    if (!is_thread)
        sxe__store_job_free(job);
}

/* There is no loop: do the job in this thread. */
static void
do_job_at_once(struct sxe__store_job *job)
{
    struct sxe__store_file *file = job->file;

    if (job->kind == SXE__STORE_OPEN || job->kind == SXE__STORE_COPY) {
        run_alone(&job->work);
        return;
    }
    if (job->kind == SXE__STORE_RESIZE) {
        job->result = sxe__store_file_resize(file, job->map_size);
        return;
    }
    file->taken = job;
    do
        sxe__store_write(file);
    while (adopts_map(file));
    file->taken = NULL;
}

/* Put a job into its file's line. The job may be done when this function returns, for example
 * because there is no thread. */
static int
submit_job(struct sxe__store_job *job)
{
    struct sxe__store_file *file = job->file;

    if (job->kind == SXE__STORE_OPEN || job->kind == SXE__STORE_COPY)
        return sxe_work_submit(&job->work);
    file->writing.run = run_taken;
    file->writing.done = on_taken;
    file->writing.user = file;
    file->writing.group = jobs.group;
    append_job(&file->line, job);
    serve_line(file);
    return 0;
}

int
sxe__store_job_begin(lua_State *L, struct sxe__store_job *job, uint64_t deadline_ns,
                     lua_KFunction k)
{
    if (sxe_loop() == NULL) {
        do_job_at_once(job);
        return k(L, LUA_OK, (lua_KContext)job);
    }
    if (sxe__lua_may_wait(L)) {
        int result;

        job->task = sxe__lua_running(L);
        result = submit_job(job);
        if (result < 0)
            job->result = result == -EINVAL ? SXE__STORE_NO_THREADS : -result;
        if (result < 0 || job->is_done)
            return k(L, LUA_OK, (lua_KContext)job);
    } else {
        job->is_done = true; /* so that forget_job frees the job */
    }
    return sxe__lua_park(L, deadline_ns, forget_job, job, k, (lua_KContext)job);
}

bool
sxe__store_job_end(lua_State *L, int status, lua_KContext context, struct sxe__store_job *done)
{
    struct sxe__store_job *job = (struct sxe__store_job *)context;

    if (status == LUA_YIELD && sxe__lua_woken(L) != SXE__LUA_EVENT)
        return false;
    *done = *job;
    if (job->kind == SXE__STORE_OPEN)
        job->file = NULL; /* now the caller is the user of the file */
    sxe__store_job_free(job);
    return true;
}

/* ---- States ---- */

/* Give up the file's taken jobs, unless a thread has them or will have them. */
static void
give_up_taken(struct sxe__store_file *file)
{
    if (!file->is_writing || sxe_work_cancel(&file->writing) == -EBUSY)
        return;
    file->is_writing = false;
    for (struct sxe__store_job *job = file->taken; job != NULL; job = job->line_next)
        job->is_done = true;
    file->taken = NULL;
}

void
sxe__store_job_forget_all(void)
{
    struct sxe__store_job *next;

    for (struct sxe__store_job *job = jobs.first; job != NULL; job = next) {
        next = job->next;
        if (job->file != NULL)
            give_up_taken(job->file);
        forget_job(job);
    }
}

void
sxe__store_job_plan(void)
{
    if (sxe_loop() == NULL)
        jobs.group = sxe_work_register_group(SXE_WORK_THREADS);
}
