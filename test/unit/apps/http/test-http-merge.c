/* SPDX-License-Identifier: MIT
 *
 * Results that are made by hand, written as JSON, read again and added up.
 */
#include "../../../../apps/http/report/merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake-os.h"
#include "has.h"
#include "http-run-fixture.h"
#include "output.h"
#include "result-read.h"
#include "run-private.h"
#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define FILES        3
#define WALL_NS      UINT64_C(1795000000000000000)

static char names[FILES][64];
static char *paths[FILES];
static struct made made;
static struct load_run run;
static struct load_merge merge;
static struct load_plan asked;
static char *said;
static size_t said_length;
static FILE *err;
static int status;
static unsigned runs; /* how many runs have an id */

static void
prepare(void)
{
    const char *directory = getenv("TMPDIR");

    for (unsigned i = 0; i < FILES; i++) {
        snprintf(names[i], sizeof(names[i]), "%.40s/merge-XXXXXX",
                 directory != NULL ? directory : "/tmp");
        ck_assert_int_eq(close(mkstemp(names[i])), 0);
        paths[i] = names[i];
    }
    err = open_memstream(&said, &said_length);
    memset(&asked, 0, sizeof(asked));
    memset(&merge, 0, sizeof(merge));
    memset(&run, 0, sizeof(run));
}

static void
clean_up(void)
{
    fake_os_reset();
    load_run_free(&run);
    load_merge_free(&merge);
    for (unsigned i = 0; i < FILES; i++)
        unlink(names[i]);
    fclose(err);
    free(said);
}

/* Make the part with the number `part`, which began after_ns after WALL_NS. */
static void
make_part(unsigned part, unsigned trials, uint64_t after_ns)
{
    make_run(&made, trials);
    snprintf(made.run.id, sizeof(made.run.id), "run %u", ++runs);
    made.run.started_ns = 1000000000;
    made.run.wall_ns = WALL_NS + after_ns;
    made.plan.has_shard[part] = true;
}

static void
write_part(unsigned file)
{
    FILE *out = fopen(names[file], "w");

    ck_assert_int_eq(load_output_json(out, &made.run), 0);
    ck_assert_int_eq(fclose(out), 0);
    free_run(&made);
}

static void
put_part(unsigned file, unsigned shards, unsigned trials)
{
    make_part(file, trials, 0);
    made.plan.shards = shards;
    write_part(file);
}

static void
put_text(unsigned file, const char *text)
{
    FILE *out = fopen(names[file], "w");

    fputs(text, out);
    fclose(out);
}

static void
merge_files(int number)
{
    load_run_free(&run);
    load_merge_free(&merge);
    status = load_merge(&merge, &run, &asked, number, paths, err);
    fflush(err);
}

static void
check_status(int expected)
{
    ck_assert_msg(status == expected, "%d: %s", status, said);
}

/* ---- A result that is read equals the one that was written ---- */

/* A value other than 0 in each member that the JSON has. */
static void
fill_result(struct load_result *result)
{
    uint64_t *const counts[] = {&result->carried,
                                &result->late,
                                &result->resent,
                                &result->waiting,
                                &result->in_flight,
                                &result->reopened,
                                &result->not_reopened,
                                &result->syn_retries,
                                &result->retransmits,
                                &result->script_ns,
                                &result->script_calls,
                                &result->spun_ns,
                                &result->handshakes_resumed,
                                &result->handshakes_refused,
                                &result->handshakes_sessionless};

    for (unsigned i = 0; i < SXE_COUNT(counts); i++)
        *counts[i] += 3 + i;
    for (unsigned i = 0; i < LOAD_SKIPS; i++)
        result->offered += result->skipped[i] = i + 1;
    result->offered += result->waiting;
    result->sent += result->in_flight - result->carried;
    result->offered += result->in_flight - result->carried;
    for (unsigned i = 1; i < LOAD_ENDS; i++) {
        result->ends[i] = 20 + i;
        result->sent += result->ends[i];
        result->offered += result->ends[i];
    }
    for (unsigned i = 0; i < LOAD_UNOPENEDS; i++)
        result->sockets_wanted += result->unopened[i] = i + 2;
    result->first_bad_status = 503;
    result->first_error = ECONNABORTED;
    load_bad_reply_note(&result->first_bad_reply, LOAD_BAD_UPGRADE, "a\r\t\"\\\001b", 7, 0);
    result->timeline.offset_ns = 5000000;
    for (unsigned i = 0; i < 100; i++)
        load_histogram_record(&result->handshake, 5432 + 1000 * i);
    load_histogram_record(&result->schedule_lag, 1234567);
    load_histogram_record(&result->timer_error, 7);
    load_histogram_record_at_least(&result->response, UINT64_C(4000000000000));
    for (unsigned i = 0; i < load_result_errors(result); i++) {
        load_histogram_record_at_least(&result->first_byte, 1000000000);
        load_histogram_record_at_least(&result->service, 1000000000);
        if (i > 0)
            load_histogram_record_at_least(&result->response, 1000000000);
    }
    result->by_kind[1].errors = 3;
    for (unsigned i = 0; i < 2; i++)
        load_result_add_host(result, result, i, 2);
    result->stages = 2;
    for (unsigned i = 0; i < 2; i++) {
        struct load_stage_result *stage = &result->by_stage[i];

        stage->offered = 10 + i;
        stage->sent = 9 + i;
        stage->ok = 6 + i;
        stage->errors = 3;
        stage->in_time = 5 + i;
        load_histogram_record(&stage->response, 1234567);
    }
}

