/* SPDX-License-Identifier: MIT
 *
 * What: the inside of the scheduler, for the files that make it up.
 *
 *     sxe-lua-scheduler.c  the data: tasks by index and handle, their states
 *     sxe-lua-deadline.c   deadlines
 *     sxe-lua-wake.c       lines of tasks; waking
 *     sxe-lua-group.c      fairness: groups of tasks, and LATER tasks
 *     sxe-lua-park.c       waiting
 *     sxe-lua-sync.c       locks, semaphores, events and queues
 *     sxe-lua-object.c     the object that scripts have of a task
 *     sxe-lua-task.c       a task's life: started, resumed, cancelled, ended
 *     sxe-lua-turn.c       when tasks run: the loop's turns
 *     sxe-lua-tasks.c      require "sxe.task"
 *
 * Each calls only those above it in this list.
 *
 * Shape: a task is an element of a pool, and its state is what it does:
 *
 *     FREE --start--> READY --turn--> RUNNING --park--> PARKED    one RUNNING inside another: start
 *       ^               |                |                |       with is_now, from a running task
 *       |             its group        makes              |
 *       |            has computed       way               |
 *       |            a slice ---> LATER <'|               |
 *       |                           '-turn^               |
 *       '----------------ends-------------'               |
 *                       ^--------------wake---------------'
 *
 * PARKED tasks stand in the heap if they have a deadline, and in a line if they wait for others.
 * The youngest free element is taken first: its coroutine was used last, so it is probably in the
 * processor's caches; and no more coroutines are made than tasks ever lived at once. The registry
 * holds one table,
 *
 *     anchors[2a - 1] = coroutine    anchors[2a] = its object, or false    a = number - index
 *
 * where a counts up from 1, because the pool hands out its last element first.
 *
 * A task's function runs under lua_pcallk in its coroutine, so an error is caught there: its
 * <close> variables may wait, hooks stay on, and the coroutine is good for the next task.
 *
 * Cancelling a task first tells it: the wait that the task is in, or its next wait, fails with
 * "cancelled". The wait after that raises an error, because a task that does not listen must end,
 * too. A task that computes is interrupted by an error at the end of its time slice, or at once if
 * the slice has ended already. A cancelled task runs before the other tasks of its group, which may
 * be thousands. A task that has been told has 50 slices to clean up before the next such error. A
 * task that catches each error is not resumed again.
 */
#ifndef SXE_LUA_TASK_PRIVATE_H
#define SXE_LUA_TASK_PRIVATE_H

#include "sxe-lua-private.h"

enum sxe__lua_task_state {
    SXE__LUA_FREE,
    SXE__LUA_READY,
    SXE__LUA_RUNNING,
    SXE__LUA_PARKED,
    /* Ready, but the group of the task has computed too much: the task runs after the READY
     * tasks. */
    SXE__LUA_LATER,
    SXE__LUA_TASK_STATES
};

enum sxe__lua_cancel {
    SXE__LUA_NOT_CANCELLED,
    SXE__LUA_CANCEL_ASKED,
    SXE__LUA_CANCEL_TOLD,
    /* The task caught too many errors about its cancelling, and is not resumed again. */
    SXE__LUA_CANCEL_OVER
};

/* Counters of all tasks, including those of requests. FAILED counts tasks whose error was only
 * logged, because no other task joined them. */
enum sxe__lua_task_counter {
    SXE__LUA_TASKS_STARTED,
    SXE__LUA_TASKS_FAILED,
    SXE__LUA_TASKS_CANCELLED,
    SXE__LUA_TASKS_REFUSED, /* no task was free, or no memory */
    SXE__LUA_TASK_COUNTERS
};

struct sxe__lua_object;
struct sxe__lua_permits;

/* A group is a task with all tasks that it started, and all tasks that these started, and so on;
 * their computing is counted together. A task that is alone, and has never computed for a whole
 * time slice, needs no group. */
struct sxe__lua_group {
    struct sxe__lua_line later; /* the tasks of the group that are LATER */
    /* The group's debt: CPU time of its tasks, less a quarter of the time that passed. */
    uint64_t owed_ns;
    uint64_t settled_ns; /* the time up to which a quarter of the time was subtracted */
    uint32_t tasks;      /* number of tasks in the group; 0: the group is free */
    uint32_t next; /* index + 1 of the next group in the ring, or in the list of free groups */
    uint32_t prev;
    bool is_in_ring;
};

