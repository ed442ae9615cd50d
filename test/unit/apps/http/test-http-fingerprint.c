/* SPDX-License-Identifier: MIT
 *
 * The fingerprint of a made-up machine, which is a tree of files below a directory.
 */
#include "../../../../apps/http/run/fingerprint.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-util.h"
#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define CPU          "/sys/devices/system/cpu"
#define WEAKNESSES   CPU "/vulnerabilities"

static char root[64];
static const char *machine = root;
static struct load_fingerprint fingerprint;
static char program[] = "sxe-http", quiet[] = "-q", word[LOAD_FACT_MAX * 2];
static char *words[] = {program, word, quiet};
static struct load_plan plan = {.argc = 3, .argv = words};

static void
make_root(void)
{
    const char *directory = getenv("TMPDIR");

    snprintf(root, sizeof(root), "%.40s/fingerprint-XXXXXX",
             directory != NULL ? directory : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static int
remove_entry(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    SXE_UNUSED_PARAMETER(stat);
    SXE_UNUSED_PARAMETER(type);
    SXE_UNUSED_PARAMETER(ftw);
    return remove(path);
}

static void
remove_root(void)
{
    nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Write a file of the made-up machine, and make its directories. */
static void
put(const char *path, const char *text)
{
    char full[512];
    FILE *file;

    snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    file = fopen(full, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static const char *
take(const char *name)
{
    load_fingerprint_take(&fingerprint, machine, &plan);
    for (unsigned i = 0; i < fingerprint.number; i++)
        if (strcmp(fingerprint.facts[i].name, name) == 0)
            return fingerprint.facts[i].value;
    ck_abort_msg("%s is no fact", name);
    return NULL;
}

/* ---- Facts that are read from files ---- */

static const struct {
    const char *path;
    const char *text;
    const char *name;
    const char *value;
} facts[] = {
    {"/proc/sys/kernel/osrelease", "6.1.0-13-amd64\n", "kernel", "6.1.0-13-amd64"},
    {"/proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU @ 2 GHz\nmodel name\t: B\n", "cpu_model",
     "A CPU @ 2 GHz"},
    {"/proc/cpuinfo", "processor\t: 0\n", "cpu_model", "unknown"},
    {"/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vme hypervisor avx\n", "virtual_machine",
     "yes"},
    {"/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vme\n", "virtual_machine", "no"},
    {"/proc/self/status", "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-1,3\nMems:\t1\n",
     "cpus_allowed", "0-1,3"},
    {CPU "/online", "0-3\n", "cpus_online", "0-3"},
    {CPU "/cpu0/cpufreq/scaling_governor", "powersave\n", "governor", "powersave"},
    {CPU "/intel_pstate/no_turbo", "0\n", "turbo", "on"},
    {CPU "/intel_pstate/no_turbo", "1\n", "turbo", "off"},
    {CPU "/cpufreq/boost", "1\n", "turbo", "on"},
    {CPU "/cpufreq/boost", "0\n", "turbo", "off"},
    {"/proc/meminfo", "MemTotal:       16384000 kB\nMemFree: 1 kB\n", "memory", "16000 MiB"},
    {"/proc/meminfo", "Mem: 1\n", "memory", "unknown"},
    {"/proc/stat", "cpu  10 20 30 40 50 60 70 80 1 2\n", "steal", "22.22 %"},
    {"/proc/stat", "cpu  10 20 30\n", "steal", "unknown"},
    {"/proc/stat", "cpu  0 0 0 0 0 0 0 0\n", "steal", "unknown"},
    {"/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n", "clocksource",
     "tsc"},
    {"/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n",
     "transparent_hugepage", "always [madvise] never"},
    {"/proc/sys/net/core/somaxconn", "4096\n", "net.core.somaxconn", "4096"},
    {"/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n", "net.ipv4.ip_local_port_range",
     "32768 60999"},
    {"/proc/sys/net/ipv4/tcp_congestion_control", "cubic", "net.ipv4.tcp_congestion_control",
     "cubic"},
    {"/proc/sys/net/core/rmem_max", "", "net.core.rmem_max", "unknown"},
    {"/proc/sys/net/core/rmem_max", "1\x1b[2J\n", "net.core.rmem_max", "1 [2J"},
};

START_TEST(a_fact_comes_from_its_file)
{
    put(facts[_i].path, facts[_i].text);
    ck_assert_str_eq(take(facts[_i].name), facts[_i].value);
}
END_TEST

START_TEST(what_the_system_does_not_tell_is_unknown)
{
    static const char *const told[] = {"command", "sxe_http", "compiler", "libev", "open_files"};

    take("kernel");
    ck_assert_uint_gt(fingerprint.number, 25);
    ck_assert_uint_le(fingerprint.number, LOAD_FACTS_MAX);
    for (unsigned i = 0; i < fingerprint.number; i++) {
        bool is_told = false;

        for (int j = 0; j < COUNT(told); j++)
            is_told |= strcmp(told[j], fingerprint.facts[i].name) == 0;
        ck_assert_msg((strcmp(fingerprint.facts[i].value, "unknown") != 0) == is_told, "%s: %s",
                      fingerprint.facts[i].name, fingerprint.facts[i].value);
    }
}
END_TEST

START_TEST(this_machine_tells_its_kernel_and_cpus)
{
    machine = "";
    ck_assert_str_ne(take("kernel"), "unknown");
    ck_assert_str_ne(take("cpus_online"), "unknown");
    ck_assert_str_ne(take("cpus_allowed"), "unknown");
}
END_TEST

START_TEST(files_that_cannot_be_read_are_unknown)
{
    put("/proc/sys/kernel/osrelease", "6.1.0\n");
    fake_os_fail(FAKE_READ, 1, 0, EIO);
    ck_assert_str_eq(take("kernel"), "unknown");
    fake_os_reset();
    ck_assert_str_eq(take("kernel"), "6.1.0");
}
END_TEST

/* ---- Mitigations ---- */

START_TEST(mitigations_are_told_by_the_names_of_what_they_are_against)
{
    put(WEAKNESSES "/meltdown", "Mitigation: PTI\n");
    put(WEAKNESSES "/l1tf", "Mitigation: PTE Inversion; VMX: SMT vulnerable\n");
    put(WEAKNESSES "/mds", "Vulnerable: Clear CPU buffers attempted, no microcode\n");
    put(WEAKNESSES "/itlb_multihit", "Not affected\n");
    put(WEAKNESSES "/srbds", "Unknown: Dependent on hypervisor status\n");
    put(WEAKNESSES "/.hidden", "Vulnerable\n");
    ck_assert_str_eq(take("mitigations"), "mitigated: l1tf meltdown; vulnerable: mds");
}
END_TEST

START_TEST(a_cpu_without_weaknesses_has_none)
{
    put(WEAKNESSES "/meltdown", "Not affected\n");
    ck_assert_str_eq(take("mitigations"), "mitigated: none; vulnerable: none");
}
END_TEST

/* ---- Limits, programs ---- */

START_TEST(open_files_are_the_soft_and_the_hard_limit)
{
    unsigned long long soft = 0, hard = 0;

    ck_assert_int_eq(sscanf(take("open_files"), "soft %llu hard %llu", &soft, &hard), 2);
    ck_assert_uint_ge(hard, soft);
    fake_os_fail(FAKE_GETRLIMIT, 1, 0, EPERM);
    ck_assert_str_eq(take("open_files"), "unknown");
}
END_TEST

START_TEST(versions_are_those_that_were_built_and_linked)
{
    ck_assert_str_eq(take("sxe_http"), SXE_VERSION);
    ck_assert_ptr_nonnull(strchr(take("libev"), '.'));
    ck_assert_ptr_nonnull(strchr(take("compiler"), '.'));
}
END_TEST

static const struct {
    const char *word;
    const char *quoted;
} quotes[] = {
    {"http://127.0.0.1:8000/a_b", "http://127.0.0.1:8000/a_b"},
    {"--rate=1k:5k", "--rate=1k:5k"},
    {"", "''"},
    {"a b", "'a b'"},
    {"it's", "'it'\\''s'"},
    {"'", "''\\'''"},
    {"$HOME", "'$HOME'"},
    {"p99<20ms", "'p99<20ms'"},
    {"*", "'*'"},
    {"~", "'~'"},
    {"\xc3\xa4", "'\xc3\xa4'"},
};

START_TEST(the_command_is_quoted_so_that_it_can_be_pasted)
{
    char expected[64];

    snprintf(word, sizeof(word), "%s", quotes[_i].word);
    snprintf(expected, sizeof(expected), "sxe-http %s -q", quotes[_i].quoted);
    ck_assert_str_eq(take("command"), expected);
}
END_TEST

/* The limit as the shell prints it. */
START_TEST(a_shell_reads_the_command_back)
{
    char command[256], read[64];
    FILE *shell;

    snprintf(word, sizeof(word), "%s", quotes[_i].word);
    plan.argc = 1;
    plan.argv = words + 1;
    snprintf(command, sizeof(command), "printf %%s %s", take("command"));
    shell = popen(command, "r");
    read[fread(read, 1, sizeof(read) - 1, shell)] = '\0';
    ck_assert_int_eq(pclose(shell), 0);
    ck_assert_str_eq(read, quotes[_i].word);
}
END_TEST

START_TEST(a_command_that_is_too_long_is_cut_and_says_so)
{
    const char *command;

    for (unsigned i = 0; i < 2; i++) {
        memset(word, i == 0 ? 'x' : '\'', sizeof(word) - 1);
        command = take("command");
        ck_assert_uint_eq(strlen(command), LOAD_FACT_MAX - 1);
        ck_assert_str_eq(command + LOAD_FACT_MAX - 4, "...");
    }
}
END_TEST

START_TEST(the_servers_command_is_told_as_it_was_given)
{
    plan.server_cmd = "nginx -p 'a b'";
    ck_assert_str_eq(take("server_command"), "nginx -p 'a b'");
}
END_TEST

/* A server process that listens at 127.0.0.1:8000 and at /run/web.sock. */
static void
put_server(void)
{
    static const char command[] = "nginx\0-g\0daemon off;\0";
    char full[512];
    FILE *file;

    put("/proc/net/tcp", "   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 "
                         "00000000  1000        0 12345 1 0 100 0 0 10 0\n");
    put("/proc/net/unix", "f: 00000002 00000000 00010000 0001 01 12345 /run/web.sock\n");
    put("/proc/77/fd/0", "");
    snprintf(full, sizeof(full), "%s/proc/77/fd/3", root);
    ck_assert_int_eq(symlink("socket:[12345]", full), 0);
    put("/proc/77/cmdline", "");
    snprintf(full, sizeof(full), "%s/proc/77/cmdline", root);
    file = fopen(full, "w");
    ck_assert_uint_eq(fwrite(command, sizeof(command), 1, file), 1);
    fclose(file);
}

START_TEST(the_command_of_a_server_on_this_machine_is_found)
{
    put_server();
    plan.port = 8000;
    snprintf(plan.ip, sizeof(plan.ip), "127.0.0.1");
    ck_assert_str_eq(take("server_command"), "nginx -g 'daemon off;'");
    plan.unix_path = "/run/web.sock";
    ck_assert_str_eq(take("server_command"), "nginx -g 'daemon off;'");
}
END_TEST

START_TEST(that_of_another_server_is_not_known)
{
    put_server();
    plan.port = 8000;
    snprintf(plan.ip, sizeof(plan.ip), "192.0.2.1");
    ck_assert_str_eq(take("server_command"), "unknown");
    plan.unix_path = "/run/other.sock";
    ck_assert_str_eq(take("server_command"), "unknown");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-fingerprint");
    TCase *tcase = tcase_create("fingerprint");

    tcase_add_checked_fixture(tcase, make_root, remove_root);
    tcase_add_loop_test(tcase, a_fact_comes_from_its_file, 0, COUNT(facts));
    tcase_add_test(tcase, what_the_system_does_not_tell_is_unknown);
    tcase_add_test(tcase, this_machine_tells_its_kernel_and_cpus);
    tcase_add_test(tcase, files_that_cannot_be_read_are_unknown);
    tcase_add_test(tcase, mitigations_are_told_by_the_names_of_what_they_are_against);
    tcase_add_test(tcase, a_cpu_without_weaknesses_has_none);
    tcase_add_test(tcase, open_files_are_the_soft_and_the_hard_limit);
    tcase_add_test(tcase, versions_are_those_that_were_built_and_linked);
    tcase_add_loop_test(tcase, the_command_is_quoted_so_that_it_can_be_pasted, 0, COUNT(quotes));
    tcase_add_loop_test(tcase, a_shell_reads_the_command_back, 0, COUNT(quotes));
    tcase_add_test(tcase, a_command_that_is_too_long_is_cut_and_says_so);
    tcase_add_test(tcase, the_servers_command_is_told_as_it_was_given);
    tcase_add_test(tcase, the_command_of_a_server_on_this_machine_is_found);
    tcase_add_test(tcase, that_of_another_server_is_not_known);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
