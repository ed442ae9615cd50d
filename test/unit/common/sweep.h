/* SPDX-License-Identifier: MIT
 *
 * What: sweeps over failing calls. A scenario runs again and again; its 1st, 2nd, 3rd ... call of a
 * kind fails, once or from then on, with each error that the call may have, until the scenario ends
 * before the call that would fail.
 *
 * Place: tests of what happens while system calls fail. The test itself decides how a run begins
 * and what must hold after it.
 *
 * Example:
 *     static bool
 *     run_once(const struct strike *strike)
 *     {
 *         bool touched;
 *
 *         start();
 *         sweep_arm(strike);
 *         scenario();
 *         touched = sweep_disarm();
 *         expect_that_all_is_given_back();
 *         return touched;
 *     }
 *     ...
 *     static const struct fault fault = {FAKE_RECV, {EINTR, ECONNRESET}};
 *     sweep(&fault, run_once);
 */
#ifndef SWEEP_H
#define SWEEP_H

#include "fake-os.h"

enum { SWEEP_ERRORS = 8 };

struct fault {
    enum fake_call call;
    int errors[SWEEP_ERRORS]; /* the list ends at the first 0 */
};

/* The faults of one run. */
struct strike {
    enum fake_call call;
    int error;
    unsigned nth;  /* which call of that kind fails, counted from sweep_arm on */
    bool for_ever; /* all later calls fail as well */
};

static inline void
sweep_arm(const struct strike *strike)
{
    fake_os_sweep(&strike->call, 1, strike->nth, strike->for_ever, strike->error);
}

/* Whether a call was made to fail. */
static inline bool
sweep_disarm(void)
{
    bool touched = fake_os_injected() > 0;

    fake_os_reset();
    return touched;
}

/* run_once: runs the scenario once; returns false when no call was made to fail. */
static inline void
sweep(const struct fault *fault, bool (*run_once)(const struct strike *strike))
{
    struct strike strike = {.call = fault->call};

    for (unsigned i = 0; i < SWEEP_ERRORS && fault->errors[i] != 0; i++) {
        strike.error = fault->errors[i];
        for (unsigned round = 0; round < 2; round++) {
            strike.for_ever = round == 1;
            for (strike.nth = 1; run_once(&strike); strike.nth++)
                continue;
        }
    }
}

/* The functions that only initialization may call. */
static const enum fake_call allocations[] = {FAKE_MALLOC,         FAKE_CALLOC,        FAKE_REALLOC,
                                             FAKE_POSIX_MEMALIGN, FAKE_ALIGNED_ALLOC, FAKE_MMAP,
                                             FAKE_STRDUP};
#define ALLOCATIONS (sizeof(allocations) / sizeof(allocations[0]))

static inline void
forbid_allocations(void)
{
    for (unsigned i = 0; i < ALLOCATIONS; i++)
        fake_os_forbid(allocations[i], true);
}

#endif
