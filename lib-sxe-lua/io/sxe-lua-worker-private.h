/* SPDX-License-Identifier: MIT
 *
 * What: workers: threads with a Lua state and a loop of their own.
 *
 *     sxe-lua-worker.c         require "sxe.worker", in the state that has workers: the owner
 *     sxe-lua-worker-link.c    what both threads use: the struct, its messages, its lock
 *     sxe-lua-worker-thread.c  the worker's thread: its state, calls served, its end
 *     sxe-lua-worker.lua       worker.run and worker.map, on top of calls
 *
 * Shape:
 *
 *     owner's thread                                                  worker's thread
 *
 *     task: w:call ---- message ---> [ in ]  -- async --> on_wake --> a task: the function
 *       ^ parked                                                          |
 *       '---- wake <--- on_wake <--- async --  [ out ] <--- reply --------'
 *
 * A call's message goes there and comes back as the reply, so a reply needs no memory that could be
 * missing. `lock` guards both queues and all that is marked "shared". While a message is in neither
 * queue, the thread that took it out has it. A task that waits no more marks its call is_cancelled:
 * from then on the message belongs to the worker's thread, or to the owner if it is back already.
 *
 * The thread is started by the owner's loop, or at once if that runs already: what is loaded before
 * fork(2), as sxe-httpd -w does, has no threads yet.
 *
 * The end: sxe__lua_worker_ask_to_end has the worker's loop stop, and its watchdog interrupt what
 * computes. The thread replies to all calls, and is joined. A state that ends waits for its workers
 * for 2 s; a worker that a function of C keeps belongs to its thread from then on.
 */
#ifndef SXE_LUA_WORKER_PRIVATE_H
#define SXE_LUA_WORKER_PRIVATE_H

#include <pthread.h>

#include "sxe-lua-clone-private.h"
#include "sxe-lua-private.h"

enum { SXE__LUA_WORKER_NAME = 32, SXE__LUA_WORKERS_MAX = 256 };

/* Bytes of messages that may wait, each way. Tests set it. */
extern size_t sxe__lua_worker_queue_max;

struct sxe__lua_message {
    struct sxe__lua_message *next;
    struct sxe__lua_worker *worker;
    struct sxe__lua_bytes bytes;
    const char *problem; /* of a reply: why there is none; NULL: bytes has it */
    uint64_t task;       /* the owner's, which waits; 0: no call but a message */
    uint64_t served_by;  /* the worker's task; 0: none */
    size_t *held;        /* the count that has its bytes; NULL: it was not sent */
    size_t held_bytes;
    bool is_counted;   /* in the worker's load: a call that was sent */
    bool is_try;       /* the call's results begin with true or false */
    bool has_failed;   /* of a reply: bytes has the error */
    bool is_cancelled; /* atomic: the owner's task waits no more */
};

struct sxe__lua_messages {
    struct sxe__lua_message *first;
    struct sxe__lua_message *last;
};

struct sxe__lua_worker_plan {
    char *text; /* code, or the path of a file */
    bool is_file;
    struct sxe__lua_bytes code; /* a function; no data: text counts */
    uint32_t calls;             /* served at once */
    struct sxe_lua_config config;
};

struct sxe__lua_worker {
    pthread_mutex_t lock;
    struct sxe__lua_messages in;    /* shared, from here on */
    struct sxe__lua_messages out;   /* has what waits for the owner */
    struct sxe__lua_workers *owner; /* NULL: it left */
    struct sxe_lua *lua;            /* NULL: there is none yet, or no more */
    struct ev_loop *loop;           /* the worker's; NULL: it does not run */
    bool is_ending;
    bool has_ended;
    char *problem; /* why it ended; NULL: it was stopped */

    size_t held_in; /* atomic, from here on: bytes of messages to the worker */
    size_t held_out;
    unsigned load;       /* calls whose messages exist, whether or not a task waits for them */
    unsigned references; /* of the owner's object, its list, and the thread */
    bool gave_place;     /* it does not count towards SXE__LUA_WORKERS_MAX any more */

    struct sxe__lua_worker_plan plan; /* constant, from here on */
    const struct sxe__lua_contents *contents;
    char name[SXE__LUA_WORKER_NAME];

