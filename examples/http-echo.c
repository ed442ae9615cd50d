/* SPDX-License-Identifier: MIT
 * Answers each request with its body: http-echo [-p PORT] [--header-timeout SECONDS] ... */
#include <getopt.h>
#include <stdlib.h>
#include <sxe-http.h>
static enum sxe_http_verdict
echo(struct sxe_http_request *request, struct sxe_http_response *response)
{
    if (sxe_http_add_field_span(response, "X-Echo-Method", sxe_http_method_text(request)) < 0 ||
        sxe_http_add_field_span(response, "X-Echo-Target", sxe_http_target(request)) < 0 ||
        sxe_http_end_borrowed(response, request->body.base, request->body.length) < 0)
        return sxe_http_reply_status(response, 500);
    return SXE_HTTP_DONE;
}

int
main(int argc, char **argv)
{
    static const struct option options[] = {{"header-timeout", required_argument, NULL, 0},
                                            {"body-timeout", required_argument, NULL, 0},
                                            {"idle-timeout", required_argument, NULL, 0},
                                            {NULL, 0, NULL, 0}};
    struct sxe_http_config config = {.handler = echo, .fields_max = 20000};
    uint32_t *const timeouts[] = {&config.head_timeout_ms, &config.body_timeout_ms,
                                  &config.idle_timeout_ms};
    int port = 8080, which = 0, option;
    struct sxe_http *http;

    while ((option = getopt_long(argc, argv, "p:", options, &which)) != -1 && option != '?') {
        if (option == 'p')
            port = (int)strtol(optarg, NULL, 10);
        else
            *timeouts[which] = (uint32_t)(strtod(optarg, NULL) * 1000);
    }
    http = option == -1 ? sxe_http_new(&config) : NULL;
    if (http == NULL || sxe_init() < 0 || sxe_http_listen(http, "127.0.0.1", (uint16_t)port) < 0)
        return 1;
    printf("listening on http://127.0.0.1:%u/\n", sxe_http_port(http));
    return fflush(stdout) < 0 || sxe_run() < 0;
}
