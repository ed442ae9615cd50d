/* SPDX-License-Identifier: MIT
 *
 * What: sxe-httpd, a web server on lib-sxe-http and lib-sxe-lua. It serves the files of a
 * directory, the replies of a Lua script, or a greeting.
 *
 * Place: read it after sxe-http.h, as an example of a server on that library. Its files in reading
 * order:
 *
 *     cli/      options.c the command line; options-check.c refuses values and combinations
 *     serve/    service.c the serving process: plan, listen, run, drain
 *               listening.c opens the listeners; lua-script.c the script of --lua
 *               access-log.c the access log; counters.c --stats
 *     process/  supervisor.c the parent that reloads a script by starting another serving process
 *               heartbeat.c how the parent sees that a child hangs
 *               handover.c messages and sockets between them; changes.c notices changed files
 *               socket-file.c removes the file of a unix socket
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
        SXE_WARN("started as root: an error in the server or a script endangers the whole machine, "
                 "and files that only root may read are served; start it as a user of its own, "
                 "with CAP_NET_BIND_SERVICE for a port below 1024");
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
