/* SPDX-License-Identifier: MIT
 *
 * http-fetch localhost:8000 /path: prints the reply to a GET, through http_proxy if that is set.
 */
#include <sxe-http-client.h>

#include <stdlib.h>

static int status = 1;

static void
finish(const struct sxe_http_exchange *e, int result)
{
    if (result < 0)
        fprintf(stderr, "http-fetch: %s\n", e->failure != NULL ? e->failure : strerror(-result));
    else
        fwrite(e->body.base, 1, e->body.length, stdout);
    status = result < 0 || e->response->status / 100 != 2;
    sxe_stop();
}

int
main(int argc, char **argv)
{
    char *host = argc > 1 ? argv[1] : (char[]){"localhost:8000"};
    const char *port = strchr(host, ':');
    struct sxe_http_client_config config = {.name = strsep(&host, ":"), .port = 80};
    struct sxe_http_call call = {.on_done = finish};
    struct sxe_http_client *client;

    config.port = port != NULL ? (uint16_t)strtoul(port + 1, NULL, 10) : config.port;
    config.proxy = sxe_http_client_find_proxy("http", config.name, NULL);
    call.request.target = sxe_http_span(argc > 2 ? argv[2] : "/");
    client = sxe_http_client_new(&config);
    if (client == NULL)
        perror("http-fetch");
    return client == NULL || sxe_init() < 0 || sxe_http_client_send(client, &call, NULL) < 0 ||
           sxe_run() < 0 || status;
}