static void
make_hosts(struct load_plan *plan)
{
    plan->hosts_number = 2;
    plan->hosts[0] =
        (struct load_host){.ip = "192.0.2.1", .port = 8000, .authority = "a.example:8000"};
    plan->hosts[1] = (struct load_host){.path = "/run/b", .authority = "localhost"};
}

static void
make_stages(struct load_plan *plan)
{
    plan->stages_number = 2;
    plan->stages[0] = (struct load_stage){MADE_NS / 4, 5000};
    plan->stages[1] = (struct load_stage){MADE_NS, 7000.5};
}

static char *
written(const struct load_run *of)
{
    FILE *out = tmpfile();

    ck_assert_int_eq(load_output_json(out, of), 0);
    return text_of(out, NULL);
}

static void
check_same_member(const char *name, const char *a, const char *b)
{
    json_t *root_a = json_loads(a, 0, NULL), *root_b = json_loads(b, 0, NULL);
    json_t *member_a = json_object_get(root_a, name), *member_b = json_object_get(root_b, name);
    char *text_a = json_dumps(member_a, JSON_INDENT(1) | JSON_ENCODE_ANY);
    char *text_b = json_dumps(member_b, JSON_INDENT(1) | JSON_ENCODE_ANY);

    if (!json_equal(member_a, member_b)) {
        size_t at = 0;

        while (text_a[at] == text_b[at])
            at++;
        ck_abort_msg("%s: %.200s\n|\n%.200s", name, text_a + at, text_b + at);
    }
    free(text_a);
    free(text_b);
    json_decref(root_a);
    json_decref(root_b);
}

/* A run that is written, read and written again gives the same JSON: so the reader reads each
 * member that has a value. */
START_TEST(one_file_is_itself_again)
{
    static const char *const members[] = {"plan",    "trials",     "total",       "figures",
                                          "command", "thresholds", "fingerprint", "started_at"};
    char *before, *after;

    make_part(0, 2, 0);
    make_probe(&made);
    for (unsigned i = 0; i < 2; i++) {
        fill_result(made.run.trials[i].result);
        made.run.trials[i].verdict.spun = 0.125;
        made.run.trials[i].verdict.has_cpu_pressure = true;
        made.run.trials[i].verdict.cpu_pressure = 0.25;
        made.run.trials[i].left_out = (struct load_left_out){1000000000, 7, "it never got warm"};
    }
    made.plan.thresholds[0] = "p99<1s";
    made.plan.model = LOAD_PARTLY_OPEN;
    made.plan.arrivals = LOAD_FIXED;
    make_stages(&made.plan);
    make_hosts(&made.plan);
    /* Run and merge must draw the same conclusion from these trials. */
    for (unsigned i = 0; i < 2; i++) {
        struct load_trial *trial = &made.run.trials[i];

        load_result_figures(trial->result, trial->figures);
        trial->at_least = load_figures_at_least(trial->result, trial->figures);
    }
    memset(made.run.total, 0, sizeof(*made.run.total));
    memset(made.run.probe, 0, sizeof(*made.run.probe));
    memset(&made.run.verdict, 0, sizeof(made.run.verdict));
    memset(&made.run.probe_verdict, 0, sizeof(made.run.probe_verdict));
    snprintf(made.run.started_at, sizeof(made.run.started_at), "2026-11-18T11:06:40Z");
    load_run_conclude(&made.run, false, false, err);
    before = written(&made.run);
    write_part(0);
    merge_files(1);
    check_status(0);
    after = written(&run);
    for (unsigned i = 0; i < SXE_COUNT(members); i++)
        check_same_member(members[i], before, after);
    free(before);
    free(after);
}
END_TEST

