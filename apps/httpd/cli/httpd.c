/* SPDX-License-Identifier: MIT
 *
 * What: a web server: the files of a directory, a greeting, or what a script in Lua answers, over
 * lib-sxe-http and lib-sxe-lua.
 * Place: read it after sxe-http.h; it is what a server on that library looks like. In order:
 *
 *     cli/      options.c the command line; options-check.c what does not go together
 *     serve/    service.c plan, listen, run, and an end in good order
 *               listening.c where it listens; lua-script.c the script in it
 *               access-log.c a line a request; counters.c --stats
 *     process/  supervisor.c a parent that replaces a service by one with the script loaded again
 *               heartbeat.c how it sees that a service hangs
 *               handover.c what passes between these two; changes.c when the script has changed
 *               socket-file.c the file of a unix socket, removed at the end
 */
#include <stdlib.h>
#include <unistd.h>

#include "options.h"
#include "program.h"
#include "service.h"
#include "supervisor.h"
#include "sxe-log.h"

static int
serve(void *user, int link, unsigned load)
{
    return service_run(user, link, load) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void
warn_of_root(void)
{
    if (geteuid() == 0)
        SXE_WARN("started as root: a fault in it or in a script has the whole machine, and files "
                 "that only root may "
                 "read are served; start it as a user of its own, with CAP_NET_BIND_SERVICE for a "
                 "port below 1024");
}

int
main(int argc, char **argv)
{
    static struct httpd_options options;
    struct supervisor_config config = {.serve = serve, .user = &options};
    int status;

    program_begin(NULL);
    status = httpd_options_parse(&options, argc, argv);
    if (status >= 0)
        return status;
    if (options.plan)
        return service_plan(&options) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    warn_of_root();
    if (options.script == NULL || options.is_repl)
        return serve(&options, -1, 0);
    config.script = options.script;
    config.stop_timeout_ms = options.stop_timeout_ms;
    config.hang_timeout_ms = options.hang_timeout_ms;
    config.is_dev = options.lua.is_dev;
    return supervise(&config);
}
