/* SPDX-License-Identifier: MIT
 *
 * The conditions of a batch, by docs/dict.md and sxe-dict.h.
 */
#include "outside.h"

#include <errno.h>
#include <string.h>
#include <sxe-dict.h>
#include <sys/wait.h>

static SXE_DICT *
open_dict(unsigned shards)
{
    SXE_DICT_SPEC spec = {.name = "outside", .cells = 400, .shards = shards};
    char why[SXE_POOL_WHY_SIZE];
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    ck_assert_msg(dict != NULL, "%s", why);
    return dict;
}

static void
check_and_close(SXE_DICT *dict)
{
    char why[SXE_POOL_WHY_SIZE];

    ck_assert_msg(sxe_dict_check(dict, why) == 0, "%s", why);
    sxe_dict_close(dict);
}

/* promise: docs/dict.md: a condition of the commit: `-EEXIST`, and nothing is done, if it does not
 * hold */
START_TEST(nothing_is_done_if_a_condition_does_not_hold)
{
    SXE_DICT *dict = open_dict(4);
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);
    char found[4];

    sxe_dict_put(dict, "a", 1, "one", 3, 0);
    for (char key = 'b'; key <= 'z'; key++)
        ck_assert_int_eq(sxe_dict_batch_put(batch, &key, 1, "new", 3, 0), 0);
    ck_assert_int_eq(sxe_dict_batch_remove(batch, "a", 1), 0);
    ck_assert_int_eq(sxe_dict_batch_expect(batch, "a", 1, "on", 2), 0);
    /* Commit three times, because a refused commit keeps its changes. */
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(sxe_dict_batch_commit(batch), -EEXIST);
        ck_assert_uint_eq(sxe_dict_get_count(dict), 1);
        ck_assert_int_eq(sxe_dict_peek(dict, "a", 1, found, sizeof(found)), 3);
    }
    sxe_dict_put(dict, "a", 1, "on", 2, 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    ck_assert_uint_eq(sxe_dict_get_count(dict), 25);
    sxe_dict_batch_delete(batch);
    check_and_close(dict);
}
END_TEST

/* promise: lib-sxe-dict/sxe-dict.h: the last condition on a key
 * counts. */
START_TEST(the_last_condition_on_a_key_counts)
{
    SXE_DICT *dict = open_dict(1);
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);

    ck_assert_int_eq(sxe_dict_batch_expect(batch, "k", 1, "v", 1), 0);
    ck_assert_int_eq(sxe_dict_batch_expect(batch, "k", 1, NULL, 0), 0);
    ck_assert_int_eq(sxe_dict_batch_put(batch, "k", 1, "v", 1, 0), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    ck_assert_int_eq(sxe_dict_peek(dict, "k", 1, NULL, 0), 1);
    sxe_dict_batch_delete(batch);
    check_and_close(dict);
}
END_TEST

/* promise: lib-sxe-dict/sxe-dict.h: Conditions count among the entries of SXE_DICT_BATCH_MAX. */
START_TEST(conditions_are_counted)
{
    SXE_DICT *dict = open_dict(1);
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);

    for (unsigned i = 0; i < SXE_DICT_BATCH_MAX; i++)
        ck_assert_int_eq(sxe_dict_batch_expect(batch, &i, sizeof(i), NULL, 0), 0);
    ck_assert_int_eq(sxe_dict_batch_expect(batch, "more", 4, NULL, 0), -E2BIG);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    sxe_dict_batch_delete(batch);
    check_and_close(dict);
}
END_TEST

enum { WORKERS = 4, TRANSFERS = 300, ACCOUNTS = 3, MONEY = 1000 };

static int64_t
money_of(SXE_DICT *dict, unsigned account)
{
    int64_t money = -1;

    while (sxe_dict_peek(dict, &account, sizeof(account), &money, sizeof(money)) == -EAGAIN)
        usleep(100);
    return money;
}

/* Move money to the next account, on condition that both balances are still those that were
 * read. */
static int
transfer(SXE_DICT *dict, SXE_DICT_BATCH *batch, unsigned from)
{
    const unsigned to = (from + 1) % ACCOUNTS;
    int64_t giver = money_of(dict, from);
    int64_t taker = money_of(dict, to);

    sxe_dict_batch_expect(batch, &from, sizeof(from), &giver, sizeof(giver));
    sxe_dict_batch_expect(batch, &to, sizeof(to), &taker, sizeof(taker));
    giver--;
    taker++;
    sxe_dict_batch_put(batch, &from, sizeof(from), &giver, sizeof(giver), 0);
    sxe_dict_batch_put(batch, &to, sizeof(to), &taker, sizeof(taker), 0);
    return sxe_dict_batch_commit(batch);
}

static void
work(SXE_DICT *dict, unsigned number)
{
    for (unsigned done = 0; done < TRANSFERS;) {
        SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);

        done += transfer(dict, batch, (number + done) % ACCOUNTS) == 0;
        sxe_dict_batch_delete(batch);
    }
    _exit(0);
}

/* promise: docs/dict.md: Conditions are checked first, under the locks of all shards that the batch
 * names. The locks are held until the batch is committed; nothing is written if a condition does
 * not hold. */
START_TEST(no_money_is_lost_among_processes)
{
    SXE_DICT *dict = open_dict(4);
    int64_t sum = 0;

    for (unsigned i = 0; i < ACCOUNTS; i++)
        sxe_dict_put(dict, &i, sizeof(i), &(int64_t){MONEY}, sizeof(int64_t), 0);
    for (unsigned i = 0; i < WORKERS; i++) {
        const pid_t child = fork();

        ck_assert_int_ge(child, 0);
        if (child == 0)
            work(dict, i);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        int status;

        ck_assert_int_gt(wait(&status), 0);
        ck_assert_int_eq(status, 0);
    }
    /* A worker goes round all accounts, so each account has received as much as it gave. */
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        ck_assert_int_eq(money_of(dict, i), MONEY);
        sum += money_of(dict, i);
    }
    ck_assert_int_eq(sum, (int64_t)ACCOUNTS * MONEY);
    check_and_close(dict);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {nothing_is_done_if_a_condition_does_not_hold,
                            the_last_condition_on_a_key_counts, conditions_are_counted,
                            no_money_is_lost_among_processes, NULL};

    return outside_run("dict-conditions", cases);
}
