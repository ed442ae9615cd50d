/* SPDX-License-Identifier: MIT
 *
 * Makes the router of --stats and --proxy.
 */
#include "option-routes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config-origin.h"
#include "counters.h"
#include "sxe-http-router.h"

static void
say_routes_problem(const struct sxe_http_router *router, int result)
{
    if (result == -EINVAL || result == -EEXIST)
        fprintf(stderr,
                "sxe-httpd: %sa path of --proxy or --stats cannot be routed: %s. Try --help.\n",
                config_place_of("proxy"), sxe_http_router_error(router));
    else
        fprintf(stderr, "sxe-httpd: cannot start: %s\n", strerror(-result));
}

int
option_routes_make(struct httpd_options *options, struct sxe_http_router **router)
{
    int result;

    *router = NULL;
    if (options->stats_path == NULL && options->passes_number == 0)
        return 0;
    *router = sxe_http_router_new();
    result = *router == NULL ? -ENOMEM : stats_route(*router, options->stats_path);
    if (result == 0)
        result = passes_add_routes(options->passes, options->passes_number, *router);
    if (result == 0)
        return 0;
    say_routes_problem(*router, result);
    sxe_http_router_delete(*router);
    *router = NULL;
    return result;
}

bool
option_routes_are_good(struct httpd_options *options)
{
    struct sxe_http_router *router;
    const int result = option_routes_make(options, &router);

    sxe_http_router_delete(router);
    return result == 0;
}
