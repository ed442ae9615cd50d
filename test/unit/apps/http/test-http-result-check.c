/* SPDX-License-Identifier: MIT
 *
 * Checks of a result file: a valid one with one number changed, which must be found; and one with
 * any byte changed, which must do no harm.
 */
#include "result-check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake-os.h"
#include "http-run-fixture.h"
#include "output.h"
#include "result-file.h"
#include "run-private.h"
#include "test-main.h"
#include "test-sweep.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

static struct made made;
static char problem[200];

/* A valid result of two trials with a probe. */
static json_t *
result(void)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    json_t *root;

    make_run(&made, 2);
    ck_assert_int_eq(load_output_json(out, &made.run), 0);
    fclose(out);
    free_run(&made);
    root = json_loadb(text, length, LOAD_RESULT_FILE_FLAGS, NULL);
    free(text);
    ck_assert_ptr_nonnull(root);
    return root;
}

static bool
check(const json_t *root)
{
    return load_result_check_file(root, problem, sizeof(problem));
}

/* The object or array that holds the last part of a path such as "trials/0/sent"; *last is that
 * part. */
static json_t *
owner_of(json_t *root, const char *path, const char **last)
{
    while (strchr(path, '/') != NULL) {
        char word[32];

        snprintf(word, sizeof(word), "%.*s", (int)strcspn(path, "/"), path);
        root = json_is_array(root) ? json_array_get(root, (size_t)atoi(word))
                                   : json_object_get(root, word);
        path += strlen(word) + 1;
    }
    *last = path;
    return root;
}

static const struct {
    const char *path;
    double value;
    const char *says; /* NULL: the result stays valid */
} changes[] = {
    {"status", 0, NULL},
    {"trials/0/accounts/offered", 1, "'accounts' offered 1 is not sent"},
    {"trials/1/accounts/sent", 1, "'accounts' offered"},
    {"trials/1/accounts/in_flight", 5, "'accounts' sent"},
    {"trials/1/sockets/opened", 3, "'accounts' connections wanted"},
    {"total/accounts/offered", 1, "'accounts' offered 1 is not sent"},
    {"trials/0/service/count", 7, "'histogram' has another number of samples"},
    {"trials/0/service/p50", 1e6, "'p50' is not what its histogram has"},
    {"trials/0/response/p99", 1, "'p99' is not what its histogram has"},
    {"trials/0/connect/p50", 1, "'p50' is not what its histogram has"},
    {"trials/0/service/censored", 1e9, "'service' has bounds that cannot be"},
    {"trials/0/first_byte/min", 1e9, "'first_byte' has bounds that cannot be"},
    {"trials/0/first_byte/max", -1, "'max' is not a number from 0 on"},
    {"trials/0/rate", 1, "'rate' is not what its counts say"},
    {"total/rate", 1e9, "'rate' is not what its counts say"},
    {"trials/0/seconds", -4, "'seconds' is not a number from 0 on"},
    {"trials/0/timeline/width_s", 0, "'width_s' is not 0.01 times a power of two"},
    {"trials/1/timeline/width_s", 0.03, "'width_s' is not 0.01 times a power of two"},
    {"total/timeline/width_s", 0.01 * 0x1p31, "'width_s' is not 0.01 times a power of two"},
    {"total/timeline/offset_s", -1, "'offset_s' is not a number from 0 on"},
    {"trials/0/accounts/ends/reset", -1, "'reset' is not a number from 0 on"},
    {"trials/0/left_out/queries", -1, "'queries' is not a number from 0 on"},
    {"trials/1/verdict/cpu", -1, "'cpu' is not a number from 0 on"},
    {"total/verdict/cpu", -1, "'cpu' is not a number from 0 on"},
    {"total/client/loop_lag/p50", -1, "'p50' is not a number from 0 on"},
    {"trials/0/service/stdev", -1, "'stdev' is not a number from 0 on"},
    {"total/kinds/0/response/p50", -1, "'p50' is not a number from 0 on"},
    {"trials/0/service/mean", 1e7, "'service' has a 'mean' that its histogram has not"},
    {"total/response/max", 1e9, "'response' has a 'max' that is not in its last bucket"},
    {"trials/0/seconds", 0, "'rate' is not what its counts say"},
    {"total/seconds", 0, "'rate' is not what its counts say"},
    {"trials/0/accounts/drained", 1, "'rate' is not what its counts say"},
    {"total/accounts/late", 7e5, "'late' of the total is not the sum of the trials"},
    {"total/accounts/resent", 7e5, "'resent' of the total is not the sum of the trials"},
    {"total/accounts/bytes_sent", 7e5, "'bytes_sent' of the total is not the sum of the trials"},
    {"total/client/cpu_user_s", 7e5, "'cpu_user_s' of the total is not the sum of the trials"},
    {"trials/0/tls/full", 3, "'tls' has counts that cannot be"},
    {"trials/1/tls/resumed", 3, "'tls' has counts that cannot be"},
    {"trials/0/tls/refused", 1, "'tls' has counts that cannot be"},
    {"trials/0/tls/sessionless", 1, "'tls' has counts that cannot be"},
    {"total/tls/refused", 1, "'tls' has counts that cannot be"},
    {"total/sockets/reopened", 7e5, "'reopened' of the total is not the sum of the trials"},
    {"total/left_out/seconds", 7e5, "'seconds' of the total is not the sum of the trials"},
    {"total/kinds/0/ok", 7e5, "'ok' of the total is not the sum of the trials"},
};

