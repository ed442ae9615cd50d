/* SPDX-License-Identifier: MIT
 *
 * http-proxy PORT UPSTREAM_PORT...: sends requests on to servers at 127.0.0.1, in turn.
 */
#include <sxe-http-proxy.h>

#include <stdlib.h>

int
main(int argc, char **argv)
{
    struct sxe_http_upstream_address addresses[SXE_HTTP_UPSTREAM_ADDRESSES];
    struct sxe_http_upstream_config upstream = {.name = "http-proxy", .addresses = addresses};
    struct sxe_http_proxy proxy = {.path = NULL};
    struct sxe_http_config config = {
        .handler = sxe_http_proxy_handle, .user = &proxy, .stream = true, .fields_max = 16384};
    struct sxe_http *http = NULL;

    for (int i = 2; i < argc && i < 2 + SXE_HTTP_UPSTREAM_ADDRESSES; i++) {
        addresses[upstream.addresses_number++] = (struct sxe_http_upstream_address){
            .ip = "127.0.0.1", .port = (uint16_t)strtoul(argv[i], NULL, 10)};
    }
    proxy.upstream = sxe_http_upstream_new(&upstream);
    if (proxy.upstream != NULL)
        http = sxe_http_new(&config);
    if (http == NULL || sxe_init() < 0 ||
        sxe_http_listen(http, "127.0.0.1", (uint16_t)strtoul(argv[1], NULL, 10)) < 0)
        return 1;
    printf("listening on http://127.0.0.1:%u/\n", sxe_http_port(http));
    return fflush(stdout) < 0 || sxe_run() < 0;
}
