/* SPDX-License-Identifier: MIT
 *
 * Names whose addresses race. The test has its own getaddrinfo, in which "a.example" has two
 * addresses: at 127.0.0.2 the backlog is full, so that the kernel ignores connections; a listener
 * at 127.0.0.3 accepts them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "outside.h"
#include "sxe-dial.h"

static struct sockaddr_in deaf = {.sin_family = AF_INET};
static struct sockaddr_in good = {.sin_family = AF_INET};
static struct sockaddr_in *answers[2] = {&deaf, &good};
static struct sxe_timer timer;
static int result_of_dial;
static unsigned done_count;
static unsigned closed;

int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
            struct addrinfo **list)
{
    static struct addrinfo infos[2];

    SXE_UNUSED_PARAMETER(service);
    SXE_UNUSED_PARAMETER(hints);
    if (strcmp(name, "a.example") != 0)
        return EAI_NONAME;
    for (unsigned i = 0; i < 2; i++)
        infos[i] = (struct addrinfo){.ai_addr = (struct sockaddr *)answers[i],
                                     .ai_addrlen = sizeof(deaf),
                                     .ai_next = i == 0 ? &infos[1] : NULL};
    *list = infos;
    return 0;
}

void
freeaddrinfo(struct addrinfo *list)
{
    SXE_UNUSED_PARAMETER(list);
}

static int
listen_at(struct sockaddr_in *address, const char *ip, int backlog)
{
    socklen_t length = sizeof(*address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    inet_pton(AF_INET, ip, &address->sin_addr);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)address, length), 0);
    ck_assert_int_eq(listen(fd, backlog), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)address, &length), 0);
    return fd;
}

static void
count_closed(SXE *s)
{
    SXE_UNUSED_PARAMETER(s);
    closed++;
}

static SXE *
make(struct sxe_dial *dial, const char *ip)
{
    SXE_UNUSED_PARAMETER(dial);
    SXE_UNUSED_PARAMETER(ip);
    return sxe_new_tcp(NULL, "", 0, NULL, NULL, count_closed);
}

static void
done(struct sxe_dial *dial, int result)
{
    SXE_UNUSED_PARAMETER(dial);
    result_of_dial = result;
    done_count++;
    sxe_stop();
}

static struct sxe_dial dial = {.open = make, .done = done};
static int listeners[2];
static int filling;

static void
start(void)
{
    listeners[0] = listen_at(&deaf, "127.0.0.2", 0);
    good.sin_port = deaf.sin_port;
    listeners[1] = listen_at(&good, "127.0.0.3", 10);
    filling = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(filling, (struct sockaddr *)&deaf, sizeof(deaf)), 0);
    sxe_register(1, 0);
    ck_assert_int_eq(sxe_dial_register(1), 0);
    ck_assert_int_eq(sxe_init(), 0);
}

static void
stop(void)
{
    ck_assert_int_eq(sxe_fini(), 0);
    close(listeners[0]);
    close(listeners[1]);
    close(filling);
}

/* promise: docs/sxe.md: The addresses of a name race (RFC 8305): the next one is tried 250 ms after
 *   the last, or at once after a failure. The first that connects wins, and the others are
 *   closed. */
START_TEST(an_address_that_leads_nowhere_is_passed_over_twice)
{
    start();
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(sxe_dial(&dial, "a.example", ntohs(deaf.sin_port)), 0);
        ck_assert_int_eq(sxe_run(), 0);
        ck_assert_int_eq(result_of_dial, 0);
        ck_assert_str_eq(sxe_peer_ip(dial.socket), "127.0.0.3");
        ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CONNECTING), 0);
        sxe_close(dial.socket);
        ck_assert_int_eq(sxe_run(), 0);
        ck_assert_uint_eq(closed, i + 1);
    }
    stop();
}
END_TEST

static void
cancel(struct sxe_timer *of)
{
    SXE_UNUSED_PARAMETER(of);
    ck_assert_int_eq(sxe_dial_cancel(&dial), 0);
}

/* promise: docs/sxe.md: `sxe_dial_cancel` closes all sockets of a dial. So a timer that calls it is
 * a time limit. `done` is not called then. */
START_TEST(a_cancelled_dial_is_silent_and_may_begin_again)
{
    answers[1] = &deaf;
    start();
    ck_assert_int_eq(sxe_dial(&dial, "a.example", ntohs(deaf.sin_port)), 0);
    sxe_timer_init(&timer, cancel, 0.4, 0);
    sxe_timer_start(&timer);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(done_count, 0);
    ck_assert_int_eq(sxe_dial(&dial, "127.0.0.3", ntohs(deaf.sin_port)), 0);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(done_count, 1);
    ck_assert_int_eq(result_of_dial, 0);
    stop();
}
END_TEST

/* promise: docs/sxe.md: If no address connects, `done` gets the error of the last attempt. */
START_TEST(refusals_and_unknown_names_are_told)
{
    start();
    ck_assert_int_eq(sxe_dial(&dial, "127.0.0.9", ntohs(deaf.sin_port)), 0);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_int_eq(result_of_dial, -ECONNREFUSED);
    ck_assert_int_eq(dial.look_up_error, 0);
    ck_assert_int_eq(sxe_dial(&dial, "b.example", 1), 0);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_int_eq(result_of_dial, -EADDRNOTAVAIL);
    ck_assert_int_eq(dial.look_up_error, EAI_NONAME);
    stop();
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {an_address_that_leads_nowhere_is_passed_over_twice,
                            a_cancelled_dial_is_silent_and_may_begin_again,
                            refusals_and_unknown_names_are_told, NULL};

    return outside_run("dial", cases);
}
