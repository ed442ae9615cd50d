/* SPDX-License-Identifier: MIT
 *
 * Checks the options together, after all of them were read.
 */
#include "options-complete.h"

#include <stdio.h>

#include "config-origin.h"
#include "config-sites.h"
#include "options-check.h"
#include "options-tls.h"

/* If there is no --lua, check that no route needs a script. False after a message. */
static bool
has_script_for(const struct config_sites *sites)
{
    if (sites->script == NULL)
        return true;
    fprintf(stderr,
            "sxe-httpd: %s:%u: %s: the route has script = true, but there is no script: add --lua "
            "FILE. Try --help.\n",
            sites->path, sites->script->line, sites->script->pattern);
    return false;
}

/* If --chroot cannot be combined with another option that was given, the message about it; NULL: it
 * can. */
static const char *
chroot_missing(const struct httpd_options *options)
{
    if (options->user.root == NULL)
        return NULL;
    if (!become_is_other(&options->user))
        return "--chroot needs a user who cannot leave it, as root can: add --user NAME";
    if (options->lua.is_dev)
        return "--dev does not go with --chroot: the supervisor, outside of it, would look at "
               "other files: leave out one";
    return options->is_repl ? "--repl is a shell in a single process: leave out --chroot" : NULL;
}

bool
httpd_is_complete(const struct httpd_options *options)
{
    const struct sxe_http_files_config *files = &options->files;
    const char *missing = httpd_tls_missing(options);

    if (missing == NULL)
        missing = chroot_missing(options);
    if (missing == NULL && files->root == NULL && options->config.sites == NULL &&
        (files->listing || files->index != NULL || files->dot_files || files->types != NULL ||
         files->cache_control != NULL || (files->sniff && options->http.fields == NULL) ||
         files->ranges_max != 0 || files->no_ranges))
        missing = "options for files (--listing, --index, --sniff, --dot-files, --type, "
                  "--cache-control, --max-ranges) need a directory to serve: add -r DIR";
    else if (options->http.forwarding != SXE_HTTP_FORWARDING_NONE && options->http.trusted == NULL)
        missing = "--forwarded needs proxies that are believed: add --trust-from NETS";
    else if (options->access_log == NULL && options->access_log_format_given)
        missing = "--access-log-format needs an access log: add --access-log FILE";
    else if (options->access_log == NULL && options->is_sample_given)
        missing = "--access-log-sample needs an access log: add --access-log FILE";
    else if (!options->is_sample_given && options->is_slow_given)
        missing = "--access-log-slow tells which requests are always logged: add "
                  "--access-log-sample PART";
    else if (httpd_unix_path(options) == NULL && options->socket_mode != 0)
        missing = "--socket-mode needs a unix socket: add --unix PATH";
    else if (options->workers == 0 && options->script == NULL && options->config.file == NULL &&
             !options->admin_is_on && options->is_hang_given)
        missing = "--hang-timeout needs a process that can be replaced: add --lua FILE or -w N";
    else if (options->admin_is_on && options->is_repl)
        missing = "--repl is a shell in a single process: leave out --admin";
    else if (options->workers > 0 && options->is_repl)
        missing = "--repl is a shell in a single process: leave out -w";
    else if (options->script == NULL && options->is_script_described)
        missing =
            "options for a script (--dev, --repl, --strict, --loose, --lua-memory, --lua-cpu, "
            "--lua-tasks, --lua-sockets, --lua-coverage, --lua-sandbox) need a script: add "
            "--lua FILE";
    else if (options->script != NULL && files->root != NULL)
        missing = "-r does not go with --lua: serve the files in the script, with "
                  "http.static(\"DIR\")";
    else if (options->config.sites != NULL && files->root != NULL)
        missing = "-r does not go with routes: add [\"/{path...}\"] = { root = \"DIR\" } to them";
    else if (options->config.sites != NULL && options->passes_number > 0)
        missing = "--proxy does not go with routes, whose passwords it would not have: add "
                  "[\"PATH/{path...}\"] = { proxy = \"URL\" } to them";
    if (missing == NULL && options->script == NULL && options->config.sites != NULL)
        return has_script_for(options->config.sites);
    if (missing == NULL)
        return true;
    fprintf(stderr, "sxe-httpd: %s%s. Try --help.\n", config_place_in(missing), missing);
    return false;
}

bool
httpd_fit_line(struct sxe_http_limits *head)
{
    static const struct sxe_http_limits usual = SXE_HTTP_LIMITS;

    if (head->head_max == 0)
        head->head_max = usual.head_max;
    if (head->line_max == 0)
        head->line_max = usual.line_max < head->head_max ? usual.line_max : head->head_max;
    if (head->line_max <= head->head_max)
        return true;
    fprintf(stderr,
            "sxe-httpd: %sa request line of %u bytes (--max-line) does not fit into a head of %u "
            "(--max-header). Try --help.\n",
            config_place_in("--max-line --max-header"), head->line_max, head->head_max);
    return false;
}
