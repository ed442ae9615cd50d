/* SPDX-License-Identifier: MIT
 *
 * sxe-pool dump, which prints elements or entries, and sxe-pool watch, which prints counts.
 */
#include "run-pool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pty.h>

/* ---- dump ---- */

START_TEST(dump_prints_each_element)
{
    open_jobs(path);
    RUN_POOL("dump", path);
    ended(0, "0 READY ", "");
    check_has(ran.output, " hits=5 name=\"a\\\"\" on=false\n1 READY ");
    check_has(ran.output, " hits=6 name=\"a\\\"\" on=true\n2 FREE ");
    check_has(ran.output, " hits=0 name=\"\" on=false\n3 FREE ");
    RUN_POOL("dump", "--json", path);
    ended(0, "{\"id\": 0, \"state\": \"READY\", \"age_s\": 0.", "");
    check_has(ran.output, ", \"generation\": 1, \"fields\": {\"hits\": 6, \"name\": \"a\\\"\", "
                          "\"on\": true}}\n{\"id\": 2, ");
}
END_TEST

START_TEST(dump_of_a_state_is_in_the_order_of_time)
{
    open_jobs(path);
    sxe_pool_touch(jobs, 0);
    RUN_POOL("dump", path, "--state", _i == 0 ? "READY" : "1", "--json");
    ended(0, "{\"id\": 1, ", "");
    ck_assert_int_eq(strncmp(ran.output, "{\"id\": 1, ", 10), 0);
    check_has(ran.output, "\n{\"id\": 0, ");
    ck_assert_ptr_null(strstr(ran.output, "FREE"));
    RUN_POOL("dump", path, "--state", "BUSY");
    ended(1, "", "there is no state 'BUSY': sxe-pool show prints the states");
}
END_TEST

START_TEST(dump_knows_every_type)
{
    static const struct {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        uint64_t u64;
        int64_t i64;
        float f32;
        double f64;
        char text[8];
    } value = {255,
               -1,
               65535,
               -2,
               4294967295u,
               -3,
               UINT64_MAX,
               INT64_MIN,
               0.5f,
               INFINITY,
               {'\x1b', '\\', '\n', '\xff', '\xc3', '\xa9', 'e', 'e'}};
    SXE_POOL_SPEC spec = {.name = "types",
                          .number = 1,
                          .element_size = sizeof(value),
                          .states = 1,
                          .file = path,
                          .fields = "u8 a, i8 b, u16 c, i16 d, u32 e, i32 f, u64 g, i64 h, f32 i, "
                                    "f64 j, char[8] k"};

    open_as(&spec);
    sxe_pool_write_element(jobs, 0, &value);
    RUN_POOL("dump", path);
    ended(0,
          " a=255 b=-1 c=65535 d=-2 e=4294967295 f=-3 g=18446744073709551615 "
          "h=-9223372036854775808 i=0.5 j=inf k=\"\\u001b\\\\\\n\\ufffd\xc3\xa9"
          "ee\"\n",
          "");
    RUN_POOL("dump", path, "-j");
    ended(0, "\"i\": 0.5, \"j\": null, \"k\": ", "");
}
END_TEST

START_TEST(without_fields_dump_prints_bytes)
{
    SXE_POOL_SPEC spec = {
        .name = "b\xffs", .number = 1, .element_size = 3, .states = 1, .file = path};

    open_as(&spec);
    sxe_pool_write_element(jobs, 0, "\x01\xab\x7f");
    RUN_POOL("dump", path);
    ended(0, " 01ab7f\n", "");
    RUN_POOL("dump", path, "-j");
    ended(0, "\"generation\": 1, \"bytes\": \"01ab7f\"}\n", "");
    RUN_POOL("check", path);
    ended(0, "pool b?s is whole: 1 element in 1 state and 1 shard", "");
    RUN_POOL("show", path);
    ended(0, "\n1 element of 3 bytes, 1 state, 1 shard, 0 bytes extra\n", "");
}
END_TEST

