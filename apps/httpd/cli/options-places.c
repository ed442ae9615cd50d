/* SPDX-License-Identifier: MIT
 *
 * Finds places at which the server cannot listen at the same time: the same place in two spellings,
 * or one address and all addresses with the same port.
 */
#include "options-places.h"

#include <arpa/inet.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config-origin.h"

/* one of -p, --unix, --http-redirect, --fastcgi and --admin each, besides those of --listen */
#define PLACES_MAX (HTTPD_LISTEN_MAX + 5)
#define TEXT_SIZE  160

/* A place at which the server listens, as the kernel sees it. */
struct opened {
    const char *option; /* the option that gives the place, such as "--listen" */
    const char *key;    /* the option's key in a configuration file, such as "listen" */
    const char *path;   /* the path of a unix socket; NULL: the place is an address and a port */
    struct in6_addr ip; /* an IPv4 address is stored as ::ffff:1.2.3.4 */
    unsigned short port;
    char text[TEXT_SIZE]; /* the place as text, for messages */
};

struct all_opened {
    struct opened places[PLACES_MAX];
    unsigned number;
};

static void
note_path(struct all_opened *all, const char *option, const char *path)
{
    struct opened *place = &all->places[all->number++];

    *place = (struct opened){.option = option, .key = option + 2, .path = path};
    snprintf(place->text, sizeof(place->text), "%s", path);
}

/* Add a place. Port 0 is left out: the kernel chooses a free port for it, so it is never the same
 * as another place. */
static void
note_port(struct all_opened *all, const char *option, const char *key, const char *ip,
          unsigned short port)
{
    const bool is_ipv6 = strchr(ip, ':') != NULL;
    struct opened *place = &all->places[all->number];
    char text[TEXT_SIZE];

    if (port == 0)
        return;
    all->number++;
    *place = (struct opened){.option = option, .key = key, .port = port};
    snprintf(text, sizeof(text), "%s%s", is_ipv6 ? "" : "::ffff:", ip);
    /* this succeeds, because the options were checked */
    (void)inet_pton(AF_INET6, text, &place->ip);
    snprintf(place->text, sizeof(place->text), "%s%s%s:%u", is_ipv6 ? "[" : "", ip,
             is_ipv6 ? "]" : "", port);
}

/* Whether the server opens its usual port. It does not if it uses inherited sockets (LISTEN_FDS)
 * instead. */
static bool
opens_port(const struct httpd_options *options)
{
    return options->is_port_given ||
           (options->places_number == 0 && !options->fastcgi_is_on && getenv("LISTEN_FDS") == NULL);
}

static void
collect_places(const struct httpd_options *options, struct all_opened *all)
{
    const struct httpd_tls_options *tls = &options->tls;

    if (opens_port(options))
        note_port(all, "-p", "port", options->ip, options->port);
    if (options->unix_path != NULL)
        note_path(all, "--unix", options->unix_path);
    for (unsigned i = 0; i < options->places_number; i++) {
        const struct httpd_place *place = &options->places[i];

        if (place->path != NULL)
            note_path(all, "--listen", place->path);
        else
            note_port(all, "--listen", "listen", *place->ip == '\0' ? options->ip : place->ip,
                      place->port);
    }
    if (tls->is_redirecting)
        note_port(all, "--http-redirect", "http-redirect",
                  *tls->redirect_ip == '\0' ? options->ip : tls->redirect_ip, tls->redirect_port);
    if (options->fastcgi.path != NULL)
        note_path(all, "--fastcgi", options->fastcgi.path);
    else if (options->fastcgi_is_on)
        note_port(all, "--fastcgi", "fastcgi", options->fastcgi.ip, options->fastcgi.port);
    if (options->admin_is_on && options->admin_path != NULL)
        note_path(all, "--admin", options->admin_path);
    else if (options->admin_is_on)
        note_port(all, "--admin", "admin", options->admin_ip, options->admin_port);
}

/* ---- Comparing ---- */

/* Find the directory of a path. False: it does not exist, or not yet. */
static bool
look_at_directory(const char *path, struct stat *status)
{
    char text[PATH_MAX];

    snprintf(text, sizeof(text), "%s", path);
    return stat(dirname(text), status) == 0;
}

/* Whether two paths lead to one file: they are the same text, or the same name in the same
 * directory. */
static bool
is_same_path(const char *a, const char *b)
{
    const char *name_a = strrchr(a, '/');
    const char *name_b = strrchr(b, '/');
    struct stat of_a;
    struct stat of_b;

    if (*a == '@' || *b == '@' || strcmp(a, b) == 0)
        return strcmp(a, b) == 0;
    return strcmp(name_a == NULL ? a : name_a + 1, name_b == NULL ? b : name_b + 1) == 0 &&
           look_at_directory(a, &of_a) && look_at_directory(b, &of_b) &&
           of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

/* Whether [::] also stands for all addresses of IPv4. It does by default in Linux, but a setting
 * can change that. */
static bool
has_ipv4_in_ipv6(void)
{
    const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int is_only = 1;
    socklen_t length = sizeof(is_only);

    if (fd >= 0) {
        (void)!getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &is_only, &length);
        close(fd);
    }
    return is_only == 0;
}

/* Whether `all` stands for all addresses, and `one` is one of these. */
static bool
contains_address(const struct in6_addr *all, const struct in6_addr *one)
{
    static const struct in6_addr any4 = {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0}}};

    if (memcmp(all, &any4, sizeof(any4)) == 0)
        return IN6_IS_ADDR_V4MAPPED(one);
    return IN6_IS_ADDR_UNSPECIFIED(all) && (!IN6_IS_ADDR_V4MAPPED(one) || has_ipv4_in_ipv6());
}

/* Say why the server cannot listen at two places at the same time; NULL: it can. */
static const char *
find_clash(const struct opened *a, const struct opened *b)
{
    static const char same[] = "are the same place";

    if (a->path != NULL || b->path != NULL)
        return a->path != NULL && b->path != NULL && is_same_path(a->path, b->path) ? same : NULL;
    if (a->port != b->port)
        return NULL;
    if (memcmp(&a->ip, &b->ip, sizeof(a->ip)) == 0)
        return same;
    return contains_address(&a->ip, &b->ip) || contains_address(&b->ip, &a->ip)
               ? "cannot both be open, as one of them is that port of all addresses"
               : NULL;
}

bool
httpd_has_distinct_places(const struct httpd_options *options)
{
    struct all_opened all = {.number = 0};

    collect_places(options, &all);
    for (unsigned i = 1; i < all.number; i++) {
        const struct opened *late = &all.places[i];

        for (unsigned j = 0; j < i; j++) {
            const struct opened *early = &all.places[j];
            const char *clash = find_clash(early, late);

            if (clash == NULL)
                continue;
            fprintf(stderr, "sxe-httpd: %s%s %s and %s %s %s: leave out one. Try --help.\n",
                    config_place_of(late->key), early->option, early->text, late->option,
                    late->text, clash);
            return false;
        }
    }
    return true;
}
