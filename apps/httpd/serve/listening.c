/* SPDX-License-Identifier: MIT
 *
 * Opening the listeners, with messages that say what to do if one cannot be opened.
 */
#include "listening.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "first-steps.h"
#include "port-holder.h"
#include "redirect.h"
#include "secure.h"
#include "sxe-http-fastcgi-server.h"
#include "sxe-http.h"
#include "sxe-workers-handover-internal.h"

/* the default size of lib-sxe's chunks, in bytes; a head must fit into a chunk */
#define USUAL_CHUNK 16384
#define CLOSING_MS  5000 /* the default timeout of lib-sxe's state CLOSING */

#define SAID_MAX 2048 /* room for the lines that listening_say prints */

#define TOO_MANY "pass fewer sockets, a server has 8 at most"

static char said[SAID_MAX];
static unsigned short https_port; /* the first port with TLS, to which --http-redirect leads */

/* Whether an inherited socket has this port, at another address or at all addresses. */
static bool
is_port_inherited(unsigned short port)
{
    static struct sockaddr_storage addresses[SXE__HANDOVER_SOCKETS];
    const unsigned number = sxe__handover_inherited(addresses);

    for (unsigned i = 0; i < number; i++) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&addresses[i];

        /* a struct sockaddr_in6 has the port at the same offset */
        if (addresses[i].ss_family != AF_UNIX && ntohs(in->sin_port) == port)
            return true;
    }
    return false;
}

static int
cannot_listen_at_port(const char *ip, unsigned short port, int error)
{
    char why[PORT_HOLDER_MAX];
    const char *next = "";

    snprintf(why, sizeof(why), "%s", strerror(error));
    if (error == EADDRINUSE && is_port_inherited(port)) {
        snprintf(why, sizeof(why), "a socket of LISTEN_FDS has that port, at another address");
        next = "; leave out -i and -p: sockets of LISTEN_FDS are served without them";
    } else if (error == EADDRINUSE) {
        port_holder_of_port("/proc", ip, port, why, sizeof(why));
        next = "; stop it, or choose another port with -p";
    } else if (error == EADDRNOTAVAIL) {
        next = "; choose an address of this machine with -i";
    } else if (error == EACCES) {
        next = "; choose a port from 1024 on with -p, or give the program CAP_NET_BIND_SERVICE";
    } else if (error == ENFILE) {
        next = "; " TOO_MANY;
    }
    fprintf(stderr, "sxe-httpd: cannot listen on %s port %u: %s%s\n", ip, port, why, next);
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
    const char *next = "choose another path with --unix, in a directory where you may write";
    char why[PORT_HOLDER_MAX];

    snprintf(why, sizeof(why), "%s", strerror(error));
    if (error == EADDRINUSE && is_another_file(path))
        snprintf(why, sizeof(why), "a file of that name exists and is not a socket");
    else if (error == EADDRINUSE)
        port_holder_of_path("/proc", path, why, sizeof(why));
    if (error == ENFILE)
        next = TOO_MANY;
    fprintf(stderr, "sxe-httpd: cannot listen on %s: %s; %s\n", path, why, next);
    return -error;
}

static int
cannot_listen_for_fastcgi(const struct httpd_place *place, int error)
{
    char at[HTTPD_UNIX_PATH_MAX + 1];

    if (place->path != NULL)
        snprintf(at, sizeof(at), "%s", place->path);
    else
        snprintf(at, sizeof(at), "%s port %u", place->ip, place->port);
    fprintf(stderr,
            "sxe-httpd: cannot listen on %s: %s; choose another address, port or path with "
            "--fastcgi\n",
            at, strerror(error));
    return -error;
}

/* Whether to open the address of -i and -p. If neither was given, places of --listen and of
 * --fastcgi replace it. */
static bool
is_port_wanted(const struct httpd_options *options)
{
    return options->is_port_given || (options->places_number == 0 && !options->fastcgi_is_on);
}

