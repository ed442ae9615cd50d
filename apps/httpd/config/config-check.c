/* SPDX-License-Identifier: MIT
 *
 * Checks that the directories, the script and the pages which options name can be read.
 */
#include "config-check.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config-origin.h"
#include "config-sites.h"
#include "secure.h"

static bool
is_directory(const char *place, const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        fprintf(stderr, "sxe-httpd: %scannot open the directory '%s': %s\n", place, path,
                strerror(errno));
        return false;
    }
    close(fd);
    return true;
}

static bool
is_script(const char *path)
{
    lua_State *L = luaL_newstate();
    int result = L == NULL ? LUA_ERRMEM : luaL_loadfilex(L, path, "t");

    if (result != LUA_OK)
        fprintf(stderr, "sxe-httpd: %s%s\n", config_place_of("lua"),
                L == NULL ? strerror(ENOMEM) : lua_tostring(L, -1));
    if (L != NULL)
        lua_close(L);
    return result == LUA_OK;
}

/* Whether the directories of all routes can be opened. If not, false after a message. */
static bool
has_roots(const struct config_sites *sites)
{
    for (const struct config_site *site = sites->first; site != NULL; site = site->next) {
        for (const struct config_route *route = site->routes; route != NULL; route = route->next) {
            char place[PATH_MAX + 64];

            snprintf(place, sizeof(place), "%s:%u: root: ", sites->path, route->line);
            if (route->root != NULL && !route->script.is_remote &&
                !is_directory(place, route->root))
                return false;
        }
    }
    return true;
}

/* Whether the files of passwords can be read, and are valid. If not, false after a message. */
static bool
has_passwords(struct config_sites *sites)
{
    const bool is_good = config_passwords_open(sites, -1) == 0;

    if (sites != NULL)
        config_passwords_close(sites);
    return is_good;
}

static bool
may_become(const struct become *user)
{
    return !user->is_given || geteuid() == 0 || geteuid() == user->user;
}

/* Become the user of --user, in the directory of --chroot, as a process that serves does, because
 * the checks that follow need no more rights than that. If this process may not become that user,
 * print this, and check as the user that the process has. 0, or -errno after a message. */
static int
look_as_user(const struct become *user, bool may)
{
    if (may)
        return become_now(user);
    fprintf(stderr,
            "sxe-httpd: files are checked as user %u, not as user %u (--user), which only root can "
            "become; check again as root\n",
            geteuid(), user->user);
    return become_enter(user);
}

/* Whether the certificates of authorities for an upstream can be read. False after a message. */
static bool
has_authorities(const struct upstream *upstream, const struct upstream_tls *usual)
{
    const struct upstream_tls tls = upstream_tls_of(upstream, usual);
    struct sxe_http_upstream_config config = {0};
    struct sxe_tls *made;

    if (!upstream->is_tls)
        return true;
    made = secure_open_upstream(upstream->where, &tls, &config);
    secure_close_upstream(made);
    return made != NULL;
}

static bool
have_upstreams_authorities(const struct httpd_options *options)
{
    const struct upstream *upstream =
        options->config.sites == NULL ? NULL : options->config.sites->upstreams;

    for (unsigned i = 0; i < options->passes_number; i++) {
        if (!has_authorities(&options->passes[i].upstream, &options->proxy_tls))
            return false;
    }
    while (upstream != NULL && has_authorities(upstream, &options->proxy_tls))
        upstream = upstream->next;
    return upstream == NULL;
}

/* Whether everything that the serving processes have to read can be read. False after a message. */
static bool
can_read_all(const struct httpd_options *options)
{
    struct error_pages pages = options->error_pages;

    if ((options->files.root != NULL &&
         !is_directory(config_place_of("root"), options->files.root)) ||
        (options->config.sites != NULL && !has_roots(options->config.sites)) ||
        (options->script != NULL && !is_script(options->script)) ||
        !have_upstreams_authorities(options) || error_pages_read(&pages) < 0)
        return false;
    error_pages_free(&pages);
    return true;
}

int
config_check(const struct httpd_options *options)
{
    const struct become *user = &options->user;
    const bool may = may_become(user);

    if (secure_open(options) < 0 || !has_passwords(options->config.sites) ||
        look_as_user(user, may) < 0)
        return COMMAND_LINE_WRONG;
    if (!can_read_all(options)) {
        if (may && become_is_other(user))
            fprintf(stderr, "sxe-httpd: files were opened as user %u, group %u (--user)\n",
                    user->user, user->group);
        return COMMAND_LINE_WRONG;
    }
    printf("sxe-httpd: the configuration is good\n");
    return 0;
}
