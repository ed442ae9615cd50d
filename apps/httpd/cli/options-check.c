/* SPDX-License-Identifier: MIT
 *
 * Checks and stores the values of single options.
 */
#include "options-check.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "command-line.h"
#include "sxe-http-list.h"

#define TYPE_LENGTH_MAX 127 /* the largest number of bytes of a type or subtype (RFC 6838, 4.2) */

/* Whether the user may set a field of this name, because the server does not set it itself. */
static bool
is_free_field_name(const char *name, size_t length)
{
    static const char *const reserved[] = {"Accept-Ranges",
                                           "Connection",
                                           "Content-Encoding",
                                           "Content-Length",
                                           "Content-Range",
                                           "Content-Type",
                                           "Date",
                                           "ETag",
                                           "Keep-Alive",
                                           "Last-Modified",
                                           "Location",
                                           "Trailer",
                                           "Transfer-Encoding",
                                           "Upgrade"};

    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        if (strlen(reserved[i]) == length && strncasecmp(name, reserved[i], length) == 0)
            return false;
    }
    return sxe_http_is_token((struct sxe_span){name, length});
}

bool
httpd_is_field_name(const char *text)
{
    return is_free_field_name(text, strlen(text));
}

bool
httpd_is_field(const char *text)
{
    size_t length = strcspn(text, ":");

    return text[length] != '\0' && is_free_field_name(text, length) &&
           sxe_http_is_field_value((struct sxe_span){text + length, strlen(text + length)});
}

bool
httpd_is_type(const char *text)
{
    size_t length = strcspn(text, " ");
    size_t slash = strcspn(text, "/");

    for (const char *p = text; *p != '\0'; p++) {
        if (*p < ' ' || *p > '~' || *p == '#')
            return false;
    }
    return slash > 0 && slash + 1 < length && length <= TYPE_LENGTH_MAX &&
           text[length + strspn(text + length, " ")] != '\0';
}

