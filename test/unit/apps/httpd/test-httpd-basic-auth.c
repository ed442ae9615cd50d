/* SPDX-License-Identifier: MIT
 *
 * Users and passwords of requests. crypt_r is a fake here: the test decides when a hash is
 * computed, and the password of all users is "right".
 */
#include <crypt.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "basic-auth.h"
#include "run-httpd.h"

#define BCRYPT "$2y$05$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234"
#define CLOSED "HTTP/1.1 401 Unauthorized\r\n"
#define OPEN   "HTTP/1.1 200 OK\r\n"

static char directory[] = "/tmp/sxe-basic-auth-XXXXXX";

struct hashes {
    sem_t begun; /* each computation of a hash posts this when it begins */
    sem_t may;   /* each computation of a hash waits for this */
    unsigned number;
    unsigned nones; /* how many hashes were computed for the password "none" */
};
static struct hashes *hashes;

char *
crypt_r(const char *phrase, const char *setting, struct crypt_data *data)
{
    sem_post(&hashes->begun);
    while (sem_wait(&hashes->may) < 0)
        continue;
    __atomic_fetch_add(&hashes->number, 1, __ATOMIC_SEQ_CST);
    if (strcmp(phrase, "none") == 0)
        __atomic_fetch_add(&hashes->nones, 1, __ATOMIC_SEQ_CST);
    snprintf(data->output, sizeof(data->output), "%s",
             strcmp(phrase, "right") == 0 ? setting : "*0");
    return strcmp(phrase, "none") == 0 ? NULL : data->output;
}

static void
write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");

    fputs(text, file);
    fclose(file);
}