START_TEST(a_number_that_does_not_fit_is_seen)
{
    json_t *root = result();
    const char *last;
    json_t *owner = owner_of(root, changes[_i].path, &last);

    ck_assert(check(root));
    ck_assert_str_eq(problem, "");
    ck_assert_int_eq(json_object_set_new(owner, last, json_real(changes[_i].value)), 0);
    ck_assert_int_eq(check(root), changes[_i].says == NULL);
    ck_assert_msg(strstr(problem, changes[_i].says != NULL ? changes[_i].says : "") == problem,
                  "%s", problem);
    json_decref(root);
}
END_TEST

START_TEST(the_slices_of_a_total_are_those_of_the_trials)
{
    static const char *const names[] = {"'offered", "'sent", "'ok", "'errors"};
    json_t *root = result();
    const char *last;
    json_t *slice = owner_of(root, "total/timeline/slices/0/x", &last);

    json_array_set_new(slice, (size_t)_i, json_real(7e5));
    ck_assert(!check(root));
    ck_assert_msg(strncmp(problem, names[_i], strlen(names[_i])) == 0, "%s", problem);
    ck_assert_ptr_nonnull(strstr(problem, "' of the total is not the sum of the trials"));
    json_decref(root);
}
END_TEST

/* The last bucket counts everything above an hour; then the longest time is the exact one. */
START_TEST(a_time_over_an_hour_is_in_the_last_bucket)
{
    json_t *root = json_pack("{s[{s{s{sf sf sf s[[fff]]}}}]}", "trials", "client", "loop_lag",
                             "count", 1., "mean", 7e9, "max", 7e9, "histogram", 3599e6, 3600e6, 1.);

    ck_assert_msg(check(root), "%s", problem);
    json_decref(root);
}
END_TEST

START_TEST(a_width_that_is_null_is_seen)
{
    json_t *root = result();
    const char *last;
    json_t *owner = owner_of(root, "trials/0/timeline/width_s", &last);

    json_object_set_new(owner, last, json_null());
    ck_assert(!check(root));
    ck_assert_ptr_nonnull(strstr(problem, "'width_s' is not"));
    json_array_clear(json_object_get(owner, "slices"));
    json_object_del(root, "total");
    ck_assert_msg(check(root), "%s", problem);
    json_decref(root);
}
END_TEST

START_TEST(a_time_line_has_so_many_slices)
{
    json_t *root = result();
    json_t *trial = json_array_get(json_object_get(root, "trials"), 0);
    json_t *slices = json_object_get(json_object_get(trial, "timeline"), "slices");

    while (json_array_size(slices) <= LOAD_SLICES)
        json_array_append(slices, json_array_get(slices, 0));
    ck_assert(!check(root));
    ck_assert_str_eq(problem, "'timeline' has too many slices");
    json_decref(root);
}
END_TEST

/* A kind of time has one sample too many, so one request is missing elsewhere. */
START_TEST(each_request_is_in_each_time)
{
    static const char *const names[] = {"first_byte", "service", "response"};
    json_t *root = result();
    json_t *trial = json_array_get(json_object_get(root, "trials"), 0);
    json_t *times = json_object_get(trial, names[_i]);

    json_object_del(times, "p99.9");
    json_object_set_new(times, "count", json_real(MADE_QUERIES + 1));
    json_array_append_new(json_object_get(times, "histogram"), json_pack("[fff]", 1., 1., 1.));
    ck_assert(!check(root));
    ck_assert_ptr_nonnull(strstr(problem, "' has not as many samples as requests ended"));
    /* This may happen if a worker was killed between two counts. */
    json_object_set_new(root, "status", json_real(_i == 0 ? 1 : 130));
    ck_assert_msg(check(root), "%s", problem);
    json_decref(root);
}
END_TEST

START_TEST(a_total_is_the_sum_of_the_trials)
{
    json_t *root = result();

    json_array_remove(json_object_get(root, "trials"), 1);
    ck_assert(!check(root));
    ck_assert_str_eq(problem, "'total' is not the sum of the trials");
    json_object_del(root, "total");
    ck_assert(check(root));
    json_decref(root);
}
END_TEST

