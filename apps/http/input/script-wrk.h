/* SPDX-License-Identifier: MIT
 *
 * What: the global wrk that a script finds, as wrk's SCRIPTING page says. Place: script.c, for each
 * state before the script is run in it.
 *
 * Shape: wrk.scheme host port method path headers body, from the command line; and version, "1.1"
 *        wrk.format(method, path, headers, body)   wrk.lookup(host, service)   wrk.connect(address)
 *
 * A value of headers may be a list, then there is a line for each. Host, and Content-Length if
 * there is a body, always have their right values, whatever headers says.
 */
#ifndef LOAD_SCRIPT_WRK_H
#define LOAD_SCRIPT_WRK_H

#include <lua.h>

/* Make the table, as the body of load_lua_call; its argument is a const struct
 * load_script_options. */
int load_wrk_open(lua_State *L);

/* Call these functions inside load_lua_call only. */
void load_wrk_push(lua_State *L); /* push the table wrk */
/* push a table whose keys are the globals that existed before the script ran */
void load_wrk_push_names(lua_State *L);

/* Pop method, path, headers and body (nil: the default, as in wrk), and push the request. */
void load_wrk_format(lua_State *L);

#endif
