/* SPDX-License-Identifier: MIT
 *
 * The cache of static files: what stays open or in memory, for how long, which requests wait, and
 * which entries are evicted.
 */
#include "http-file-site.h"
#include "test-main.h"

#include <sys/mman.h>

enum { BIG = 8 * 1024 * 1024 };

/* How many system calls looked at files since the last fake_os_reset(). */
static unsigned
looks(void)
{
    return fake_os_calls(FAKE_SYSCALL) + fake_os_calls(FAKE_OPENAT) + fake_os_calls(FAKE_FSTAT) +
           fake_os_calls(FAKE_FSTATAT) + fake_os_calls(FAKE_PREAD);
}

static int
ask_alone(const char *path, const char *fields)
{
    char all[1024];
    int peer = connect_client();

    snprintf(all, sizeof(all), "Connection: close\r\n%s", fields);
    send_request(peer, "GET", path, all);
    turn(5);
    return peer;
}

static void
replace(const char *name, const char *text)
{
    put_file("new", text);
    ck_assert_int_eq(rename(path_of("new"), path_of(name)), 0);
}

/* ---- Entries that are fresh ---- */

START_TEST(what_is_fresh_is_sent_without_a_look_at_it)
{
    put_file("small", "small");
    put_large("large", 100000);
    put_directory("d");
    put_file("d/index.html", "index");
    serve(NULL);
    EXPECT_FILE("/small", "small");
    EXPECT_STATUS("/large", 200);
    EXPECT_FILE("/d/", "index");
    fake_os_reset();
    EXPECT_FILE("/small", "small");
    EXPECT_STATUS("/large", 200);
    EXPECT_FILE("/d/", "index");
    ck_assert_uint_eq(looks(), 0);
    end_site();
}
END_TEST

START_TEST(its_states_have_names)
{
    static const char *const names[] = {"FREE", "OPENING", "IDLE", "BUSY", "LEAVING"};

    serve(NULL);
    for (unsigned state = 0; state < SXE__HTTP_FILE_STATES; state++)
        ck_assert_str_eq(sxe_pool_state_to_string(site.files->entries, state), names[state]);
    end_site();
}
END_TEST

START_TEST(only_large_files_keep_a_descriptor)
{
    put_file("small", "small");
    put_large("large", 100000);
    serve(NULL);
    EXPECT_FILE("/small", "small");
    turn(20);
    unsigned before = fake_os_open_fds();
    EXPECT_STATUS("/large", 200);
    turn(20);
    ck_assert_uint_eq(fake_os_open_fds(), before + 1);
    end_site();
}
END_TEST

static enum sxe_http_verdict
number_and_handle(struct sxe_http_request *request, struct sxe_http_response *response)
{
    static unsigned number;

    if (++number % 2 == 0)
        ck_assert_int_eq(sxe_http_add_field(response, "X-Number", "even"), 0);
    return sxe_http_files_handle(request, response);
}