struct sxe__lua_task {
    /* the task's coroutine, kept for the next task here; NULL: there was no task here yet */
    lua_State *coroutine;
    sxe__lua_on_end on_end;
    void *user;
    /* the task's object, which scripts get; NULL: no script asked for it */
    struct sxe__lua_object *object;
    struct sxe__lua_permits *locks; /* the locks that the task has; NULL: none */
    uint64_t origin;                /* see sxe__lua_set_origin; 0: none */
    uint64_t deadline_ns;
    /* CPU time since the task last waited; the watchdog writes this member */
    uint64_t spent_ns;
    struct sxe__lua_line *line; /* the line in which the task waits; NULL: it waits in no line */
    void (*on_leave)(void *what);
    void *what;
    uint32_t line_next; /* index + 1 of the next task in the line */
    uint32_t line_prev;
    uint32_t heap_place; /* index in the heap + 1; 0: not in the heap */
    uint32_t group;      /* index + 1 of the group; 0: the task has none */
    /* number of arguments of a function that has not begun; 0: the function has begun */
    int arguments;
    uint8_t status; /* the status of a task that has ended, as in sxe__lua_on_end */
    uint8_t cancel; /* enum sxe__lua_cancel */
    uint8_t reason; /* enum sxe__lua_reason */
    uint8_t raised; /* number of errors about its cancelling that the task has got */
    uint8_t slices; /* time slices that the task computed since it was told of its cancelling */
};
_Static_assert(sizeof(struct sxe__lua_task) <= 120, "one for each task that may ever exist");

struct sxe__lua_scheduler {
    struct sxe__lua_task *tasks; /* the pool's array; NULL: the scheduler is closed */
    lua_State *main;
    uint32_t number;
    uint32_t running; /* index of the running task; SXE_NONE: no task runs */
    uint64_t origin;  /* the origin of tasks that are started now */
    uint32_t ready_max;
    uint64_t slice_ns;
    bool is_closing;
    int64_t counters[SXE__LUA_TASK_COUNTERS];

    struct sxe__lua_group *groups; /* array of groups, as many as tasks */
    uint32_t groups_made;          /* how many groups were ever used: the first ones of the array */
    uint32_t groups_free;          /* index + 1 of the first free group; 0: none */
    /* index + 1 of the first group in the ring, which has the groups with LATER tasks */
    uint32_t ring_first;
    uint32_t ring_last;

    uint32_t *heap; /* indexes of tasks, the soonest deadline first */
    uint32_t heap_used;

    struct ev_loop *loop; /* the loop; NULL: the scheduler was not started */
    /* Number of tasks that wait for an event from outside: they keep the loop running. */
    unsigned outside;
    ev_prepare before_wait;
    ev_idle no_wait;
    ev_timer alarm;
    uint64_t alarm_ns;
};

extern _Thread_local struct sxe__lua_scheduler sxe__lua_scheduler
    __attribute__((visibility("hidden")));
#define SCHEDULER (&sxe__lua_scheduler)

static inline struct sxe__lua_task *
sxe__lua_task_at(uint32_t index)
{
    return &SCHEDULER->tasks[index];
}

/* ---- sxe-lua-scheduler.c ---- */

/* The index of a handle's task; SXE_NONE: the task is gone. */
uint32_t sxe__lua_task_index(uint64_t task);
uint64_t sxe__lua_task_handle(uint32_t index);
enum sxe__lua_task_state sxe__lua_task_state(uint32_t index);
void sxe__lua_task_move(uint32_t index, enum sxe__lua_task_state from, enum sxe__lua_task_state to);

/* A lua_CFunction that makes the table of coroutines and objects. */
int sxe__lua_open_anchors(lua_State *L);

/* Push the table of coroutines and objects. Return the index in it of a task's coroutine; the index
 * of the task's object is one more. Needs two slots. */
void sxe__lua_push_anchors(lua_State *L);
int sxe__lua_anchor(uint32_t index);

/* Have the loop run another turn without waiting: a task is ready. */
void sxe__lua_turn_soon(void);

/* ---- sxe-lua-task.c ---- */

/* Run a task that is in state RUNNING already, until it ends or waits. from: the coroutine that the
 * task interrupts, or NULL. */
void sxe__lua_resume(uint32_t index, lua_State *from);

/* ---- sxe-lua-wake.c ---- */

/* Wake a task that is PARKED. */
void sxe__lua_wake_index(uint32_t index, enum sxe__lua_reason reason);

