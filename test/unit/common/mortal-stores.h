/* SPDX-License-Identifier: MIT
 *
 * What: lets a process die right before a chosen store into a shared pool. Place: included before
 * sources of lib-sxe-pool or lib-sxe-dict; it counts the stores of those sources to shared memory.
 *
 *     #include "mortal-stores.h"
 *     #include "../../../lib-sxe-pool/sxe-pool-shared.c"
 *     ...
 *     stores_to_live = 3;     in a child: the child is killed before its third store
 */
#ifndef MORTAL_STORES_H
#define MORTAL_STORES_H

#include <signal.h>
#include <stdint.h>
#include <unistd.h>

static uint64_t stores_to_live; /* 0: the process is never killed */

static inline void
live_or_die(void)
{
    if (stores_to_live != 0 && --stores_to_live == 0)
        kill(getpid(), SIGKILL);
}

#define SXE__POOL_STEP()     live_or_die()
#define SXE__POOL_GET(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define SXE__POOL_PUT(place, value) \
    (live_or_die(), __atomic_store_n(&(place), (value), __ATOMIC_RELAXED))
#define SXE__POOL_PUT_LAST(place, value) \
    (live_or_die(), __atomic_store_n(&(place), (value), __ATOMIC_RELEASE))

#endif
