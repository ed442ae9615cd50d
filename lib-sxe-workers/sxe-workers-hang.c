/* SPDX-License-Identifier: MIT
 *
 * What: finds children whose event loop hangs.
 */
#include "sxe-workers-hang-private.h"

#include "sxe-log.h"
#include "sxe-workers-children-private.h"

/* how much time a hung child has to write in which function it hangs */
#define ANSWER_NS (250 * SXE_NS_PER_MS)

/* A loop hangs if its counter was the same at this many looks one after the other. A single look is
 * not enough, because it may be late after the machine slept. */
enum { LOOKS = 4 };

static void
end_hung(struct sxe__child *child, uint32_t hang_timeout_ms, const char *hang_option,
         bool is_ending)
{
    const char *place = child->heartbeat->place;

    SXE_ERROR("process %d has blocked its loop for more than %u ms, in %.*s: it is killed%s "
              "(%s)",
              child->pid, hang_timeout_ms, (int)sizeof(child->heartbeat->place),
              *place != '\0' ? place : "a function of C",
              child->role == SERVING && !is_ending ? ", and another is started" : "", hang_option);
    sxe__child_kill(child);
}

/* Look at one child. True: the child was asked where it hangs, so the next look must be in
 * ANSWER_NS. */
static bool
look_at_heart(struct sxe__child *child, uint32_t hang_timeout_ms, const char *hang_option,
              bool is_ending)
{
    const uint64_t turns = __atomic_load_n(&child->heartbeat->turns, __ATOMIC_RELAXED);

    if (turns % 2 == 0 || turns != child->turns) {
        child->turns = turns;
        child->looks = 0;
        return false;
    }
    child->looks++;
    if (child->looks > LOOKS) {
        end_hung(child, hang_timeout_ms, hang_option, is_ending);
    } else if (child->looks == LOOKS && sxe__heartbeat_is_stopped(child->pid)) {
        SXE_WARN("process %d is stopped, by a signal or a debugger: it is not replaced; send it "
                 "SIGCONT to continue it, or SIGKILL to replace it",
                 child->pid);
        child->looks = 0;
    } else if (child->looks == LOOKS) {
        sxe__heartbeat_ask(child->heartbeat, child->pid);
        return true;
    }
    return false;
}

uint64_t
sxe__look_at_hearts(uint64_t now_ns, uint32_t hang_timeout_ms, const char *hang_option,
                    bool is_ending)
{
    uint64_t wait_ns = hang_timeout_ms * SXE_NS_PER_MS / LOOKS;

    for (unsigned i = 0; i < sxe__children.number; i++) {
        if (look_at_heart(&sxe__children.each[i], hang_timeout_ms, hang_option, is_ending))
            wait_ns = ANSWER_NS;
    }
    return now_ns + wait_ns;
}
