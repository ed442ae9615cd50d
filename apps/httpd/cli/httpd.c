/* SPDX-License-Identifier: MIT
 *
 * What: sxe-httpd, a web server on lib-sxe-http and lib-sxe-lua. It serves the files of a
 * directory, the replies of a Lua script, or a greeting.
 *
 * Place: read it after sxe-http.h, as an example of a server on that library. Its files in reading
 * order:
 *
 *     cli/      options.c the command line; options-check.c refuses values and combinations
 *     config/   config.c options from the environment and a file; config-file.c runs the file
 *               config-check.c --check
 *     serve/    service.c the serving process: plan, listen, run, drain
 *               listening.c opens the listeners; lua-script.c the script of --lua
 *               access-log.c the access log; counters.c --stats
 *     process/  supervisor.c the parent that reloads a script by starting another serving process
 *               heartbeat.c how the parent sees that a child hangs
 *               handover.c messages and sockets between them; changes.c notices changed files
 *               socket-file.c removes the file of a unix socket
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command-line.h"
#include "config-check.h"
#include "options.h"
#include "program.h"
#include "service.h"
#include "supervisor.h"
#include "sxe-log.h"

static struct {
    struct httpd_options options;
    int argc;
    char **argv;
} httpd;

/* A process that is started later reads the configuration again; what is wrong with it ends that
 * process, and the one that served before goes on. */
static int
serve(void *user, int link, unsigned load)
{
    SXE_UNUSED_PARAMETER(user);
    if (load > 0 && httpd.options.config.file != NULL) {
        int status = httpd_options_parse(&httpd.options, httpd.argc, httpd.argv);

        if (status >= 0)
            return status;
    }
    return service_run(&httpd.options, link, load) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void
warn_of_root(void)
{
    if (geteuid() == 0)
        SXE_WARN("started as root: an error in the server or a script endangers the whole machine, "
                 "and files that only root may read are served; start it as a user of its own, "
                 "with CAP_NET_BIND_SERVICE for a port below 1024");
}

/* The options are in order. The exit status. */
static int
run(void)
{
    const struct httpd_options *options = &httpd.options;
    struct supervisor_config config = {.serve = serve};

    if (options->config.print) {
        config_print();
        return EXIT_SUCCESS;
    }
    if (options->config.check)
        return config_check(options);
    if (options->plan)
        return service_plan(&httpd.options) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    warn_of_root();
    config.script = options->script != NULL ? options->script : options->config.file;
    if (config.script == NULL || options->is_repl)
        return serve(NULL, -1, 0);
    config.stop_timeout_ms = options->stop_timeout_ms;
    config.hang_timeout_ms = options->hang_timeout_ms;
    config.is_dev = options->lua.is_dev;
    return supervise(&config);
}

int
main(int argc, char **argv)
{
    /* The options' arguments point into the list: the first reading changes a copy. */
    char **copy = calloc((size_t)argc + 1, sizeof(*copy));
    int status = EXIT_FAILURE;

    program_begin(NULL);
    httpd.argc = argc;
    httpd.argv = argv;
    if (copy == NULL) {
        fprintf(stderr, "sxe-httpd: cannot start: %s\n", strerror(errno));
    } else {
        memcpy(copy, argv, (size_t)argc * sizeof(*copy));
        status = httpd_options_parse(&httpd.options, argc, copy);
    }
    if (status == COMMAND_LINE_GO_ON)
        status = run();
    config_end();
    free(copy);
    return status;
}
