/* SPDX-License-Identifier: MIT
 *
 * Opening the listeners, with messages that say what to do if one cannot be opened.
 */
#include "listening.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "port-holder.h"
#include "socket-file.h"
#include "sxe-http.h"

static struct socket_file own;

static int
cannot_listen_at_port(const struct httpd_options *options, int error)
{
    char why[PORT_HOLDER_MAX];
    const char *next = "";

    snprintf(why, sizeof(why), "%s", strerror(error));
    if (error == EADDRINUSE) {
        port_holder_of_port("/proc", options->ip, options->port, why, sizeof(why));
        next = "; stop it, or choose another port with -p";
    } else if (error == EADDRNOTAVAIL) {
        next = "; choose an address of this machine with -i";
    } else if (error == EACCES) {
        next = "; choose a port from 1024 on with -p, or give the program CAP_NET_BIND_SERVICE";
    }
    fprintf(stderr, "sxe-httpd: cannot listen on %s port %u: %s%s\n", options->ip, options->port,
            why, next);
    return -error;
}

static bool
is_another_file(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0 && !S_ISSOCK(status.st_mode);
}

static int
cannot_listen_at_path(const char *path, int error)
{
    char why[PORT_HOLDER_MAX];

    snprintf(why, sizeof(why), "%s", strerror(error));
    if (error == EADDRINUSE && is_another_file(path))
        snprintf(why, sizeof(why), "a file of that name exists and is not a socket");
    else if (error == EADDRINUSE)
        port_holder_of_path("/proc", path, why, sizeof(why));
    fprintf(stderr,
            "sxe-httpd: cannot listen on %s: %s; choose another path with --unix, in a directory "
            "where you may write\n",
            path, why);
    return -error;
}

/* The umask sets the permissions as the file appears, so that nobody can connect before a chmod. */
static int
listen_at_path(struct sxe_http *http, const struct httpd_options *options)
{
    mode_t before = umask(0);
    int result;

    umask(options->socket_mode == 0 ? before : 0777 & ~options->socket_mode);
    result = sxe_http_listen_unix(http, options->unix_path);
    umask(before);
    if (result == 0)
        socket_file_note(&own, options->unix_path);
    return result;
}

int
listening_begin(struct sxe_http *http, const struct httpd_options *options)
{
    int result = sxe_http_listen(http, options->ip, options->port);
    int port;

    if (result < 0)
        return cannot_listen_at_port(options, -result);
    port = sxe_http_port(http);
    if (options->unix_path != NULL)
        result = listen_at_path(http, options);
    return result < 0 ? cannot_listen_at_path(options->unix_path, -result) : port;
}

void
listening_end(void)
{
    socket_file_remove(&own);
}

void
listening_say(const struct httpd_options *options, int port)
{
    /* An access log on standard output must be alone there. */
    bool is_log = options->access_log != NULL && strcmp(options->access_log, "-") == 0;
    bool is_ipv6 = strchr(options->ip, ':') != NULL;
    FILE *out = is_log ? stderr : stdout;

    fprintf(out, "listening on http://%s%s%s:%d/\n", is_ipv6 ? "[" : "", options->ip,
            is_ipv6 ? "]" : "", port);
    if (options->unix_path != NULL)
        fprintf(out, "listening on unix:%s\n", options->unix_path);
    fflush(out);
}
