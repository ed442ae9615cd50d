/* SPDX-License-Identifier: MIT
 *
 * What: a parent process that holds the listening sockets of a program, and worker processes that
 * serve. A worker that crashes or hangs is replaced, and after a reload new workers take over. No
 * connection is refused meanwhile. sxe-httpd -w is such a program.
 *
 * Place: main calls sxe_workers_run before any sxe_init. Each worker is forked from it, and calls
 * serve, which calls sxe_init, sxe_listen and sxe_workers_ready. docs/processes.md has the rules
 * for programs.
 *
 * Shape: the roles of a worker, from its fork to its end; each of the `workers` places has one that
 * serves. The workers that are started together are a load.
 *
 *     STARTING --its READY--> READY --all are READY--> SERVING --the next are: DRAIN--> LEAVING
 *        | ends                 | ends                    | ends                      | ended or
 *        v                      v                         v                           v killed
 *     the load has failed: its READY ones leave;     another is started at its place, at once if
 *     those that serve go on                         it lived for long, else after a growing delay
 *
 *     SIGHUP, a changed file               load again: start one, and the others when it is ready
 *     a worker that asks to be replaced    start one, which takes its place
 *     SIGTERM, SIGINT                      send END to all, and wait; at the next signal send END
 *                                          again: they exit at once
 *     SIGUSR1                              send REOPEN to all
 *     SIGQUIT                              send STATS to all
 *     SIGUSR2                              run the program again, with the sockets; send DRAIN to
 *                                          all when it is ready
 *
 * If the first load fails, so does sxe_workers_run. Workers ignore the signals of this table,
 * because a terminal sends its signals to all processes of the group, and each signal would have
 * its effect twice. They end when the parent dies.
 *
 * Limits: SXE_WORKERS_MAX workers. One load at a time. Including those that leave there are at most
 * SXE_WORKERS_CHILDREN for each worker; the next load waits until some have ended, however many
 * signals ask for it. A worker that has not left 5 s after stop_timeout_ms is killed. A process
 * runs one sxe_workers_run at a time.
 *
 * Example:
 *     static int serve(void *user, const struct sxe_worker *worker)
 *     {
 *         SXE *listener;
 *
 *         sxe_register(1000, 0);
 *         if (sxe_init() < 0)
 *             return 1;
 *         listener = sxe_new_tcp(NULL, "127.0.0.1", 9090, NULL, hello, NULL);
 *         return sxe_listen(listener) < 0 || sxe_workers_ready() < 0 || sxe_run() < 0;
 *     }
 *     int main(void)
 *     {
 *         return sxe_workers_run(&(struct sxe_workers_config){.serve = serve});
 *     }
 */
#ifndef SXE_WORKERS_H
#define SXE_WORKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sxe.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_WORKERS_MAX      64
#define SXE_WORKERS_CHILDREN 8
#define SXE_WORKERS_NO_LIMIT UINT32_MAX /* for hang_timeout_ms and load_timeout_ms */

/* The numbers of a worker. A place is the number of a worker. A slot is the number of a worker's
 * part of the memory that the program's processes share. While a worker is replaced, the old and
 * the new one have the same place, but different slots, so that only one process writes a part. */
struct sxe_worker {
    int link;         /* private: the socket to the parent */
    unsigned workers; /* ro: how many places there are */
    unsigned place;   /* ro: the place, from 0 */
    unsigned slot;    /* ro: the slot, from 0, less than SXE_WORKERS_CHILDREN * workers */
    unsigned load;    /* ro: how many workers had this place before */
};

struct sxe__workers_hooks; /* only for sxe-httpd: see sxe-workers-internal.h */

/* In each member 0 or NULL stands for the default. Only serve must be set. Pointers must stay valid
 * until sxe_workers_run returns. */
