/* SPDX-License-Identifier: MIT
 *
 * What: the module sxe.postgres of lib-sxe-postgres for scripts.
 *
 * Place: sxe-lua and sxe-httpd put it into struct sxe_lua_config. script-postgres-none.c stands in
 * if they were built without libpq.
 */
#ifndef SCRIPT_POSTGRES_H
#define SCRIPT_POSTGRES_H

#include <lua.h>

lua_CFunction script_postgres(void); /* NULL: built without libpq */

#endif
