/* SPDX-License-Identifier: MIT
 *
 * Finding the process that listens at a port: in a made-up /proc, and in the real one, where it is
 * this process.
 */
#include "port-holder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ftw.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake-os.h"
#include "test-main.h"

static char text[PORT_HOLDER_MAX];

static const char *
of_port(const char *proc, const char *ip, unsigned short port)
{
    port_holder_of_port(proc, ip, port, text, sizeof(text));
    return text;
}

static const char *
of_path(const char *proc, const char *path)
{
    port_holder_of_path(proc, path, text, sizeof(text));
    return text;
}

/* ---- The made-up /proc ---- */

static char proc[64];

static const char *
below_proc(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", proc, name);
    return path;
}

static void
make_file(const char *name, const char *content)
{
    FILE *file = fopen(below_proc(name), "w");

    ck_assert_ptr_nonnull(file);
    fputs(content, file);
    fclose(file);
}

static void
make_directory(const char *name)
{
    ck_assert_int_eq(mkdir(below_proc(name), 0700), 0);
}

/* A process with two open files, of which the second is the socket. */
static void
make_process(const char *pid, const char *command, unsigned inode)
{
    char name[64];
    char target[64];

    make_directory(pid);
    snprintf(name, sizeof(name), "%s/fd", pid);
    make_directory(name);
    snprintf(name, sizeof(name), "%s/fd/0", pid);
    ck_assert_int_eq(symlink("/dev/null", below_proc(name)), 0);
    snprintf(name, sizeof(name), "%s/fd/7", pid);
    snprintf(target, sizeof(target), "socket:[%u]", inode);
    ck_assert_int_eq(symlink(target, below_proc(name)), 0);
    snprintf(name, sizeof(name), "%s/comm", pid);
    make_file(name, command);
}

#define TCP_HEAD                                                                                 \
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout" \
    " inode                                                     \n"
#define TCP_LINE(local, state, user, inode)                                                 \
    "   0: " local " 00000000:0000 " state " 00000000:00000000 00:00000000 00000000  " user \
    "        0 " inode " 1 0000000026889f77 100 0 0 10 0                      \n"
#define TCP6_LINE(local, state, user, inode)                            \
    "   0: " local " 00000000000000000000000000000000:0000 " state      \
    " 00000000:00000000 00:00000000 00000000  " user "        0 " inode \
    " 1 0000000026889f77 100 0 0 10 0\n"
#define UNIX_HEAD "Num       RefCount Protocol Flags    Type St Inode Path\n"
#define UNIX_LINE(flags, inode, path) \
    "0000000092d24d79: 00000002 00000000 " flags " 0001 01 " inode path "\n"

/* Addresses are in the byte order of a little-endian machine; port 8000 is 1F40. */
static const char tcp[] = TCP_HEAD                  /* the heading, in which there is no address */
    TCP_LINE("0100007F:9C40", "01", "    0", "101") /* a connection of port 40000 */
    TCP_LINE("0100007F:1F40", "01", "    0", "102") /* one of port 8000 */
    TCP_LINE("0100007F:1F40", "0A", "   33", "103") /* 127.0.0.1 */
    TCP_LINE("00000000:1F41", "0A", " 1000", "104") /* 0.0.0.0 */
    TCP_LINE("0200007F:1F42", "0A", "    0", "105") /* 127.0.0.2 */
    TCP_LINE("0100007F:1F43", "0A", "    7", "999") /* no process has this socket */
    TCP_LINE("010000:1F44", "0A", "    0", "103");  /* too short an address */

static const char tcp6[] = TCP_HEAD                                           /* the heading */
    TCP6_LINE("00000000000000000000000000000000:1F45", "0A", "    0", "106")  /* :: */
    TCP6_LINE("00000000000000000000000001000000:1F46", "0A", "    0", "107")  /* ::1 */
    TCP6_LINE("0000000000000000FFFF00000100007F:1F47", "0A", "    0", "108")  /* 127.0.0.1 */
    TCP6_LINE("B80D0120000000000000000001000000:1F48", "0A", "    0", "109"); /* 2001:db8::1 */

