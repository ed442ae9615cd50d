/* SPDX-License-Identifier: MIT
 *
 * What: the module sxe.store for scripts: ordered keys and values in a file, by LMDB, which many
 * processes read and write. Work threads make the calls that block, and the tasks wait for them.
 *
 * Place: a library of its own on lib-sxe-lua, so that programs without it do not link LMDB. The
 * program puts sxe_store_open into struct sxe_lua_config; sxe-lua and sxe-httpd do so when LMDB is
 * there. A program in C calls LMDB itself: this library adds nothing to it but tasks.
 *
 * Shape:
 *     get, a walk          the loop's thread reads the map of the file: no copy, no lock, no call
 *     put, del, write ---> jobs in the store's line ---> a thread commits up to 64 of them at once
 *     open, copy --------> a job each -----------------> a thread each
 *
 * Rules: 1 a write transaction begins and ends in one run of a thread, and no script runs in
 * between. So a script's changes are collected first, together with the values that they depend on;
 * the thread compares those values before it makes the changes. 2 a file is open once in a process,
 * whatever paths name it. 3 no transaction keeps old pages for ever: a snapshot is closed after
 * snapshot_max seconds.
 *
 * Limits: keys of 1 to 511 bytes; a value and all changes of a transaction fit memory_max of the
 * state; 256 snapshots, walks and transactions a file and process; see docs/store.md.
 *
 * Example:
 *     struct sxe_lua_config config = {.store = sxe_store_open};
 *     struct sxe_lua *lua = sxe_lua_new(&config);
 */
#ifndef SXE_STORE_H
#define SXE_STORE_H

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lua_State;

/* A lua_CFunction for a state of lib-sxe-lua: push the module, a new table, and return 1. Raises an
 * error if memory is missing. */
SXE_PUBLIC int sxe_store_open(struct lua_State *L);

#ifdef __cplusplus
}
#endif

#endif
