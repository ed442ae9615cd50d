/* SPDX-License-Identifier: MIT
 *
 * The rows of the status page, for made-up sums.
 */
#include "status-page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "has.h"
#include "sxe-log.h"
#include "sxe-pool.h"
#include "test-main.h"

static struct metrics_sum sum;
static struct text text;
static struct metrics_part *worker;

static void
map_one(void)
{
    unsetenv("SXE_LOG_LEVEL");
    ck_assert_int_eq(metrics_map(1), 0);
    metrics_begin_worker(0, 0);
    worker = (struct metrics_part *)(uintptr_t)&metrics_look()->parts[1];
}

static void
unmap_it(void)
{
    text_end(&text);
    metrics_unmap();
}

static const char *
page(const char *token)
{
    const struct status_page with = {.nonce = "n0nce", .token = token};

    text_end(&text);
    metrics_add_up(&sum);
    status_page_add(&text, &sum, &with);
    ck_assert(!text.is_cut);
    return text.base;
}

START_TEST(durations_are_counted_up_to_their_bounds)
{
    check_has(page(NULL), ">no request has ended yet</td>");
    worker->durations[latency_bucket(90000)] = 3;
    worker->durations[latency_bucket(2400000)] = 4;
    worker->durations[latency_bucket(1100000000)] = 5;
    worker->durations[LATENCY_BUCKETS - 1] = 6;
    check_has(page(NULL), "<td class=\"n\">100 µs</td><td class=\"n\">3</td>");
    check_has(text.base, "<td class=\"n\">2.5 ms</td><td class=\"n\">4</td>");
    check_has(text.base, "<td class=\"n\">2.5 s</td><td class=\"n\">5</td>");
    check_has(text.base, "<td class=\"n\">more</td><td class=\"n\">6</td>");
}
END_TEST

START_TEST(times_and_sizes_have_units_that_people_read)
{
    static const struct {
        uint64_t seconds;
        const char *text;
    } ages[] = {{5, "5 s"}, {65, "1 min 5 s"}, {7500, "2 h 5 min"}};

    for (size_t i = 0; i < sizeof(ages) / sizeof(ages[0]); i++) {
        char cell[64];

        worker->since_ns = sxe_time_ns() - ages[i].seconds * SXE_NS_PER_SECOND;
        snprintf(cell, sizeof(cell), "<td>starting</td><td class=\"n\">%s", ages[i].text);
        /* If the test was stopped for seconds, the age is higher. */
        if (strstr(page(NULL), cell) == NULL)
            ck_assert_uint_gt((sum.now_ns - worker->since_ns) / SXE_NS_PER_SECOND, ages[i].seconds);
    }
    worker->lua_memory = 3 * 1024 * 1024 / 2;
    check_has(page(NULL), "<td class=\"n\">1.5 MiB</td>");
    worker->lua_memory = 2048;
    check_has(page(NULL), "<td class=\"n\">2 KiB</td>");
}
END_TEST

START_TEST(connections_and_pools_are_shown_by_state_and_age)
{
    check_has(page(NULL), ">no worker has shown its pools yet</td>");
    check_has(text.base,
              "<td>between two requests</td><td class=\"n\">0</td><td class=\"n\"></td>");
    worker->pools_number = 2;
    worker->pools[0] = (struct metrics_pool){
        .name = "a<b>", .elements = 9, .states = 1, .state = {{.name = "ALL", .number = 9}}};
    worker->pools[1] =
        (struct metrics_pool){.name = "http-connections",
                              .elements = 20,
                              .states = 3,
                              .state = {{.name = "FREE", .number = 18},
                                        {.name = "IDLE", .number = 2, .age_ms = 1500},
                                        {.name = "HEAD"}}};
    check_has(page(NULL), "<td>between two requests</td><td class=\"n\">2</td>"
                          "<td class=\"n\">1.5 s</td>");
    check_has(text.base, "<th scope=\"row\">a&#60;b&#62;</th><td class=\"n\">9</td>");
    check_has(text.base, "<li>IDLE <b>2</b> <small>1.5 s</small></li></ul>");
}
END_TEST

START_TEST(a_route_whose_requests_are_not_counted_yet_has_a_mean_of_nothing)
{
    worker->routes_number = 1;
    worker->series_number = 1;
    worker->series[0].status = 200;
    check_has(page(NULL), "<th scope=\"row\">(no route)</th><td class=\"n\">0</td>"
                          "<td class=\"n\">0</td><td class=\"n\">0 µs</td>");
}
END_TEST

START_TEST(it_says_whether_the_server_is_ready)
{
    check_has(page(NULL), "<p id=\"state\" class=\"not-ready\">not ready</p>");
    metrics_set_state(METRICS_READY);
    check_has(page(NULL), "<p id=\"state\" class=\"ready\">ready</p>");
    metrics_set_draining();
    check_has(page(NULL), "<p id=\"state\" class=\"not-ready\">draining</p>");
    metrics_worker_ended(0);
    check_has(page(NULL), ">no worker is there</td>");
}
END_TEST

START_TEST(buttons_are_for_clients_that_have_the_token)
{
    check_has(page(NULL), "<div class=\"actions\" hidden>");
    check_has(text.base, "name=\"token\" value=\"\">");
    check_has(page("t0ken"), "<p hidden>Ask for this page by address");
    check_has(text.base, "name=\"token\" value=\"t0ken\">");
    check_has(text.base, "<script nonce=\"n0nce\">");
    check_has(text.base, "poll();\n");
}
END_TEST

START_TEST(the_level_of_the_log_is_the_one_that_was_asked_for)
{
    sxe_log_set_level(SXE_LOG_ERROR);
    check_has(page(NULL), "<option selected>error</option>");
    metrics_ask_for_level(SXE_LOG_DUMP);
    check_has(page(NULL), "<option selected>dump</option>");
    ck_assert_str_eq(status_level_name(-1), "unknown");
    ck_assert_str_eq(status_level_name(8), "unknown");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("httpd-status-page");
    TCase *tcase = tcase_create("rows");

    tcase_add_checked_fixture(tcase, map_one, unmap_it);
    tcase_add_test(tcase, durations_are_counted_up_to_their_bounds);
    tcase_add_test(tcase, times_and_sizes_have_units_that_people_read);
    tcase_add_test(tcase, connections_and_pools_are_shown_by_state_and_age);
    tcase_add_test(tcase, a_route_whose_requests_are_not_counted_yet_has_a_mean_of_nothing);
    tcase_add_test(tcase, it_says_whether_the_server_is_ready);
    tcase_add_test(tcase, buttons_are_for_clients_that_have_the_token);
    tcase_add_test(tcase, the_level_of_the_log_is_the_one_that_was_asked_for);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
