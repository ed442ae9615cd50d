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
 * A call's message is used again for the reply, so no reply fails for want of memory. `lock` guards
 * both queues and the members that both threads use. While a message is in neither queue, the
 * thread that took it out has it. A task that waits no more marks its call is_cancelled: from then
 * on the message belongs to the worker's thread, or to the owner if it is back already.
 *
 * The thread is started by the owner's loop, or at once if that runs already: a script that is
 * loaded before fork(2), as by sxe-httpd -w, has no threads yet.
 *
 * The end: sxe__lua_worker_ask_to_end has the worker's loop stop, and its watchdog interrupt the
 * code that runs. The thread replies to all calls, and is joined. A state that ends waits for its
 * workers for 2 s; if a function of C does not return, the worker belongs to its thread from then
 * on.
 */
#ifndef SXE_LUA_WORKER_PRIVATE_H
#define SXE_LUA_WORKER_PRIVATE_H

#include <pthread.h>

#include "sxe-lua-clone-private.h"
#include "sxe-lua-private.h"

enum { SXE__LUA_WORKER_NAME = 32, SXE__LUA_WORKERS_MAX = 256 };

/* The most bytes of messages that may wait in each direction. Tests change it. */
extern size_t sxe__lua_worker_queue_max;

struct sxe__lua_message {
    struct sxe__lua_message *next;
    struct sxe__lua_worker *worker;
    struct sxe__lua_bytes bytes;
    const char *problem; /* in a reply: why the call failed; NULL: `bytes` has the reply */
    uint64_t task;       /* the owner's task that waits for the reply; 0: this message is no call */
    uint64_t served_by;  /* the worker's task that runs the call; 0: none */
    size_t *held;        /* the counter that includes held_bytes; NULL: the message was not sent */
    size_t held_bytes;
    bool is_counted;   /* a call that was sent: the worker's load includes it */
    bool is_try;       /* the call's results begin with true or false */
    bool has_failed;   /* in a reply: `bytes` has the error */
    bool is_cancelled; /* atomic: the owner's task no longer waits for the reply */
};

struct sxe__lua_messages {
    struct sxe__lua_message *first;
    struct sxe__lua_message *last;
};

struct sxe__lua_worker_plan {
    char *text; /* the code itself, or the path of its file */
    bool is_file;
    struct sxe__lua_bytes code; /* the code as a function; empty: `text` has the code */
    uint32_t calls;             /* how many calls the worker serves at once */
    struct sxe_lua_config config;
};

struct sxe__lua_worker {
    pthread_mutex_t lock;
    /* Messages to the worker. Both threads use this member and the next ones. */
    struct sxe__lua_messages in;
    struct sxe__lua_messages out;   /* messages and replies that wait for the owner */
    struct sxe__lua_workers *owner; /* NULL: the owner has left */
    struct sxe_lua *lua;            /* the worker's state; NULL: not made yet, or deleted */
    struct ev_loop *loop;           /* the worker's loop; NULL: the loop does not run */
    bool is_ending;
    bool has_ended;
    char *problem; /* why the worker ended; NULL: the worker was stopped */

    /* atomic, like the members up to `gave_place`: bytes of messages that wait for the worker */
    size_t held_in;
    size_t held_out;
    /* how many calls have a message, whether or not a task still waits for the reply */
    unsigned load;
    unsigned references; /* the owner's object, its list and the thread each count as one */
    bool gave_place;     /* the worker no longer counts towards SXE__LUA_WORKERS_MAX */

    /* set before the thread starts, and never changed afterwards */
    struct sxe__lua_worker_plan plan;
    const struct sxe__lua_contents *contents;
    char name[SXE__LUA_WORKER_NAME];

    struct sxe__lua_worker *next; /* used only by the owner, like the members after it */
    pthread_t thread;
    bool has_thread;
    bool is_over;   /* the thread was joined, or never started */
    unsigned calls; /* how many calls wait for their replies */
    struct sxe__lua_messages replied;
    struct sxe__lua_messages arrived;
    struct sxe__lua_line receivers;
    struct sxe__lua_line stoppers;