/* ---- The sum ---- */

START_TEST(shards_together_are_the_whole)
{
    struct load_result *whole = calloc(1, sizeof(*whole)), *one = calloc(1, sizeof(*one));

    for (unsigned i = 0; i < 3; i++)
        put_part(i, 3, 2);
    merge_files(3);
    check_status(0);
    ck_assert_uint_eq(run.plan->shards, 0);
    ck_assert_uint_eq(run.plan->sockets, 64);
    ck_assert_uint_eq(run.plan->workers, 3);
    ck_assert_double_eq(run.plan->rate, 5000);
    ck_assert_uint_eq(run.trials_number, 2);
    for (unsigned i = 0; i < 3; i++) {
        memset(one, 0, sizeof(*one));
        make_result(one, 1);
        load_result_add(whole, one);
    }
    ck_assert_uint_eq(run.trials[0].result->ends[LOAD_END_OK], 3 * MADE_QUERIES);
    ck_assert_mem_eq(&run.trials[0].result->service, &whole->service, sizeof(whole->service));
    ck_assert_mem_eq(&run.trials[0].result->response, &whole->response, sizeof(whole->response));
    ck_assert_mem_eq(&run.trials[0].result->timeline, &whole->timeline, sizeof(whole->timeline));
    ck_assert_uint_eq(run.trials[0].result->elapsed_ns, MADE_NS);
    ck_assert_uint_eq(run.total->elapsed_ns, 2 * MADE_NS);
    ck_assert_uint_eq(run.verdict.number, 0);
    ck_assert_uint_eq(run.parts_number, 3);
    ck_assert_str_eq(run.parts[1].name, names[1]);
    ck_assert_uint_eq(run.parts[1].ok, 2 * MADE_QUERIES);
    ck_assert_uint_eq(run.parts[1].opened, 128);
    ck_assert_str_eq(load_kind_name(run.plan, 1), made_kinds[1]);
    free(whole);
    free(one);
}
END_TEST

START_TEST(a_sum_can_be_added_to_more)
{
    char *before, *after;
    FILE *out;

    for (unsigned i = 0; i < 3; i++)
        put_part(i, 3, 1);
    merge_files(3);
    before = written(&run);
    merge_files(2);
    check_status(0);
    check_has(run.verdict.reasons[0], "only 2 of 3 parts");
    out = fopen(names[0], "w");
    run.trials[0].verdict.number = 0;
    load_output_json(out, &run);
    fclose(out);
    memcpy(names[1], names[2], sizeof(names[1]));
    merge_files(2);
    check_status(0);
    after = written(&run);
    check_same_member("plan", before, after);
    check_same_member("total", before, after);
    free(before);
    free(after);
}
END_TEST

START_TEST(loads_beside_one_another_are_added_up)
{
    for (unsigned i = 0; i < 2; i++) {
        make_part(0, 1, 0);
        made.plan.seed = i + 1;
        made.plan.model = LOAD_OPEN;
        made.plan.stop = LOAD_STOP_TOTAL;
        made.plan.queries = made.plan.requests_max = 1000 + i;
        make_stages(&made.plan);
        snprintf(made.run.fingerprint.facts[0].value, LOAD_FACT_MAX, i == 0 ? "6.1" : "6.12 x");
        snprintf(made.run.fingerprint.facts[i].name, 48, i == 0 ? "kernel" : "only here");
        write_part(i);
    }
    merge_files(2);
    check_status(0);
    ck_assert_uint_eq(run.plan->sockets, 128);
    ck_assert_uint_eq(run.plan->requests_max, 2001);
    ck_assert_uint_eq(run.plan->queries, 2001);
    ck_assert_double_eq(run.plan->rate, 10000);
    ck_assert_double_eq(run.plan->stages[1].rate, 14001);
    ck_assert_uint_eq(run.verdict.number, 0);
    ck_assert_str_eq(run.fingerprint.facts[0].value, "6.1 | 6.12 x");
    ck_assert_uint_eq(run.fingerprint.number, 3);
}
END_TEST

