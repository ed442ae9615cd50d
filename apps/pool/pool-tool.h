/* SPDX-License-Identifier: MIT
 *
 * What: the program sxe-pool, which looks at pools that processes share. Place: read pool.c first.
 *
 * Shape: there is one file for each command. A command opens its pool like any program that uses
 * the pool, prints, and closes it:
 *
 *     pool.c         the command line
 *     pool-which.c   finds and opens the pool POOL    a file, a name, a process
 *     pool-list.c    list                             directories and /proc, without opening
 *     pool-show.c    show                             states, ages, users
 *     pool-check.c   check, repair
 *     pool-dump.c    dump                             elements, as text or JSON
 *     pool-dict.c    dump of a dict                   entries
 *     pool-watch.c   watch                            until a signal
 *     pool-copy.c    backup, restore, resize          of a dict, to another file
 *     pool-peek.c    reads a pool file's head         for list, and for a process
 *     pool-output.c  standard output                  a reader that stops delays no signal
 *     pool-text.c    numbers and texts                no text of a hostile file controls a terminal
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
    /* the options on the command line, one bit for each letter: bit 0 is -a, bit 25 is -z */
    unsigned given;
    const char *state; /* the name or number of a state; NULL: all states */
    bool is_json;
    unsigned long interval_ns;
    unsigned long looks; /* how many times watch prints; 0: until a signal ends it */
    unsigned long cells; /* the number of cells that resize gives the dict */
};

/* The functions of the commands. Each returns the exit status: EXIT_FAILURE after a message. */
int pool_list(const struct pool_options *options);
int pool_show(const struct pool_options *options);
int pool_check(const struct pool_options *options);
int pool_repair(const struct pool_options *options);
int pool_dump(const struct pool_options *options);
int pool_watch(const struct pool_options *options);
int pool_backup(const struct pool_options *options);
int pool_restore(const struct pool_options *options);
int pool_resize(const struct pool_options *options);

/* ---- Functions that the commands share: pool-which.c ---- */

struct pool_opened {
    void *array;
    SXE_DICT *dict; /* the dict, if the pool holds the cells of one; otherwise NULL */
};

/* Open the pool that the argument POOL, words[1], names. pool_options: SXE_POOL_OPTION_REPAIR or 0.
 * False after a message. */
bool pool_open(const struct pool_options *options, unsigned pool_options,
               struct pool_opened *opened);
void pool_close(const struct pool_opened *opened);

/* Find the path for an argument POOL that must be a file, but the file need not exist. False after
 * a message. */
bool pool_find_file(const char *which, char path[PATH_MAX]);

/* Find the state with this name or number, among those from `first` up to but not including `end`.
 * SXE_NONE after a message. */
unsigned pool_find_state(const void *array, const char *name, unsigned first, unsigned end);

/* If a process is killed while it has the pool open, the next process that opens the pool has to
 * check all of it. So the signals that ask to end (SIGINT, say) are blocked, and functions that
 * take long look for them. Unblock them while no pool is open. */
sigset_t pool_ending_signals(void);
void pool_hold_signals(int how);

/* Wait for ns (0: do not wait) or a signal. True: a signal asks to end. */
bool pool_wait(uint64_t ns);
bool pool_is_over(void);

/* From now on a signal that asks to end also ends a write that waits for the reader of standard
 * output. Output after that is lost, and ferror(stdout) is set. In pool-output.c. */
void pool_output_begin(void);

/* The number of the signal that asked to end; 0: none did. */
int pool_ended_by(void);

/* Print the entries of a dict. pool_dump calls it if the pool is the pool of a dict. */
int pool_dump_dict(SXE_DICT *dict, const struct pool_options *options);

/* Print the message "sxe-pool: ...". Returns EXIT_FAILURE. */
int pool_fail(const char *format, ...) SXE_PRINTF(1, 2);

#endif