struct sxe_workers_config {
    /* Called in the worker; returns its exit status, with which the worker ends. The worker is in
     * service from its call of sxe_workers_ready on. If it returns before that, it has failed. */
    int (*serve)(void *user, const struct sxe_worker *worker);
    void *user;
    /* A larger number than SXE_WORKERS_MAX counts as that. Default: one for each CPU that this
     * process may use. */
    unsigned workers;
    uint32_t stop_timeout_ms; /* how long a worker may take to leave; default: 5000 */
    uint32_t hang_timeout_ms; /* the longest turn of a worker's loop; default: 10000 */
    /* While no worker serves: how long workers may take to be ready, before they are killed and
     * others are started. The time begins again when one of them is ready, so each has all of it.
     * Each further attempt has twice the time. In the first load nothing is
     * killed; a line of the log says that it is waited for. Default: 60000. */
    uint32_t load_timeout_ms;
    const char *name; /* what workers load, for the log; default: "the server" */
    /* The command line of the program, for SIGUSR2. Default: SIGUSR2 is ignored. */
    char **argv;
    /* Called in the parent before a load of all workers: at the start, at SIGHUP, after a change of
     * a file. The new workers have all that it reads or allocates. It may pass files to
     * sxe_workers_watch_file: a change of them acts like SIGHUP. */
    void (*on_load)(void *user);
    /* Called in the parent: the load serves (is_good), or it has failed, and the workers from
     * before it go on serving. */
    void (*on_settled)(void *user, bool is_good);
    /* called in the parent: the worker in this slot has ended */
    void (*on_end)(void *user, unsigned slot);
    void (*on_reopen)(void *user); /* called in the parent at SIGUSR1, before workers get REOPEN */
    /* Called in the parent at its start, and again after as many seconds as it returned, but
     * at least one: for work that comes again, such as sxe_tls_tickets_turn. */
    uint32_t (*on_turn)(void *user);
    /* Called in a worker that hangs, by a signal handler, just before the worker is killed. It
     * writes for the log which function runs, and returns the length of this text. */
    size_t (*describe)(char *text, size_t size);
    const struct sxe__workers_hooks *hooks; /* private */
};

/* Run the parent until its end. Returns the exit status of the program: EXIT_SUCCESS if a signal
 * has ended it; if the first load failed, the status of the worker that failed, or EXIT_FAILURE
 * if that is 0; EXIT_FAILURE, after a line of the log, if the system refused something that is
 * needed. The process must have no other thread, and no loop of lib-sxe. */
SXE_PUBLIC int sxe_workers_run_sized(const struct sxe_workers_config *config, size_t size);
static inline int
sxe_workers_run(const struct sxe_workers_config *config_)
{
    return sxe_workers_run_sized(config_, sizeof(*config_));
}

/* ---- In the parent, before sxe_workers_run ---- */

/* Open a listening socket in the parent. Workers that call sxe_listen for the same address get it.
 * So errors are known before any worker starts, and the parent can open sockets that workers may
 * not open. The parent also keeps sockets that a worker opens first. 0 or -errno; -EINVAL: ip is no
 * address, or the path is empty; -ENAMETOOLONG: the path has more than 107 bytes; -ENFILE: 128
 * sockets are kept already. */
SXE_PUBLIC int sxe_workers_listen_tcp(const char *ip, unsigned short port);
SXE_PUBLIC int sxe_workers_listen_unix(const char *path);

/* Call it in the parent, from on_load, or in a worker, before the file is read: when this file has
 * changed since the call, workers are loaded again. The next load forgets the file, unless it names
 * the file again. At most 256 files are watched, whose names have at most 1023 bytes; the log says
 * if there are more. */
SXE_PUBLIC void sxe_workers_watch_file(const char *path);

/* ---- In a worker ---- */

enum sxe_workers_event {
    SXE_WORKERS_DRAIN,  /* new workers accept: finish requests in progress, and return from serve */
    SXE_WORKERS_END,    /* the program ends: do the same; if it comes again, return at once */
    SXE_WORKERS_REOPEN, /* SIGUSR1: open the log again */
    SXE_WORKERS_STATS,  /* SIGQUIT: write counters to the log */
    SXE_WORKERS_FIRST   /* to one worker: all workers of the first load are ready */
};

/* From now on the parent notices if this worker's loop hangs, and on_event is called in the loop.
 * Call it after sxe_init, and before anything in the loop may take long. Without this call, or if
 * on_event is NULL, the worker closes its listeners at DRAIN and END (sxe_stop_listening). Then
 * sxe_run ends with the last connection, or earlier: after stop_timeout_ms, or at the second END.
 * 0; -EINVAL: there is no loop, or it is watched already. In a process that sxe_workers_run did not
 * start, it does nothing and returns 0. */
SXE_PUBLIC int sxe_workers_attend(void (*on_event)(void *user, enum sxe_workers_event event),
                                  void *user);

/* This worker listens, and is in service from now on. The parent's sockets at which it does not
 * listen are closed here. 0 or -errno. In a process that sxe_workers_run did not start, it does
 * nothing and returns 0, so that serve can also be called directly. */
SXE_PUBLIC int sxe_workers_ready(void);

/* Ask for a new worker in place of this one, for example because this one has grown large; then
 * this one drains. 0; -EINVAL: this process is no worker; another -errno: ask again later. */
SXE_PUBLIC int sxe_workers_renew(void);

#ifdef __cplusplus
}
#endif

#endif