START_TEST(fields_of_another_handler_are_of_one_reply)
{
    struct sxe_http_files_config config = {.root = site.root};
    struct sxe_http_route_options options = {.user = sxe_http_files_new(&config)};
    struct sxe_http_router *router = sxe_http_router_new();
    struct sxe_http_config http = {.connections = 4, .router = router};

    put_file("a", "a");
    ck_assert_int_eq(sxe_http_router_add(router, "GET", "/a", number_and_handle, &options), 0);
    serve_with(NULL, &http);
    for (unsigned i = 1; i <= 6; i++) {
        EXPECT_FILE("/a", "a");
        ck_assert_int_eq(field("X-Number") != NULL, i % 2 == 0);
        ck_assert_ptr_nonnull(field("ETag"));
    }
    site.others = options.user;
    end_site();
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(what_is_missing_is_looked_for_each_time)
{
    serve(NULL);
    EXPECT_STATUS("/a", 404);
    put_file("a", "now");
    EXPECT_FILE("/a", "now");
    end_site();
}
END_TEST

/* ---- Entries that are old ---- */

START_TEST(what_is_old_and_as_it_was_is_not_read_again)
{
    put_file("a", "a");
    put_large("large", 100000);
    serve(NULL);
    EXPECT_FILE("/a", "a");
    EXPECT_STATUS("/large", 200);
    for (unsigned i = 0; i < 3; i++) {
        grow_old();
        fake_os_reset();
        EXPECT_FILE("/a", "a");
        EXPECT_STATUS("/large", 200);
        ck_assert_uint_gt(looks(), 0);
        ck_assert_uint_eq(fake_os_calls(FAKE_PREAD), 0);
        fake_os_reset();
        EXPECT_FILE("/a", "a");
        ck_assert_uint_eq(looks(), 0);
        turn(20);
        ck_assert_uint_eq(entries_in(SXE__HTTP_FILE_IDLE), 2);
    }
    end_site();
}
END_TEST

START_TEST(what_was_replaced_is_seen_when_it_is_old)
{
    put_file("a", "old");
    serve(NULL);
    EXPECT_FILE("/a", "old");
    replace("a", "new");
    EXPECT_FILE("/a", "old");
    grow_old();
    EXPECT_FILE("/a", "new");
    turn(20);
    ck_assert_uint_eq(entries_in(SXE__HTTP_FILE_IDLE), 1);
    end_site();
}
END_TEST

START_TEST(what_was_rewritten_in_place_is_seen_even_if_its_times_were_set_back)
{
    put_file("a", "old");
    serve(NULL);
    EXPECT_FILE("/a", "old");
    put_file("a", "new");
    grow_old();
    EXPECT_FILE("/a", "new");
    end_site();
}
END_TEST

START_TEST(what_was_removed_is_404_when_it_is_old)
{
    put_file("a", "a");
    put_directory("d");
    put_file("d/index.html", "index");
    serve(NULL);
    EXPECT_FILE("/a", "a");
    EXPECT_FILE("/d/", "index");
    unlink(path_of("a"));
    unlink(path_of("d/index.html"));
    grow_old();
    EXPECT_STATUS("/a", 404);
    EXPECT_STATUS("/d/", 403);
    turn(20);
    ck_assert_uint_eq(entries_in(SXE__HTTP_FILE_IDLE), 0);
    end_site();
}
END_TEST

START_TEST(another_index_takes_the_place_of_the_first)
{
    static const char *const index[] = {"a.html", "b.txt", NULL};

    put_file("b.txt", "same");
    serve(&(struct sxe_http_files_config){.index = index});
    EXPECT_FILE("/", "same");
    ck_assert_str_eq(field("Content-Type"), "text/plain; charset=utf-8");
    ck_assert_int_eq(link(path_of("b.txt"), path_of("a.html")), 0);
    grow_old();
    EXPECT_FILE("/", "same");
    ck_assert_str_eq(field("Content-Type"), "text/html; charset=utf-8");
    end_site();
}
END_TEST

START_TEST(a_sibling_that_comes_is_seen_when_the_file_is_old)
{
    put_file("a", "plain");
    serve(NULL);
    get("/a", "Accept-Encoding: br\r\n");
    ck_assert_str_eq(reply.body, "plain");
    put_file("a.br", "br");
    grow_old();
    get("/a", "Accept-Encoding: br\r\n");
    ck_assert_str_eq(reply.body, "br");
    end_site();
}
END_TEST

START_TEST(what_changed_a_moment_ago_is_read_again_for_it_may_change_unseen)
{
    struct timespec now;

    put_file("a", "a");
    fake_time_stop();
    clock_gettime(CLOCK_REALTIME, &now);
    fake_time_start(UINT64_C(1000) * 1000000000, (uint64_t)now.tv_sec * 1000000000);
    serve(NULL);
    EXPECT_FILE("/a", "a");
    fake_time_step_wall(INT64_C(3600) * 1000000000);
    grow_old();
    fake_os_reset();
    EXPECT_FILE("/a", "a");
    ck_assert_uint_gt(fake_os_calls(FAKE_PREAD), 0);
    grow_old();
    fake_os_reset();
    EXPECT_FILE("/a", "a");
    ck_assert_uint_eq(fake_os_calls(FAKE_PREAD), 0);
    end_site();
}
END_TEST

START_TEST(what_cannot_be_read_just_now_stays_as_it_was_known)
{
    put_file("a", "a");
    serve(NULL);
    EXPECT_FILE("/a", "a");
    grow_old();
    fake_os_fail(FAKE_SYSCALL, 1, 1, EIO);
    EXPECT_STATUS("/a", 500);
    fake_os_reset();
    EXPECT_FILE("/a", "a");
    ck_assert_uint_eq(fake_os_calls(FAKE_PREAD), 0);
    end_site();
}
END_TEST

/* ---- Files that change while they are sent ---- */

START_TEST(f9_a_reply_under_way_ends_with_the_file_it_began_with)
{
    bool is_small = _i;
    int slow;

    put_large("a", BIG);
    serve(&(struct sxe_http_files_config){.small_max = is_small ? BIG : 1000});
    slow = ask_alone("/a", "");
    wait_until_opened();
    replace("a", "new");
    grow_old();
    EXPECT_FILE("/a", "new");
    ck_assert_uint_eq(entries_in(SXE__HTTP_FILE_LEAVING), 1);
    receive_reply(slow, true);
    ck_assert_uint_eq(reply.length, BIG);
    ck_assert_uint_eq(matching(reply.body, 0, BIG), BIG);
    end_site();
}
END_TEST

/* ---- Requests that wait for a file ---- */

START_TEST(all_who_want_a_file_wait_for_one_to_open_it)
{
    int peers[20];
    unsigned alone;

    put_file("a", "a");
    put_file("b", "b");
    serve(NULL);
    fake_os_reset();
    EXPECT_FILE("/b", "b");
    alone = looks();
    hold_threads();
    for (unsigned i = 0; i < 20; i++)
        peers[i] = ask_alone("/a", "");
    ck_assert_uint_eq(entries_in(SXE__HTTP_FILE_OPENING), 1);
    fake_os_reset();
    let_threads_go();
    for (unsigned i = 0; i < 20; i++) {
        receive_reply(peers[i], true);
        ck_assert_str_eq(reply.body, "a");
    }
    ck_assert_uint_eq(looks(), alone);
    end_site();
}
END_TEST

START_TEST(those_who_wait_get_what_each_accepts)
{
    int peers[4];

    put_file("a", "plain");
    put_file("a.br", "br");
    put_file("a.gz", "gz");
    serve(NULL);
    hold_threads();
    for (unsigned i = 0; i < 4; i++)
        peers[i] = ask_alone("/a", i == 0   ? "Accept-Encoding: br\r\n"
                                   : i == 1 ? ""
                                   : i == 2 ? "Accept-Encoding: gzip\r\n"
                                            : "Accept-Encoding: br\r\n");
    let_threads_go();
    for (unsigned i = 0; i < 4; i++) {
        receive_reply(peers[i], true);
        ck_assert_str_eq(reply.body, i == 1 ? "plain" : i == 2 ? "gz" : "br");
    }
    end_site();
}
END_TEST

START_TEST(who_gives_up_waiting_leaves_the_others_in_line)
{
    int peers[3];

    put_file("a", "a");
    serve(NULL);
    hold_threads();
    for (unsigned i = 0; i < 3; i++)
        peers[i] = ask_alone("/a", "");
    peer_reset(peers[_i]);
    turn(20);
    ck_assert_uint_eq(site.done, 1);
    ck_assert_int_eq(site.result, -ECONNRESET);
    ck_assert_uint_eq(sxe_pool_get_count(site.files->waiters, 1), 2);
    let_threads_go();
    for (int i = 0; i < 3; i++) {
        if (i == _i)
            continue;
        receive_reply(peers[i], true);
        ck_assert_str_eq(reply.body, "a");
    }
    end_site();
}
END_TEST

START_TEST(when_all_give_up_the_file_is_kept_all_the_same)
{
    int peer;

    put_file("a", "a");
    serve(NULL);
    hold_threads();
    peer = ask_alone("/a", "");
    peer_reset(peer);
    turn(20);
    let_threads_go();
    wait_until_opened();
    fake_os_reset();
    EXPECT_FILE("/a", "a");
    ck_assert_uint_eq(looks(), 0);
    end_site();
}
END_TEST

START_TEST(who_gives_up_waiting_for_a_sibling_lets_the_file_go)
{
    int peer;

    put_file("a", "a");
    put_file("a.br", "br");
    serve(NULL);
    EXPECT_FILE("/a", "a");
    hold_threads();
    peer = ask_alone("/a", "Accept-Encoding: br\r\n");
    ck_assert_uint_eq(entries_in(SXE__HTTP_FILE_BUSY), 1);
    peer_reset(peer);
    turn(20);
    ck_assert_uint_eq(entries_in(SXE__HTTP_FILE_BUSY), 0);
    let_threads_go();
    wait_until_opened();
    end_site();
}
END_TEST

START_TEST(who_waits_too_long_is_answered_by_the_server)
{
    struct sxe_http_config http = {.connections = 4, .handler_timeout_ms = 100};
    int peer;

    put_file("a", "a");
    serve_with(NULL, &http);
    hold_threads();
    peer = ask_alone("/a", "");
    fake_time_advance(UINT64_C(200000000));
    receive_reply(peer, true);
    ck_assert_uint_eq(reply.status, 503);
    let_threads_go();
    wait_until_opened();
    EXPECT_FILE("/a", "a");
    end_site();
}
END_TEST

START_TEST(when_too_many_wait_the_next_is_503)
{
    int peer;

    put_file("a", "a");
    put_file("a.br", "br");
    serve(&(struct sxe_http_files_config){.waiting_max = 1});
    hold_threads();
    peer = ask_alone("/a", "");
    EXPECT_STATUS("/a", 503);
    ck_assert_str_eq(field("Retry-After"), "1");
    let_threads_go();
    receive_reply(peer, true);
    ck_assert_str_eq(reply.body, "a");
    hold_threads();
    peer = ask_alone("/b", "");
    get("/a", "Accept-Encoding: br\r\n");
    ck_assert_str_eq(reply.body, "a");
    let_threads_go();
    receive_reply(peer, true);
    end_site();
}
END_TEST

START_TEST(the_end_may_come_while_files_are_opened)
{
    int peers[2];

    put_large("large", 100000);
    put_file("small", "a");
    serve(NULL);
    if (_i == 1)
        hold_threads();
    peers[0] = ask_alone("/large", "");
    peers[1] = ask_alone("/small", "");
    if (_i == 1)
        let_threads_go();
    close(peers[0]);
    close(peers[1]);
    close_site();
}
END_TEST

/* ---- Evicting entries ---- */

START_TEST(the_one_that_was_not_used_for_the_longest_time_makes_way)
{
    put_file("a", "a");
    put_file("b", "b");
    put_file("c", "c");
    serve(&(struct sxe_http_files_config){.entries_max = 2, .no_siblings = true});
    EXPECT_FILE("/a", "a");
    EXPECT_FILE("/b", "b");
    EXPECT_FILE("/a", "a");
    EXPECT_FILE("/c", "c");
    fake_os_reset();
    EXPECT_FILE("/a", "a");
    EXPECT_FILE("/c", "c");
    ck_assert_uint_eq(looks(), 0);
    EXPECT_FILE("/b", "b");
    ck_assert_uint_gt(looks(), 0);
    end_site();
}
END_TEST

START_TEST(an_entry_that_was_freed_is_used_again_before_another_is_touched)
{
    unsigned char is_resident[1 << 16];
    size_t pages;
    unsigned touched = 0;

    serve(NULL);
    for (unsigned i = 0; i < 100; i++)
        EXPECT_STATUS("/none", 404);
    pages = site.files->config.entries_max * site.files->region_size / 4096;
    ck_assert_uint_le(pages, sizeof(is_resident));
    ck_assert_int_eq(mincore(site.files->regions, pages * 4096, is_resident), 0);
    for (size_t i = 0; i < pages; i++)
        touched += is_resident[i] & 1;
    ck_assert_uint_eq(touched, 1);
    end_site();
}
END_TEST

START_TEST(a_thousand_files_pass_through_eight_entries)
{
    char name[16];

    serve(&(struct sxe_http_files_config){.entries_max = 8});
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "/%u", i % 100);
        if (i < 100)
            put_file(name + 1, name);
        EXPECT_FILE(name, name);
    }
    end_site();
}
END_TEST

