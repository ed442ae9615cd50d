/* SPDX-License-Identifier: MIT
 *
 * What: pools on each footing (for one thread, for threads, for processes), and child processes.
 *
 *     char *array = open_footing(_i, "pond", 10, 1);
 *     char *other = join(array);           opens the pool once more, as another user
 *     pid_t child = start_child(); if (child == 0) { ...; _exit(0); }
 *     end_child(child, 0);
 */
#ifndef SHARED_POOL_H
#define SHARED_POOL_H

#include "sxe-pool-sharing-private.h"

#include <check.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define LENGTH_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

enum { ONE_THREAD, THREADS, PROCESSES, FOOTINGS };
enum { FREE, READY, BUSY, STATES };

static inline char *
open_pool(const SXE_POOL_SPEC *spec)
{
    char why[SXE_POOL_WHY_SIZE] = "";
    char *array = sxe_pool_open(spec, why);

    ck_assert_msg(array != NULL, "%s", why);
    return array;
}

static inline char *
open_shared(int footing, unsigned number, size_t element_size, unsigned shards)
{
    const SXE_POOL_SPEC spec = {
        .name = "pond",
        .number = number,
        .element_size = element_size,
        .states = STATES,
        .options = footing == THREADS ? SXE_POOL_OPTION_LOCKED : SXE_POOL_OPTION_SHARED,
        .shards = shards,
    };
    return open_pool(&spec);
}

static inline char *
open_footing(int footing, unsigned number, size_t element_size)
{
    char *array = footing == ONE_THREAD
                      ? sxe_pool_new("pond", number, element_size, STATES, SXE_POOL_OPTION_UNLOCKED)
                      : open_shared(footing, number, element_size, 1);

    ck_assert_ptr_nonnull(array);
    return array;
}

static inline char *
join(const char *array)
{
    char why[SXE_POOL_WHY_SIZE] = "";
    char *other = sxe_pool_open_fd(sxe_pool_get_fd(array), NULL, why);

    ck_assert_msg(other != NULL, "%s", why);
    return other;
}

static inline struct sxe__pool_sharing *
sharing_of(const char *array)
{
    return sxe__pool_header(array)->sharing;
}

static inline struct sxe__pool_node *
node_of(const char *array, unsigned id)
{
    return &sharing_of(array)->nodes[id];
}

static inline void
end_child(pid_t child, int signal)
{
    int status;

    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (signal == 0)
        ck_assert_int_eq(status, 0);
    else
        ck_assert_int_eq(WTERMSIG(status), signal);
}

/* Start a process that opens the pool, kill it, and return the token that it had as a user. */
static inline uint32_t
dead_token(const char *array)
{
    int ends[2];
    uint32_t token;

    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        token = sharing_of(join(array))->token;
        ck_assert_int_eq(write(ends[1], &token, sizeof(token)), sizeof(token));
        raise(SIGKILL);
    }
    ck_assert_int_eq(read(ends[0], &token, sizeof(token)), sizeof(token));
    end_child(child, SIGKILL);
    close(ends[0]);
    close(ends[1]);
    return token;
}

#endif
