/* SPDX-License-Identifier: MIT
 *
 * What: the script of --lua in a serving process: load it, follow its start, end it.
 *
 * Place: service.c calls these functions in this order. They wrap those of sxe-lua.h and add the
 * messages of a program.
 *
 * Errors: until the script is ready, its errors are printed on standard error with the lines of
 * source; from then on they go to the log. "After a message" below means one of these.
 */
#ifndef SCRIPT_H
#define SCRIPT_H

#include <stdbool.h>

#include "options.h"
#include "sxe-lua.h"

/* Load the script. Call before sxe_init. link: the socket to the supervisor, which gets the names
 * of the script's files with --dev; -1: no supervisor. 0, or -errno after a message. */
int script_load(const struct httpd_options *options, int link);

/* Start the script's top level. Call after sxe_init. 0, or -errno after a message. */
int script_begin(void);

/* The state of the top level: 0: it has ended; -EINPROGRESS: it waits; -EINVAL: it failed. */
int script_progress(void);

/* Check that the script returned a handler or listens itself. 0, or -EINVAL after a message. */
int script_check(void);

/* Send the script's errors to the log from now on. */
void script_is_ready(void);

/* --repl: start a shell at the terminal; on_end is called when the user ends it. 0, or -errno after
 * a message. Stop it before sxe_fini; stopping a shell that was not started does nothing. */
int script_start_shell(void (*on_end)(void));
void script_stop_shell(void);

/* True if the script uses more than nine tenths of its memory after a full collection. */
bool script_is_full(void);

struct sxe_lua *script_state(void); /* the script's state; NULL: there is no script */

/* Free the script, after sxe_fini. Does nothing if there is no script. */
void script_end(void);

#endif
