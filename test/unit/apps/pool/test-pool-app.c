/* SPDX-License-Identifier: MIT
 *
 * sxe-pool: its command line, and its output about whole pools. test-pool-app-dump.c tests its
 * output about elements.
 */
#include "run-pool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fake-time.h"
#include "sxe-pool-opening-private.h"

/* ---- The command line ---- */

START_TEST(a_command_line_that_cannot_be_understood_is_refused)
{
    RUN_POOL(NULL);
    ended(2, "",
          "a command is missing: list, show, check, repair, dump, watch, "
          "backup, restore or resize. Try --help.");
    RUN_POOL("lsit");
    ended(2, "",
          "the commands are list, show, check, repair, dump, watch, backup, restore and "
          "resize, not lsit.");
    RUN_POOL("dump");
    ended(2, "", "an argument is missing: dump POOL.");
    RUN_POOL("show", "a", "b");
    ended(2, "", "one argument too many: b.");
    RUN_POOL("backup", "a");
    ended(2, "", "an argument is missing: backup POOL FILE.");
    RUN_POOL("restore");
    ended(2, "", "an argument is missing: restore FILE POOL.");
    RUN_POOL("resize", "a", "1", "b");
    ended(2, "", "one argument too many: b.");
    RUN_POOL("resize", "a", "many");
    ended(2, "", "the number of cells is 'many'; it must be a number from 1 to 2147483648");
    RUN_POOL("resize", "a", "0");
    ended(2, "", "the number of cells is '0'");
    RUN_POOL("--jsno", "list");
    ended(2, "", "unknown option --jsno; did you mean --json?");
    RUN_POOL("watch", "a", "-n", "0");
    ended(2, "", "the number of lines (-n) is '0'");
    RUN_POOL("watch", "a", "--interval", "soon");
    ended(2, "", "the time between two lines (-i) is 'soon'");
    RUN_POOL("list", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f",
             "g");
    ended(2, "", "too many arguments: g.");
}
END_TEST

START_TEST(help_says_what_there_is)
{
    RUN_POOL("--help");
    ended(0, "repair POOL        rebuild its lists from the state and time of each element", "");
    RUN_POOL("--version");
    ended(0, "sxe-pool " SXE_VERSION, "");
}
END_TEST

START_TEST(completions_know_the_commands)
{
    RUN_POOL("--completion", "bash");
    ended(0,
          "compgen -f -W 'list show check repair dump watch backup restore resize' "
          "-- ",
          "");
    RUN_POOL("--completion", "zsh");
    ended(0, "'1:word:(list show check repair dump watch backup restore resize)'", "");
    RUN_POOL("--completion", "fish");
    ended(0, "complete -c sxe-pool -n __fish_use_subcommand -a 'list show check", "");
}
END_TEST

START_TEST(words_may_stand_behind_two_dashes)
{
    open_jobs(path);
    RUN_POOL("check", "--", path);
    ended(0, "pool jobs is whole", "");
}
END_TEST

