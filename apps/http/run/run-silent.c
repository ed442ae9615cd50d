/* SPDX-License-Identifier: MIT
 *
 * Finds workers that do not answer, because they were stopped (SIGSTOP), or call a C function that
 * does not return.
 */
#include "run-private.h"

#include <signal.h>
#include <sys/socket.h>
#include <time.h>

unsigned load_silent_asks = 10;

/* The CPU time that a process has used; 0: it cannot be read. */
static uint64_t
cpu_of(pid_t pid)
{
    struct timespec used = {0, 0};
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) == 0)
        (void)clock_gettime(clock, &used);
    return (uint64_t)used.tv_sec * SXE_NS_PER_SECOND + (uint64_t)used.tv_nsec;
}

/* Whether a worker has had enough time to answer. If it uses the CPU, its CPU time counts, and not
 * the clock: on a busy machine it may not have got the CPU. */
static bool
is_lost(const struct load_process *process)
{
    const uint64_t cpu_ns = cpu_of(process->pid) - process->cpu_ns;

    return process->asks > load_silent_asks &&
           (cpu_ns < SXE_NS_PER_SECOND / 100 || cpu_ns >= load_silent_asks * LOAD_ASK_NS);
}

static void
ask_worker(struct load_process *process)
{
    const struct load_message message = {.type = LOAD_MESSAGE_ASK};

    if (process->asks++ == 0) {
        process->cpu_ns = cpu_of(process->pid);
        (void)!send(process->control, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL);
    } else if (is_lost(process)) {
        process->is_silent = true;
        kill(process->pid, SIGKILL);
    }
}

void
load_workers_ask(struct load_parent *parent)
{
    const unsigned begun = 1u << LOAD_MESSAGE_ALIVE;
    const unsigned done = 1u << LOAD_MESSAGE_DONE;

    parent->ask_ns = sxe_time_ns() + LOAD_ASK_NS;
    for (unsigned i = 0; i < parent->number; i++) {
        struct load_process *process = &parent->processes[i];

        if (process->pid > 0 && process->control >= 0 && (process->said & (begun | done)) == begun)
            ask_worker(process);
    }
}
