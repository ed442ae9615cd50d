/* SPDX-License-Identifier: MIT
 *
 * HyperLogLog and Redis, by docs/sketch.md, with a real server, if it is installed: Redis goes on
 * with our strings, we go on with those of Redis, and both count alike.
 */
#include "outside.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sxe-hll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { REPLY_MAX = 1 << 16 };

static pid_t server;
static int conn = -1;
static char request[REPLY_MAX];
static size_t request_size;
static char reply[REPLY_MAX]; /* the last reply: a bulk string, or a line */
static char why[SXE_POOL_WHY_SIZE];

/* ---- A client of Redis ---- */

/* Connect when the server listens. False: the server has ended. */
static bool
connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    ck_assert_uint_lt(strlen(path), sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path));
    conn = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    while (connect(conn, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        if (waitpid(server, NULL, WNOHANG) != 0)
            return false;
        usleep(10000);
    }
    return true;
}

static void
start_server(void)
{
    const char *path = outside_path("redis");

    server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path, "--save", "",
               "--dir", outside_directory, "--logfile", "/dev/null", (char *)NULL);
        _exit(127);
    }
    ck_assert_msg(connect_to(path), "redis-server ends at once");
}

static void
stop_server(void)
{
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    close(conn);
    unlink(outside_path("redis"));
}

static void
receive(char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t got = read(conn, bytes, size);

        ck_assert_msg(got > 0, "redis-server closed the connection");
        bytes += got;
        size -= (size_t)got;
    }
}

static void
add_word(const void *bytes, size_t size)
{
    const int length = snprintf(request + request_size, 32, "$%zu\r\n", size);

    ck_assert_uint_le(request_size + size + 64, sizeof(request));
    request_size += (size_t)length;
    memcpy(request + request_size, bytes, size);
    memcpy(request + request_size + size, "\r\n", 2);
    request_size += size + 2;
}

static void
begin_request(unsigned words)
{
    request_size = (size_t)snprintf(request, 32, "*%u\r\n", words);
}

/* Read a reply. Returns the length of a string, or a number, or -1 for an error. */
static long
receive_reply(void)
{
    char line[256];
    size_t length = 0;

    do {
        receive(&line[length++], 1);
    } while (line[length - 1] != '\n' && length < sizeof(line) - 1);
    line[length] = '\0';
    snprintf(reply, sizeof(reply), "%s", line);
    if (line[0] == '-')
        return -1;
    const long number = strtol(line + 1, NULL, 10);

    if (line[0] == '$' && number >= 0) {
        ck_assert_int_le(number + 2, REPLY_MAX);
        receive(reply, (size_t)number + 2);
    }
    return number;
}

static long
send_request(void)
{
    for (size_t sent = 0; sent < request_size;) {
        const ssize_t put = write(conn, request + sent, request_size - sent);

        ck_assert_int_gt(put, 0);
        sent += (size_t)put;
    }
    return receive_reply();
}

/* Send a command of `words` words; returns its reply. */
static long
command(unsigned words, ...)
{
    va_list arguments;

    begin_request(words);
    va_start(arguments, words);
    for (unsigned i = 0; i < words; i++) {
        const char *word = va_arg(arguments, const char *);

        add_word(word, strlen(word));
    }
    va_end(arguments);
    return send_request();
}

/* ---- Sketches ---- */

static SXE_HLL *
open_empty(unsigned precision)
{
    const SXE_HLL_SPEC spec = {.name = "redis", .precision = precision};
    SXE_HLL *hll = sxe_hll_open(&spec, why);

    ck_assert_msg(hll != NULL, "%s", why);
    return hll;
}

static void
add_numbers(SXE_HLL *hll, unsigned first, unsigned number)
{
    char thing[16];

    for (unsigned i = first; i < first + number; i++)
        sxe_hll_add(hll, thing, (size_t)snprintf(thing, sizeof(thing), "%u", i));
}

static void
pfadd_numbers(const char *key, unsigned first, unsigned number)
{
    char thing[16];

    for (unsigned i = 0; i < number || i == 0; i += 1000) {
        const unsigned some = number - i < 1000 ? number - i : 1000;

        begin_request(2 + some);
        add_word("PFADD", 5);
        add_word(key, strlen(key));
        for (unsigned j = 0; j < some; j++)
            add_word(thing, (size_t)snprintf(thing, sizeof(thing), "%u", first + i + j));
        ck_assert_int_ge(send_request(), 0);
    }
}

