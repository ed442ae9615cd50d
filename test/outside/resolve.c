/* SPDX-License-Identifier: MIT
 *
 * Look-ups of names: a name server that does not reply, and look-ups that share an answer. The test
 * has its own getaddrinfo.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "outside.h"
#include "sxe-resolve.h"
#include "sxe-work.h"

static struct sxe_resolve look_ups[100];
static sem_t gate;
static atomic_uint asked;
static unsigned done_count;
static unsigned wanted;

/* The test's getaddrinfo: it waits at the gate, and then finds no name. */
int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
            struct addrinfo **list)
{
    SXE_UNUSED_PARAMETER(name);
    SXE_UNUSED_PARAMETER(service);
    SXE_UNUSED_PARAMETER(hints);
    SXE_UNUSED_PARAMETER(list);
    asked++;
    sem_wait(&gate);
    return EAI_NONAME;
}

static void
count_one(void)
{
    if (++done_count == wanted)
        sxe_stop();
}

static void
on_resolved(struct sxe_resolve *look_up)
{
    ck_assert_int_eq(look_up->result.error, EAI_NONAME);
    count_one();
}

static void
on_worked(struct sxe_work *work)
{
    SXE_UNUSED_PARAMETER(work);
    count_one();
}

static void
do_nothing(struct sxe_work *work)
{
    SXE_UNUSED_PARAMETER(work);
}

static void
start(void)
{
    sem_init(&gate, 0, 0);
    for (unsigned i = 0; i < 100; i++)
        look_ups[i].done = on_resolved;
    sxe_register(1, 0);
    sxe_work_register(1);
    ck_assert_int_eq(sxe_resolve_register(), 0);
    ck_assert_int_eq(sxe_init(), 0);
}

static void
run_until(unsigned number)
{
    wanted = number;
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(done_count, number);
}

/* promise: docs/sxe.md: An answer is kept for 5 s, an error for 1 s. Equal look-ups share one
 * query: 100 look-ups of one name at the same time make one query. */
START_TEST(a_hundred_look_ups_of_a_name_ask_once)
{
    start();
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(sxe_resolve(&look_ups[i], "a.example", AF_UNSPEC), 0);
    sem_post(&gate);
    run_until(100);
    ck_assert_uint_eq(asked, 1);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

/* promise: docs/sxe.md: The look-ups have 4 threads of their own: a name server that does not reply
 *   delays no file and no other work. */
START_TEST(a_dead_name_server_delays_no_other_work)
{
    struct sxe_work works[20] = {{NULL}};
    char host[32];

    start();
    for (unsigned i = 0; i < 100; i++) {
        snprintf(host, sizeof(host), "%u.example", i);
        ck_assert_int_eq(sxe_resolve(&look_ups[i], host, AF_UNSPEC), 0);
    }
    for (unsigned i = 0; i < 20; i++) {
        works[i] = (struct sxe_work){.run = do_nothing, .done = on_worked};
        ck_assert_int_eq(sxe_work_submit(&works[i]), 0);
    }
    run_until(20);
    ck_assert_uint_le(asked, 4);
    for (unsigned i = 0; i < 100; i++)
        sem_post(&gate);
    run_until(120);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

/* promise: docs/sxe.md: An address as text is known without a look-up. */
START_TEST(an_address_needs_no_look_up)
{
    start();
    ck_assert_int_eq(sxe_resolve(&look_ups[0], "::1", AF_UNSPEC), 1);
    ck_assert_int_eq(look_ups[0].result.error, 0);
    ck_assert_uint_eq(look_ups[0].result.number, 1);
    ck_assert_str_eq(look_ups[0].result.ip[0], "::1");
    ck_assert_uint_eq(asked, 0);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

/* promise: docs/sxe.md: `sxe_resolve_cancel` ends the wait. So a timer that calls it is a time
 * limit. */
START_TEST(a_cancelled_look_up_calls_no_function)
{
    start();
    ck_assert_int_eq(sxe_resolve(&look_ups[0], "a.example", AF_UNSPEC), 0);
    ck_assert_int_eq(sxe_resolve(&look_ups[1], "a.example", AF_UNSPEC), 0);
    ck_assert_int_eq(sxe_resolve_cancel(&look_ups[0]), 0);
    sem_post(&gate);
    run_until(1);
    ck_assert_int_eq(sxe_resolve_cancel(&look_ups[0]), -EALREADY);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_hundred_look_ups_of_a_name_ask_once,
                            a_dead_name_server_delays_no_other_work, an_address_needs_no_look_up,
                            a_cancelled_look_up_calls_no_function, NULL};

    return outside_run("resolve", cases);
}