bool
httpd_is_file_name(const char *name)
{
    return *name != '\0' && strlen(name) <= NAME_MAX && strchr(name, '/') == NULL &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

bool
httpd_wrong(const char *what, const char *must)
{
    fprintf(stderr, "sxe-httpd: %s%s is '%s'; it must be %s. Try --help.\n", command_line_place,
            what, optarg, must);
    return false;
}

bool
httpd_add_field(struct httpd_options *options)
{
    size_t used = strlen(options->fields);

    if (!httpd_is_field(optarg))
        return httpd_wrong("a header (--header)",
                           "'Name: value', and not a field that sxe-httpd sets itself");
    if (used + strlen(optarg) + 3 > sizeof(options->fields))
        return httpd_wrong("a header (--header)",
                           "shorter: all of them together have at most 4 KiB");
    snprintf(options->fields + used, sizeof(options->fields) - used, "%s\r\n", optarg);
    options->http.fields = options->fields;
    if (strncasecmp(optarg, "X-Content-Type-Options:", 23) == 0)
        /* the user's own header replaces X-Content-Type-Options: nosniff */
        options->files.sniff = true;
    return true;
}

bool
httpd_add_type(struct httpd_options *options)
{
    size_t used = strlen(options->types);

    if (!httpd_is_type(optarg))
        return httpd_wrong("a content type (--type)", "'type/subtype extension', as in mime.types");
    if (used + strlen(optarg) + 2 > sizeof(options->types))
        return httpd_wrong("a content type (--type)",
                           "shorter: all of them together have at most 4 KiB");
    snprintf(options->types + used, sizeof(options->types) - used, "%s\n", optarg);
    options->files.types = options->types;
    return true;
}

bool
httpd_add_index(struct httpd_options *options)
{
    unsigned number = 0;

    while (options->index[number] != NULL)
        number++;
    if (number == HTTPD_INDEX_MAX || !httpd_is_file_name(optarg))
        return httpd_wrong("an index (--index)",
                           "the name of a file, without a slash; at most 8 of them");
    options->index[number] = optarg;
    options->files.index = options->index;
    return true;
}

bool
httpd_set_socket_mode(struct httpd_options *options)
{
    char *end;
    unsigned long mode = strtoul(optarg, &end, 8);

    if (*optarg < '0' || *optarg > '7' || *end != '\0' || mode == 0 || mode > 0777)
        return httpd_wrong("the mode of the unix socket (--socket-mode)",
                           "an octal number from 1 to 777, such as 660");
    options->socket_mode = (unsigned)mode;
    return true;
}

bool
httpd_read_place(const char *text, char ip[INET6_ADDRSTRLEN], unsigned short *port)
{
    const char *colon = strrchr(text, ':');
    const char *digits = colon == NULL ? text : colon + 1;
    size_t length = colon == NULL ? 0 : (size_t)(colon - text);
    bool has_brackets = length > 2 && text[0] == '[' && text[length - 1] == ']';
    struct in6_addr any;
    char *end;
    unsigned long value = strtoul(digits, &end, 10);

    if (*digits < '0' || *digits > '9' || *end != '\0' || end - digits > 5 || value > 65535 ||
        length > INET6_ADDRSTRLEN)
        return false;
    *port = (unsigned short)value;
    snprintf(ip, INET6_ADDRSTRLEN, "%.*s", (int)(has_brackets ? length - 2 : length),
             text + has_brackets);
    return colon == NULL || inet_pton(AF_INET, ip, &any) == 1 || inet_pton(AF_INET6, ip, &any) == 1;
}

bool
httpd_is_address(const char *ip)
{
    struct sockaddr_storage any;

    return inet_pton(AF_INET, ip, &any) == 1 || inet_pton(AF_INET6, ip, &any) == 1 ||
           httpd_wrong("the address (-i)", "IPv4 or IPv6");
}

bool
httpd_set_unix_path(struct httpd_options *options)
{
    options->unix_path = optarg;
    return (*optarg != '\0' && strlen(optarg) <= HTTPD_UNIX_PATH_MAX) ||
           httpd_wrong("the path of the unix socket (--unix)", "1 to 107 bytes long");
}

/* The options that may follow a place of --listen, after commas. */
struct listen_options {
    bool is_plain;
    bool is_tls;
    enum httpd_clients clients;
};

/* Remove the last option from the text of a place, and store it. False: there is none left. */
static bool
take_listen_option(struct listen_options *options, char *text)
{
    static const char *const clients[HTTPD_CLIENTS_NUMBER] = {
        [HTTPD_CLIENTS_OFF] = ",client=off",
        [HTTPD_CLIENTS_OPTIONAL] = ",client=optional",
        [HTTPD_CLIENTS_REQUIRED] = ",client=required"};
    char *comma = strrchr(text, ',');
    unsigned how = HTTPD_CLIENTS_OFF;

    if (comma == NULL)
        return false;
    while (how < HTTPD_CLIENTS_NUMBER && strcmp(comma, clients[how]) != 0)
        how++;
    if (how < HTTPD_CLIENTS_NUMBER)
        options->clients = (enum httpd_clients)how;
    else if (strcmp(comma, ",plain") == 0)
        options->is_plain = true;
    else if (strcmp(comma, ",tls") == 0)
        options->is_tls = true;
    else
        return false;
    *comma = '\0';
    return true;
}

/* Read a place of --listen: PATH or [IP:]PORT, and the options after commas, if there are any. */
static bool
read_listen(struct httpd_place *place)
{
    struct listen_options options = {.is_plain = false};
    bool is_path = strchr(optarg, '/') != NULL || *optarg == '@';
    char *text = place->path_text;

    if ((size_t)snprintf(text, sizeof(place->path_text), "%s", optarg) >= sizeof(place->path_text))
        return false;
    while (take_listen_option(&options, text))
        continue;
    place->clients = options.clients;
    place->wants_tls = options.is_tls || options.clients != HTTPD_CLIENTS_AS_GIVEN;
    place->is_plain = is_path ? !place->wants_tls : options.is_plain;
    if (options.is_plain && place->wants_tls)
        return false;
    place->path = is_path ? text : NULL;
    return is_path ? *text != '\0' : httpd_read_place(text, place->ip, &place->port);
}

static bool
is_same_place(const struct httpd_place *a, const struct httpd_place *b)
{
    if (a->path != NULL || b->path != NULL)
        return a->path != NULL && b->path != NULL && strcmp(a->path, b->path) == 0;
    return a->port != 0 && a->port == b->port && strcmp(a->ip, b->ip) == 0;
}

bool
httpd_add_place(struct httpd_options *options)
{
    struct httpd_place *place = &options->places[options->places_number];

    if (options->places_number == HTTPD_LISTEN_MAX)
        return httpd_wrong("a place to listen at (--listen)", "one of at most 6");
    if (!read_listen(place))
        return httpd_wrong("a place to listen at (--listen)",
                           "PORT, IP:PORT with an IPv6 address in brackets, or the path of a unix "
                           "socket, with a slash in it; perhaps with ,plain for no TLS, ,tls for "
                           "TLS at a unix socket, or ,client=off, =optional or =required");
    for (unsigned i = 0; i < options->places_number; i++) {
        if (is_same_place(&options->places[i], place))
            return httpd_wrong("a place to listen at (--listen)",
                               "another one: this place was given before");
    }
    options->places_number++;
    return true;
}

bool
httpd_set_fastcgi(struct httpd_options *options)
{
    struct httpd_place *place = &options->fastcgi;
    const char *text = optarg;
    bool is_path = strchr(text, '/') != NULL || *text == '@';

    options->fastcgi_is_on = true;
    *place = (struct httpd_place){.ip = "127.0.0.1", .path = is_path ? text : NULL};
    if (is_path ? strlen(text) <= HTTPD_UNIX_PATH_MAX
                : httpd_read_place(text, place->ip, &place->port)) {
        if (*place->ip == '\0')
            snprintf(place->ip, sizeof(place->ip), "127.0.0.1");
        return true;
    }
    return httpd_wrong("the address of FastCGI (--fastcgi)",
                       "a port, IP:PORT, or the path of a unix socket, with a slash in it");
}

bool
httpd_add_proxy(struct httpd_options *options)
{
    static const char what[] = "a path and its upstream (--proxy)";
    const char *problem;

    if (options->passes_number == HTTPD_PROXIES_MAX)
        return httpd_wrong(what, "one of at most 8");
    problem = upstream_read_proxy(optarg, &options->passes[options->passes_number++]);
    return problem == NULL || httpd_wrong(what, problem);
}

const char *
httpd_unix_path(const struct httpd_options *options)
{
    const char *path = options->unix_path;

    for (unsigned i = 0; path == NULL && i < options->places_number; i++)
        path = options->places[i].path;
    return path == NULL ? options->fastcgi.path : path;
}

bool
httpd_set_forwarded(struct httpd_options *options)
{
    if (strcmp(optarg, "forwarded") == 0)
        options->http.forwarding = SXE_HTTP_FORWARDING_FORWARDED;
    else if (strcmp(optarg, "x-forwarded") == 0)
        options->http.forwarding = SXE_HTTP_FORWARDING_X_FORWARDED;
    else if (strcmp(optarg, "none") == 0)
        options->http.forwarding = SXE_HTTP_FORWARDING_NONE;
    else
        return httpd_wrong("the field of clients (--forwarded)",
                           "forwarded, for Forwarded (RFC 7239), x-forwarded, for X-Forwarded-For, "
                           "-Proto and -Host, or none");
    return true;
}

void
httpd_begin_log_format(struct httpd_options *options)
{
    char problem[LOG_FORMAT_PROBLEM];

    (void)log_format_parse(&options->access_log_format, "combined", problem);
}

bool
httpd_set_log_format(struct httpd_options *options)
{
    char problem[LOG_FORMAT_PROBLEM];

    options->access_log_format_given = true;
    if (log_format_parse(&options->access_log_format, optarg, problem))
        return true;
    fprintf(
        stderr,
        "sxe-httpd: %sthe access log's format (--access-log-format) is '%s': %s%s Try --help.\n",
        command_line_place, optarg, problem, problem[strlen(problem) - 1] == '?' ? "" : ".");
    return false;
}

bool
httpd_set_log_sample(struct httpd_options *options)
{
    char *end;

    options->is_sample_given = true;
    options->access_log_rate = strtod(optarg, &end);
    return (*optarg != '\0' && *end == '\0' && strspn(optarg, "0123456789.") == strlen(optarg) &&
            options->access_log_rate <= 1) ||
           httpd_wrong("the part of requests that is logged (--access-log-sample)",
                       "a number from 0 to 1, such as 0.1");
}

bool
httpd_set_cache_control(struct httpd_options *options)
{
    options->files.cache_control = optarg;
    return sxe_http_is_field_value((struct sxe_span){optarg, strlen(optarg)}) ||
           httpd_wrong("Cache-Control (--cache-control)",
                       "the value of a header, without line ends");
}

bool
httpd_set_user(struct httpd_options *options)
{
    return become_parse(&options->user, optarg) ||
           httpd_wrong("the user that serves (--user)",
                       "a user of this machine, or USER:GROUP; a numeric user without a name needs "
                       "a GROUP");
}

bool
httpd_set_chroot(struct httpd_options *options)
{
    options->user.root = optarg;
    return *optarg != '\0' || httpd_wrong("the root directory (--chroot)", "a directory");
}

bool
httpd_set_confined(struct httpd_options *options)
{
    options->is_confined = true;
    return true;
}

bool
httpd_refuse_word(const char *word)
{
    size_t length = strlen(word);

    if (length > 4 && strcmp(word + length - 4, ".lua") == 0)
        fprintf(stderr, "sxe-httpd: '%s' is not an option; did you mean --lua %s? Try --help.\n",
                word, word);
    else
        fprintf(stderr, "sxe-httpd: '%s' is not an option. Try --help.\n", word);
    return false;
}
