/* SPDX-License-Identifier: MIT
 *
 * The memory that supervisor and child share, and the signals between them.
 */
#include "sxe-workers-heartbeat-private.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "sxe-log.h"
#include "sxe-workers-balance-private.h"

#define ASKED    (SIGRTMIN + 1) /* sxe-lua-watch.c uses SIGRTMIN */
#define ORPHANED (SIGRTMIN + 2)

enum { ORPHAN_SECONDS = 2 };

/* The heartbeat of this child. */
static struct sxe__heartbeat *own;

/* The function that writes what this child runs; NULL: there is none. */
static size_t (*describe_place)(char *text, size_t size);

/* Whether this process is ending already, because the supervisor died. Then the signal ORPHANED
 * must not shorten the time. The kernel closes the supervisor's sockets before it sends ORPHANED,
 * so the loop often learns of the death first. */
static volatile sig_atomic_t is_leaving;

struct sxe__heartbeat *
sxe__heartbeat_new(void)
{
    struct sxe__heartbeat *heartbeat =
        mmap(NULL, sizeof(*heartbeat), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return heartbeat == MAP_FAILED ? NULL : heartbeat;
}

void
sxe__heartbeat_delete(struct sxe__heartbeat *heartbeat)
{
    munmap(heartbeat, sizeof(*heartbeat));
}

void
sxe__heartbeat_ask(struct sxe__heartbeat *heartbeat, pid_t child)
{
    heartbeat->place[0] = '\0';
    kill(child, ASKED);
}

bool
sxe__heartbeat_is_stopped(pid_t child)
{
    char path[32];
    char state = '\0';
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", child);
    file = fopen(path, "r");
    if (file == NULL)
        return false;
    (void)!fscanf(file, "%*d (%*[^)]) %c", &state);
    fclose(file);
    return state == 'T' || state == 't';
}

/* The handler of a signal: write what this process runs. It need not be async-signal-safe, because
 * the supervisor kills this process next. */
static void
on_stack_asked(int signal_number)
{
    SXE_UNUSED_PARAMETER(signal_number);
    if (describe_place != NULL)
        (void)describe_place(own->place, sizeof(own->place));
}

static void
on_orphaned(int signal_number)
{
    SXE_UNUSED_PARAMETER(signal_number);
    if (!is_leaving)
        alarm(ORPHAN_SECONDS);
}

void
sxe__heartbeat_begin(struct sxe__heartbeat *heartbeat, pid_t supervisor,
                     size_t (*describe)(char *text, size_t size))
{
    struct sigaction asked = {.sa_handler = on_stack_asked, .sa_flags = SA_RESTART};
    struct sigaction orphaned = {.sa_handler = on_orphaned, .sa_flags = SA_RESTART};

    own = heartbeat;
    describe_place = describe;
    is_leaving = false;
    sigaction(ASKED, &asked, NULL);
    sigaction(ORPHANED, &orphaned, NULL);
    (void)prctl(PR_SET_PDEATHSIG, ORPHANED);
    if (getppid() != supervisor) /* the supervisor died before prctl was called */
        raise(ORPHANED);
}

/* libev calls this function before and after each wait, so the counter is odd and even in turn. */
static void
count_loop_turn(struct ev_loop *loop)
{
    SXE_UNUSED_PARAMETER(loop);
    __atomic_store_n(&own->turns, own->turns + 1, __ATOMIC_RELAXED);
}

static void
end_loop_turn(struct ev_loop *loop)
{
    sxe__balance_look();
    count_loop_turn(loop);
}

void
sxe__heartbeat_watch(struct ev_loop *loop)
{
    own->turns |= 1;
    ev_set_loop_release_cb(loop, end_loop_turn, count_loop_turn);
}

void
sxe__heartbeat_end_within(uint32_t ms)
{
    is_leaving = true;
    alarm(ms / 1000 + ORPHAN_SECONDS);
}
