/* SPDX-License-Identifier: MIT
 *
 * sxe-pool as a program, on pools that this process has open, has closed, or that a child left.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "captured.h"
#include "fake-os.h"
#include "sxe-pool-sharing.h"
#include "test-main.h"

int sxe_pool_main(int argc, char **argv);

enum { FREE, READY, STATES };

struct job {
    uint64_t hits;
    char name[6];
    bool on;
};

static struct {
    int status;
    char output[16384];
    char errors[8192];
    void (*prepare)(void); /* called in the child before the program */
} ran;

static char directory[64];
static char path[96];
static char why[SXE_POOL_WHY_SIZE];
static struct job *jobs; /* what this process has open */

/* ---- The program ---- */

static int
main_of(const char **argv)
{
    int argc = 0;

    while (argv[argc] != NULL)
        argc++;
    return sxe_pool_main(argc, (char **)(uintptr_t)argv);
}

static void
run_pool(const char **argv)
{
    FILE *output = tmpfile();
    FILE *errors = tmpfile();
    int status;

    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(fileno(output), STDOUT_FILENO);
        dup2(fileno(errors), STDERR_FILENO);
        fake_os_reset();
        if (ran.prepare != NULL)
            ran.prepare();
        exit(main_of(argv));
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    read_back(output, ran.output, sizeof(ran.output));
    read_back(errors, ran.errors, sizeof(ran.errors));
}
#define RUN_POOL(...) run_pool((const char *[]){"sxe-pool", __VA_ARGS__, NULL})

static void
check_has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in \"%s\"", part, text);
}

/* How the last run ended; "" is nothing at all. */
static void
ended(int status, const char *output, const char *errors)
{
    ck_assert_msg(ran.status == status, "status %d, %s%s", ran.status, ran.output, ran.errors);
    if (*output == '\0')
        ck_assert_str_eq(ran.output, "");
    if (*errors == '\0')
        ck_assert_str_eq(ran.errors, "");
    check_has(ran.output, output);
    check_has(ran.errors, errors);
}

/* ---- Pools ---- */

static void
set_up(void)
{
    unsetenv("SXE_LOG_LEVEL");
    snprintf(directory, sizeof(directory), "/tmp/sxe-pool-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/jobs.pool", directory);
    ran.prepare = NULL;
    jobs = NULL;
}

