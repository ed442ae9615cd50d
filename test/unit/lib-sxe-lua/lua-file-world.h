/* SPDX-License-Identifier: MIT
 *
 * What: a state of Lua, and a file that several processes share; scripts find its path in arg[1].
 * The other process is played by C code in this one; scripts call it by the module "peer".
 *
 *     begin_file_world(peer_functions);         or begin_file_state(peer_functions): without a loop
 *     run_story(&story);                           run_script("assert(arg[1])");
 *     end_file_world();                            end_file_state();
 */
#ifndef LUA_FILE_WORLD_H
#define LUA_FILE_WORLD_H

#include "lua-task-world.h"

#include <stdlib.h>
#include <unistd.h>

static char directory[] = "/tmp/sxe-lua-file-XXXXXX";
static char path[64]; /* no file exists there at first */

static inline const struct sxe_lua_config *
file_config(void)
{
    static char name[] = "test";
    static char *argv[] = {name, path, NULL};
    static const struct sxe_lua_config config = {.tasks = 16, .argc = 2, .argv = argv};

    return &config;
}

static inline void
make_path(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/file", directory);
}

static inline void
remove_path(void)
{
    unlink(path);
    ck_assert_int_eq(rmdir(directory), 0);
}

static inline void
begin_file_world(const luaL_Reg *peer_functions)
{
    make_path();
    begin_world_with(file_config());
    ck_assert_int_eq(sxe_lua_module(lua, "peer", peer_functions), 0);
}

static inline void
end_file_world(void)
{
    end_world();
    remove_path();
}

static inline void
begin_file_state(const luaL_Reg *peer_functions)
{
    make_path();
    state_start_with(file_config());
    ck_assert_int_eq(sxe_lua_module(lua, "world", world_functions), 0);
    ck_assert_int_eq(sxe_lua_module(lua, "peer", peer_functions), 0);
}

static inline void
end_file_state(void)
{
    state_stop();
    remove_path();
}

#endif
