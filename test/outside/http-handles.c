/* SPDX-License-Identifier: MIT
 *
 * Handles of calls of the HTTP client in C: a handle is known to its own client only.
 */
#include <errno.h>

#include "outside.h"
#include "sxe-http-client.h"
#include "sxe.h"

static void
ignore_end(const struct sxe_http_exchange *exchange, int result)
{
    SXE_UNUSED_PARAMETER(exchange);
    SXE_UNUSED_PARAMETER(result);
}

static void
expect_no_call(struct sxe_http_client *client, uint64_t handle)
{
    ck_assert_int_eq(sxe_http_client_pause(client, handle), -ENOENT);
    ck_assert_int_eq(sxe_http_client_resume(client, handle), -ENOENT);
    ck_assert_int_eq(sxe_http_client_write(client, handle, "x", 1, true), -ENOENT);
    ck_assert_int_eq(sxe_http_client_cancel(client, handle), -ENOENT);
}

/* promise: lib-sxe-http/sxe-http-client.h: 0; -ENOENT: the call is over, or it is another client's:
 * no two clients of a process give out the same handle. */
START_TEST(a_handle_is_known_to_its_own_client_only)
{
    const struct sxe_http_client_config config = {.ip = "127.0.0.1", .port = 1};
    const struct sxe_http_call call = {.request.target = sxe_http_span("/"), .on_done = ignore_end};
    struct sxe_http_client *clients[3];
    uint64_t handles[3];

    for (unsigned i = 0; i < 3; i++)
        clients[i] = sxe_http_client_new(&config);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_http_client_send(clients[0], &call, &handles[0]), 0);
    expect_no_call(clients[1], handles[0]); /* this client has no call */
    expect_no_call(clients[1], 0);
    for (unsigned i = 1; i < 3; i++) {
        ck_assert_int_eq(sxe_http_client_send(clients[i], &call, &handles[i]), 0);
        expect_no_call(clients[i], handles[i - 1]);
    }
    sxe_http_client_delete(clients[0]);
    expect_no_call(clients[1], handles[0]);
    for (unsigned i = 1; i < 3; i++) {
        ck_assert_int_eq(sxe_http_client_cancel(clients[i], handles[i]), 0);
        expect_no_call(clients[i], handles[i]);
        sxe_http_client_delete(clients[i]);
    }
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_handle_is_known_to_its_own_client_only, NULL};

    return outside_run("http-handles", cases);
}