START_TEST(more_facts_than_there_is_room_are_left_out)
{
    for (unsigned i = 0; i < 2; i++) {
        make_part(0, 1, 0);
        made.run.fingerprint.number = LOAD_FACTS_MAX;
        for (unsigned k = 0; k < LOAD_FACTS_MAX; k++)
            snprintf(made.run.fingerprint.facts[k].name, 48, "%u-%u", i, k);
        write_part(i);
    }
    merge_files(2);
    ck_assert_uint_eq(run.fingerprint.number, LOAD_FACTS_MAX);
}
END_TEST

/* The time of one part, and of two that did not begin at the same time. */
START_TEST(the_time_is_from_the_first_beginning_to_the_last_end)
{
    for (unsigned i = 0; i < 2; i++) {
        make_part(i, 1, i * UINT64_C(1000000000));
        made.plan.shards = 2;
        write_part(i);
    }
    merge_files(2);
    check_status(0);
    ck_assert_uint_eq(run.total->elapsed_ns, MADE_NS + UINT64_C(1000000000));
    ck_assert_uint_eq(run.verdict.number, 1);
    check_has(run.verdict.reasons[0], "the parts began 1.000 s apart, 20.0 % of the time");
    ck_assert_int_eq(run.status, LOAD_EXIT_SUSPECT);
    /* Slices are 40 ms wide; during the first second only the first part ran. */
    ck_assert_uint_eq(run.total->timeline.width_ns, 40000000);
    ck_assert_uint_eq(run.total->timeline.slices[24].ok, 200);
    ck_assert_uint_eq(run.total->timeline.slices[25].ok, 400);
}
END_TEST

START_TEST(what_did_not_run_together_is_refused)
{
    for (unsigned i = 0; i < 2; i++) {
        make_part(i, 1, i * UINT64_C(5000000000));
        made.plan.shards = 2;
        write_part(i);
    }
    merge_files(2);
    check_status(2);
    check_has(said, "in trial 1 one part began 5.000 s after another, which had ended by then");
}
END_TEST

START_TEST(a_reason_of_a_part_has_its_name)
{
    char reason[160];

    for (unsigned i = 0; i < 2; i++) {
        make_part(i, 1, 0);
        made.plan.shards = 2;
        made.run.trials[0].verdict.number = i;
        snprintf(made.run.trials[0].verdict.reasons[0], LOAD_REASON_MAX, "it was starved");
        made.run.trials[0].verdict.cpu = i + 0.5;
        write_part(i);
    }
    merge_files(2);
    snprintf(reason, sizeof(reason), "%s: it was starved", names[1]);
    ck_assert_str_eq(run.verdict.reasons[0], reason);
    ck_assert_double_eq(run.verdict.cpu, 1.5);
    ck_assert_int_eq(run.status, LOAD_EXIT_SUSPECT);
}
END_TEST

START_TEST(reasons_are_as_many_as_there_is_room)
{
    struct load_verdict part = {.number = LOAD_REASONS_MAX}, sum = {0};

    load_verdict_add_part(&sum, &part, "a");
    load_verdict_add_part(&sum, &part, "b");
    ck_assert_uint_eq(sum.number, LOAD_REASONS_MAX);
}
END_TEST

START_TEST(arrivals_of_the_same_seed_are_suspect)
{
    for (unsigned i = 0; i < 3; i++) {
        make_part(0, 1, 0);
        made.plan.model = LOAD_PARTLY_OPEN;
        made.plan.seed = i / 2;
        write_part(i);
    }
    merge_files(3);
    check_status(0);
    ck_assert_uint_eq(run.verdict.number, 1);
    check_has(run.verdict.reasons[0], "have the same seed");
}
END_TEST

START_TEST(how_a_part_ended_is_how_the_sum_ended)
{
    put_part(0, 2, 1);
    make_part(1, 1, 0);
    made.plan.shards = 2;
    made.run.status = _i == 0 ? LOAD_EXIT_ERRORS : LOAD_EXIT_INTERRUPTED;
    made.run.is_interrupted = _i == 1;
    write_part(1);
    merge_files(2);
    ck_assert_int_eq(run.status, _i == 0 ? LOAD_EXIT_ERRORS : LOAD_EXIT_INTERRUPTED);
}
END_TEST