START_TEST(when_every_entry_is_in_use_the_next_is_503)
{
    int peers[2];

    put_file("a", "a");
    put_file("b", "b");
    put_file("c", "c");
    serve(&(struct sxe_http_files_config){.entries_max = 2});
    EXPECT_FILE("/a", "a");
    hold_threads();
    peers[0] = ask_alone("/b", "");
    grow_old();
    /* The entry of a is old, and no other entry is free for the new look. */
    EXPECT_STATUS("/a", 503);
    peers[1] = ask_alone("/c", "");
    EXPECT_STATUS("/a", 503);
    let_threads_go();
    for (unsigned i = 0; i < 2; i++) {
        receive_reply(peers[i], true);
        ck_assert_uint_eq(reply.status, 200);
    }
    EXPECT_FILE("/a", "a");
    end_site();
}
END_TEST

START_TEST(without_an_entry_for_a_sibling_the_file_itself_is_sent)
{
    int peer;

    put_file("a", "plain");
    put_file("a.br", "br");
    put_file("b", "b");
    serve(&(struct sxe_http_files_config){.entries_max = 2});
    EXPECT_FILE("/a", "plain");
    hold_threads();
    peer = ask_alone("/b", "");
    get("/a", "Accept-Encoding: br\r\n");
    ck_assert_str_eq(reply.body, "plain");
    let_threads_go();
    receive_reply(peer, true);
    end_site();
}
END_TEST