/* Put a task at the end of a line, or at its beginning. */
void sxe__lua_line_add(struct sxe__lua_line *line, uint32_t index);
void sxe__lua_line_add_first(struct sxe__lua_line *line, uint32_t index);

/* The task waits no longer: remove it from its line and the heap. Unless the event came for which
 * it waited, call its on_leave. */
void sxe__lua_unhook(uint32_t index, enum sxe__lua_reason reason);

/* ---- sxe-lua-group.c ---- */

/* sxe__lua_group_enter puts a new task into the group of the running task, which starts it.
 * sxe__lua_group_leave takes a task out of its group. */
void sxe__lua_group_enter(uint32_t index);
void sxe__lua_group_leave(uint32_t index);

/* Whether the running task may start another task. */
bool sxe__lua_group_may_grow(void);

/* Charge a group (index + 1) for computing that took used_ns. Nothing happens if the group is 0, or
 * has no tasks any more. */
void sxe__lua_group_charge(uint32_t group, uint64_t used_ns, uint64_t now_ns);

/* Whether a task's group has computed for more than its share, so that others come first. */
bool sxe__lua_group_owes(uint32_t index, uint64_t now_ns);

/* Make a task LATER: the last one of its group, or, if it is cancelled, the first one. */
void sxe__lua_stand_back(uint32_t index, enum sxe__lua_task_state from);

/* Make a LATER task the first one of its group. */
void sxe__lua_hurry(uint32_t index);

/* Choose the first LATER task of the group whose turn it is, and make it RUNNING. SXE_NONE: there
 * is none. */
uint32_t sxe__lua_take_later(void);

/* ---- sxe-lua-deadline.c ---- */

void sxe__lua_deadline_add(uint32_t index); /* Put a task that has a deadline into the heap. */
void sxe__lua_deadline_remove(uint32_t index);

/* ---- sxe-lua-object.c ---- */

#define SXE__LUA_TASK_CLASS "sxe.task"

/* User values of an object: the task's results or its error; the name; a list of the functions that
 * on_cancel was given. Several results are in a table. */
enum {
    SXE__LUA_TASK_RESULTS = 1,
    SXE__LUA_TASK_NAME,
    SXE__LUA_TASK_ON_CANCEL,
    SXE__LUA_TASK_USER_VALUES = SXE__LUA_TASK_ON_CANCEL
};

enum sxe__lua_outcome { SXE__LUA_ALIVE, SXE__LUA_DONE, SXE__LUA_FAILED, SXE__LUA_WAS_CANCELLED };

struct sxe__lua_object {
    uint64_t task;
    struct sxe__lua_line joiners; /* tasks that join the task, woken when the task ends */
    int results;
    enum sxe__lua_outcome outcome;
    bool is_counted; /* the task's error is counted in sxe_lua_errors() */
    /* the task's error is not counted: a task that joined this task got the error, or will get
     * it */
    bool is_received;
};

/* Push an object that belongs to no task yet. This function and the next two functions raise an
 * error if memory is missing. */
struct sxe__lua_object *sxe__lua_object_push_new(lua_State *L);

/* Make the userdata on top the object of a task, and anchor it as long as the task lives. */
void sxe__lua_object_attach(lua_State *L, struct sxe__lua_object *object, uint32_t index);

/* Push the object of a task; the first call makes it. */
void sxe__lua_object_push(lua_State *L, uint32_t index);

/* Keep the results or the error on top of L in the object of a task that ended, for the tasks that
 * join it. The status is that of sxe__lua_on_end. Never raises. */
void sxe__lua_object_end(uint32_t index, lua_State *L, int status, int results);

/* Separate the object from its task, which is over. Uses two slots of L's empty stack. is_logged:
 * the task's error was logged. */
void sxe__lua_object_release(uint32_t index, lua_State *L, bool is_logged);

/* A task's error has a receiver: do not count it as an error of the program. */
void sxe__lua_object_receive(struct sxe__lua_object *object);

/* Push the list of the functions that on_cancel was given, and return true. False: there are none,
 * and nothing is pushed. The task has an object. Needs two slots; never raises. */
bool sxe__lua_object_push_on_cancel(lua_State *L, uint32_t index);

/* ---- sxe-lua-sync.c ---- */

/* Release the locks that a task has, because the task ends. */
void sxe__lua_release_locks(uint32_t index);

/* Set lock, semaphore, event and queue in the table on top. */
void sxe__lua_open_sync(lua_State *L);

#endif
