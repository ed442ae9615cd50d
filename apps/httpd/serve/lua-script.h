/* SPDX-License-Identifier: MIT
 *
 * What: the script of --lua in a serving process: loads it, follows its start, and ends it.
 *
 * Place: service.c calls these functions in their order in this file. They call functions of
 * sxe-lua.h, and add messages.
 *
 * Errors: until the script is ready, its errors are printed on standard error, with lines of its
 * source; from then on they go to the log. "After a message" means: after such an error.
 */
#ifndef SCRIPT_H
#define SCRIPT_H

#include <stdbool.h>

#include "options.h"
#include "sxe-lua.h"

/* Load the script. Call it before sxe_init. link is the socket to the supervisor, which with --dev
 * gets the names of the script's files; -1: there is no supervisor. 0, or -errno after a
 * message. */
int script_load(const struct httpd_options *options, int link);

/* Start the script's top level. Call it after sxe_init. 0, or -errno after a message. */
int script_begin(void);

/* How the script's top level gets on. 0: it has ended; -EINPROGRESS: it waits; -EINVAL: it has
 * failed. */
int script_progress(void);

/* Check that the script returned a handler or listens itself. 0, or -EINVAL after a message. */
int script_check(void);

/* Send the script's errors to the log from now on. */
void script_is_ready(void);

/* For --repl: start a shell at the terminal; on_end is called when the user ends it. 0, or -errno
 * after a message. Stop the shell before sxe_fini; it may be stopped even if it was not started. */
int script_start_shell(void (*on_end)(void));
void script_stop_shell(void);

/* Whether the script uses more than nine tenths of its memory, even after a full garbage
 * collection. */
bool script_is_full(void);

struct sxe_lua *script_state(void); /* the script's state; NULL: there is no script */

/* Free the script. Call it after sxe_fini. If there is no script, it does nothing. */
void script_end(void);

#endif