static void
tear_down(void)
{
    char command[128];

    sxe_pool_delete(jobs);
    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static SXE_POOL_SPEC
spec_of(const char *file)
{
    return (SXE_POOL_SPEC){
        .name = "jobs",
        .number = 4,
        .element_size = sizeof(struct job),
        .states = STATES,
        .state_names = "FREE READY",
        .fields = "u64 hits, char[6] name, bool on",
        .file = file,
    };
}

/* Four elements, of which 0 and then 1 became READY. */
static void
open_jobs(const char *file)
{
    const SXE_POOL_SPEC spec = spec_of(file);

    jobs = sxe_pool_open(&spec, why);
    ck_assert_msg(jobs != NULL, "%s", why);
    for (unsigned id = 0; id < 2; id++) {
        const struct job job = {.hits = id + 5, .name = {'a', '"', 0, 'x'}, .on = id == 1};

        ck_assert_uint_eq(sxe_pool_set_oldest_element_state(jobs, FREE, READY), id);
        sxe_pool_write_element(jobs, id, &job);
    }
}

static void
close_jobs(void)
{
    sxe_pool_delete(jobs);
    jobs = NULL;
}

static struct sxe__pool_sharing *
sharing(void)
{
    return sxe__pool_header(jobs)->sharing;
}

/* A file that a child had open when it was killed. */
static void
leave_jobs(void (*finally)(void))
{
    const pid_t pid = fork();

    if (pid == 0) {
        open_jobs(path);
        if (finally != NULL)
            finally();
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static void
break_list(void)
{
    sharing()->nodes[1].next = 77;
}

static const char *SXE_PRINTF(1, 2) text_of(const char *format, ...)
{
    static char text[128];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return text;
}
#define PID            text_of("%d", (int)getpid())
#define DESCRIPTOR(fd) text_of("%d:%d", (int)getpid(), fd)

/* ---- The command line ---- */

START_TEST(a_command_line_that_cannot_be_understood_is_refused)
{
    RUN_POOL(NULL);
    ended(2, "", "a command is missing: list, show, check, repair, dump or watch. Try --help.");
    RUN_POOL("lsit");
    ended(2, "", "the commands are list, show, check, repair, dump and watch, not lsit.");
    RUN_POOL("dump");
    ended(2, "", "the pool is missing behind dump.");
    RUN_POOL("show", "a", "b");
    ended(2, "", "one pool at a time, so not b.");
    RUN_POOL("--jsno", "list");
    ended(2, "", "unknown option --jsno; did you mean --json?");
    RUN_POOL("watch", "a", "-n", "0");
    ended(2, "", "the number of looks (-n) is '0'");
    RUN_POOL("watch", "a", "--interval", "soon");
    ended(2, "", "the time between looks (-i) is 'soon'");
    RUN_POOL("list", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f",
             "g");
    ended(2, "", "too many words: g.");
}
END_TEST

START_TEST(help_says_what_there_is)
{
    RUN_POOL("--help");
    ended(0, "repair POOL    make new lists of what each element says of itself", "");
    RUN_POOL("--version");
    ended(0, "sxe-pool " SXE_VERSION, "");
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

/* ---- Which pool ---- */

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
    ended(1, "", "there is none");
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
    ended(1, "", "has no descriptor 987 that can be seen: No such file or directory");
    RUN_POOL("show", text_of("%d:99999999999", (int)getpid()));
    ended(1, "", "has no descriptor 2147483647 that can be seen");
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
    ended(1, "", "has no pool open that others could see");
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
    check_has(ran.errors, "; say which\n");
    sxe_pool_delete(others);
}
END_TEST

/* ---- list ---- */

static void
no_file_is_a_pool(void)
{
    fake_os_fail(FAKE_PREAD, 1, 0, EIO);
}

static void
nothing_can_be_listed(void)
{
    fake_os_fail(FAKE_OPENDIR, 1, 0, EACCES);
}

START_TEST(no_pools_are_no_error_but_no_directory_is)
{
    ran.prepare = no_file_is_a_pool;
    RUN_POOL("list");
    ended(0, "no pools: none in /dev/shm, and none that a process of yours has open\n", "");
    RUN_POOL("list", directory);
    ended(0, "no pools: none in /dev/shm and the directories, and none", "");
    RUN_POOL("list", "--json");
    ended(0, "", "");
    RUN_POOL("list", "/nowhere");
    ended(1, "", "cannot read the directory /nowhere: No such file or directory");
    ran.prepare = nothing_can_be_listed;
    RUN_POOL("list");
    ended(1, "", "cannot read /proc: Permission denied");
}
END_TEST

/* A line of the list that ends with that, once. */
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
    check_has(ran.output, "jobs.pool: the pool's head is damaged (its checksum is wrong)");
    RUN_POOL("list", directory, "-j");
    ended(0, "\", \"error\": \"pool /tmp/sxe-pool-", "");
}
END_TEST

static void
nothing_opens(void)
{
    fake_os_fail(FAKE_OPENAT, 1, 0, EACCES);
}

START_TEST(what_cannot_be_opened_is_not_listed)
{
    open_jobs(path);
    ran.prepare = nothing_opens;
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
          "{\"name\": \"jobs\", \"elements\": 4, \"element_size\": 16, \"shards\": 1, "
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
    ended(0, "pool jobs: all that used it were killed; what they had begun is complete now\n", "");
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
    /* It may not have got there yet. */
    do
        RUN_POOL("show", path);
    while (strstr(ran.output, "  sleep 600\n") == NULL);
    kill(sleeper, SIGKILL);
    waitpid(sleeper, NULL, 0);
    *process = 0x7ffffff0;
    RUN_POOL("show", path);
    ended(0, "2147483632  ?\n", "");
}
END_TEST

START_TEST(a_state_without_elements_has_no_ages)
{
    const SXE_POOL_SPEC spec = spec_of(path);

    jobs = sxe_pool_open(&spec, why);
    RUN_POOL("show", path);
    ended(0, "READY                         0          -          -\n", "");
    RUN_POOL("show", path, "-j");
    ended(0, "{\"state\": \"READY\", \"elements\": 0}", "");
}
END_TEST

START_TEST(ages_are_said_in_the_unit_that_fits)
{
    static const struct {
        double seconds;
        const char *text;
    } ages[] = {
        {0.0125, " ms"},
        {3.21, "    3.2 s"},
        {307.5, "  5m 07s"},
        {7502, " 2h 05m"},
        {3 * 86400 + 4 * 3600, " 3d 04h"},
    };
    open_jobs(path);
    struct sxe__pool_node *node = &sharing()->nodes[1];
    ck_assert_uint_eq(sxe_pool_set_oldest_element_state(jobs, READY, FREE), 0);
    for (unsigned i = 0; i < sizeof(ages) / sizeof(ages[0]); i++) {
        sharing()->head->time_offset_ns += UINT64_C(10) * 86400 * SXE_NS_PER_SECOND;
        sharing()->time_offset_ns = sharing()->head->time_offset_ns;
        node->stamp = sxe_pool_get_now(jobs) - (uint64_t)(ages[i].seconds * 1e9);
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

static void
time_flies(void)
{
    fake_os_fail(FAKE_NANOSLEEP, 0, 0, 0);
}

static void
hold_signal(int signal)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, signal);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    raise(signal);
}

static void
interrupted(void)
{
    hold_signal(SIGINT);
}

START_TEST(a_lock_that_is_held_is_waited_for_but_not_for_ever)
{
    open_jobs(path);
    sharing()->shards[0].lock = sharing()->token;
    ran.prepare = time_flies;
    RUN_POOL("check", path);
    ended(1, "", "a process that is alive has held a lock for a second: try again; is it stopped?");
    RUN_POOL("dump", path, "-s", "READY");
    ended(1, "", "a process that is alive has held a lock for a second: try again; is it stopped?");
    ran.prepare = interrupted;
    RUN_POOL("check", path);
    ended(1, "", "has held a lock");
    RUN_POOL("dump", path, "-s", "READY");
    ended(0, "", "");
    sharing()->shards[0].lock = 0;
}
END_TEST

START_TEST(check_names_the_elements_that_are_half_written)
{
    SXE_POOL_SPEC spec = spec_of(path);

    spec.number = 50;
    jobs = sxe_pool_open(&spec, why);
    sharing()->nodes[3].sequence = 1;
    RUN_POOL("check", path);
    ended(1, "half written, by who was killed (until they are written again): 3\n", "");
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
    ended(0, "pool jobs: all that used it were killed; what they had begun is complete now\n", "");
}
END_TEST

START_TEST(repair_makes_new_lists_of_what_is_damaged)
{
    leave_jobs(break_list);
    RUN_POOL("check", path);
    ended(1, "", "element 1 (state READY) is followed by 77, which cannot be: ");
    RUN_POOL("repair", path);
    ended(0,
          "jobs.pool: element 1 (state READY) is followed by 77, which cannot be; its lists were "
          "made anew, 0 elements lost their state\n"
          "pool jobs: each element is on the list of the state that it says it is in, in the order "
          "of its time:\n"
          "  FREE                          2\n  READY                         2\n"
          "pool jobs is whole",
          "");
    RUN_POOL("check", path);
    ended(0, "is whole", "");
}
END_TEST

START_TEST(repair_refuses_a_pool_in_use)
{
    char expected[128];

    open_jobs(path);
    RUN_POOL("repair", path);
    snprintf(expected, sizeof(expected), "pool jobs is in use, by the processes %d: end them first",
             (int)getpid());
    ended(1, "", expected);
}
END_TEST

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
    sxe_pool_touch_indexed_element(jobs, 0);
    RUN_POOL("dump", path, "--state", _i == 0 ? "READY" : "1", "--json");
    ended(0, "{\"id\": 1, ", "");
    ck_assert_int_eq(strncmp(ran.output, "{\"id\": 1, ", 10), 0);
    check_has(ran.output, "\n{\"id\": 0, ");
    ck_assert_ptr_null(strstr(ran.output, "FREE"));
    RUN_POOL("dump", path, "--state", "BUSY");
    ended(1, "", "there is no state 'BUSY': sxe-pool show has them");
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

    jobs = sxe_pool_open(&spec, why);
    sxe_pool_write_element(jobs, 0, &value);
    RUN_POOL("dump", path);
    ended(0,
          " a=255 b=-1 c=65535 d=-2 e=4294967295 f=-3 g=18446744073709551615 "
          "h=-9223372036854775808 i=0.5 j=inf k=\"\\u001b\\\\\\u000a\\ufffd\xc3\xa9"
          "ee\"\n",
          "");
    RUN_POOL("dump", path, "-j");
    ended(0, "\"i\": 0.5, \"j\": null, \"k\": ", "");
}
END_TEST

START_TEST(without_fields_dump_prints_bytes)
{
    SXE_POOL_SPEC spec = {
        .name = "b\x1b\xffs", .number = 1, .element_size = 3, .states = 1, .file = path};

    jobs = sxe_pool_open(&spec, why);
    sxe_pool_write_element(jobs, 0, "\x01\xab\x7f");
    RUN_POOL("dump", path);
    ended(0, " 01ab7f\n", "");
    RUN_POOL("dump", path, "-j");
    ended(0, "\"generation\": 1, \"bytes\": \"01ab7f\"}\n", "");
    RUN_POOL("check", path);
    ended(0, "pool b??s is whole: 1 element in 1 state and 1 shard", "");
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

static void
no_memory(void)
{
    fake_os_fail(FAKE_MALLOC, 1, 0, ENOMEM);
    fake_os_fail(FAKE_CALLOC, 1, 0, ENOMEM);
}

START_TEST(without_memory_a_pool_is_let_go_again)
{
    open_jobs(path);
    ran.prepare = no_memory;
    RUN_POOL("dump", path);
    ended(1, "", "no memory for an element: Cannot allocate memory");
    RUN_POOL("watch", path);
    ended(1, "", "no memory for 2 states");
    ck_assert_int_eq(sxe_pool_get_user(jobs, 1), 0);
}
END_TEST

/* A lock of slot 9, which was never used, and an intent that nobody of ours can have written. */
START_TEST(dump_ends_where_a_pool_is_damaged)
{
    open_jobs(path);
    sharing()->shards[0].lock = 5 << 7 | 9;
    sharing()->shards[0].intent = (struct sxe__pool_intent){.valid = 1, .id = 99};
    RUN_POOL("dump", path, "-s", "READY");
    ended(1, "", "sxe-pool: the pool is damaged: see sxe-pool check\n");
}
END_TEST

START_TEST(a_signal_ends_a_long_dump)
{
    SXE_POOL_SPEC spec = spec_of(path);

    spec.number = 1000;
    jobs = sxe_pool_open(&spec, why);
    ran.prepare = interrupted;
    RUN_POOL("dump", path);
    ended(0, "\n255 FREE ", "");
    ck_assert_ptr_null(strstr(ran.output, "\n256 FREE "));
}
END_TEST

/* ---- Dicts ---- */

/* One that a child filled, and was killed: a text for ever, bytes for an hour, one too long to be
 * shown, and one that is pinned. */
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
}

START_TEST(a_dict_is_shown_with_its_entries)
{
    leave_dict(NULL);
    RUN_POOL("show", path);
    ended(0, "\na dict of 3 entries\n", "");
    check_has(ran.output, "\nPINNED                        1 ");
    RUN_POOL("show", path, "-j");
    ended(0, ", \"entries\": 3, \"states\": [", "");
    RUN_POOL("check", path);
    ended(0, "\nso is its table: 3 entries, each in its one place\n", "");
    RUN_POOL("watch", path, "-n1");
    ended(0, "  LIVE 2  PINNED 1  ", "");
}
END_TEST

START_TEST(dump_of_a_dict_is_its_entries)
{
    leave_dict(NULL);
    RUN_POOL("dump", path);
    ended(0, "key=\"id\\u000a1\" LIVE 5 bytes - value=\"alice\"\n", "");
    check_has(ran.output, "key_hex=ff LIVE 2 bytes 3599.");
    check_has(ran.output, " s value_hex=0080\n");
    check_has(ran.output, "key=\"pinned\" PINNED 0 bytes - value=\"\"\n");
    RUN_POOL("dump", path, "--json");
    ended(0, "{\"key\": \"id\\u000a1\", \"state\": \"LIVE\", \"size\": 5, \"ttl_s\": null, "
             "\"value\": \"alice\"}\n", "");
    check_has(ran.output, "{\"key_hex\": \"ff\", \"state\": \"LIVE\", \"size\": 2, \"ttl_s\": 3599.");
    check_has(ran.output, ", \"value_hex\": \"0080\"}\n");
    RUN_POOL("dump", path, "--state", "PINNED");
    ck_assert_str_eq(ran.output, "key=\"pinned\" PINNED 0 bytes - value=\"\"\n");
}
END_TEST

START_TEST(a_value_is_cut_at_a_mebibyte)
{
    leave_dict(put_long_value);
    ran.prepare = count_output;
    RUN_POOL("dump", path);
    ended(0, "key=\"long\" LIVE 1048586 bytes - value=\"vvvv", "");
    ck_assert_uint_eq(count_of('v'), 1 << 20);
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
    ended(0, "  FREE 2  READY 2\n", "");
    ck_assert_int_eq(sxe_pool_get_user(jobs, 1), 0);
}
END_TEST

/* Everything that a program writes to a terminal. */
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
        exit(main_of(argv));
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

/* What a child moves all the time; it may not have begun at the first try. */
START_TEST(watch_counts_what_came)
{
    open_jobs(path);
    const pid_t child = fork();
    if (child == 0) {
        for (;;)
            sxe_pool_touch_indexed_element(jobs, 0);
    }
    do {
        RUN_POOL("watch", path, "-i", "10ms", "-n", "2");
        ended(0, "/s came)  READY 2 (", "");
    } while (strstr(ran.output, "READY 2 (0.0/s came)") != NULL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-app");
    TCase *line = tcase_create("command line");
    TCase *list = tcase_create("list");
    TCase *looks = tcase_create("show, check, repair");
    TCase *dump = tcase_create("dump, watch");
    TCase *const cases[] = {line, list, looks, dump};

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tcase_add_checked_fixture(cases[i], set_up, tear_down);
        suite_add_tcase(suite, cases[i]);
    }
    tcase_add_test(line, a_command_line_that_cannot_be_understood_is_refused);
    tcase_add_test(line, help_says_what_there_is);
    tcase_add_test(line, words_may_stand_behind_two_dashes);
    tcase_add_test(line, what_cannot_be_written_is_an_error);
    tcase_add_test(line, what_is_no_pool_is_refused_with_a_sentence);
    tcase_add_test(line, a_pool_may_be_a_name_in_dev_shm_even_a_number);
    tcase_add_test(line, a_pool_may_be_what_a_process_has_open);
    tcase_add_test(line, what_a_process_has_open_may_be_no_pool_or_several);
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
    tcase_add_test(looks, repair_leaves_alone_what_is_good);
    tcase_add_test(looks, repair_makes_new_lists_of_what_is_damaged);
    tcase_add_test(looks, repair_refuses_a_pool_in_use);
    tcase_add_test(dump, dump_prints_each_element);
    tcase_add_loop_test(dump, dump_of_a_state_is_in_the_order_of_time, 0, 2);
    tcase_add_test(dump, dump_knows_every_type);
    tcase_add_test(dump, without_fields_dump_prints_bytes);
    tcase_add_test(dump, what_is_half_written_is_not_shown);
    tcase_add_test(dump, without_memory_a_pool_is_let_go_again);
    tcase_add_test(dump, dump_ends_where_a_pool_is_damaged);
    tcase_add_test(dump, a_signal_ends_a_long_dump);
    tcase_add_test(dump, watch_prints_a_line_a_look);
    tcase_add_test(dump, watch_ends_with_a_signal_and_lets_the_pool_go);
    tcase_add_test(dump, on_a_terminal_the_table_stands_still);
    tcase_add_test(dump, watch_counts_what_came);
    return sxe_test_main(suite);
}