START_TEST(one_byte_is_no_bytes)
{
    const SXE_POOL_SPEC spec = {
        .name = "b", .number = 2, .element_size = 1, .states = 1, .file = path, .extra_size = 1};

    open_as(&spec);
    RUN_POOL("show", path);
    ended(0, "\n2 elements of 1 byte, 1 state, 1 shard, 1 byte extra\n", "");
}
END_TEST

START_TEST(what_is_half_written_is_not_shown)
{
    open_jobs(path);
    sharing()->nodes[0].sequence = 1;
    RUN_POOL("dump", path, "-s", "READY");
    ended(0, " half written\n1 READY ", "");
    RUN_POOL("dump", path, "-j");
    ended(0, "\"generation\": 1, \"torn\": true}\n{\"id\": 1, ", "");
}
END_TEST

START_TEST(without_memory_a_pool_is_let_go_again)
{
    open_jobs(path);
    fails_there(FAKE_MALLOC, ENOMEM);
    RUN_POOL("dump", path);
    ended(1, "", "no memory for an element: Cannot allocate memory");
    fails_there(FAKE_CALLOC, ENOMEM);
    RUN_POOL("watch", path);
    ended(1, "", "no memory for 2 states");
    ck_assert_int_eq(sxe_pool_get_user(jobs, 1), 0);
}
END_TEST

/* Slot 9, which no process ever had, holds a lock, with an intent that no process of ours
 * writes. */
START_TEST(dump_ends_where_a_pool_is_damaged)
{
    open_jobs(path);
    sharing()->shards[0].lock = 5 << 7 | 9;
    sharing()->shards[0].intent = (struct sxe__pool_intent){.stamp = UINT64_MAX, .id = 99};
    RUN_POOL("dump", path, "-s", "READY");
    ended(1, "", "sxe-pool: the pool is damaged: run sxe-pool check for the reason\n");
}
END_TEST

START_TEST(a_signal_ends_a_long_dump)
{
    SXE_POOL_SPEC spec = spec_of(path);

    spec.number = 1000;
    open_as(&spec);
    ran.prepare = interrupted;
    RUN_POOL("dump", path);
    ended(128 + SIGINT, "\n255 FREE ", "");
    ck_assert_ptr_null(strstr(ran.output, "\n256 FREE "));
}
END_TEST

/* Standard output is a pipe that is full and never read. */
static void
interrupted_while_nobody_reads(void)
{
    char bytes[PIPE_BUF] = "";
    int ends[2];

    interrupted();
    ck_assert_int_eq(pipe2(ends, O_NONBLOCK), 0);
    while (write(ends[1], bytes, sizeof(bytes)) > 0)
        ;
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, 0), 0);
    ck_assert_int_eq(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
}

START_TEST(a_signal_ends_a_dump_that_nobody_reads)
{
    SXE_POOL_SPEC spec = spec_of(path);

    spec.number = _i == 0 ? 4 : 1000;
    open_as(&spec);
    ran.prepare = interrupted_while_nobody_reads;
    RUN_POOL("dump", path);
    ended(128 + SIGINT, "", "");
    ck_assert_int_eq(sxe_pool_get_user(jobs, 1), 0);
}
END_TEST

/* Without a descriptor for signals, and without memory for a buffer, it prints all the same. */
START_TEST(dump_prints_without_a_descriptor_of_signals)
{
    open_jobs(path);
    fails_there(FAKE_SIGNALFD, EMFILE);
    RUN_POOL("dump", path);
    ended(0, "\n3 FREE ", "");
    fails_there(FAKE_POLL, ENOMEM);
    RUN_POOL("dump", path);
    ended(0, "\n3 FREE ", "");
}
END_TEST

/* ---- Dicts ---- */

/* A dict that a child has filled before it was killed: a text without end, bytes for an hour, a
 * value too long to be shown, and a pinned entry. */
