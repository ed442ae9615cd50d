/* SPDX-License-Identifier: MIT
 *
 * http-get 127.0.0.1 8000 /path: prints the body of the reply to standard output.
 */
#include <sxe-http-client.h>

#include <stdlib.h>

static int status = 1;

static void
print(const struct sxe_http_exchange *exchange, struct sxe_span part)
{
    SXE_UNUSED_PARAMETER(exchange);
    fwrite(part.base, 1, part.length, stdout);
}

static void
finish(const struct sxe_http_exchange *exchange, int result)
{
    if (result < 0)
        fprintf(stderr, "http-get: %s\n", strerror(-result));
    else
        status = exchange->response->status / 100 != 2;
    sxe_stop();
}

int
main(int argc, char **argv)
{
    struct sxe_http_client_config config = {.ip = argc > 1 ? argv[1] : "127.0.0.1", .port = 8000};
    struct sxe_http_call call = {.on_body = print, .on_done = finish};
    struct sxe_http_client *client;

    call.request.target = sxe_http_span(argc > 3 ? argv[3] : "/");
    config.port = argc > 2 ? (uint16_t)strtoul(argv[2], NULL, 10) : config.port;
    client = sxe_http_client_new(&config);
    return client == NULL || sxe_init() < 0 || sxe_http_client_send(client, &call, NULL) < 0 ||
           sxe_run() < 0 || status;
}