/* ---- Opening ---- */

/* Open a unix socket. 0 or -errno. bind(2) creates its file with the permissions that the umask
 * allows. So set the umask: a chmod afterwards would be too late for a client that connects at
 * once. */
static int
open_path(const struct httpd_options *options, const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    mode_t before = umask(0);
    int result;

    memcpy(at.sun_path, path, length);
    if (*path == '@')
        at.sun_path[0] = '\0';
    else
        length++;
    umask(options->socket_mode == 0 ? before : 0777 & ~options->socket_mode);
    result = sxe__handover_open((const struct sockaddr *)&at,
                                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    umask(before);
    return result;
}

/* Open an IP address. 0 or -errno. */
static int
open_address(const char *ip, unsigned short port)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    if (inet_pton(AF_INET6, ip, &in6.sin6_addr) == 1)
        return sxe__handover_open((const struct sockaddr *)&in6, sizeof(in6));
    /* this cannot fail, because the options were checked */
    (void)inet_pton(AF_INET, ip, &in4.sin_addr);
    return sxe__handover_open((const struct sockaddr *)&in4, sizeof(in4));
}

static int
open_port(const char *ip, unsigned short port)
{
    int result = open_address(ip, port);

    return result < 0 ? cannot_listen_at_port(ip, port, -result) : 0;
}

static int
open_unix(const struct httpd_options *options, const char *path)
{
    int result = open_path(options, path);

    return result < 0 ? cannot_listen_at_path(path, -result) : 0;
}

static int
open_fastcgi(const struct httpd_options *options)
{
    const struct httpd_place *place = &options->fastcgi;
    int result = place->path != NULL ? open_path(options, place->path)
                                     : open_address(place->ip, place->port);

    return result < 0 ? cannot_listen_for_fastcgi(place, -result) : 0;
}

/* The IP address of a place of --listen. */
static const char *
ip_of(const struct httpd_options *options, const struct httpd_place *place)
{
    return *place->ip == '\0' ? options->ip : place->ip;
}

/* Open the addresses of -i, -p, --unix and --fastcgi, and the places of --listen. 0, or -errno
 * after a message. */
static int
open_places(const struct httpd_options *options)
{
    int result = 0;

    if (is_port_wanted(options))
        result = open_port(options->ip, options->port);
    if (result == 0 && options->unix_path != NULL)
        result = open_unix(options, options->unix_path);
    for (unsigned i = 0; result == 0 && i < options->places_number; i++) {
        const struct httpd_place *place = &options->places[i];

        result = place->path != NULL ? open_unix(options, place->path)
                                     : open_port(ip_of(options, place), place->port);
    }
    if (result == 0 && options->fastcgi_is_on)
        result = open_fastcgi(options);
    return result;
}

static int
cannot_redirect(const struct httpd_options *options, const char *ip, int error)
{
    fprintf(stderr,
            "sxe-httpd: cannot listen on %s port %u: %s; choose another address or port with "
            "--http-redirect\n",
            ip, options->tls.redirect_port, strerror(error));
    return -error;
}

/* Whether an inherited socket has the port of --http-redirect. If so, write its IP address to
 * ip. */
static bool
has_redirect_port(const struct httpd_options *options, const struct sockaddr_storage *address,
                  char ip[INET6_ADDRSTRLEN])
{
    const struct sockaddr_in *in4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
    const bool is_ipv6 = address->ss_family == AF_INET6;

    /* a struct sockaddr_in6 has the port at the same offset */
    return options->tls.is_redirecting && address->ss_family != AF_UNIX &&
           ntohs(in4->sin_port) == options->tls.redirect_port &&
           inet_ntop(address->ss_family,
                     is_ipv6 ? (const void *)&in6->sin6_addr : (const void *)&in4->sin_addr, ip,
                     INET6_ADDRSTRLEN) != NULL;
}