static void
output_is_full(void)
{
    dup2(open("/dev/full", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
}

START_TEST(what_cannot_be_written_is_an_error)
{
    open_jobs(path);
    ran.prepare = output_is_full;
    RUN_POOL("dump", path);
    ended(1, "", "sxe-pool: cannot write to standard output: No space left on device\n");
    RUN_POOL("watch", path);
    ended(1, "", "sxe-pool: cannot write to standard output: ");
}
END_TEST

/* ---- The pool's name ---- */

START_TEST(a_bare_name_is_not_taken_for_a_file_beside_one)
{
    const char *name = strrchr(path, '/') + 1;
    char shared[96];

    open_jobs(path);
    ck_assert_int_eq(chdir(directory), 0);
    RUN_POOL("show", name);
    ended(1, "",
          "there is no jobs.pool in /dev/shm; for the file in this directory write ./jobs.pool\n");
    RUN_POOL("show", "./jobs.pool");
    ended(0, "jobs", "");
    snprintf(shared, sizeof(shared), "/dev/shm/sxe-test-%d", (int)getpid());
    ck_assert_int_eq(symlink(path, shared), 0);
    close(open(shared + sizeof("/dev/shm"), O_CREAT | O_CLOEXEC, 0600));
    RUN_POOL("check", shared + sizeof("/dev/shm"));
    ck_assert(strstr(ran.errors, "for the file in this directory say ./sxe-test-") != NULL);
    unlink(shared);
    unlink(shared + sizeof("/dev/shm"));
}
END_TEST

START_TEST(what_is_no_pool_is_refused_with_a_sentence)
{
    RUN_POOL("show", path);
    ended(1, "", "jobs.pool: cannot open the file: No such file or directory");
    RUN_POOL("check", "/dev/null");
    ended(1, "", "sxe-pool: pool /dev/null: it is not a regular file");
    close(open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    RUN_POOL("repair", path);
    ended(1, "", "no pool is in the file");
    RUN_POOL("dump", path);
    ended(1, "", "no pool is in the file");
    RUN_POOL("watch", path);
    ended(1, "", "no pool is in the file");
}
END_TEST

START_TEST(a_pool_may_be_a_name_in_dev_shm_even_a_number)
{
    char name[64];

    snprintf(name, sizeof(name), "%d1234", (int)getpid());
    open_jobs(name);
    RUN_POOL("check", name);
    ended(0, "pool jobs is whole: 4 elements in 2 states and 1 shard", "");
    snprintf(path, sizeof(path), "/dev/shm/%s", name);
    ck_assert_int_eq(unlink(path), 0);
    RUN_POOL("check", name);
    ended(1, "", "there is no process ");
    fails_there(FAKE_OPENDIR, EACCES);
    RUN_POOL("check", name);
    ended(1, "", "cannot look at process ");
    check_has(ran.errors, ": Permission denied\n");
}
END_TEST

START_TEST(a_pool_may_be_what_a_process_has_open)
{
    open_jobs(NULL);
    RUN_POOL("show", PID);
    ended(0, "pool jobs: in use\n", "");
    RUN_POOL("show", DESCRIPTOR(sxe_pool_get_fd(jobs)));
    ended(0, "pool jobs: in use\n", "");
    RUN_POOL("show", PID);
    ended(0, "pool jobs: in use\n", "");
    RUN_POOL("show", DESCRIPTOR(987));
    ended(1, "", ": cannot look at descriptor 987: No such file or directory");
    RUN_POOL("show", text_of("%d:99999999999", (int)getpid()));
    ended(1, "", ": cannot look at descriptor 2147483647");
    RUN_POOL("show", text_of("%d:x", (int)getpid()));
    ended(1, "", "cannot open the file");
    RUN_POOL("show", "99999999999");
    ended(1, "", "cannot open the file");
}
END_TEST

START_TEST(what_a_process_has_open_may_be_no_pool_or_several)
{
    int pipes[2];

    ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
    RUN_POOL("show", PID);
    ended(1, "", "has no shared pool open; sxe-pool list prints all pools");
    RUN_POOL("show", DESCRIPTOR(pipes[0]));
    ended(1, "", "cannot be opened: it is neither file nor memory");
    const int file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    RUN_POOL("show", DESCRIPTOR(file));
    ended(1, "", "no pool is in the file");
    close(file);
    open_jobs(NULL);
    void *others = sxe_pool_new("others", 1, 1, 1, SXE_POOL_OPTION_SHARED);
    RUN_POOL("show", PID);
    ended(1, "", "has several pools open: ");
    check_has(ran.errors, " (jobs)");
    check_has(ran.errors, " (others)");
    check_has(ran.errors, "; give one as PROCESS:DESCRIPTOR\n");
    sxe_pool_delete(others);
}
END_TEST

static unsigned
times_of(const char *text, const char *part)
{
    unsigned times = 0;

    while ((text = strstr(text, part)) != NULL) {
        text += strlen(part);
        times++;
    }
    return times;
}

START_TEST(what_a_process_has_open_twice_is_one_pool)
{
    open_jobs(NULL);
    const int again = dup(sxe_pool_get_fd(jobs));
    RUN_POOL("show", PID);
    ended(0, "pool jobs: in use\n", "");
    void *others = sxe_pool_new("others", 1, 1, 1, SXE_POOL_OPTION_SHARED);
    const int others_again = dup(sxe_pool_get_fd(others));
    RUN_POOL("show", PID);
    ended(1, "", "has several pools open: ");
    ck_assert_uint_eq(times_of(ran.errors, " (jobs)"), 1);
    ck_assert_uint_eq(times_of(ran.errors, " (others)"), 1);
    close(again);
    close(others_again);
    sxe_pool_delete(others);
}
END_TEST

/* A child that holds the lock for opening and closing, as if it were stopped there. */
static pid_t
hold_opening(void)
{
    int pipes[2];
    char byte;

    ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
    const pid_t child = fork();
    if (child == 0) {
        const int file = open(path, O_RDWR | O_CLOEXEC);

        if (file == -1 || sxe__pool_opening_lock(file) != 0 || write(pipes[1], "", 1) != 1)
            _exit(1);
        pause();
    }
    close(pipes[1]);
    ck_assert_int_eq(read(pipes[0], &byte, 1), 1);
    close(pipes[0]);
    return child;
}

START_TEST(who_opens_or_closes_it_is_waited_for_until_a_signal)
{
    open_jobs(path);
    close_jobs();
    const pid_t holder = hold_opening();
    RUN_POOL("show", path);
    ended(1, "",
          "jobs.pool: another process is opening or closing it: try again, or continue it "
          "(SIGCONT) if it is stopped\n");
    /* For a file of this size it waits for a minute. */
    ck_assert_int_eq(truncate(path, (off_t)8 << 30), 0);
    ran.prepare = interrupted;
    RUN_POOL("show", path);
    ended(128 + SIGINT, "",
          "jobs.pool: another process is opening or closing it: try again, or continue it "
          "(SIGCONT) if it is stopped\n");
    kill_child(holder);
}
END_TEST

/* ---- list ---- */

START_TEST(no_pools_are_no_error_but_no_directory_is)
{
    fails_there(FAKE_PREAD, EIO);
    RUN_POOL("list");
    ended(0, "no pools: none in /dev/shm, and none that a process of yours has open\n", "");
    RUN_POOL("list", directory);
    ended(0, "no pools: none in /dev/shm and the directories, and none", "");
    RUN_POOL("list", "--json");
    ended(0, "", "");
    RUN_POOL("list", "/nowhere");
    ended(1, "", "cannot read the directory /nowhere: No such file or directory");
    fails_there(FAKE_OPENDIR, EACCES);
    RUN_POOL("list");
    ended(1, "", "cannot read /proc: Permission denied");
}
END_TEST

/* The line of the list that ends like this; there must be one such line. */
static const char *
line_of(const char *which)
{
    static char line[256];
    const char *at = ran.output;
    unsigned found = 0;

    while (*at != '\0') {
        const size_t length = strcspn(at, "\n");

        if (length >= strlen(which) &&
            strncmp(at + length - strlen(which), which, strlen(which)) == 0) {
            snprintf(line, sizeof(line), "%.*s", (int)length, at);
            found++;
        }
        at += length + 1;
    }
    ck_assert_msg(found == 1, "%u times %s in %s", found, which, ran.output);
    return line;
}

START_TEST(every_pool_is_listed_once_with_how_it_was_left)
{
    char link[128];

    open_jobs(path);
    RUN_POOL("list", directory, directory);
    ended(0, "ELEMENTS BYTES EACH STATES SHARDS  USED BY   NAME            POOL\n", "");
    check_has(line_of(path),
              "         4         16      2      1  1 user    jobs            /tmp/");
    close_jobs();
    RUN_POOL("list", directory);
    check_has(line_of(path), "  closed    jobs  ");
    leave_jobs(NULL);
    RUN_POOL("list", directory);
    check_has(line_of(path), "  killed    jobs  ");
    snprintf(link, sizeof(link), "%s/link", directory);
    ck_assert_int_eq(symlink(path, link), 0);
    snprintf(link, sizeof(link), "%s/fifo", directory);
    ck_assert_int_eq(mkfifo(link, 0600), 0);
    RUN_POOL("list", directory);
    ck_assert_ptr_null(strstr(ran.output, "/link"));
    RUN_POOL("list", "--json", directory);
    check_has(ran.output, "jobs.pool\", \"name\": \"jobs\", \"elements\": 4, \"element_size\": 16, "
                          "\"states\": 2, \"shards\": 1, \"users\": 0, \"closed\": false}\n");
}
END_TEST

START_TEST(what_processes_have_open_is_listed_too)
{
    open_jobs(NULL);
    RUN_POOL("list");
    check_has(ran.output, text_of("  1 user    jobs            %d:", (int)getpid()));
    close_jobs();
    open_jobs(path);
    RUN_POOL("list");
    check_has(line_of(path), "  1 user    jobs  ");
}
END_TEST

START_TEST(a_head_that_is_damaged_is_listed_as_such)
{
    open_jobs(path);
    close_jobs();
    const int file = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(pwrite(file, "\x1b[2J", 4, 100), 4);
    close(file);
    RUN_POOL("list", directory);
    ended(0, "cannot be used: pool /tmp/sxe-pool-", "");
    check_has(ran.output, "jobs.pool: its head is damaged, but the copy of the head at the end of");
    RUN_POOL("list", directory, "-j");
    ended(0, "\", \"error\": \"pool /tmp/sxe-pool-", "");
}
END_TEST

START_TEST(what_cannot_be_opened_is_not_listed)
{
    open_jobs(path);
    fails_there(FAKE_OPENAT, EACCES);
    RUN_POOL("list", directory);
    ended(0, "no pools: ", "");
}
END_TEST

/* ---- show ---- */

START_TEST(show_prints_states_and_users)
{
    open_jobs(path);
    RUN_POOL("show", path);
    ended(0,
          "pool jobs: in use\n4 elements of 16 bytes, 2 states, 1 shard, 0 bytes extra\n"
          "fields: u64 hits, char[6] name, bool on\n\n"
          "STATE                  ELEMENTS     OLDEST   YOUNGEST\n"
          "FREE                          2 ",
          "");
    check_has(ran.output, "\nREADY                         2 ");
    check_has(ran.output, "\n\nPROCESS  COMMAND\n");
    check_has(ran.output, text_of("\n%7d  ", (int)getpid()));
    RUN_POOL("--json", "show", path);
    ended(0,
          "{\"name\": \"jobs\", \"found\": \"in use\", \"elements\": 4, \"element_size\": 16, "
          "\"shards\": 1, "
          "\"extra_size\": 0, \"fields\": \"u64 hits, char[6] name, bool on\", \"states\": "
          "[{\"state\": \"FREE\", \"elements\": 2, \"oldest_s\": ",
          "");
    check_has(ran.output, text_of("], \"users\": [%d]}\n", (int)getpid()));
}
END_TEST

START_TEST(show_tells_how_the_pool_was_found)
{
    open_jobs(path);
    close_jobs();
    RUN_POOL("show", path);
    ended(0, "pool jobs: closed by all that used it\n", "");
    ck_assert_ptr_null(strstr(ran.output, "PROCESS"));
    leave_jobs(NULL);
    RUN_POOL("show", path);
    ended(0, "pool jobs: all its users were killed; the changes that they began are complete now\n",
          "");
    leave_jobs(NULL);
    RUN_POOL("show", "-j", path);
    ended(0, "{\"name\": \"jobs\", \"found\": \"killed\", ", "");
}
END_TEST

START_TEST(users_are_shown_with_what_they_call_themselves)
{
    open_jobs(path);
    uint32_t *process = &sharing()->head->slots[sharing()->token % SXE_POOL_SLOTS].process;
    const pid_t sleeper = fork();

    if (sleeper == 0)
        execlp("sleep", "sleep", "600", NULL);
    *process = (uint32_t)sleeper;
    /* The process may not have started its program yet. */
    do
        RUN_POOL("show", path);
    while (strstr(ran.output, "  sleep 600\n") == NULL);
    kill_child(sleeper);
    *process = 0x7ffffff0;
    RUN_POOL("show", path);
    ended(0, "2147483632  ?\n", "");
}
END_TEST

START_TEST(a_state_without_elements_has_no_ages)
{
    const SXE_POOL_SPEC spec = spec_of(path);

    open_as(&spec);
    RUN_POOL("show", path);
    ended(0, "READY                         0          -          -\n", "");
    RUN_POOL("show", path, "-j");
    ended(0, "{\"state\": \"READY\", \"elements\": 0}", "");
}
END_TEST

START_TEST(ages_are_said_in_the_unit_that_fits)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } ages[] = {
        {12, "      12 ms\n"},
        {3249, "      3.2 s\n"},
        {307999, "     5m 07s\n"},
        {7502000, "     2h 05m\n"},
        {(3 * 86400 + 4 * 3600) * UINT64_C(1000), "     3d 04h\n"},
    };
    uint64_t ms = 0;

    fake_time_start(SXE_NS_PER_SECOND, SXE_NS_PER_SECOND);
    open_jobs(path);
    struct sxe__pool_node *node = &sharing()->nodes[1];
    ck_assert_uint_eq(sxe_pool_take(jobs, READY, FREE), 0);
    node->stamp = sxe_pool_get_now(jobs);
    for (unsigned i = 0; i < sizeof(ages) / sizeof(ages[0]); i++) {
        fake_time_advance((ages[i].ms - ms) * SXE_NS_PER_MS);
        ms = ages[i].ms;
        RUN_POOL("show", path);
        ended(0, ages[i].text, "");
    }
    node->stamp = UINT64_MAX;
    RUN_POOL("show", path);
    ended(0, "READY                         1       0 ms       0 ms\n", "");
    RUN_POOL("show", path, "-j");
    ended(0, "{\"state\": \"READY\", \"elements\": 1}", "");
}
END_TEST

/* ---- check ---- */

START_TEST(check_says_that_a_pool_is_whole)
{
    open_jobs(path);
    RUN_POOL("check", path);
    ended(0,
          "pool jobs is whole: 4 elements in 2 states and 1 shard, all on the list of their "
          "state, in order\n",
          "");
}
END_TEST

START_TEST(check_says_what_is_damaged)
{
    open_jobs(path);
    break_list();
    RUN_POOL("check", path);
    ended(1, "",
          "sxe-pool: pool jobs is damaged: element 1 (state READY) is followed by 77, which "
          "cannot be; close it in every program, then: sxe-pool repair\n");
    close_jobs();
    RUN_POOL("check", path);
    ended(1, "", "element 1 (state READY) is followed by 77, which cannot be: ");
}
END_TEST

START_TEST(a_lock_that_is_held_is_waited_for_but_not_for_ever)
{
    open_jobs(path);
    sharing()->shards[0].lock = sharing()->token;
    RUN_POOL("check", path);
    ended(1, "",
          "a live process has held a lock for a second: try again, or continue it (SIGCONT) if it "
          "is stopped");
    RUN_POOL("dump", path, "-s", "READY");
    ended(1, "",
          "a live process has held a lock for a second: try again, or continue it (SIGCONT) if it "
          "is stopped");
    ran.prepare = interrupted;
    RUN_POOL("check", path);
    ended(128 + SIGINT, "", "");
    RUN_POOL("dump", path, "-s", "READY");
    ended(128 + SIGINT, "", "");
    ran.prepare = interrupted_in_20_ms;
    RUN_POOL("check", path);
    ended(128 + SIGINT, "", "");
    sharing()->shards[0].lock = 0;
}
END_TEST

/* The user of the slot is gone, and holds no lock. */
START_TEST(a_signal_ends_a_long_check_and_the_pool_is_let_go)
{
    SXE_POOL_SPEC spec = spec_of(path);

    spec.number = 70000;
    open_as(&spec);
    ran.prepare = interrupted;
    RUN_POOL("check", path);
    ended(128 + SIGINT, "", "");
    ck_assert_int_eq(sxe_pool_get_user(jobs, 1), 0);
    ck_assert_uint_eq(sharing()->shards[0].lock, 0);
    close_jobs();
    RUN_POOL("check", path);
    ended(128 + SIGINT, "", "");
    ran.prepare = NULL;
    RUN_POOL("show", path);
    ended(0, "pool jobs: closed by all that used it", "");
}
END_TEST

START_TEST(a_signal_ends_the_look_at_a_pool_that_was_left_open)
{
    leave_jobs(NULL);
    ran.prepare = interrupted;
    RUN_POOL("check", path);
    ended(-SIGINT, "", "");
    ran.prepare = NULL;
    RUN_POOL("check", path);
    ended(0, "pool jobs is whole: ", "");
}
END_TEST

START_TEST(check_names_the_elements_that_are_half_written)
{
    SXE_POOL_SPEC spec = spec_of(path);

    spec.number = 50;
    open_as(&spec);
    sharing()->nodes[3].sequence = 1;
    RUN_POOL("check", path);
    ended(1,
          "half-written elements, whose writer was killed; each is busy until all of it is written "
          "again: "
          "3\n",
          "");
    for (unsigned id = 0; id < 25; id++)
        sharing()->nodes[id].sequence = 7;
    RUN_POOL("check", path);
    ended(1, " 18 19 and 5 more\n", "");
}
END_TEST

/* ---- repair ---- */

START_TEST(repair_leaves_alone_what_is_good)
{
    open_jobs(path);
    close_jobs();
    RUN_POOL("repair", path);
    ended(0,
          "pool jobs was closed in good order: nothing to repair\n"
          "  FREE                          2\n  READY                         2\n"
          "pool jobs is whole",
          "");
    leave_jobs(NULL);
    RUN_POOL("repair", path);
    ended(0, "pool jobs: all its users were killed; the changes that they began are complete now\n",
          "");
}
END_TEST

static void
lose_state(void)
{
    sharing()->nodes[1].state = STATES;
}

START_TEST(repair_makes_new_lists_of_what_is_damaged)
{
    leave_jobs(break_list);
    RUN_POOL("check", path);
    ended(1, "", "element 1 (state READY) is followed by 77, which cannot be: ");
    RUN_POOL("repair", path);
    ended(0,
          "jobs.pool: element 1 (state READY) is followed by 77, which cannot be; its lists were "
          "rebuilt, 0 elements lost their state\n"
          "pool jobs: each element is on the list of its state again, in time order:\n"
          "  FREE                          2\n  READY                         2\n"
          "pool jobs is whole",
          "");
    RUN_POOL("check", path);
    ended(0, "is whole", "");
    ck_assert_int_eq(unlink(path), 0);
    leave_jobs(lose_state);
    RUN_POOL("repair", path);
    ended(0, "; its lists were rebuilt, 1 element lost its state\n", "");
}
END_TEST

START_TEST(repair_refuses_a_pool_in_use)
{
    char expected[128];

    open_jobs(path);
    RUN_POOL("repair", path);
    snprintf(expected, sizeof(expected), "pool jobs is in use, by process %d: end it first; ",
             (int)getpid());
    ended(1, "", expected);
    const SXE_POOL_SPEC spec = spec_of(path);
    void *again = sxe_pool_open(&spec, why);
    RUN_POOL("repair", path);
    snprintf(expected, sizeof(expected), "in use, by processes %d %d: end them first; ",
             (int)getpid(), (int)getpid());
    ended(1, "", expected);
    sxe_pool_delete(again);
}
END_TEST

/* ---- Damaged files, and processes that damage them ---- */

static void
run_all(void)
{
    static const struct {
        const char *command;
        const char *option;
    } commands[] = {{"show", "--json"}, {"check", NULL}, {"dump", "--json"}, {"repair", NULL}};

    for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        RUN_POOL(commands[i].command, path, commands[i].option);
        ck_assert_msg(ran.status == 0 || ran.status == 1, "%s: status %d, %s", commands[i].command,
                      ran.status, ran.errors);
    }
    RUN_POOL("dump", path, "--state", "READY");
    ck_assert_msg(ran.status == 0 || ran.status == 1, "status %d, %s", ran.status, ran.errors);
}

