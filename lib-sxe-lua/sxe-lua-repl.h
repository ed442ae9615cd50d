/* SPDX-License-Identifier: MIT
 *
 * What: a shell into a running state: a person at the terminal types Lua, and the loop with all
 * servers, timers and tasks goes on meanwhile.
 *
 * Place: sxe-lua without a script, sxe-httpd --repl, any program that embeds a state. Uses libedit;
 * a program that calls any of this links with -ledit, others need not.
 *
 * Shape: what is typed runs as a task, so it may wait; the prompt comes back when that has ended.
 *
 *     EDITING --Enter--> RUNNING --ends--> EDITING        lines of the log and print's appear above
 *        ^  \--Tab: completes                |            the line that is being typed
 *        '------------- Ctrl-C: cancelled ---'
 *     EDITING --Ctrl-C--> EDITING, the line is dropped    EDITING --Ctrl-D--> on_end
 *
 * Ctrl-C interrupts code that computes, with an error, and has a call that waits return nil,
 * "cancelled". Values are shown as they could be typed, tables one level deep. Globals may be made
 * at any time. Modules of ours are there as globals (task, timer, tcp ...) where nothing else has
 * that name.
 *
 * Limits: one a process, on descriptors 0 and 1, which are a terminal. 1,000 lines of history, in a
 * file that only its owner can read. While it runs, the log goes to it.
 *
 * Example:
 *     struct sxe_lua *lua = sxe_lua_new(&config);
 *
 *     if (sxe_lua_repl_plan(lua) < 0 || sxe_init() < 0 || sxe_lua_init(lua) < 0 ||
 *         sxe_lua_repl_start(lua, NULL, sxe_stop) < 0 || sxe_run() < 0)
 *         return 1;
 *     sxe_lua_repl_stop();
 */
#ifndef SXE_LUA_REPL_H
#define SXE_LUA_REPL_H

#include "sxe-lua.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Call before sxe_init: registers the sockets and threads that typed code may want. 0, or -EINVAL
 * or -ENOMEM after logging. */
SXE_PUBLIC int sxe_lua_repl_plan(struct sxe_lua *lua);

/* After sxe_lua_init: show the prompt. history: a file; NULL: .sxe_lua_history in $HOME; "": none.
 * The shell keeps the loop running. on_end is called in the loop when the user has ended the shell,
 * by Ctrl-D or by closing the terminal; the program then stops the shell. 0; -EINVAL:
 * sxe_lua_repl_plan was not called; -ENOTTY; -ENOMEM. */
SXE_PUBLIC int sxe_lua_repl_start(struct sxe_lua *lua, const char *history, void (*on_end)(void));

/* Stop the shell: the terminal is as before, the history is saved, and the log goes to standard
 * error. Call this before sxe_fini; it is harmless if the shell was not started. exit(3) does this,
 * too. */
SXE_PUBLIC void sxe_lua_repl_stop(void);

#ifdef __cplusplus
}
#endif

#endif