static void
leave_dict(void (*finally)(SXE_DICT *))
{
    const SXE_DICT_SPEC spec = {.name = "sessions", .cells = 10000, .file = path};
    const pid_t pid = fork();

    if (pid == 0) {
        SXE_DICT *dict = sxe_dict_open(&spec, why);

        sxe_dict_put(dict, "id\n1", 4, "alice", 5, SXE_DICT_FOREVER);
        sxe_dict_put(dict, "\xff", 1, "\0\x80", 2, 3600);
        sxe_dict_put(dict, "pinned", 6, "", 0, SXE_DICT_FOREVER);
        sxe_dict_set_state(dict, "pinned", 6, SXE_DICT_PINNED);
        if (finally != NULL)
            finally(dict);
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static void
put_long_value(SXE_DICT *dict)
{
    const size_t size = (1 << 20) + 10;
    char *value = malloc(size);

    memset(value, 'v', size);
    ck_assert_int_eq(sxe_dict_put(dict, "long", 4, value, size, SXE_DICT_FOREVER), 0);
    ck_assert_int_eq(sxe_dict_set_state(dict, "long", 4, SXE_DICT_DIRTY), 0);
}

static void
put_many(SXE_DICT *dict)
{
    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(sxe_dict_put(dict, &i, sizeof(i), "", 0, SXE_DICT_FOREVER), 0);
        ck_assert_int_eq(sxe_dict_set_state(dict, &i, sizeof(i), SXE_DICT_DIRTY), 0);
    }
}

START_TEST(a_dict_is_shown_with_its_entries)
{
    leave_dict(NULL);
    RUN_POOL("show", path);
    ended(0,
          "\na dict of 3 entries\n"
          "since it was made: hits 0, misses 0, evictions 0, expirations 0\n"
          "chains: 3 of 16384 buckets used, the longest chain has 1 cell\n",
          "");
    check_has(ran.output, "\nPINNED                        1 ");
    RUN_POOL("show", path, "-j");
    ended(0,
          ", \"entries\": 3, \"hits\": 0, \"misses\": 0, \"evictions\": 0, \"expirations\": 0, "
          "\"buckets\": 16384, \"buckets_used\": 3, \"longest_chain\": 1, \"states\": [",
          "");
    RUN_POOL("check", path);
    ended(0, "\nits table is whole, too: 3 entries, each in exactly one place\n", "");
    RUN_POOL("watch", path, "-n1");
    ended(0, "  LIVE 2  PINNED 1  ", "");
}
END_TEST

START_TEST(show_counts_what_it_can_while_a_shard_is_locked)
{
    const SXE_DICT_SPEC spec = {.name = "sessions", .cells = 10, .file = path};
    SXE_DICT *dict = sxe_dict_open(&spec, why);
    char value;

    ck_assert_ptr_nonnull(dict);
    ck_assert_int_eq(sxe_dict_get(dict, "a", 1, &value, 1), -ENOENT);
    ck_assert_uint_eq(sxe__pool_lock_shard(sxe__pool_header(sxe_dict_get_pool(dict)), 0),
                      SXE_POOL_LOCK_TAKEN);
    RUN_POOL("show", path);
    ended(0,
          ": hits 0, misses 1, evictions 0, expirations 0\n"
          "chains: not known: Resource temporarily unavailable\n",
          "");
    RUN_POOL("show", path, "-j");
    ended(0, "\"misses\": 1, \"evictions\": 0, \"expirations\": 0, \"states\": [", "");
    sxe__pool_unlock_shard(sxe__pool_header(sxe_dict_get_pool(dict)), 0);
    sxe_dict_close(dict);
}
END_TEST

START_TEST(dump_of_a_dict_is_its_entries)
{
    leave_dict(NULL);
    RUN_POOL("dump", path);
    ended(0, "key=\"id\\n1\" LIVE 5 bytes - value=\"alice\"\n", "");
    check_has(ran.output, "key_hex=ff LIVE 2 bytes 35");
    check_has(ran.output, " s value_hex=0080\n");
    check_has(ran.output, "key=\"pinned\" PINNED 0 bytes - value=\"\"\n");
    RUN_POOL("dump", path, "--json");
    ended(0,
          "{\"key\": \"id\\n1\", \"state\": \"LIVE\", \"size\": 5, \"ttl_s\": null, "
          "\"value\": \"alice\"}\n",
          "");
    check_has(ran.output, "{\"key_hex\": \"ff\", \"state\": \"LIVE\", \"size\": 2, \"ttl_s\": 35");
    check_has(ran.output, ", \"value_hex\": \"0080\"}\n");
    for (unsigned i = 0; i < 2; i++) {
        RUN_POOL("dump", path, "--state", i == 0 ? "PINNED" : "2");
        ended(0, "key=\"pinned\" PINNED 0 bytes - value=\"\"\n", "");
        ck_assert_str_eq(ran.output, "key=\"pinned\" PINNED 0 bytes - value=\"\"\n");
    }
}
END_TEST

/* Cells can be in the last two states, entries cannot. */
START_TEST(a_state_that_no_entry_can_be_in_is_refused)
{
    static const char *const states[] = {"nix", "", "0", "6", "live", "FREE", "OLD"};

    leave_dict(NULL);
    for (unsigned i = 0; i < SXE_COUNT(states); i++) {
        RUN_POOL("--state", states[i], "dump", path);
        ended(1, "",
              text_of("no entry of a dict can be in the state '%s': they are LIVE, PINNED or "
                      "DIRTY\n",
                      states[i]));
    }
}
END_TEST

static void
count(SXE_DICT *dict)
{
    ck_assert_int_eq(sxe_dict_add(dict, "seen", 4, 3, SXE_DICT_FOREVER, NULL), 0);
    ck_assert_int_eq(sxe_dict_add(dict, "owed", 4, -7, SXE_DICT_FOREVER, NULL), 0);
    ck_assert_int_eq(sxe_dict_put(dict, "text", 4, "8 bytes!", 8, SXE_DICT_FOREVER), 0);
}

START_TEST(a_counter_is_dumped_as_a_number)
{
    leave_dict(count);
    RUN_POOL("dump", path);
    ended(0, "key=\"seen\" LIVE 8 bytes - value_i64=3\n", "");
    check_has(ran.output, "key=\"owed\" LIVE 8 bytes - value_i64=-7\n");
    check_has(ran.output, "key=\"text\" LIVE 8 bytes - value=\"8 bytes!\"\n");
    RUN_POOL("dump", path, "--json");
    ended(0, "\"size\": 8, \"ttl_s\": null, \"value_i64\": 3}\n", "");
}
END_TEST

static void
leave_one(SXE_DICT *dict)
{
    ck_assert_int_eq(sxe_dict_remove(dict, "pinned", 6), 0);
    ck_assert_int_eq(sxe_dict_remove(dict, "\xff", 1), 0);
}

START_TEST(one_entry_is_no_entries)
{
    leave_dict(leave_one);
    RUN_POOL("show", path);
    ended(0, "\na dict of 1 entry\n", "");
    RUN_POOL("check", path);
    ended(0, "\nits table is whole, too: 1 entry, each in exactly one place\n", "");
}
END_TEST

START_TEST(a_value_is_cut_at_a_mebibyte)
{
    leave_dict(put_long_value);
    RUN_POOL("dump", path, "-s", "DIRTY");
    ended(0, "key=\"long\" DIRTY 1048586 bytes - value=\"vvvv", "");
    ck_assert_uint_eq(ran.output_size,
                      strlen("key=\"long\" DIRTY 1048586 bytes - value=\"\"\n") + (1 << 20));
}
END_TEST

START_TEST(a_long_dump_of_a_dict_ends_with_a_signal)
{
    leave_dict(put_many);
    RUN_POOL("show", path); /* this completes and closes the file */
    ran.prepare = interrupted;
    RUN_POOL("dump", path, "-s", "DIRTY");
    ended(128 + SIGINT, "key_hex=", "");
    unsigned lines = 0;
    for (const char *at = ran.output; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    ck_assert_uint_eq(lines, 256);
}
END_TEST

static void
lose_its_shape(SXE_DICT *dict)
{
    struct sxe__pool_sharing *its = sxe__pool_header(sxe_dict_get_pool(dict))->sharing;

    its->nodes[0].next = 0;
}

START_TEST(a_dict_is_repaired_with_its_table)
{
    leave_dict(lose_its_shape);
    RUN_POOL("check", path);
    ended(1, "", "which is older");
    RUN_POOL("repair", path);
    ended(0, "; its lists were rebuilt, 0 elements lost their state\n", "");
    check_has(ran.output, "\nits table is whole, too: 3 entries, each in exactly one place\n");
}
END_TEST

/* A dict that this process has open, and whose buckets are damaged. */
static SXE_DICT *
open_damaged_dict(void)
{
    const SXE_DICT_SPEC spec = {.name = "sessions", .cells = 10, .file = path};
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    ck_assert_msg(dict != NULL, "%s", why);
    sxe_dict_put(dict, "key", 3, "", 0, SXE_DICT_FOREVER);
    for (uint32_t i = 0; i <= dict->bucket_mask; i++)
        dict->buckets[i] = 77;
    return dict;
}

START_TEST(what_is_wrong_with_a_table_is_said)
{
    SXE_DICT *dict = open_damaged_dict();

    RUN_POOL(_i == 0 ? "check" : "dump", path);
    ended(1, "",
          _i == 0
              ? "sxe-pool: pool sessions is damaged: "
              : "cannot read the rest of the dict: Structure needs cleaning; run sxe-pool check");
    sxe_dict_close(dict);
}
END_TEST

START_TEST(the_lock_of_a_dict_is_waited_for)
{
    const SXE_DICT_SPEC spec = {.name = "sessions", .cells = 1, .file = path};
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    ck_assert_int_eq(sxe_dict_put(dict, "key", 3, "", 0, SXE_DICT_FOREVER), 0);
    dict->sharing->shards[0].lock = dict->sharing->token;
    RUN_POOL("dump", path);
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "cannot read the rest of the dict: Resource temporarily unavailable");
    ran.prepare = interrupted;
    RUN_POOL("dump", path);
    ck_assert_int_eq(ran.status, 128 + SIGINT);
    dict->sharing->shards[0].lock = 0;
    sxe_dict_close(dict);
}
END_TEST

START_TEST(without_memory_a_dict_is_let_go_again)
{
    leave_dict(NULL);
    fails_there(FAKE_MALLOC, ENOMEM);
    RUN_POOL("dump", path);
    ended(1, "", "no memory for an entry: Cannot allocate memory");
}
END_TEST

/* ---- watch ---- */

START_TEST(watch_prints_a_line_a_look)
{
    open_jobs(path);
    RUN_POOL("watch", path, "-i", "1ms", "-n", "2");
    ended(0, "  FREE 2  READY 2\n", "");
    check_has(ran.output, "  FREE 2 (0.0/s came)  READY 2 (0.0/s came)\n");
}
END_TEST

START_TEST(watch_ends_with_a_signal_and_lets_the_pool_go)
{
    open_jobs(path);
    ran.prepare = interrupted;
    RUN_POOL("watch", path, "-i", "60");
    ended(128 + SIGINT, "  FREE 2  READY 2\n", "");
    ck_assert_int_eq(sxe_pool_get_user(jobs, 1), 0);
}
END_TEST

/* Run a program on a terminal; returns everything that it writes. */
static void
run_on_terminal(const char **argv)
{
    size_t length = 0;
    ssize_t got;
    int terminal;
    int status;

    fflush(NULL);
    const pid_t pid = forkpty(&terminal, NULL, NULL, NULL);
    if (pid == 0) {
        fake_os_reset();
        exit(main_of(sxe_pool_main, argv));
    }
    while ((got = read(terminal, ran.output + length, sizeof(ran.output) - length - 1)) > 0)
        length += (size_t)got;
    ran.output[length] = '\0';
    ran.errors[0] = '\0';
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ran.status = WEXITSTATUS(status);
    close(terminal);
}

START_TEST(on_a_terminal_the_table_stands_still)
{
    open_jobs(path);
    setenv("TERM", "xterm", 1);
    run_on_terminal((const char *[]){"sxe-pool", "watch", path, "-i", "1ms", "-n", "2", NULL});
    ended(0,
          "STATE                  ELEMENTS       CHANGE         CAME     OLDEST\r\n"
          "FREE                          2 ",
          "");
    check_has(ran.output, "\033[3A\033[JSTATE ");
    check_has(ran.output, "READY                         2       +0.0/s        0.0/s ");
    setenv("TERM", "dumb", 1);
    run_on_terminal((const char *[]){"sxe-pool", "watch", path, "-i", "1ms", "-n", "1", NULL});
    ended(0, "  FREE 2  READY 2\r\n", "");
}
END_TEST

/* A child moves the element all the time; at the first try it may not have begun. */
START_TEST(watch_counts_what_came)
{
    open_jobs(path);
    const pid_t child = fork();
    if (child == 0) {
        for (;;)
            sxe_pool_touch(jobs, 0);
    }
    do {
        RUN_POOL("watch", path, "-i", "10ms", "-n", "2");
        ended(0, "/s came)  READY 2 (", "");
    } while (strstr(ran.output, "READY 2 (0.0/s came)") != NULL);
    kill_child(child);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-app-dump");
    TCase *dump = add_case(suite, "dump, watch");
    TCase *dicts = add_case(suite, "dicts");

    tcase_add_test(dump, dump_prints_each_element);
    tcase_add_loop_test(dump, dump_of_a_state_is_in_the_order_of_time, 0, 2);
    tcase_add_test(dump, dump_knows_every_type);
    tcase_add_test(dump, without_fields_dump_prints_bytes);
    tcase_add_test(dump, one_byte_is_no_bytes);
    tcase_add_test(dump, what_is_half_written_is_not_shown);
    tcase_add_test(dump, without_memory_a_pool_is_let_go_again);
    tcase_add_test(dump, dump_ends_where_a_pool_is_damaged);
    tcase_add_test(dump, a_signal_ends_a_long_dump);
    tcase_add_loop_test(dump, a_signal_ends_a_dump_that_nobody_reads, 0, 2);
    tcase_add_test(dump, dump_prints_without_a_descriptor_of_signals);
    tcase_add_test(dicts, a_dict_is_shown_with_its_entries);
    tcase_add_test(dicts, show_counts_what_it_can_while_a_shard_is_locked);
    tcase_add_test(dicts, dump_of_a_dict_is_its_entries);
    tcase_add_test(dicts, a_state_that_no_entry_can_be_in_is_refused);
    tcase_add_test(dicts, a_counter_is_dumped_as_a_number);
    tcase_add_test(dicts, one_entry_is_no_entries);
    tcase_add_test(dicts, a_value_is_cut_at_a_mebibyte);
    tcase_add_test(dicts, a_long_dump_of_a_dict_ends_with_a_signal);
    tcase_add_test(dicts, a_dict_is_repaired_with_its_table);
    tcase_add_loop_test(dicts, what_is_wrong_with_a_table_is_said, 0, 2);
    tcase_add_test(dicts, the_lock_of_a_dict_is_waited_for);
    tcase_add_test(dicts, without_memory_a_dict_is_let_go_again);
    tcase_add_test(dump, watch_prints_a_line_a_look);
    tcase_add_test(dump, watch_ends_with_a_signal_and_lets_the_pool_go);
    tcase_add_test(dump, on_a_terminal_the_table_stands_still);
    tcase_add_test(dump, watch_counts_what_came);
    return sxe_test_main(suite);
}