START_TEST(probes_and_baselines_are_looked_at_too)
{
    json_t *root = result();
    json_t *bad = json_pack("{s{sf}}", "accounts", "offered", 1.);
    json_t *trial = json_array_get(json_object_get(root, "trials"), 0);

    json_object_set(trial, "probe", bad);
    ck_assert(!check(root));
    json_object_set_new(trial, "probe", json_null());
    ck_assert(check(root));
    json_object_set_new(root, "baseline", json_pack("{s[O]}", "trials", bad));
    ck_assert(!check(root));
    json_decref(bad);
    json_decref(root);
}
END_TEST

START_TEST(the_probe_of_a_total_is_the_sum_too)
{
    json_t *root = result();

    for (size_t i = 0; i < 2; i++)
        json_object_set_new(json_array_get(json_object_get(root, "trials"), i), "probe",
                            json_pack("{s{sf}}", "accounts", "late", 2.));
    json_object_set_new(json_object_get(root, "total"), "probe",
                        json_pack("{s{sf}}", "accounts", "late", 4. + _i));
    ck_assert_int_eq(check(root), _i == 0);
    ck_assert_str_eq(problem, _i == 0 ? "" : "'late' of the total is not the sum of the trials");
    json_decref(root);
}
END_TEST

START_TEST(what_is_missing_is_not_looked_at)
{
    json_t *root = json_pack("{s[{s{sf}}]}", "trials", "service", "p50", 5.);

    ck_assert(check(root));
    json_decref(root);
}
END_TEST

START_TEST(without_memory_nothing_is_believed)
{
    json_t *root = result();

    fake_os_fail(FAKE_MMAP, 1, 1, ENOMEM);
    ck_assert(!check(root));
    ck_assert_str_eq(problem, "'trials' cannot be checked, for lack of memory");
    fake_os_reset();
    json_decref(root);
}
END_TEST

START_TEST(a_file_of_a_version_without_handshakes_is_good)
{
    json_t *root = result();

    for (size_t i = 0; i < 3; i++) {
        json_t *owner = i < 2 ? json_array_get(json_object_get(root, "trials"), i)
                              : json_object_get(root, "total");

        ck_assert_int_eq(json_object_del(owner, "tls"), 0);
        ck_assert_int_eq(json_object_del(owner, "handshake"), 0);
    }
    ck_assert_int_eq(json_object_del(json_object_get(root, "plan"), "tls_resume"), 0);
    ck_assert_msg(check(root), "%s", problem);
    json_decref(root);
}
END_TEST

/* Set one member of `owner` to each invalid number, and to other types. */
static void
spoil(json_t *root, json_t *owner, const char *name)
{
    static const double values[] = {-1, 0, 1e300, 1.8e19, 0.5};

    for (unsigned i = 0; i < SXE_COUNT(values); i++) {
        json_object_set_new(owner, name, json_real(values[i]));
        check(root);
    }
    json_object_set_new(owner, name, json_string("x"));
    check(root);
    json_object_set_new(owner, name, json_pack("[[[]]]"));
    check(root);
}

/* Spoil each member of the first trial; in a thin sweep every ninth. */
static void
spoil_each(json_t *root, json_t *owner, unsigned depth)
{
    static unsigned members;
    const char *name;
    json_t *value;
    void *next;

    json_object_foreach_safe(owner, next, name, value)
    {
        json_t *kept = json_incref(value);
        const bool is_left_out = sxe_test_is_thin() && members++ % 9 != 0;

        if (!is_left_out)
            spoil(root, owner, name);
        json_object_set(owner, name, kept);
        if (json_is_object(kept) && depth > 0)
            spoil_each(root, kept, depth - 1);
        json_decref(kept);
    }
}

START_TEST(whatever_a_member_is_does_no_harm)
{
    json_t *root = result();

    json_array_remove(json_object_get(root, "trials"), 1);
    spoil_each(root, json_array_get(json_object_get(root, "trials"), 0), 2);
    json_decref(root);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-result-check");
    TCase *tcase = tcase_create("check");

    tcase_set_timeout(tcase, 0);
    tcase_add_loop_test(tcase, a_number_that_does_not_fit_is_seen, 0, COUNT(changes));
    tcase_add_loop_test(tcase, the_slices_of_a_total_are_those_of_the_trials, 0, 4);
    tcase_add_test(tcase, a_time_over_an_hour_is_in_the_last_bucket);
    tcase_add_test(tcase, a_width_that_is_null_is_seen);
    tcase_add_test(tcase, a_time_line_has_so_many_slices);
    tcase_add_loop_test(tcase, each_request_is_in_each_time, 0, 3);
    tcase_add_test(tcase, a_total_is_the_sum_of_the_trials);
    tcase_add_test(tcase, probes_and_baselines_are_looked_at_too);
    tcase_add_loop_test(tcase, the_probe_of_a_total_is_the_sum_too, 0, 2);
    tcase_add_test(tcase, what_is_missing_is_not_looked_at);
    tcase_add_test(tcase, a_file_of_a_version_without_handshakes_is_good);
    tcase_add_test(tcase, without_memory_nothing_is_believed);
    tcase_add_test(tcase, whatever_a_member_is_does_no_harm);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