START_TEST(contents_beyond_memory_max_make_way)
{
    char name[16];

    serve(&(struct sxe_http_files_config){.memory_max = 100000});
    for (unsigned i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "/%u", i);
        put_large(name + 1, 30000);
        EXPECT_STATUS(name, 200);
        turn(20);
        ck_assert_uint_le(site.files->memory, 100000);
    }
    ck_assert_uint_eq(entries_in(SXE__HTTP_FILE_IDLE), 3);
    fake_os_reset();
    EXPECT_STATUS("/19", 200);
    ck_assert_uint_eq(looks(), 0);
    end_site();
}
END_TEST

START_TEST(when_contents_are_all_being_sent_others_are_sent_from_their_files)
{
    struct sxe_http_files_config config = {.small_max = BIG, .memory_max = 1000000};
    int slow;

    put_large("big", BIG);
    put_file("a", "a");
    serve(&config);
    slow = ask_alone("/big", "");
    wait_until_opened();
    fake_os_reset();
    EXPECT_FILE("/a", "a");
    ck_assert_uint_gt(fake_os_calls(FAKE_SENDFILE), 0);
    receive_reply(slow, true);
    ck_assert_uint_eq(matching(reply.body, 0, BIG), BIG);
    turn(20);
    ck_assert_uint_eq(site.files->memory, 0);
    end_site();
}
END_TEST