/* The IP address for --http-redirect: that of the inherited socket with the same port, or the
 * address of the option. */
static const char *
redirect_ip_of(const struct httpd_options *options)
{
    static struct sockaddr_storage addresses[SXE__HANDOVER_SOCKETS];
    static char ip[INET6_ADDRSTRLEN];
    const unsigned number = sxe__handover_inherited(addresses);

    for (unsigned i = 0; i < number; i++) {
        if (has_redirect_port(options, &addresses[i], ip))
            return ip;
    }
    return options->tls.redirect_ip;
}

static int
open_redirect(const struct httpd_options *options)
{
    const char *ip = redirect_ip_of(options);
    int result = 0;

    if (options->tls.is_redirecting)
        result = open_address(ip, options->tls.redirect_port);
    return result < 0 ? cannot_redirect(options, ip, -result) : 0;
}

/* Whether to listen at -i, -p and --unix. If none of them was given, inherited sockets replace the
 * default address. */
static bool
is_place_wanted(const struct httpd_options *options)
{
    static struct sockaddr_storage addresses[SXE__HANDOVER_SOCKETS];

    return options->is_place_given || sxe__handover_inherited(addresses) == 0;
}

int
listening_open(struct httpd_options *options)
{
    said[0] = '\0';
    options->is_place_wanted = is_place_wanted(options);
    if (open_redirect(options) < 0)
        return -EADDRNOTAVAIL;
    if (!options->is_place_wanted || (options->script != NULL && !options->is_place_given))
        return 0;
    return open_places(options) < 0 ? -EADDRNOTAVAIL : 0;
}

/* ---- Serving ---- */

/* Settings of places that have no --listen: those of -p and --unix, and inherited sockets. */
static const struct httpd_place usual = {.is_plain = false};
static const struct httpd_place plain = {.is_plain = true};

static int
serve_at_port(struct sxe_http *http, const char *ip, unsigned short port,
              const struct httpd_place *place)
{
    bool is_ipv6 = strchr(ip, ':') != NULL;
    size_t used = strlen(said);
    int result = sxe_http_listen(http, ip, port);

    if (result < 0)
        return cannot_listen_at_port(ip, port, -result);
    snprintf(said + used, sizeof(said) - used, "listening on %s://%s%s%s:%u/\n",
             secure_is_open() && !place->is_plain ? "https" : "http", is_ipv6 ? "[" : "", ip,
             is_ipv6 ? "]" : "", sxe_http_port(http));
    if (place->is_plain)
        return 0;
    if (https_port == 0)
        https_port = sxe_http_port(http);
    return secure_serve(sxe_http_listener(http), place->clients);
}

static int
serve_at_path(struct sxe_http *http, const char *path, const struct httpd_place *place)
{
    bool is_secure = secure_is_open() && !place->is_plain;
    size_t used = strlen(said);
    int result = sxe_http_listen_unix(http, path);

    if (result < 0)
        return cannot_listen_at_path(path, -result);
    snprintf(said + used, sizeof(said) - used, "listening on unix:%s%s\n", path,
             is_secure ? ", with TLS" : "");
    return is_secure ? secure_serve(sxe_http_listener(http), place->clients) : 0;
}

/* Serve at an inherited socket that has this address. */
static int
serve_at_address(struct sxe_http *http, const struct sockaddr_storage *address)
{
    const struct sockaddr_in *in4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
    char text[sizeof(((struct sockaddr_un *)0)->sun_path) + 1] = "";

    if (address->ss_family == AF_INET) {
        inet_ntop(AF_INET, &in4->sin_addr, text, sizeof(text));
        return serve_at_port(http, text, ntohs(in4->sin_port), &usual);
    }
    if (address->ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
        return serve_at_port(http, text, ntohs(in6->sin6_port), &usual);
    }
    memcpy(text, ((const struct sockaddr_un *)address)->sun_path, sizeof(text) - 1);
    if (text[0] == '\0')
        text[0] = '@';
    return serve_at_path(http, text, &plain);
}

