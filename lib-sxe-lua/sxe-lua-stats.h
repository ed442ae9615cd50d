/* SPDX-License-Identifier: MIT
 *
 * What: the counters of a state, for a program that shows them: those that scripts made, and the
 * library's own.
 *
 * Place: over sxe-lua.h; apps/httpd prints them.
 *
 * Shape: counters stand in groups. A script makes one, and counts:
 *
 *     local stats = require "sxe.stats" {"hits", "misses", name = "cache"}
 *     stats.hits = stats.hits + 1          stats:inc("misses")          stats().hits
 *
 * Limits: 64 groups of 1000 counters, 64 bits each; names of groups are cut to 31 bytes.
 *
 * Example:
 *     static void
 *     print(void *user, const char *group, const char *name, int64_t value)
 *     {
 *         fprintf(user, "%s.%s %lld\n", group, name, (long long)value);
 *     }
 *     ...
 *     sxe_lua_each_stat(lua, print, stdout);
 */
#ifndef SXE_LUA_STATS_H
#define SXE_LUA_STATS_H

#include "sxe-lua.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Call `each` for every counter, in the order in which they were made; the names are valid during
 * the call. */
SXE_PUBLIC void sxe_lua_each_stat(struct sxe_lua *lua,
                                  void (*each)(void *user, const char *group, const char *name,
                                               int64_t value),
                                  void *user);

#ifdef __cplusplus
}
#endif

#endif