/* Change bytes, most of them where the lists are, after the elements. */
static void
change_bytes(char *bytes, size_t size)
{
    for (int number = 1 + rand() % 8; number > 0; number--) {
        const size_t from = rand() % 4 == 0 ? 0 : size - size / 3;

        bytes[from + (size_t)rand() % (size - from)] = (char)(rand() % 3 == 0 ? 0xff : rand());
    }
}

START_TEST(a_file_that_holds_anything_harms_nobody)
{
    char good[65536];
    char bytes[sizeof(good)];

    open_jobs(path);
    close_jobs();
    const int file = open(path, O_RDWR | O_CLOEXEC);
    const ssize_t size = pread(file, good, sizeof(good), 0);
    ck_assert_int_gt(size, 0);
    for (unsigned round = 0; round < 6; round++) {
        memcpy(bytes, good, (size_t)size);
        change_bytes(bytes, (size_t)size);
        ck_assert_int_eq(pwrite(file, bytes, (size_t)size, 0), size);
        run_all();
    }
    for (off_t cut = size - 1; cut > 0; cut /= 8) {
        ck_assert_int_eq(ftruncate(file, cut), 0);
        run_all();
    }
    close(file);
    RUN_POOL("list", directory);
    ck_assert_int_eq(ran.status, 0);
}
END_TEST