static int
serve_fastcgi(struct sxe_http *http, const struct httpd_place *place)
{
    size_t used = strlen(said);
    int result = place->path != NULL ? sxe_http_fastcgi_listen_unix(http, place->path)
                                     : sxe_http_fastcgi_listen(http, place->ip, place->port);

    if (result < 0)
        return cannot_listen_for_fastcgi(place, -result);
    if (place->path != NULL)
        snprintf(said + used, sizeof(said) - used, "answering FastCGI on unix:%s\n", place->path);
    else
        snprintf(said + used, sizeof(said) - used,
                 strchr(place->ip, ':') != NULL ? "answering FastCGI on [%s]:%u\n"
                                                : "answering FastCGI on %s:%u\n",
                 place->ip, sxe_http_fastcgi_port(http));
    return 0;
}

static int
serve_at_places(struct sxe_http *http, const struct httpd_options *options)
{
    int result = 0;

    if (is_port_wanted(options))
        result = serve_at_port(http, options->ip, options->port, &usual);
    if (result == 0 && options->unix_path != NULL)
        result = serve_at_path(http, options->unix_path, &plain);
    for (unsigned i = 0; result == 0 && i < options->places_number; i++) {
        const struct httpd_place *place = &options->places[i];

        result = place->path != NULL
                     ? serve_at_path(http, place->path, place)
                     : serve_at_port(http, ip_of(options, place), place->port, place);
    }
    if (result == 0 && options->fastcgi_is_on)
        result = serve_fastcgi(http, &options->fastcgi);
    return result;
}

static int
serve_redirect(const struct httpd_options *options)
{
    const char *ip = redirect_ip_of(options);
    int port = redirect_begin(options, ip, https_port);
    size_t used = strlen(said);

    if (port > 0)
        snprintf(said + used, sizeof(said) - used,
                 strchr(ip, ':') != NULL ? "listening on http://[%s]:%d/, to redirect to HTTPS\n"
                                         : "listening on http://%s:%d/, to redirect to HTTPS\n",
                 ip, port);
    return port < 0 ? cannot_redirect(options, ip, -port) : 0;
}

int
listening_begin(struct sxe_http *http, const struct httpd_options *options)
{
    static struct sockaddr_storage addresses[SXE__HANDOVER_SOCKETS];
    char ip[INET6_ADDRSTRLEN];
    unsigned number;
    int result = 0;

    https_port = 0;
    if (options->is_place_wanted)
        result = serve_at_places(http, options);
    number = sxe__handover_inherited(addresses); /* all inherited sockets that are not taken yet */
    for (unsigned i = 0; result == 0 && i < number; i++) {
        if (!has_redirect_port(options, &addresses[i], ip))
            result = serve_at_address(http, &addresses[i]);
    }
    return result == 0 ? serve_redirect(options) : result;
}

void
listening_say(const struct httpd_options *options)
{
    /* If the access log goes to standard output, print the addresses on standard error instead. */
    bool is_log = options->access_log != NULL && strcmp(options->access_log, "-") == 0;
    FILE *out = is_log ? stderr : stdout;

    fputs(said, out);
    secure_say(out);
    first_steps_say(options, out);
    fflush(out);
}

/* ---- The loop ---- */

void
listening_configure_loop(const struct httpd_options *options)
{
    struct sxe_config config = *sxe_get_config();

    config.timeout_ms[SXE_STATE_WRITING] = options->stall_timeout_ms;
    config.timeout_ms[SXE_STATE_CLOSING] =
        options->stall_timeout_ms < CLOSING_MS ? options->stall_timeout_ms : CLOSING_MS;
    if (options->http.head.head_max > USUAL_CHUNK)
        config.chunk_size = options->http.head.head_max;
    config.listeners = &sxe__handover_listeners;
    sxe_configure(&config);
}
