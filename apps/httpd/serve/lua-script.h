/* SPDX-License-Identifier: MIT
 *
 * What: the script of --lua in a process that serves: loaded, watched over, ended.
 *
 * Place: service.c calls this, in this order; all of it is sxe-lua.h's, in the words of a program.
 *
 * Errors are told on standard error, with the lines of the source, until the script is ready; from
 * then on they are lines of the log.
 */
#ifndef SCRIPT_H
#define SCRIPT_H

#include <stdbool.h>

#include "options.h"
#include "sxe-lua.h"

/* Before sxe_init: 0, or -errno with all said. link: to the supervisor, who is told with --dev
 * which files it is made of; -1: there is none. */
int script_load(const struct httpd_options *options, int link);

/* After sxe_init: 0, or -errno with all said. */
int script_begin(void);

/* It has ended, and well; it waits at its top level: -EINPROGRESS; or it failed: -EINVAL. */
int script_progress(void);

/* It returned a handler, or listens itself. 0, or -EINVAL with all said. */
int script_check(void);

/* The log gets its errors from now on. */
void script_is_ready(void);

/* --repl: a shell at the terminal from now on; on_end is called when the user has ended it. 0, or
 * -errno with all said. Stopping one that was not started is harmless; before sxe_fini. */
int script_start_shell(void (*on_end)(void));
void script_stop_shell(void);

/* Its memory stays above nine tenths of what it may have, with all garbage collected. */
bool script_is_full(void);

struct sxe_lua *script_state(void); /* NULL: none */

/* After sxe_fini; harmless without one. */
void script_end(void);

#endif