    /* used only by the worker's thread, like the members after it */
    struct ev_async wake;
    struct sxe__lua_messages waiting; /* calls that have not begun */
    struct sxe__lua_messages serving;
    struct sxe__lua_messages inbox;
    struct sxe__lua_line readers;
    uint32_t serving_number;
    bool is_loaded;    /* the worker's code has returned */
    bool is_started;   /* the worker's loop runs */
    char *start_error; /* the last error before the loop ran; NULL: none */
};

/* The workers of a state. */
struct sxe__lua_workers {
    struct sxe__lua_worker *first;
    struct ev_loop *loop; /* the loop of the owner; NULL: no worker was started yet */
    struct ev_async wake;
};

/* ---- sxe-lua-worker-link.c ---- */

/* A worker with one reference. NULL with errno ENOMEM, or with EAGAIN: there are too many
 * workers. */
struct sxe__lua_worker *sxe__lua_worker_new(void);
void sxe__lua_worker_release(struct sxe__lua_worker *worker);

/* Make a message that takes over the bytes; NULL: there is no memory, and the bytes were freed. */
struct sxe__lua_message *sxe__lua_message_new(struct sxe__lua_worker *worker,
                                              struct sxe__lua_bytes *bytes);

void sxe__lua_message_free(struct sxe__lua_message *message);

void sxe__lua_messages_add(struct sxe__lua_messages *queue, struct sxe__lua_message *message);
struct sxe__lua_message *sxe__lua_messages_take(struct sxe__lua_messages *queue);
void sxe__lua_messages_remove(struct sxe__lua_messages *queue, struct sxe__lua_message *message);

/* Send a message to the worker or to its owner. Returns NULL; or a text that says why the message
 * cannot be sent, and then the message remains the caller's. */
const char *sxe__lua_worker_send(struct sxe__lua_message *message);
const char *sxe__lua_worker_send_back(struct sxe__lua_message *message);

/* Send the owner the reply to a call. If no task waits for the reply any more, free the reply. */
void sxe__lua_worker_reply(struct sxe__lua_message *message);

/* Cancel a call for which the owner's task does not wait any more. */
void sxe__lua_worker_cancel(struct sxe__lua_message *message);

void sxe__lua_worker_ask_to_end(struct sxe__lua_worker *worker);

/* Keep a text that says why the worker ended, unless such a text is kept already. */
void sxe__lua_worker_set_problem(struct sxe__lua_worker *worker, const char *text);

/* Answer all calls of a worker whose thread is at its end, or was never started. */
void sxe__lua_worker_finish(struct sxe__lua_worker *worker);

/* Whether a descriptor for eventfd(2) is free: 0, or the error. Without a descriptor libev would
 * try for ever to get one. */
int sxe__lua_worker_check_descriptor(void);

/* Push the value of the first message in a queue, or nil and the reason if that is impossible. The
 * message is freed. Returns the number of results. */
int sxe__lua_worker_push_first(lua_State *L, struct sxe__lua_messages *queue);

/* Send the value at stack index 2. Pushes true; or nil and the reason. */
int sxe__lua_worker_send_value(lua_State *L, struct sxe__lua_worker *worker,
                               const char *(*send)(struct sxe__lua_message *message));

/* Raise the error on top, with the script's position before the error's text. */
int sxe__lua_worker_raise(lua_State *L, int status);

/* Making a worker failed, and errno says why: push nil, a message and a code. */
int sxe__lua_worker_fail_new(lua_State *L);

/* Push nil, "worker 'name': problem". */
int sxe__lua_worker_fail(lua_State *L, const struct sxe__lua_worker *worker, const char *problem);

/* Set the worker's name from the table of options at index 1: the option, or else "code" or the end
 * of the path. Raises if the option is too long. */
void sxe__lua_worker_name(lua_State *L, struct sxe__lua_worker *worker);

/* ---- sxe-lua-worker-thread.c ---- */

/* Start the thread: 0 or the error of pthread_create(3). */
int sxe__lua_worker_start(struct sxe__lua_worker *worker);

/* Push `parent`, through which a worker's state talks to its owner; nil in other states. */
void sxe__lua_worker_push_parent(lua_State *L);

#endif