START_TEST(a_dict_whose_head_is_damaged_is_repaired_as_a_dict)
{
    const SXE_DICT_SPEC spec = {.name = "sessions", .cells = 50, .file = path};
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    ck_assert_int_eq(sxe_dict_put(dict, "a", 1, "value", 5, SXE_DICT_FOREVER), 0);
    sxe_dict_close(dict);
    const int fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "x", 1, 0), 1);
    close(fd);
    RUN_POOL("check", path);
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "its head is damaged");
    RUN_POOL("repair", path);
    ck_assert_int_eq(ran.status, 0);
    check_has(ran.output, "its table is whole, too: 1 entry");
}
END_TEST

static void
scribble(void *memory, size_t size)
{
    uint32_t *words = memory;

    for (;;)
        __atomic_store_n(&words[(size_t)rand() % (size / sizeof(*words))],
                         rand() % 2 == 0 ? (uint32_t)rand() % 100 : (uint32_t)rand(),
                         __ATOMIC_RELAXED);
}

START_TEST(a_process_that_writes_anything_harms_nobody)
{
    open_jobs(path);
    struct sxe__pool_node *nodes = sharing()->nodes;
    const size_t size = sharing()->end * sizeof(*nodes);
    const pid_t child = fork();

    if (child == 0)
        scribble(nodes, size);
    for (unsigned round = 0; round < 4; round++) {
        run_all();
        RUN_POOL("watch", path, "-n", "3", "-i", "1ms");
        ck_assert_msg(ran.status == 0 || ran.status == 1, "status %d, %s", ran.status, ran.errors);
        sharing()->head->damaged = 0;
    }
    kill_child(child);
}
END_TEST