START_TEST(thresholds_are_those_of_the_files_or_of_the_command)
{
    make_part(0, 1, 0);
    made.plan.thresholds[0] = "p99>1h";
    made.plan.thresholds[1] = "rubbish";
    write_part(0);
    merge_files(1);
    ck_assert_int_eq(run.status, LOAD_EXIT_THRESHOLD);
    ck_assert_ptr_null(run.plan->thresholds[1]);
    asked.thresholds[0] = "p99<1h";
    merge_files(1);
    ck_assert_int_eq(run.status, LOAD_EXIT_OK);
}
END_TEST

/* ---- Results that are refused ---- */

enum difference { MODEL, RATE, SHARDS, TWICE, KINDS, TRIALS, DIFFERENCES };

START_TEST(runs_that_differ_in_what_was_measured_are_refused)
{
    static const char *const texts[DIFFERENCES] = {
        [MODEL] = "model is \"closed\" in the first and \"open\" in the second",
        [RATE] = "rate is 5000.0 in the first and 6000.0 in the second",
        [SHARDS] = "shards is",
        [TWICE] = "both are part 1 of 2 (--shard)",
        [KINDS] =
            "they sent different kinds of requests: \"POST, \\\"all\\\"</script>\" and nothing",
        [TRIALS] = "the first has 1 trials and the second 2",
    };

    put_part(0, 2, 1);
    make_part(_i == TWICE ? 0 : 1, _i == TRIALS ? 2 : 1, 0);
    made.plan.shards = _i == SHARDS ? 3 : 2;
    made.plan.trials = 1;
    if (_i == MODEL)
        made.plan.model = LOAD_OPEN;
    if (_i == RATE)
        made.plan.rate = 6000;
    if (_i == KINDS)
        made.run.trials[0].result->kinds = made.run.total->kinds = 1;
    write_part(1);
    merge_files(2);
    check_status(2);
    check_has(said, texts[_i]);
    check_has(said, names[1]);
}
END_TEST

/* Cases: one file given twice; a file and a sum that contains it; files of runs without ids. */
START_TEST(a_run_is_not_counted_twice)
{
    FILE *out;

    put_part(0, 0, 1);
    put_part(1, 0, 1);
    memcpy(names[2], names[0], sizeof(names[2]));
    if (_i == 1) {
        merge_files(2);
        check_status(0);
        ck_assert_uint_eq(run.ids_number, 2);
        out = fopen(names[1], "w");
        load_output_json(out, &run);
        fclose(out);
    }
    if (_i == 2) {
        make_part(0, 1, 0);
        made.run.id[0] = '\0';
        write_part(0);
    }
    merge_files(3);
    check_status(2);
    check_has(said, names[_i == 1 ? 1 : 2]);
    check_has(said, ": the same run is in both, and would count twice; give each run once\n");
    ck_assert_uint_eq(run.trials_number, 0);
}
END_TEST

START_TEST(a_name_of_a_run_that_is_none_does_no_harm)
{
    put_text(0, "{\"sxe_http\": 1, \"plan\": {\"model\": \"closed\", \"stop\": \"time\"}, "
                "\"runs\": [7, \"a name that is far longer than it may be\"], \"trials\": [{}]}");
    merge_files(1);
    check_status(0);
    ck_assert_str_eq(run.ids[0], "unknown");
    ck_assert_str_eq(run.ids[1], "a name that is far long");
}
END_TEST

START_TEST(a_search_and_a_comparison_are_refused)
{
    make_part(0, 1, 0);
    if (_i == 0)
        make_find(&made);
    else
        made.plan.baseline_cmd = "./old";
    write_part(0);
    merge_files(1);
    check_status(2);
    check_has(said, _i == 0 ? "is a search (--find)" : "is a comparison (--baseline-cmd)");
}
END_TEST

/* ---- Files that are not a result ---- */

#define HEAD \
    "{\"sxe_http\": 1, \"plan\": {\"model\": \"closed\", \"stop\": \"time\"}, \"trials\": [{"

#define PLAN    "{\"sxe_http\": 1, \"plan\": {\"model\": \"open\", \"stop\": \"time\", "
#define SIXTEEN "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}"

