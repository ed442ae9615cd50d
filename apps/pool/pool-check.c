/* SPDX-License-Identifier: MIT
 *
 * The commands check and repair.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pool-text.h"
#include "pool-tool.h"
#include "sxe-time.h"

enum { TRIES = 1000, TEXT_SIZE = 256, SIGNALS_EACH = 65536 };

/* Check the pool, and if it is a dict, then the dict's table. While another process holds a lock,
 * try again for a second. -ECANCELED: a signal asks to end. */
static int
check_opened_pool(const struct pool_opened *opened, char *why)
{
    unsigned tries = 0;
    int result;

    do {
        result = sxe_pool_check_until(opened->array, why, pool_is_over);
        if (result == 0 && opened->dict != NULL)
            result = sxe_dict_check_until(opened->dict, why, pool_is_over);
    } while (result == -EAGAIN && tries++ < TRIES && !pool_wait(SXE_NS_PER_MS));
    return result == -EAGAIN && tries <= TRIES ? -ECANCELED : result;
}

/* Whether an element is half written because its writer was killed. A writer that lives finishes
 * before sxe_pool_read_part stops trying. */
static bool
is_torn(const void *array, unsigned id)
{
    char byte;

    return sxe_pool_is_torn(array, id) && sxe_pool_read_part(array, id, 0, 1, &byte) != 0;
}

static bool
can_go_on(unsigned id)
{
    return (id + 1) % SIGNALS_EACH != 0 || !pool_is_over();
}

/* Print the ids of half-written elements. Returns how many there are. */
static unsigned
tell_torn(const void *array)
{
    unsigned torn = 0;

    for (unsigned id = 0; id < sxe_pool_get_number(array) && can_go_on(id); id++) {
        if (!is_torn(array, id))
            continue;
        if (torn++ == 0)
            printf("half-written elements, whose writer was killed; each is busy until all of it "
                   "is written again:");
        if (torn <= 20)
            printf(" %u", id);
    }
    if (torn > 20)
        printf(" and %u more", torn - 20);
    if (torn > 0)
        printf("\n");
    return torn;
}

static int
check_and_tell(const struct pool_opened *opened)
{
    const void *array = opened->array;
    char why[SXE_POOL_WHY_SIZE] = "";
    const int result = check_opened_pool(opened, why);

    if (result == -ECANCELED)
        return EXIT_FAILURE;
    if (result == -EAGAIN)
        return pool_fail("pool %s: a live process has held a lock for a second: try again, or "
                         "continue it (SIGCONT) if it is stopped",
                         pool_plain_text(sxe_pool_get_name(array)));
    if (result != 0)
        return pool_fail("pool %s is damaged: %s; close it in every program, then: sxe-pool repair",
                         pool_plain_text(sxe_pool_get_name(array)),
                         result == -EUCLEAN ? pool_plain_text(why) : strerror(-result));
    printf("pool %s is whole: %s in %s and %s, all on the list of their state, in order\n",
           pool_plain_text(sxe_pool_get_name(array)),
           pool_count_text(sxe_pool_get_number(array), "element"),
           pool_count_text(sxe_pool_get_states(array), "state"),
           pool_count_text(sxe_pool_get_shards(array), "shard"));
    if (opened->dict != NULL)
        printf("its table is whole, too: %s, each in exactly one place\n",
               pool_count_text(sxe_dict_get_count(opened->dict), "entry"));
    /* A dict does not use the marks of half-written elements: its entries have checksums. */
    return opened->dict != NULL || tell_torn(array) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
pool_check(const struct pool_options *options)
{
    struct pool_opened opened;

    if (!pool_open(options, 0, &opened))
        return EXIT_FAILURE;
    const int result = check_and_tell(&opened);
    pool_close(&opened);
    return result;
}

/* ---- Repairing ---- */

static int
refuse_users(const void *array)
{
    char text[TEXT_SIZE] = "";
    unsigned users = 0;
    int used = 0;

    for (unsigned slot = 0; slot < SXE_POOL_SLOTS && used < TEXT_SIZE - 16; slot++) {
        const int process = sxe_pool_get_user(array, slot);

        if (process == 0 || process == getpid())
            continue;
        used += snprintf(text + used, sizeof(text) - (size_t)used, " %d", process);
        users++;
    }
    return pool_fail("pool %s is in use, by %s%s: end %s first; sxe-pool check works "
                     "meanwhile",
                     pool_plain_text(sxe_pool_get_name(array)),
                     users == 1 ? "process" : "processes", text, users == 1 ? "it" : "them");
}

static void
tell_repaired(const void *array)
{
    const char *name = pool_plain_text(sxe_pool_get_name(array));

    if (sxe_pool_get_found(array) == SXE_POOL_CLOSED)
        printf("pool %s was closed in good order: nothing to repair\n", name);
    else if (sxe_pool_get_found(array) == SXE_POOL_COMPLETED)
        printf("pool %s: all its users were killed; the changes that they began are complete now\n",
               name);
    else
        printf("pool %s: each element is on the list of its state again, in time order:\n", name);
    for (unsigned state = 0; state < sxe_pool_get_states(array); state++)
        printf("  %-20s %10u\n", pool_plain_text(sxe_pool_state_to_string(array, state)),
               sxe_pool_get_count(array, state));
}

int
pool_repair(const struct pool_options *options)
{
    struct pool_opened opened;
    int result;

    if (!pool_open(options, SXE_POOL_OPTION_REPAIR, &opened))
        return EXIT_FAILURE;
    if (sxe_pool_get_found(opened.array) == SXE_POOL_JOINED) {
        result = refuse_users(opened.array);
    } else {
        tell_repaired(opened.array);
        result = check_and_tell(&opened);
    }
    pool_close(&opened);
    return result;
}
