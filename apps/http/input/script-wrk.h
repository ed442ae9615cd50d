/* SPDX-License-Identifier: MIT
 *
 * What: the global table wrk of scripts, as the page SCRIPTING of wrk describes it. Place: script.c
 * makes it in each state, before the script runs in it.
 *
 * Shape: wrk.scheme host port method path headers body, from the command line; and version, "1.1"
 *        wrk.format(method, path, headers, body)   wrk.lookup(host, service)   wrk.connect(address)
 *
 * If a value of headers is a list, each item becomes a line of its own. Host always has its right
 * value, whatever headers says, and so has Content-Length if there is a body.
 */
#ifndef LOAD_SCRIPT_WRK_H
#define LOAD_SCRIPT_WRK_H

#include <lua.h>

/* Make the table. This function is a body for load_lua_call, whose argument is a const struct
 * load_script_options. */
int load_wrk_open(lua_State *L);

/* Call these functions inside load_lua_call only. */
void load_wrk_push(lua_State *L); /* push the table wrk */
/* push a table whose keys are the globals that existed before the script ran */
void load_wrk_push_names(lua_State *L);

/* Pop method, path, headers and body, make the request of them, and push it. Each may be nil, and
 * then has its default, as in wrk. */
void load_wrk_format(lua_State *L);

#endif
