/* SPDX-License-Identifier: MIT
 *
 * Blocking work: one group of threads hangs, the other groups go on.
 */
#include <semaphore.h>

#include "outside.h"
#include "sxe-work.h"

static sem_t gate;
static unsigned done_count;
static unsigned wanted;

static void
hang(struct sxe_work *work)
{
    SXE_UNUSED_PARAMETER(work);
    sem_wait(&gate);
}

static void
return_at_once(struct sxe_work *work)
{
    SXE_UNUSED_PARAMETER(work);
}

static void
count(struct sxe_work *work)
{
    SXE_UNUSED_PARAMETER(work);
    if (++done_count == wanted)
        sxe_stop();
}

/* promise: docs/sxe.md: A group that hangs blocks its own threads only. */
START_TEST(works_of_other_groups_are_done_while_one_group_hangs)
{
    struct sxe_work hanging[20] = {{NULL}};
    struct sxe_work good[20] = {{NULL}};
    unsigned groups[2];

    sem_init(&gate, 0, 0);
    sxe_register(1, 0);
    groups[0] = sxe_work_register_group(2);
    groups[1] = sxe_work_register_group(1);
    ck_assert_int_eq(sxe_init(), 0);
    for (unsigned i = 0; i < 20; i++) {
        hanging[i] = (struct sxe_work){.run = hang, .done = count, .group = groups[0]};
        ck_assert_int_eq(sxe_work_submit(&hanging[i]), 0);
    }
    for (unsigned i = 0; i < 20; i++) {
        good[i] = (struct sxe_work){.run = return_at_once, .done = count, .group = groups[1]};
        ck_assert_int_eq(sxe_work_submit(&good[i]), 0);
    }
    wanted = 20;
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(done_count, 20);
    for (unsigned i = 0; i < 20; i++)
        sem_post(&gate);
    wanted = 40;
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(done_count, 40);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {works_of_other_groups_are_done_while_one_group_hangs, NULL};

    return outside_run("work-groups", cases);
}
