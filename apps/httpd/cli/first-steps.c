/* SPDX-License-Identifier: MIT
 *
 * Chooses what sxe-httpd serves if it has no options, and prints what the user can do next.
 */
#include "first-steps.h"

#include <sys/stat.h>
#include <unistd.h>

static bool
is_site(void)
{
    struct stat status;

    return stat("index.html", &status) == 0 && S_ISREG(status.st_mode) &&
           access("index.html", R_OK) == 0 && access(".", R_OK | X_OK) == 0;
}

void
first_steps_choose(struct httpd_options *options)
{
    options->is_bare = options->config.is_empty;
    if (options->is_bare && is_site())
        options->files.root = ".";
}

void
first_steps_say(const struct httpd_options *options, FILE *out)
{
    static const char site[] =
        "it serves the files of this folder, which has an index.html; other ways to start:\n";
    static const char greeting[] =
        "it replies \"Hello, World!\", as this folder has no index.html; other ways to start:\n";
    static const char next[] =
        "    sxe-httpd -r DIR          serve the files of a folder\n"
        "    sxe-httpd --lua FILE      answer by a script in Lua\n"
        "    sxe-httpd --help          see all options; man sxe-httpd explains them\n"
        "stop it with Ctrl-C\n";

    if (!options->is_bare)
        return;
    fputs(options->files.root != NULL ? site : greeting, out);
    fputs(next, out);
}
