/* SPDX-License-Identifier: MIT
 *
 * What: a parent process that holds the listening sockets of a program, and worker processes that
 * serve. A worker that crashes or hangs is replaced, and new ones take over after a reload; no
 * connection is refused meanwhile. sxe-httpd -w is such a program.
 *
 * Place: main calls sxe_workers_run before any sxe_init; each worker is a fork of it that calls
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
 * If the first load fails, so does sxe_workers_run. Workers ignore the signals of this table: a
 * terminal sends its signals to all processes of the group, and each would count twice. They end
 * when the parent dies.
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
#define SXE_WORKERS_NO_LIMIT UINT32_MAX /* for hang_timeout_ms */

/* The numbers of a worker. A place is the number of a worker; a slot is the number of its part of
 * memory that the program shares. While a worker is replaced, the old and the new one have the same
 * place, but not the same slot: each part is written by one process only. */
struct sxe_worker {
    int link;         /* private: the socket to the parent */
    unsigned workers; /* ro: how many places there are */
    unsigned place;   /* ro: the place, from 0 */
    unsigned slot;    /* ro: the slot, from 0, less than SXE_WORKERS_CHILDREN * workers */
    unsigned load;    /* ro: how many workers the place had before */
};

struct sxe__workers_hooks; /* of sxe-httpd, see sxe-workers-internal.h */

/* 0 and NULL mean the default in each field. Only serve is needed. */
struct sxe_workers_config {
    /* Called in the worker; returns its exit status, with which the worker ends. The worker is in
     * service from sxe_workers_ready on; one that returns before has failed. */
    int (*serve)(void *user, const struct sxe_worker *worker);
    void *user;
    /* at most SXE_WORKERS_MAX; default: one for each CPU that this process may use */
    unsigned workers;
    uint32_t stop_timeout_ms; /* how long a worker may take to leave; 5000 */
    uint32_t hang_timeout_ms; /* the longest turn of a worker's loop; 10000 */
    const char *name;         /* what the workers load, for the log, borrowed; "the server" */
    /* The command line of the program, for SIGUSR2, borrowed. Default: SIGUSR2 is ignored. */
    char **argv;
    /* Called in the parent before a load of all workers: at the start, at SIGHUP, after a change of
     * a file. What it reads or allocates, the new workers have. It may pass to
     * sxe_workers_watch_file the files whose change acts like SIGHUP. */
    void (*on_load)(void *user);
    /* Called in the parent: the load serves, or has failed, and the workers before it serve on. */
    void (*on_settled)(void *user, bool is_good);
    void (*on_end)(void *user,
                   unsigned slot); /* in the parent: the worker of this slot has ended */
    void (*on_reopen)(void *user); /* in the parent, at SIGUSR1, before the workers hear of it */
    /* Called in a worker that hangs, in a handler of a signal, just before the worker is killed:
     * write where it is, for the log, and return the length of the text. */
    size_t (*describe)(char *text, size_t size);
    const struct sxe__workers_hooks *hooks; /* private */
};

/* Run the parent until its end. Returns the exit status of the program: EXIT_SUCCESS after a signal
 * has ended it; the status of the worker that failed in the first load; EXIT_FAILURE if the system
 * refused what it needs, which is logged. Call it with no thread and no loop of lib-sxe. */
SXE_PUBLIC int sxe_workers_run(const struct sxe_workers_config *config);

/* ---- In the parent, before sxe_workers_run ---- */

/* Open a listening socket in the parent, for sxe_listen of workers at the same address: for errors
 * before any worker starts, and for a parent that may open more than its workers. Sockets that
 * workers open first are kept by the parent, too. 0 or -errno: -EINVAL: ip is no address;
 * -ENFILE: 128 sockets are kept already. */
SXE_PUBLIC int sxe_workers_listen_tcp(const char *ip, unsigned short port);
SXE_PUBLIC int sxe_workers_listen_unix(const char *path);

/* In the parent, inside on_load, or in a worker: load again when this file has changed. The next
 * load forgets the file, unless it names it again. At most 256 files of 1023 bytes each; further
 * ones are not watched. */
SXE_PUBLIC void sxe_workers_watch_file(const char *path);

/* ---- In a worker ---- */

enum sxe_workers_event {
    SXE_WORKERS_DRAIN,  /* others accept: finish the requests in progress, and return from serve */
    SXE_WORKERS_END,    /* the program ends: the same; the second time: return at once */
    SXE_WORKERS_REOPEN, /* SIGUSR1: open the log again */
    SXE_WORKERS_STATS,  /* SIGQUIT: write counters to the log */
    SXE_WORKERS_FIRST   /* to one worker: all workers of the first load are ready */
};

/* From now on the parent watches this worker's loop for hangs, and on_event is called in the loop.
 * Call it after sxe_init, and before what may take long in the loop. on_event NULL, or without this
 * call: at DRAIN and END the worker closes its listeners (sxe_stop_listening), and sxe_run ends
 * with the last connection, or by sxe_stop after stop_timeout_ms or at the second END. 0; -EINVAL:
 * the loop is not there, or is watched already. */
SXE_PUBLIC int sxe_workers_attend(void (*on_event)(void *user, enum sxe_workers_event event),
                                  void *user);

/* This worker listens: it is in service. Closes the parent's sockets at which it does not listen. 0
 * or -errno. In a process that is no worker of sxe_workers_run: 0, and no effect, so serve can be
 * called by itself. */
SXE_PUBLIC int sxe_workers_ready(void);

/* Ask for a new worker in place of this one, which then drains, e.g. because it has grown large. 0,
 * or -errno: ask again later; -EINVAL: this process is no worker. */
SXE_PUBLIC int sxe_workers_renew(void);

#ifdef __cplusplus
}
#endif

#endif
