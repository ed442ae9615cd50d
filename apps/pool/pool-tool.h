/* SPDX-License-Identifier: MIT
 *
 * What: the program sxe-pool, which looks at pools that processes share. Place: read pool.c first.
 *
 * Shape: one file a command, each of which opens its pool as one more user, prints, and lets it go:
 *
 *     pool.c         the command line
 *     pool-which.c   POOL -> the pool, opened         a file, a name, a process
 *     pool-list.c    list                             directories and /proc, without opening
 *     pool-show.c    show                             states, ages, users
 *     pool-check.c   check, repair
 *     pool-dump.c    dump                             elements, as text or JSON
 *     pool-dict.c    dump of a dict                   entries
 *     pool-watch.c   watch                            until a signal
 *     pool-copy.c    backup, restore, resize          of a dict, to another file
 *     pool-peek.c    what a file's head says          for list, and for a process
 *     pool-output.c  standard output                 a reader that stands still keeps no signal
 *     pool-text.c    numbers and texts                what a hostile file says harms no terminal
 */
#ifndef POOL_TOOL_H
#define POOL_TOOL_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "sxe-dict.h"

#define POOL_WORDS_MAX 16

struct pool_options {
    const char *words[POOL_WORDS_MAX]; /* the command, and its arguments */
    unsigned words_number;
    const char *state; /* NULL: all */
    bool is_json;
    unsigned long interval_ns;
    unsigned long looks; /* 0: until a signal */
    unsigned long cells; /* that resize is to make */
};

/* The commands: an exit status, after saying what is wrong. */
int pool_list(const struct pool_options *options);
int pool_show(const struct pool_options *options);
int pool_check(const struct pool_options *options);
int pool_repair(const struct pool_options *options);
int pool_dump(const struct pool_options *options);
int pool_watch(const struct pool_options *options);
int pool_backup(const struct pool_options *options);
int pool_restore(const struct pool_options *options);
int pool_resize(const struct pool_options *options);

/* ---- What they share: pool-which.c ---- */

struct pool_opened {
    void *array;
    SXE_DICT *dict; /* whose cells it has; NULL: it is no dict */
};

/* Open what the second word says, with SXE_POOL_OPTION_REPAIR or 0; false after saying why. */
bool pool_open(const struct pool_options *options, unsigned pool_options,
               struct pool_opened *opened);
void pool_close(const struct pool_opened *opened);

/* The path of a POOL that must be a file, though it need not be there; false after saying why. */
bool pool_find_file(const char *which, char path[PATH_MAX]);

/* The state of that name or number, from `first` up to `end`; SXE_NONE after saying which are. */
unsigned pool_find_state(const void *array, const char *name, unsigned first, unsigned end);

/* A user that is killed leaves the pool in need of a look by the next. So the signals that ask to
 * end are blocked, and looked for by those who take long; SIG_UNBLOCK where there is nothing to be
 * let go in good order. */
sigset_t pool_ending_signals(void);
void pool_hold_signals(int how);

/* Wait, or do not if it is 0. True: a signal asks to end. */
bool pool_wait(uint64_t ns);
bool pool_is_over(void);

/* Let such a signal also end what waits for the reader of standard output: what is printed after
 * that is lost, and ferror(stdout). pool-output.c */
void pool_output_begin(void);

/* The signal that asked to end; 0: none. */
int pool_ended_by(void);

/* pool_dump of a dict, which has entries. */
int pool_dump_dict(SXE_DICT *dict, const struct pool_options *options);

/* Say what is wrong, "sxe-pool: ..."; EXIT_FAILURE. */
int pool_fail(const char *format, ...) SXE_PRINTF(1, 2);

#endif