static const struct {
    const char *text, *problem;
} bad_files[] = {
    {PLAN "\"stages\": [" SIXTEEN "," SIXTEEN ",{}]}}", "'stages' are too many"},
    {PLAN "\"hosts\": [" SIXTEEN ",{}]}}", "'hosts' are too many"},
    {HEAD "\"stages\": [" SIXTEEN "," SIXTEEN ",{}]}]}", "'stages' are too many"},
    {HEAD "\"hosts\": [" SIXTEEN ",{}]}]}", "'hosts' are too many"},
    {"{\"sxe_http\": 1, \"plan\": {\"model\": \"closed\", \"stop\": \"time\"}}",
     "'trials' are none"},
    {"{\"sxe_http\": 1, \"plan\": {\"model\": \"closed\"}, \"trials\": [{}]}", "'stop' is none of"},
    {"{\"sxe_http\": 1, \"plan\": 1, \"trials\": [{}]}", "'plan' is not an object"},
    {"{\"sxe_http\": 1, \"plan\": {\"model\": 1}}", "'model' is not a text"},
    {"{\"sxe_http\": 1, \"plan\": {\"model\": \"open\", \"stop\": \"time\", \"aa\": 1}}",
     "'aa' is neither true nor false"},
    {"{\"sxe_http\": 1, \"plan\": {\"model\": \"open\", \"stop\": \"time\", \"shards\": {\"of\": "
     "2, "
     "\"parts\": [3]}}}",
     "'shards' has a part that there cannot be"},
    {HEAD "\"seconds\": -1}]}", "'seconds' is not a number from 0 on"},
    {HEAD "\"accounts\": {\"offered\": 1}}]}", "'accounts' offered 1 is not sent 0"},
    {HEAD "\"kinds\": {}}]}", "'kinds' is not an array"},
    {HEAD "\"left_out\": 1}]}", "'left_out' is not an object"},
    {HEAD "\"kinds\": [{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}]}]}",
     "'kinds' has too many"},
    {HEAD "\"timeline\": {\"width_s\": 0.03}}]}", "'width_s' is not 0.01 times a power of two"},
    {HEAD "\"timeline\": {\"width_s\": 0, \"slices\": [[1]]}}]}", "'width_s' is not 0.01 times"},
    {HEAD "\"timeline\": {\"slices\": [[1]]}}]}", "'width_s' is not 0.01 times a power of two"},
    {HEAD "\"timeline\": {\"width_s\": 0.02, \"slices\": [[\"a\"]]}}]}",
     "'slices' is not a number"},
    {HEAD "\"service\": {\"count\": 3, \"histogram\": [[1, 2, 2]]}}]}",
     "'histogram' has another number of samples"},
};

START_TEST(what_is_wrong_with_a_file_is_said)
{
    put_text(0, bad_files[_i].text);
    merge_files(1);
    check_status(2);
    check_has(said, names[0]);
    check_has(said, bad_files[_i].problem);
}
END_TEST

START_TEST(a_file_that_lacks_what_it_may_lack_is_read)
{
    put_text(0,
             HEAD "\"kinds\": [{\"clients\": [[1, 1, 1, 1]]}, {\"name\": 1}], \"verdict\": "
                  "{\"reasons\": [1]}, \"accounts\": {\"first_error\": \"no such error\"}, "
                  "\"timeline\": {\"width_s\": 0.02, \"slices\": [[1, 1, 1, 0, 1, 1, 1, [999, 1]]]}"
                  "}], \"command\": [1, \"a\"]}");
    merge_files(1);
    ck_assert_msg(status == 0, "%s", said);
    ck_assert_str_eq(run.verdict.reasons[0] + strlen(names[0]), ": no reason is given");
    ck_assert_str_eq(load_kind_name(run.plan, 1), "request");
    ck_assert_str_eq(run.plan->argv[1], "a");
}
END_TEST

START_TEST(clients_that_have_no_room_are_left_out)
{
    struct load_result *result = calloc(1, sizeof(*result));
    struct load_reader reader = {""};
    json_t *kind = json_object(), *clients = json_array(), *root = json_object();

    for (unsigned i = 0; i <= LOAD_CLIENTS_MAX; i++)
        json_array_append_new(clients, json_pack("[iiii]", 1, 1, 1, 1));
    json_object_set_new(kind, "clients", clients);
    json_object_set_new(root, "kinds", json_pack("[o]", kind));
    load_result_read(&reader, root, result);
    ck_assert_str_eq(reader.problem, "");
    ck_assert_uint_eq(result->clients, 0);
    json_decref(root);
    free(result);
}
END_TEST

