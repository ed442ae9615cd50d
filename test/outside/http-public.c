/* SPDX-License-Identifier: MIT
 *
 * The HTTP client of docs/http.md that calls only addresses of the internet.
 */
#include <errno.h>
#include <string.h>

#include "outside.h"
#include "sxe-http-client.h"

static char said[256];
static int last;

static void
on_done(const struct sxe_http_exchange *exchange, int result)
{
    last = result;
    snprintf(said, sizeof(said), "%s", exchange->failure == NULL ? "" : exchange->failure);
    sxe_stop();
}

/* promise: docs/http.md: With public_only the client checks each address after the look-up. It
 * refuses loopback, private and link-local addresses, also those of IPv4 inside of IPv6, with
 * -EACCES. So a URL from a stranger cannot reach a server of your own network. public_only cannot
 * be used with a proxy, because the proxy looks the name up itself. */
START_TEST(a_name_that_leads_to_this_machine_is_refused)
{
    static const char *const ips[] = {"127.0.0.1", "10.1.2.3",         "169.254.169.254", "::1",
                                      "fe80::1",   "::ffff:127.0.0.1", "64:ff9b::7f00:1"};
    struct sxe_http_client_config config = {.name = "localhost", .port = 80, .public_only = true};
    struct sxe_http_call call = {.request.target = sxe_http_span("/"), .on_done = on_done};
    struct sxe_http_client *clients[8];

    config.proxy = "127.0.0.1:3128";
    ck_assert_ptr_null(sxe_http_client_new(&config));
    ck_assert_int_eq(errno, EINVAL);
    config.proxy = NULL;
    clients[7] = sxe_http_client_new(&config);
    config.name = NULL;
    for (unsigned i = 0; i < 7; i++) {
        config.ip = ips[i];
        clients[i] = sxe_http_client_new(&config);
        ck_assert_ptr_nonnull(clients[i]);
    }
    ck_assert_int_eq(sxe_init(), 0);
    for (unsigned i = 0; i < 7; i++)
        ck_assert_int_eq(sxe_http_client_send(clients[i], &call, NULL), -EACCES);
    ck_assert_int_eq(sxe_http_client_send(clients[7], &call, NULL), 0);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_int_eq(last, -EACCES);
    ck_assert_str_eq(said, "localhost: the address is not public");
    for (unsigned i = 0; i < 8; i++)
        sxe_http_client_delete(clients[i]);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_name_that_leads_to_this_machine_is_refused, NULL};

    return outside_run("http public", cases);
}
