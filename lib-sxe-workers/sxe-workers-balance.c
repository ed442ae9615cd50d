/* SPDX-License-Identifier: MIT
 *
 * What: the table of the workers' connections, and the rule by which workers share new ones.
 */
#include "sxe-workers-balance-private.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "sxe.h"

#define LINE_SIZE 64 /* bytes of a cache line */

struct line {
    uint32_t connections; /* read and written atomically */
    uint32_t accepts;     /* 1: this worker accepts; read and written atomically */
    char rest[LINE_SIZE - 2 * sizeof(uint32_t)];
};

static struct {
    /* a shared table with a line for each slot; NULL: there is only one worker, which needs none */
    struct line *lines;
    unsigned number;
    /* the line of this worker; NULL: this process is no worker, or there is no table */
    struct line *own;
    unsigned unused; /* how many sockets were FREE when this worker wrote its line */
} balance;

int
sxe__balance_begin(unsigned slots)
{
    void *lines = mmap(NULL, slots * sizeof(struct line), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (lines == MAP_FAILED)
        return -errno;
    balance.lines = lines;
    balance.number = slots;
    balance.own = NULL;
    return 0;
}

static void
set_line(struct line *line, uint32_t connections, uint32_t accepts)
{
    __atomic_store_n(&line->connections, connections, __ATOMIC_RELAXED);
    __atomic_store_n(&line->accepts, accepts, __ATOMIC_RELAXED);
}

void
sxe__balance_clear(unsigned slot)
{
    if (balance.lines != NULL)
        set_line(&balance.lines[slot], 0, 0);
}

void
sxe__balance_end(void)
{
    if (balance.lines != NULL)
        munmap(balance.lines, balance.number * sizeof(struct line));
    balance.lines = NULL;
}

void
sxe__balance_join(unsigned slot)
{
    if (balance.lines == NULL)
        return;
    balance.own = &balance.lines[slot];
    set_line(balance.own, 0, 1);
}

void
sxe__balance_note(unsigned connections)
{
    if (balance.own != NULL)
        __atomic_store_n(&balance.own->connections, connections, __ATOMIC_RELAXED);
}

static unsigned
note_own_connections(void)
{
    unsigned own = 0;

    for (unsigned state = SXE_STATE_IDLE; state <= SXE_STATE_CLOSING; state++)
        own += sxe_number_in_state((enum sxe_state)state);
    balance.unused = sxe_number_in_state(SXE_STATE_FREE);
    sxe__balance_note(own);
    return own;
}

void
sxe__balance_look(void)
{
    if (balance.own != NULL && sxe_number_in_state(SXE_STATE_FREE) != balance.unused)
        (void)note_own_connections();
}

bool
sxe__balance_allows(uint64_t own, uint64_t sum, uint64_t workers)
{
    uint64_t more = sum / 8 > workers ? sum / 8 : workers;

    return own * workers <= sum + more;
}

bool
sxe__balance_may_accept(void)
{
    uint64_t sum = 0;
    uint64_t workers = 0;
    unsigned own;

    if (balance.own == NULL)
        return true;
    own = note_own_connections();
    for (unsigned i = 0; i < balance.number; i++) {
        if (__atomic_load_n(&balance.lines[i].accepts, __ATOMIC_RELAXED) == 0)
            continue;
        workers++;
        sum += __atomic_load_n(&balance.lines[i].connections, __ATOMIC_RELAXED);
    }
    return workers == 0 || sxe__balance_allows(own, sum, workers);
}