START_TEST(a_file_that_is_not_there_is_said)
{
    unlink(names[0]);
    merge_files(1);
    check_status(2);
    check_has(said, names[0]);
}
END_TEST

START_TEST(without_memory_it_says_so)
{
    static const enum fake_call kinds[] = {FAKE_CALLOC, FAKE_MMAP};
    unsigned nth = 0;

    put_part(0, 0, 1);
    do {
        fake_os_reset();
        fake_os_sweep(kinds, 2, ++nth, false, ENOMEM);
        merge_files(1);
        ck_assert(fake_os_injected() == 0 || status != 0);
    } while (fake_os_injected() != 0);
    ck_assert_uint_gt(nth, 4);
    check_status(0);
}
END_TEST

/* ---- Texts of a bad reply ---- */

START_TEST(a_bad_reply_that_is_strange_is_none)
{
    static const char *const texts[][2] = {
        {NULL, "\"a\""}, {"x", NULL}, {"x", "a"}, {"no such reason", "\"a\""}};
    struct load_bad_reply bad = {0};

    load_bad_reply_read(&bad, texts[_i][0], texts[_i][1]);
    ck_assert_uint_eq(bad.why, 0);
}
END_TEST

START_TEST(a_backslash_at_the_end_is_itself)
{
    struct load_bad_reply bad = {0};

    load_bad_reply_read(&bad, "there is more than was asked for", "\"a\\");
    ck_assert_uint_eq(bad.why, LOAD_BAD_MORE);
    ck_assert_mem_eq(bad.bytes, "a\\", 2);
}
END_TEST

START_TEST(a_time_line_without_slices_stays_so)
{
    struct load_timeline *timeline = calloc(1, sizeof(*timeline));

    load_timeline_delay(timeline, 1000000000);
    ck_assert_uint_eq(timeline->used, 0);
    free(timeline);
}
END_TEST

static Suite *
suite(void)
{
    Suite *suite = suite_create("http-merge");
    TCase *tcase = tcase_create("merge");

    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, prepare, clean_up);
    tcase_add_test(tcase, one_file_is_itself_again);
    tcase_add_test(tcase, shards_together_are_the_whole);
    tcase_add_test(tcase, a_sum_can_be_added_to_more);
    tcase_add_test(tcase, loads_beside_one_another_are_added_up);
    tcase_add_test(tcase, more_facts_than_there_is_room_are_left_out);
    tcase_add_test(tcase, the_time_is_from_the_first_beginning_to_the_last_end);
    tcase_add_test(tcase, what_did_not_run_together_is_refused);
    tcase_add_test(tcase, a_reason_of_a_part_has_its_name);
    tcase_add_test(tcase, reasons_are_as_many_as_there_is_room);
    tcase_add_test(tcase, arrivals_of_the_same_seed_are_suspect);
    tcase_add_loop_test(tcase, how_a_part_ended_is_how_the_sum_ended, 0, 2);
    tcase_add_test(tcase, thresholds_are_those_of_the_files_or_of_the_command);
    tcase_add_loop_test(tcase, runs_that_differ_in_what_was_measured_are_refused, 0, DIFFERENCES);
    tcase_add_loop_test(tcase, a_run_is_not_counted_twice, 0, 3);
    tcase_add_test(tcase, a_name_of_a_run_that_is_none_does_no_harm);
    tcase_add_loop_test(tcase, a_search_and_a_comparison_are_refused, 0, 2);
    tcase_add_loop_test(tcase, what_is_wrong_with_a_file_is_said, 0, COUNT(bad_files));
    tcase_add_test(tcase, a_file_that_lacks_what_it_may_lack_is_read);
    tcase_add_test(tcase, clients_that_have_no_room_are_left_out);
    tcase_add_test(tcase, a_file_that_is_not_there_is_said);
    tcase_add_test(tcase, without_memory_it_says_so);
    tcase_add_loop_test(tcase, a_bad_reply_that_is_strange_is_none, 0, 4);
    tcase_add_test(tcase, a_backslash_at_the_end_is_itself);
    tcase_add_test(tcase, a_time_line_without_slices_stays_so);
    return suite;
}

int
main(void)
{
    return sxe_test_main(suite());
}