static void
set_exported(const char *key, const SXE_HLL *hll)
{
    static char string[SXE_HLL_REDIS_MAX];
    const ssize_t size = sxe_hll_export(hll, string, sizeof(string));

    ck_assert_int_gt(size, 0);
    begin_request(3);
    add_word("SET", 3);
    add_word(key, strlen(key));
    add_word(string, (size_t)size);
    ck_assert_int_eq(send_request(), 0);
}

static void
import_key(SXE_HLL *hll, const char *key)
{
    const long size = command(2, "GET", key);

    ck_assert_msg(sxe_hll_import(hll, reply, (size_t)size, why) == 0, "%s", why);
}

/* Numbers of elements: some give the sparse form, one about at its largest, some the dense form. */
static const unsigned sizes[] = {0, 1, 10, 500, 900, 1300, 5000, 20000};
#define EACH_SIZE(at) (size_t at = 0; at < sizeof(sizes) / sizeof(sizes[0]); at++)

/* promise: docs/sketch.md: Redis accepts an export with SET, and then PFADD, PFCOUNT and PFMERGE
 * work on it. */
START_TEST(redis_goes_on_with_an_export)
{
    start_server();
    for
        EACH_SIZE(at)
        {
            SXE_HLL *hll = open_empty(14);

            command(1, "FLUSHALL");
            add_numbers(hll, 0, sizes[at]);
            set_exported("ours", hll);
            ck_assert_int_eq(command(2, "PFCOUNT", "ours"), lround(sxe_hll_count(hll)));
            pfadd_numbers("ours", sizes[at] / 2, 600);
            pfadd_numbers("theirs", 100000, 300);
            ck_assert_int_eq(command(3, "PFMERGE", "ours", "theirs"), 0);
            add_numbers(hll, sizes[at] / 2, 600);
            add_numbers(hll, 100000, 300);
            ck_assert_int_eq(command(2, "PFCOUNT", "ours"), lround(sxe_hll_count(hll)));
            sxe_hll_close(hll);
        }
    stop_server();
}
END_TEST

/* promise: docs/sketch.md: An import accepts the string that GET returns for such a key, in either
 * form. Both sketches then have the same count. */
START_TEST(an_imported_key_has_the_count_that_redis_has)
{
    start_server();
    for
        EACH_SIZE(at)
        {
            SXE_HLL *hll = open_empty(14);

            command(1, "FLUSHALL");
            pfadd_numbers("key", 0, sizes[at]);
            import_key(hll, "key");
            ck_assert_int_eq(lround(sxe_hll_count(hll)), command(2, "PFCOUNT", "key"));
            /* not earlier, because PFCOUNT writes the count into the string */
            import_key(hll, "key");
            add_numbers(hll, 0, sizes[at]);
            ck_assert_int_eq(lround(sxe_hll_count(hll)), command(2, "PFCOUNT", "key"));
            sxe_hll_close(hll);
        }
    stop_server();
}
END_TEST

/* promise: docs/sketch.md: A more precise sketch is exported as if it had precision 14. */
START_TEST(a_more_precise_sketch_is_exported_with_precision_14)
{
    SXE_HLL *fine = open_empty(18);

    start_server();
    add_numbers(fine, 0, 30000);
    set_exported("ours", fine);
    pfadd_numbers("theirs", 0, 30000);
    ck_assert_int_eq(command(2, "PFCOUNT", "ours"), command(2, "PFCOUNT", "theirs"));
    ck_assert_int_eq(command(4, "PFMERGE", "both", "ours", "theirs"), 0);
    ck_assert_int_eq(command(2, "PFCOUNT", "both"), command(2, "PFCOUNT", "theirs"));
    stop_server();
    sxe_hll_close(fine);
}
END_TEST

int
main(void)
{
    const TTest *all[] = {redis_goes_on_with_an_export,
                          an_imported_key_has_the_count_that_redis_has,
                          a_more_precise_sketch_is_exported_with_precision_14, NULL};
    const TTest *none[] = {NULL};

    if (system("command -v redis-server >/dev/null") != 0) {
        printf("skipped: HyperLogLog beside Redis, because redis-server is not installed\n");
        return outside_run("sketch-redis", none);
    }
    return outside_run("sketch-redis", all);
}