static void
set_up(void)
{
    hashes = mmap(NULL, sizeof(*hashes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_int_eq(sem_init(&hashes->begun, 1, 0), 0);
    ck_assert_int_eq(sem_init(&hashes->may, 1, 0), 0);
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
    write_file("users", "ann:" BCRYPT "\nbob:" BCRYPT "\n");
    write_file("others", "ann:" BCRYPT "\n");
    write_file("app.lua", "return function(req) return (req.user or 'none') .. #req:body() end");
    ck_assert_int_eq(mkdir("public", 0755), 0);
    write_file("public/a.txt", "a\n");
    write_file("few.lua",
               "return { routes = { ['/text'] = { status = 200, passwords = 'users' } } }");
    write_file("site.lua",
               "return { lua = 'app.lua', access_log = 'log', max_body = '1m', routes = {\n"
               " ['/script'] = { script = true, passwords = 'users', realm = 'a house' },\n"
               " ['/files/{p...}'] = { root = 'public', passwords = 'users' },\n"
               " ['/text'] = { status = 200, body = 'text', passwords = 'users' },\n"
               " ['/other'] = { status = 200, passwords = 'others' },\n"
               " ['/away'] = { redirect = '/', passwords = 'users' },\n"
               " ['/free'] = { status = 200, body = 'free' },\n"
               "}, sites = { { names = 'b', passwords = 'others', realm = 'b', routes = {\n"
               " ['/'] = { status = 200 },\n"
               " ['/free'] = { status = 200, passwords = false } } } } }");
}

static void
tear_down(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
    munmap(hashes, sizeof(*hashes));
}

static void
let_run(unsigned number)
{
    while (number-- > 0)
        sem_post(&hashes->may);
}

static void
await_begun(unsigned number)
{
    while (number-- > 0) {
        while (sem_wait(&hashes->begun) < 0)
            continue;
    }
}

static unsigned
number_of_hashes(void)
{
    return __atomic_load_n(&hashes->number, __ATOMIC_SEQ_CST);
}

#define ANN_RIGHT "Authorization: Basic YW5uOnJpZ2h0\r\n"
#define ANN_WRONG "Authorization: Basic YW5uOndyb25n\r\n"
#define ANN_NONE  "Authorization: Basic YW5uOm5vbmU=\r\n"
#define ZED_RIGHT "Authorization: Basic emVkOnJpZ2h0\r\n"

static void
ask(int client, const char *path, const char *fields)
{
    char text[512];

    snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: a\r\n%s\r\n", path, fields);
    say(client, text);
}

/* Receive a reply with its body; it must begin like this. */
static void
expect_reply(int client, const char *begin)
{
    char head[1024];
    size_t length = 0;
    const char *field;

    expect(client, begin);
    do {
        ck_assert_int_eq(recv(client, head + length, 1, 0), 1);
        head[++length] = '\0';
    } while (length < sizeof(head) - 1 && strstr(head, "\r\n\r\n") == NULL);
    field = strstr(head, "Content-Length: ");
    for (unsigned long left = strtoul(field + 16, NULL, 10); left > 0; left--)
        ck_assert_int_eq(recv(client, head, 1, 0), 1);
}

/* When this client has two more replies, the loop has handled everything that was sent before. */
static void
settle(int client)
{
    for (unsigned i = 0; i < 2; i++) {
        ask(client, "/free", "");
        expect_reply(client, OPEN);
    }
}

/* ---- Users ---- */

START_TEST(only_a_user_with_their_password_passes)
{
    START_HTTPD("--config", "site.lua");
    const int client = dial();

    let_run(100);
    ask(client, "/text", "");
    expect(client, CLOSED "Date: @\r\n"
                          "WWW-Authenticate: Basic realm=\"Restricted\", charset=\"UTF-8\"\r\n");
    close(client);
    ask_and_expect("GET /script HTTP/1.1\r\nHost: a\r\n\r\n",
                   CLOSED "Date: @\r\nWWW-Authenticate: Basic realm=\"a house\", charset");
    ask_and_expect("GET / HTTP/1.1\r\nHost: b\r\n" ANN_WRONG "\r\n",
                   CLOSED "Date: @\r\nWWW-Authenticate: Basic realm=\"b\", charset");
    ask_and_expect("GET / HTTP/1.1\r\nHost: b\r\n" ANN_RIGHT "\r\n", OPEN);
    ask_and_expect("GET /free HTTP/1.1\r\nHost: b\r\n\r\n", OPEN);
    ask_and_expect("GET /script HTTP/1.1\r\nHost: a\r\n" ANN_NONE "\r\n", CLOSED);
    ask_and_expect("GET /script HTTP/1.1\r\nHost: a\r\n" ZED_RIGHT "\r\n", CLOSED);
    ask_and_expect("GET /text HTTP/1.1\r\nHost: a\r\nAuthorization: Basic !\r\n\r\n",
                   "HTTP/1.1 400 Bad Request\r\n");
    ask_and_expect("GET /text HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\n\r\n", CLOSED);
    ask_and_expect("GET /text HTTP/1.1\r\nHost: a\r\n" ANN_RIGHT "\r\n", OPEN);
    ask_and_expect("GET /files/a.txt HTTP/1.1\r\nHost: a\r\n" ANN_RIGHT "\r\n", OPEN);
    ask_and_expect("GET /away HTTP/1.1\r\nHost: a\r\n" ANN_RIGHT "\r\n", "HTTP/1.1 302 Found\r\n");
    stop_httpd();
}
END_TEST

START_TEST(a_refused_body_breaks_no_framing)
{
    START_HTTPD("--config", "site.lua");
    const int client = dial();

    let_run(100);
    say(client, "POST /script HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n" ANN_WRONG "\r\nGET /");
    expect_reply(client, CLOSED);
    say(client, "POST /script HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                "3\r\nabc\r\n0\r\n\r\n");
    expect_reply(client, CLOSED);
    say(client, "POST /script HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n" ANN_RIGHT "\r\nhello");
    expect(client, OPEN "Date: @\r\nContent-Type: text/plain; charset=utf-8\r\n"
                        "Content-Length: 4\r\n\r\nann5");
    close(client);
    stop_httpd();
}
END_TEST

START_TEST(the_user_is_in_the_log)
{
    char text[512] = "";
    FILE *file;

    START_HTTPD("--config", "site.lua", "--access-log-format", "common");
    let_run(100);
    ask_and_expect("GET /free HTTP/1.1\r\nHost: a\r\n" ANN_RIGHT "\r\n", OPEN);
    ask_and_expect("GET /text HTTP/1.1\r\nHost: a\r\n" ANN_RIGHT "\r\n", OPEN);
    ask_and_expect("GET /text HTTP/1.1\r\nHost: a\r\n" ANN_WRONG "\r\n", CLOSED);
    stop_httpd();
    file = fopen("log", "r");
    ck_assert_uint_gt(fread(text, 1, sizeof(text) - 1, file), 0);
    fclose(file);
    check_has(text, "127.0.0.1 - - [");
    check_has(text, "127.0.0.1 - ann [");
    check_has(strstr(text, "- ann ["), "127.0.0.1 - - [");
}
END_TEST

/* ---- Limits of attempts ---- */

START_TEST(who_was_right_is_remembered)
{
    START_HTTPD("--config", "site.lua");
    const int client = dial();

    let_run(100);
    for (unsigned i = 0; i < 3; i++) {
        ask(client, "/text", ANN_RIGHT);
        expect_reply(client, OPEN);
    }
    ck_assert_uint_eq(number_of_hashes(), 1);
    for (unsigned i = 0; i < 3; i++) {
        ask(client, "/text", ANN_WRONG);
        expect_reply(client, CLOSED);
    }
    ck_assert_uint_eq(number_of_hashes(), 4);
    ask(client, "/other", ANN_RIGHT); /* this route has the users of another file */
    expect_reply(client, OPEN);
    ck_assert_uint_eq(number_of_hashes(), 5);
    close(client);
    stop_httpd();
}
END_TEST

START_TEST(equal_requests_share_a_hash)
{
    START_HTTPD("--config", "site.lua");
    const int one = dial();
    const int other = dial();
    const int third = dial();

    settle(other);
    settle(third);
    ask(one, "/text", ANN_RIGHT);
    await_begun(1);
    ask(other, "/text", ANN_RIGHT);
    settle(third);
    let_run(1);
    expect_reply(one, OPEN);
    expect_reply(other, OPEN);
    ck_assert_uint_eq(number_of_hashes(), 1);
    close(one);
    close(other);
    close(third);
    stop_httpd();
}
END_TEST

/* A client at this address of the loopback network, which tries a password of its own. */
static int
guess_from(unsigned address, unsigned guess)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK + address)};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(httpd_child.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int client = patient_socket(AF_INET);
    char fields[64];

    ck_assert_int_eq(bind(client, (struct sockaddr *)&from, sizeof(from)), 0);
    ck_assert_int_eq(connect(client, (struct sockaddr *)&to, sizeof(to)), 0);
    /* "ann:" and two bytes, none of them a control byte. */
    snprintf(fields, sizeof(fields), "Authorization: Basic YW5uO%c%cg\r\n", "opqr"[guess / 64 % 4],
             digits[guess % 64]);
    ask(client, "/text", fields);
    return client;
}

START_TEST(a_client_has_few_attempts_at_a_time)
{
    int clients[BASIC_AUTH_OF_CLIENT];

    START_HTTPD("--config", "site.lua");
    const int good = dial();
    int other;

    settle(good);
    for (unsigned i = 0; i < BASIC_AUTH_OF_CLIENT; i++) {
        clients[i] = guess_from(1, i);
        settle(good);
    }
    settle(good);
    other = guess_from(1, 20);
    expect(other, "HTTP/1.1 429 Too Many Requests\r\nDate: @\r\nRetry-After: 1\r\n");
    close(other);
    other = guess_from(2, 21); /* another client may still try */
    let_run(BASIC_AUTH_OF_CLIENT + 1);
    for (unsigned i = 0; i < BASIC_AUTH_OF_CLIENT; i++) {
        expect_reply(clients[i], CLOSED);
        close(clients[i]);
    }
    expect_reply(other, CLOSED);
    close(other);
    close(good);
    stop_httpd();
}
END_TEST

START_TEST(all_together_have_a_limit)
{
    static int clients[BASIC_AUTH_ATTEMPTS];

    START_HTTPD("--config", "site.lua");
    const int good = dial();
    int other;

    for (unsigned i = 0; i < BASIC_AUTH_ATTEMPTS; i++) {
        clients[i] = guess_from(1 + i / BASIC_AUTH_OF_CLIENT, i);
        settle(good);
    }
    other = dial();
    ask(other, "/text", ANN_RIGHT);
    expect(other, "HTTP/1.1 503 Service Unavailable\r\nDate: @\r\nRetry-After: 1\r\n");
    close(other);
    let_run(BASIC_AUTH_ATTEMPTS + 1);
    for (unsigned i = 0; i < BASIC_AUTH_ATTEMPTS; i++) {
        expect_reply(clients[i], CLOSED);
        close(clients[i]);
    }
    ask(good, "/text", ANN_RIGHT);
    expect_reply(good, OPEN);
    close(good);
    stop_httpd();
}
END_TEST

START_TEST(so_have_the_requests_that_wait)
{
    static int clients[BASIC_AUTH_WAITERS];

    START_HTTPD("--config", "site.lua");
    const int good = dial();
    int other;

    for (unsigned i = 0; i < BASIC_AUTH_WAITERS; i++) {
        clients[i] = dial();
        ask(clients[i], "/text", ANN_RIGHT);
    }
    settle(good);
    settle(good);
    other = dial();
    ask(other, "/text", ANN_RIGHT);
    expect(other, "HTTP/1.1 503 Service Unavailable\r\nDate: @\r\nRetry-After: 1\r\n");
    close(other);
    let_run(1);
    for (unsigned i = 0; i < BASIC_AUTH_WAITERS; i++) {
        expect_reply(clients[i], OPEN);
        close(clients[i]);
    }
    close(good);
    stop_httpd();
}
END_TEST

/* Close the connection with a reset, which the server notices at once. */
static void
reset(int client)
{
    const struct linger at_once = {.l_onoff = 1};

    ck_assert_int_eq(setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(client);
}

START_TEST(clients_may_leave_before_their_hash)
{
    START_HTTPD("--config", "site.lua");
    const int good = dial();
    const int first = dial();
    const int second = dial();
    int third;
    int same;

    settle(good);
    ask(first, "/script", ANN_WRONG);
    ask(second, "/script", ANN_RIGHT);
    await_begun(2);
    same = dial();
    ask(same, "/script", ANN_RIGHT);
    third = dial();
    ask(third, "/script", ANN_NONE); /* the request waits for a thread */
    settle(good);
    settle(good);
    reset(first);
    reset(second);
    reset(third);
    settle(good);
    settle(good);
    let_run(2);
    expect_reply(same, OPEN);
    let_run(1);
    ask(good, "/script", ANN_WRONG); /* it may share the hash of the first client, who has left */
    expect_reply(good, CLOSED);
    ck_assert_uint_eq(__atomic_load_n(&hashes->nones, __ATOMIC_SEQ_CST), 0);
    close(same);
    close(good);
    stop_httpd();
}
END_TEST

/* ---- Failures ---- */

static void
have_no_threads(void)
{
    fake_os_fail(FAKE_PTHREAD_CREATE, 1, 1000, EAGAIN);
}

START_TEST(without_threads_nobody_passes)
{
    httpd_child.prepare = have_no_threads;
    START_HTTPD("--config", "few.lua");
    ask_and_expect("GET /text HTTP/1.1\r\nHost: a\r\n" ANN_RIGHT "\r\n",
                   "HTTP/1.1 503 Service Unavailable\r\nDate: @\r\nRetry-After: 1\r\n");
    stop_httpd();
    httpd_child.prepare = NULL;
}
END_TEST

static void
have_no_random_bytes(void)
{
    fake_os_fail(FAKE_GETRANDOM, 1, 1000, ENOSYS);
}

START_TEST(without_random_bytes_it_does_not_start)
{
    ran.prepare = have_no_random_bytes;
    run_program(sxe_httpd_main,
                (const char *[]){"sxe-httpd", "--config", "few.lua", "--plan", NULL});
    ran.prepare = NULL;
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-httpd: cannot start: Function not implemented\n");
}
END_TEST

static unsigned nth;

static void
fail_an_allocation(void)
{
    static const enum fake_call kinds[] = {FAKE_CALLOC, FAKE_MALLOC};

    fake_os_sweep(kinds, 2, nth, true, ENOMEM);
}

START_TEST(without_memory_it_does_not_start)
{
    ran.prepare = fail_an_allocation;
    do {
        nth++;
        run_program(sxe_httpd_main,
                    (const char *[]){"sxe-httpd", "--config", "few.lua", "--plan", NULL});
        ck_assert_int_eq(ran.status == 0, *ran.errors == '\0');
    } while (ran.injected != 0);
    ran.prepare = NULL;
    ck_assert_uint_gt(nth, 20);
}
END_TEST

START_TEST(a_bad_file_is_named_and_it_does_not_start)
{
    write_file("users", "ann:x\n");
    RUN_HTTPD("--config", "site.lua", "-p", "0", "--check");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, ": passwords: users:1: the password of 'ann' is a DES hash");
    ck_assert_int_eq(unlink("users"), 0);
    RUN_HTTPD("--config", "site.lua", "-p", "0");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, ": passwords: cannot read the file of passwords 'users': No such file");
}
END_TEST

static Suite *
auth_suite(void)
{
    Suite *suite = suite_create("httpd-basic-auth");
    TCase *tcase = tcase_create("basic-auth");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, only_a_user_with_their_password_passes);
    tcase_add_test(tcase, a_refused_body_breaks_no_framing);
    tcase_add_test(tcase, the_user_is_in_the_log);
    tcase_add_test(tcase, who_was_right_is_remembered);
    tcase_add_test(tcase, equal_requests_share_a_hash);
    tcase_add_test(tcase, a_client_has_few_attempts_at_a_time);
    tcase_add_test(tcase, all_together_have_a_limit);
    tcase_add_test(tcase, so_have_the_requests_that_wait);
    tcase_add_test(tcase, clients_may_leave_before_their_hash);
    tcase_add_test(tcase, without_threads_nobody_passes);
    tcase_add_test(tcase, without_random_bytes_it_does_not_start);
    tcase_add_test(tcase, without_memory_it_does_not_start);
    tcase_add_test(tcase, a_bad_file_is_named_and_it_does_not_start);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return sxe_test_main(auth_suite());
}
