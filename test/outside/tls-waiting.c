/* SPDX-License-Identifier: MIT
 *
 * Clients that begin a handshake and never end it, by docs/tls.md: how many a server has at a time,
 * for how long, and whether others are served. The clients are plain sockets of the same process.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "outside.h"
#include "sxe-tls.h"
#include "sxe.h"

enum { WAITING = 20, AT_A_TIME = 8, OF_A_HANDSHAKE = 65536 };

static struct sxe_tls *server;
static SXE *listener;
static int clients[WAITING];
static unsigned closes, late; /* connections that the server has closed; those by ETIMEDOUT */
static unsigned awaited;      /* how many closes end the loop */
static bool was_greeted;

static void
greet(SXE *this)
{
    ck_assert_int_eq(sxe_write(this, "hello", 5), 0);
    sxe_close(this);
}

static void
drop(SXE *this, int length)
{
    SXE_UNUSED_PARAMETER(length);
    SXE_BUF_CLEAR(this);
}

static void
count_close(SXE *this)
{
    late += sxe_error(this) == ETIMEDOUT;
    if (++closes == awaited)
        sxe_stop();
}

static void
run_until_closes(unsigned number)
{
    awaited = number;
    if (closes < number)
        ck_assert_int_eq(sxe_run(), 0);
}

/* Start a server, and connect clients that send the beginning of a record of the handshake. */
static void
begin(const struct sxe_tls_config *config)
{
    static const unsigned char beginning[] = {22, 3, 1, 1, 0, 1};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    server = sxe_tls_new_local(config);
    ck_assert_ptr_nonnull(server);
    sxe_register(WAITING + 4, 0);
    ck_assert_int_eq(sxe_init(), 0);
    listener = sxe_new_tcp(NULL, "127.0.0.1", 0, greet, drop, count_close);
    ck_assert_int_eq(sxe_listen(listener), 0);
    ck_assert_int_eq(sxe_tls_serve(server, listener), 0);
    address.sin_port = htons(sxe_local_port(listener));
    for (unsigned i = 0; i < WAITING; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(connect(clients[i], (struct sockaddr *)&address, sizeof(address)), 0);
        ck_assert_int_eq(send(clients[i], beginning, sizeof(beginning), MSG_NOSIGNAL),
                         sizeof(beginning));
    }
}

static void
end(void)
{
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_tls_delete(server);
}

static struct sxe_tls_counts
count(void)
{
    struct sxe_tls_counts counts;

    sxe_tls_count(&counts);
    return counts;
}

static void
note_greeting(SXE *this, int length)
{
    was_greeted = length == 5 && memcmp(SXE_BUF(this), "hello", 5) == 0;
    SXE_BUF_CLEAR(this);
}

static void
stop_at_close(SXE *this)
{
    SXE_UNUSED_PARAMETER(this);
    sxe_stop();
}

/* Connect a client that goes on, and wait until it has ended. */
static void
dial(void)
{
    struct sxe_tls *tls = sxe_tls_new_client(&(struct sxe_tls_config){.verify = SXE_TLS_OFF});
    SXE *dialer = sxe_new_tcp(NULL, "", 0, NULL, note_greeting, stop_at_close);

    awaited = 0;
    ck_assert_int_eq(sxe_tls_use(tls, dialer, "localhost"), 0);
    ck_assert_int_eq(sxe_connect(dialer, "127.0.0.1", sxe_local_port(listener)), 0);
    ck_assert_int_eq(sxe_run(), 0);
    sxe_tls_delete(tls);
}

/* promise: docs/tls.md: `memory_max` bounds the sum: above it a server begins no handshake, and
 * closes the connection. */
START_TEST(as_many_handshakes_wait_as_the_memory_allows_and_others_take_their_places)
{
    begin(&(struct sxe_tls_config){.memory_max = AT_A_TIME * OF_A_HANDSHAKE,
                                   .handshake_timeout_ms = 3600000});
    run_until_closes(WAITING - AT_A_TIME);
    ck_assert_uint_eq(count().shaking, AT_A_TIME);
    ck_assert_uint_eq(count().memory, AT_A_TIME * OF_A_HANDSHAKE);
    for (unsigned i = 0; i < WAITING; i++)
        close(clients[i]);
    run_until_closes(WAITING);
    ck_assert_uint_eq(count().shaking, 0);
    ck_assert_uint_eq(count().memory, 0);
    ck_assert_uint_eq(count().handshakes, 0);
    ck_assert_uint_eq(count().failed, WAITING); /* those that were not begun, too */
    ck_assert_uint_eq(late, 0);
    dial();
    ck_assert(was_greeted);
    ck_assert_uint_eq(count().handshakes, 2); /* the server's and the client's */
    end();
}
END_TEST

/* promise: docs/tls.md: Handshakes that had to wait come first in the next turn. */
START_TEST(a_client_is_served_while_others_never_end_their_handshakes)
{
    begin(&(struct sxe_tls_config){.handshakes_max = 1, .handshake_timeout_ms = 3600000});
    dial();
    ck_assert(was_greeted);
    ck_assert_uint_eq(count().shaking, WAITING);
    for (unsigned i = 0; i < WAITING; i++)
        close(clients[i]);
    run_until_closes(WAITING + 1);
    ck_assert_uint_eq(count().failed, WAITING);
    end();
}
END_TEST

/* promise: docs/tls.md: A handshake has 10 seconds (`handshake_timeout_ms`). */
START_TEST(handshakes_that_take_too_long_end_and_give_their_memory_back)
{
    begin(&(struct sxe_tls_config){.handshake_timeout_ms = 20});
    run_until_closes(WAITING);
    ck_assert_uint_eq(late, WAITING);
    ck_assert_uint_eq(count().shaking, 0);
    ck_assert_uint_eq(count().memory, 0);
    ck_assert_uint_eq(count().handshakes, 0);
    for (unsigned i = 0; i < WAITING; i++)
        close(clients[i]);
    end();
}
END_TEST

int
main(void)
{
    const TTest *const cases[] = {
        as_many_handshakes_wait_as_the_memory_allows_and_others_take_their_places,
        a_client_is_served_while_others_never_end_their_handshakes,
        handshakes_that_take_too_long_end_and_give_their_memory_back, NULL};

    return outside_run("tls-waiting", cases);
}