static const char unix_sockets[] = UNIX_HEAD             /* the heading */
    UNIX_LINE("00000000", " 1057", "")                   /* a connection without a name */
    UNIX_LINE("00000000", "  110", " /run/web.sock")     /* a connection */
    UNIX_LINE("00010000", "  111", " /run/web.sock.old") /* a longer name */
    UNIX_LINE("00010000", "  112", " /run/web.sock")     /* a listener */
    UNIX_LINE("00010000", "  113", " /run/my web.sock")  /* a path with a blank */
    UNIX_LINE("00010000", "  114", " @web")              /* an abstract name */
    UNIX_LINE("00010000", "  999", " @nobody")           /* no process has this socket */
    "rubbish\n";

static void
make_proc(void)
{
    snprintf(proc, sizeof(proc), "/tmp/test-port-holder-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(proc));
    make_directory("net");
    make_file("net/tcp", tcp);
    make_file("net/tcp6", tcp6);
    make_file("net/unix", unix_sockets);
    make_file("uptime", "1 2\n");
    make_directory("self");
    make_directory("1"); /* the fd directory of this process cannot be read */
    make_process("22", "sshd\n", 500);
    make_process("103", "nginx\n", 103);
    make_process("23", "nginx\n", 103); /* the parent of 103 */
    make_process("1030", "nginx\n", 103);
    make_process("104", "a b (c)\n", 104);
    make_process("105", "bell\a\x1b[2J\xff", 105);
    make_process("106", "caddy\n", 106);
    make_process("107", "six\n", 107);
    make_process("108", "mapped\n", 108);
    make_process("109", "", 109);
    make_process("112", "web\n", 112);
    make_process("113", "my-web\n", 113);
    make_process("114", "abstract\n", 114);
}

static int
remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void
remove_proc(void)
{
    ck_assert_int_eq(nftw(proc, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* ---- Ports ---- */

#define NOT_SHOWN NULL

static const struct {
    const char *ip;
    unsigned short port;
    const char *holder;
} ports[] = {
    {"127.0.0.1", 8000, "nginx (pid 23)"},
    {"::ffff:127.0.0.1", 8000, "nginx (pid 23)"},
    {"0.0.0.0", 8000, "nginx (pid 23)"},
    {"::", 8000, "nginx (pid 23)"},
    {"", 8000, "nginx (pid 23)"},
    {NULL, 8000, "nginx (pid 23)"},
    {"INADDR_ANY", 8000, "nginx (pid 23)"},
    {"127.0.0.2", 8000, NOT_SHOWN},
    {"::1", 8000, NOT_SHOWN},
    {"127.0.0.1", 8001, "a b (c) (pid 104)"},
    {"10.1.2.3", 8001, "a b (c) (pid 104)"},
    {"0.0.0.0", 8001, "a b (c) (pid 104)"},
    {"::", 8001, "a b (c) (pid 104)"},
    {"::1", 8001, NOT_SHOWN},
    {"127.0.0.2", 8002, "bell??[2J? (pid 105)"},
    {"127.0.0.1", 8003, "a process of user 7 whose name is hidden from us"},
    {"0.0.0.0", 8004, NOT_SHOWN},
    {"127.0.0.1", 8005, "caddy (pid 106)"},
    {"::1", 8005, "caddy (pid 106)"},
    {"::", 8005, "caddy (pid 106)"},
    {"::1", 8006, "six (pid 107)"},
    {"::", 8006, "six (pid 107)"},
    {"::2", 8006, NOT_SHOWN},
    {"127.0.0.1", 8006, NOT_SHOWN},
    {"0.0.0.0", 8006, NOT_SHOWN},
    {"127.0.0.1", 8007, "mapped (pid 108)"},
    {"2001:db8::1", 8008, "a program (pid 109)"},
    {"2001:db8::1%eth0", 8008, "a program (pid 109)"},
    {"2001:db8::2", 8008, NOT_SHOWN},
    {"127.0.0.1", 40000, NOT_SHOWN}, /* a client's port */
    {"127.0.0.1", 1, NOT_SHOWN},
};

static void
check_holder(const char *subject, const char *holder)
{
    char says[2 * PORT_HOLDER_MAX];
    char hidden[PORT_HOLDER_MAX];

    snprintf(hidden, sizeof(hidden), "a process that %s does not show", proc);
    snprintf(says, sizeof(says), "%s is in use by %s", subject, holder != NULL ? holder : hidden);
    ck_assert_str_eq(text, says);
}

START_TEST(the_process_that_listens_on_the_port_is_named)
{
    char subject[32];

    of_port(proc, ports[_i].ip, ports[_i].port);
    snprintf(subject, sizeof(subject), "port %u", ports[_i].port);
    check_holder(subject, ports[_i].holder);
}
END_TEST

START_TEST(its_pid_is_told_too)
{
    char pid[32] = "(pid 0)";

    for (unsigned i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
        long found = port_holder_pid_of_port(proc, ports[i].ip, ports[i].port);
        bool is_named = ports[i].holder != NULL && strstr(ports[i].holder, "(pid ") != NULL;

        snprintf(pid, sizeof(pid), "(pid %ld)", found);
        ck_assert_int_eq(found > 0, is_named);
        ck_assert(!is_named || strstr(ports[i].holder, pid) != NULL);
    }
    ck_assert_int_eq(port_holder_pid_of_path(proc, "/run/web.sock"), 112);
    ck_assert_int_eq(port_holder_pid_of_path(proc, "@nobody"), 0);
    ck_assert_int_eq(port_holder_pid_of_path(proc, "/run/other"), 0);
}
END_TEST

/* ---- Paths ---- */

static const struct {
    const char *path;
    const char *holder;
} paths[] = {
    {"/run/web.sock", "web (pid 112)"}, {"/run/my web.sock", "my-web (pid 113)"},
    {"@web", "abstract (pid 114)"},     {"@nobody", "a process whose name is hidden from us"},
    {"/run/web.soc", NOT_SHOWN},        {"/run/web", NOT_SHOWN},
    {"/run/web.sock.older", NOT_SHOWN}, {"web", NOT_SHOWN},
};

START_TEST(the_process_that_listens_on_the_path_is_named)
{
    of_path(proc, paths[_i].path);
    check_holder(paths[_i].path, paths[_i].holder);
}
END_TEST

/* ---- /proc without some files ---- */

START_TEST(without_proc_nothing_is_shown)
{
    static const char nowhere[] = "is in use by a process that /nonexistent does not show";

    ck_assert_ptr_nonnull(strstr(of_port("/nonexistent", "127.0.0.1", 8000), nowhere));
    ck_assert_ptr_nonnull(strstr(of_path("/nonexistent", "/run/web.sock"), nowhere));
}
END_TEST

START_TEST(without_ipv6_the_other_table_is_enough)
{
    unlink(below_proc("net/tcp6"));
    ck_assert_str_eq(of_port(proc, "127.0.0.1", 8000), "port 8000 is in use by nginx (pid 23)");
    make_file("net/tcp6", tcp6);
    unlink(below_proc("net/tcp"));
    ck_assert_str_eq(of_port(proc, "::1", 8006), "port 8006 is in use by six (pid 107)");
}
END_TEST

START_TEST(a_process_that_ends_meanwhile_has_no_name)
{
    unlink(below_proc("106/comm"));
    ck_assert_str_eq(of_port(proc, "::1", 8005), "port 8005 is in use by a program (pid 106)");
}
END_TEST

START_TEST(what_may_not_be_opened_is_left_out)
{
    static const char hidden[] = "port 8000 is in use by a process of user 33 whose name is hidden "
                                 "from us";

    fake_os_fail(FAKE_OPENDIR, 1, 1, EACCES);
    ck_assert_str_eq(of_port(proc, "127.0.0.1", 8000), hidden);
    fake_os_fail(FAKE_OPENDIR, 2, 0, EACCES);
    ck_assert_str_eq(of_port(proc, "127.0.0.1", 8000), hidden);
}
END_TEST

START_TEST(whatever_fails_there_is_a_text_and_nothing_stays_open)
{
    static const enum fake_call kinds[] = {FAKE_FOPEN, FAKE_OPENDIR};
    unsigned open_fds = fake_os_open_fds();
    unsigned nth = 0;

    do {
        fake_os_reset();
        fake_os_sweep(kinds, 2, ++nth, false, EMFILE);
        of_port(proc, "::1", 8006);
        ck_assert_msg(strstr(text, "port 8006 is in use by ") == text, "%s", text);
        ck_assert_uint_eq(fake_os_open_fds(), open_fds);
    } while (fake_os_injected() != 0);
    ck_assert_uint_gt(nth, 10);
}
END_TEST

START_TEST(the_text_is_cut_to_its_room)
{
    char small[20];

    port_holder_of_port(proc, "127.0.0.1", 8000, small, sizeof(small));
    ck_assert_str_eq(small, "port 8000 is in use");
    port_holder_of_path(proc, "/run/web.sock", small, sizeof(small));
    ck_assert_str_eq(small, "/run/web.sock is in");
}
END_TEST

/* ---- The real /proc ---- */

/* This process, such as "test-port-holde (pid 4711)". */
static const char *
ourselves(void)
{
    static char name[64];
    char command[32] = "";
    FILE *file = fopen("/proc/self/comm", "r");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%31[^\n]", command), 1);
    fclose(file);
    snprintf(name, sizeof(name), "%s (pid %d)", command, (int)getpid());
    return name;
}

static int
listen_at(int family, const struct sockaddr *address, socklen_t length)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(fd, address, length) == 0 && listen(fd, 1) == 0)
        return fd;
    close(fd);
    return -1;
}

START_TEST(we_ourselves_are_found_on_a_port)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in *in4 = (struct sockaddr_in *)&address;
    socklen_t length = sizeof(address);
    char says[PORT_HOLDER_MAX];
    int fd;

    if (_i == 0)
        *in4 =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    fd = listen_at(address.sin6_family, (struct sockaddr *)&address, length);
    if (fd < 0 && _i == 1)
        return; /* this machine has no IPv6 */
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    snprintf(says, sizeof(says), "port %u is in use by %s", ntohs(address.sin6_port), ourselves());
    ck_assert_str_eq(of_port("/proc", _i == 0 ? "127.0.0.1" : "::1", ntohs(address.sin6_port)),
                     says);
    ck_assert_str_eq(of_port("/proc", "::", ntohs(address.sin6_port)), says);
    close(fd);
}
END_TEST

START_TEST(we_ourselves_are_found_on_a_path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char says[PORT_HOLDER_MAX];
    char path[sizeof(address.sun_path)];
    int fd;

    if (_i == 0)
        snprintf(path, sizeof(path), "%s/socket", proc);
    else
        snprintf(path, sizeof(path), "@%s", proc);
    memcpy(address.sun_path, path, strlen(path));
    if (_i == 1)
        address.sun_path[0] = '\0';
    fd = listen_at(AF_UNIX, (struct sockaddr *)&address,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
    ck_assert_int_ge(fd, 0);
    snprintf(says, sizeof(says), "%s is in use by %s", path, ourselves());
    ck_assert_str_eq(of_path("/proc", path), says);
    close(fd);
}
END_TEST

#define COUNT(table) (sizeof(table) / sizeof(table[0]))

int
main(void)
{
    Suite *suite = suite_create("port-holder");
    TCase *tcase = tcase_create("holders");

    tcase_add_checked_fixture(tcase, make_proc, remove_proc);
    tcase_add_loop_test(tcase, the_process_that_listens_on_the_port_is_named, 0, COUNT(ports));
    tcase_add_loop_test(tcase, the_process_that_listens_on_the_path_is_named, 0, COUNT(paths));
    tcase_add_test(tcase, its_pid_is_told_too);
    tcase_add_test(tcase, without_proc_nothing_is_shown);
    tcase_add_test(tcase, without_ipv6_the_other_table_is_enough);
    tcase_add_test(tcase, a_process_that_ends_meanwhile_has_no_name);
    tcase_add_test(tcase, what_may_not_be_opened_is_left_out);
    tcase_add_test(tcase, whatever_fails_there_is_a_text_and_nothing_stays_open);
    tcase_add_test(tcase, the_text_is_cut_to_its_room);
    tcase_add_loop_test(tcase, we_ourselves_are_found_on_a_port, 0, 2);
    tcase_add_loop_test(tcase, we_ourselves_are_found_on_a_path, 0, 2);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