    struct sxe__lua_worker *next; /* the owner's, from here on */
    pthread_t thread;
    bool has_thread;
    bool is_over;   /* the thread is joined, or never was */
    unsigned calls; /* that wait for replies */
    struct sxe__lua_messages replied;
    struct sxe__lua_messages arrived;
    struct sxe__lua_line receivers;
    struct sxe__lua_line stoppers;

    struct ev_async wake;             /* the thread's, from here on */
    struct sxe__lua_messages waiting; /* calls that were not begun */
    struct sxe__lua_messages serving;
    struct sxe__lua_messages inbox;
    struct sxe__lua_line readers;
    uint32_t serving_number;
    bool is_loaded;    /* the code has returned */
    bool is_started;   /* the loop runs */
    char *start_error; /* the last one before that; NULL: none */
};

/* The workers of a state. */
struct sxe__lua_workers {
    struct sxe__lua_worker *first;
    struct ev_loop *loop; /* NULL: no worker was started yet */
    struct ev_async wake;
};

/* ---- sxe-lua-worker-link.c ---- */

/* A worker with one reference. NULL with errno: ENOMEM, or EAGAIN, there are too many. */
struct sxe__lua_worker *sxe__lua_worker_new(void);
void sxe__lua_worker_release(struct sxe__lua_worker *worker);

/* A message that takes over the bytes; NULL: no memory, and the bytes are freed. */
struct sxe__lua_message *sxe__lua_message_new(struct sxe__lua_worker *worker,
                                              struct sxe__lua_bytes *bytes);

void sxe__lua_message_free(struct sxe__lua_message *message);

void sxe__lua_messages_add(struct sxe__lua_messages *queue, struct sxe__lua_message *message);
struct sxe__lua_message *sxe__lua_messages_take(struct sxe__lua_messages *queue);
void sxe__lua_messages_remove(struct sxe__lua_messages *queue, struct sxe__lua_message *message);

/* Send a message to the worker, or to its owner: NULL, or why that is impossible; then the message
 * is still the caller's. */
const char *sxe__lua_worker_send(struct sxe__lua_message *message);
const char *sxe__lua_worker_send_back(struct sxe__lua_message *message);

/* Give the owner the reply to a call. If nobody waits for it, free it. */
void sxe__lua_worker_reply(struct sxe__lua_message *message);

/* The owner's task does not wait for this call any more. */
void sxe__lua_worker_cancel(struct sxe__lua_message *message);

void sxe__lua_worker_ask_to_end(struct sxe__lua_worker *worker);

/* Why it ended, unless there is a reason already. */
void sxe__lua_worker_set_problem(struct sxe__lua_worker *worker, const char *text);

/* The worker's thread is at its end, or was never started: answer all calls. */
void sxe__lua_worker_finish(struct sxe__lua_worker *worker);

/* 0, or an error of eventfd(2): without a descriptor libev would try for ever to make one. */
int sxe__lua_worker_check_descriptor(void);

/* Push the value of the first message of a queue, or nil and why that is impossible. The message is
 * freed. Returns the number of results. */
int sxe__lua_worker_push_first(lua_State *L, struct sxe__lua_messages *queue);

/* Send the value at stack index 2; true, or nil and why not. */
int sxe__lua_worker_send_value(lua_State *L, struct sxe__lua_worker *worker,
                               const char *(*send)(struct sxe__lua_message *message));

/* Raise the error on top, with the script's place. */
int sxe__lua_worker_raise(lua_State *L, int status);

/* There is no worker, and errno says why: nil, a message, a code. */
int sxe__lua_worker_fail_new(lua_State *L);

/* nil, "worker 'name': problem" */
int sxe__lua_worker_fail(lua_State *L, const struct sxe__lua_worker *worker, const char *problem);

/* ---- sxe-lua-worker-thread.c ---- */

/* Start the thread: 0 or the error of pthread_create(3). */
int sxe__lua_worker_start(struct sxe__lua_worker *worker);

/* Push `parent`, through which a worker's state talks to its owner; nil in other states. */
void sxe__lua_worker_push_parent(lua_State *L);

#endif