/* ---- Descriptors ---- */

START_TEST(f9_when_descriptors_run_out_an_unused_one_is_given_back)
{
    put_file("small", "small");
    put_large("large", 100000);
    put_large("other", 100000);
    serve(NULL);
    EXPECT_FILE("/small", "small");
    EXPECT_STATUS("/large", 200);
    turn(20);
    fake_os_fail(FAKE_SYSCALL, 1, 1, _i == 0 ? EMFILE : ENFILE);
    EXPECT_STATUS("/other", 200);
    turn(20);
    ck_assert_uint_eq(entries_in(SXE__HTTP_FILE_IDLE), 2);
    fake_os_reset();
    EXPECT_FILE("/small", "small");
    EXPECT_STATUS("/other", 200);
    ck_assert_uint_eq(looks(), 0);
    end_site();
}
END_TEST

START_TEST(f9_when_no_descriptor_is_left_it_is_503)
{
    put_file("small", "small");
    put_large("large", 100000);
    serve(NULL);
    EXPECT_FILE("/small", "small");
    fake_os_fail(FAKE_SYSCALL, 1, 0, EMFILE);
    EXPECT_STATUS("/large", 503);
    ck_assert_str_eq(field("Retry-After"), "1");
    EXPECT_FILE("/small", "small");
    fake_os_reset();
    EXPECT_STATUS("/large", 200);
    end_site();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-file-cache");
    TCase *tcase = tcase_create("http-file-cache");

    tcase_add_checked_fixture(tcase, begin_site, NULL);
    tcase_add_test(tcase, what_is_fresh_is_sent_without_a_look_at_it);
    tcase_add_test(tcase, its_states_have_names);
    tcase_add_test(tcase, only_large_files_keep_a_descriptor);
    tcase_add_test(tcase, what_is_missing_is_looked_for_each_time);
    tcase_add_test(tcase, fields_of_another_handler_are_of_one_reply);
    tcase_add_test(tcase, what_is_old_and_as_it_was_is_not_read_again);
    tcase_add_test(tcase, what_was_replaced_is_seen_when_it_is_old);
    tcase_add_test(tcase, what_was_rewritten_in_place_is_seen_even_if_its_times_were_set_back);
    tcase_add_test(tcase, what_was_removed_is_404_when_it_is_old);
    tcase_add_test(tcase, another_index_takes_the_place_of_the_first);
    tcase_add_test(tcase, a_sibling_that_comes_is_seen_when_the_file_is_old);
    tcase_add_test(tcase, what_changed_a_moment_ago_is_read_again_for_it_may_change_unseen);
    tcase_add_test(tcase, what_cannot_be_read_just_now_stays_as_it_was_known);
    tcase_add_loop_test(tcase, f9_a_reply_under_way_ends_with_the_file_it_began_with, 0, 2);
    tcase_add_test(tcase, all_who_want_a_file_wait_for_one_to_open_it);
    tcase_add_test(tcase, those_who_wait_get_what_each_accepts);
    tcase_add_loop_test(tcase, who_gives_up_waiting_leaves_the_others_in_line, 0, 3);
    tcase_add_test(tcase, when_all_give_up_the_file_is_kept_all_the_same);
    tcase_add_test(tcase, who_gives_up_waiting_for_a_sibling_lets_the_file_go);
    tcase_add_test(tcase, who_waits_too_long_is_answered_by_the_server);
    tcase_add_test(tcase, when_too_many_wait_the_next_is_503);
    tcase_add_loop_test(tcase, the_end_may_come_while_files_are_opened, 0, 2);
    tcase_add_test(tcase, the_one_that_was_not_used_for_the_longest_time_makes_way);
    tcase_add_test(tcase, an_entry_that_was_freed_is_used_again_before_another_is_touched);
    tcase_add_test(tcase, a_thousand_files_pass_through_eight_entries);
    tcase_add_test(tcase, when_every_entry_is_in_use_the_next_is_503);
    tcase_add_test(tcase, without_an_entry_for_a_sibling_the_file_itself_is_sent);
    tcase_add_test(tcase, contents_beyond_memory_max_make_way);
    tcase_add_test(tcase, when_contents_are_all_being_sent_others_are_sent_from_their_files);
    tcase_add_loop_test(tcase, f9_when_descriptors_run_out_an_unused_one_is_given_back, 0, 2);
    tcase_add_test(tcase, f9_when_no_descriptor_is_left_it_is_503);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