START_TEST(a_process_that_writes_anything_into_a_dict_harms_nobody)
{
    const SXE_DICT_SPEC spec = {.name = "sessions", .cells = 50, .file = path};
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    for (char key = 'a'; key < 'z'; key++)
        sxe_dict_put(dict, &key, 1, "value", 5, SXE_DICT_FOREVER);
    size_t extra_size;
    char *array = sxe_dict_get_pool(dict);
    char *extra = sxe_pool_get_extra(array, &extra_size);
    const pid_t child = fork();
    if (child == 0)
        scribble(array, (size_t)(extra - array) + extra_size);
    for (unsigned round = 0; round < 4; round++) {
        run_all();
        dict->sharing->head->damaged = 0;
    }
    kill_child(child);
    sxe_dict_close(dict);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-app");
    TCase *line = add_case(suite, "command line");
    TCase *list = add_case(suite, "list");
    TCase *looks = add_case(suite, "show, check, repair");
    TCase *hostile = add_case(suite, "hostile");

    tcase_add_test(line, a_command_line_that_cannot_be_understood_is_refused);
    tcase_add_test(line, help_says_what_there_is);
    tcase_add_test(line, completions_know_the_commands);
    tcase_add_test(line, words_may_stand_behind_two_dashes);
    tcase_add_test(line, what_cannot_be_written_is_an_error);
    tcase_add_test(line, what_is_no_pool_is_refused_with_a_sentence);
    tcase_add_test(line, a_bare_name_is_not_taken_for_a_file_beside_one);
    tcase_add_test(line, a_pool_may_be_a_name_in_dev_shm_even_a_number);
    tcase_add_test(line, a_pool_may_be_what_a_process_has_open);
    tcase_add_test(line, what_a_process_has_open_may_be_no_pool_or_several);
    tcase_add_test(line, what_a_process_has_open_twice_is_one_pool);
    tcase_add_test(line, who_opens_or_closes_it_is_waited_for_until_a_signal);
    tcase_add_test(list, no_pools_are_no_error_but_no_directory_is);
    tcase_add_test(list, every_pool_is_listed_once_with_how_it_was_left);
    tcase_add_test(list, what_processes_have_open_is_listed_too);
    tcase_add_test(list, a_head_that_is_damaged_is_listed_as_such);
    tcase_add_test(list, what_cannot_be_opened_is_not_listed);
    tcase_add_test(looks, show_prints_states_and_users);
    tcase_add_test(looks, show_tells_how_the_pool_was_found);
    tcase_add_test(looks, users_are_shown_with_what_they_call_themselves);
    tcase_add_test(looks, a_state_without_elements_has_no_ages);
    tcase_add_test(looks, ages_are_said_in_the_unit_that_fits);
    tcase_add_test(looks, check_says_that_a_pool_is_whole);
    tcase_add_test(looks, check_says_what_is_damaged);
    tcase_add_test(looks, a_lock_that_is_held_is_waited_for_but_not_for_ever);
    tcase_add_test(looks, check_names_the_elements_that_are_half_written);
    tcase_add_test(looks, a_signal_ends_a_long_check_and_the_pool_is_let_go);
    tcase_add_test(looks, a_signal_ends_the_look_at_a_pool_that_was_left_open);
    tcase_add_test(looks, repair_leaves_alone_what_is_good);
    tcase_add_test(looks, repair_makes_new_lists_of_what_is_damaged);
    tcase_add_test(looks, a_dict_whose_head_is_damaged_is_repaired_as_a_dict);
    tcase_add_test(looks, repair_refuses_a_pool_in_use);
    tcase_add_test(hostile, a_file_that_holds_anything_harms_nobody);
    tcase_add_test(hostile, a_process_that_writes_anything_harms_nobody);
    tcase_add_test(hostile, a_process_that_writes_anything_into_a_dict_harms_nobody);
    return sxe_test_main(suite);
}
