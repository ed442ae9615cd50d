/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "command-line.h"

#define SOCKETS_MAX 10000000ul
#define QUERIES_MAX UINT32_MAX
#define TIMEOUT_MAX 86400000ul

enum { TIMEOUT = COMMAND_LINE_LONG };

static int take(void *settings, int val);

static const struct command_option table[] = {
    COMMAND_LINE_GROUP("Where to"),
    {{"ip", required_argument, NULL, 'i'}, "IP", "address to connect to, IPv4 or IPv6 (127.0.0.1)"},
    {{"port", required_argument, NULL, 'p'}, "PORT", "port to connect to (8000)"},
    COMMAND_LINE_GROUP("How much"),
    {{"queries", required_argument, NULL, 'n'}, "N", "queries on each socket (1)"},
    {{"sockets", required_argument, NULL, 'c'}, "N", "sockets, all open at the same time (1000)"},
    {{"timeout", required_argument, NULL, TIMEOUT},
     "TIME",
     "seconds (or 500ms, 2m) without any progress, then what is missing has failed (10)"},
    COMMAND_LINE_GROUP("About"),
    COMMAND_LINE_ABOUT,
};

static const struct command_line line = {
    .program = "sxe-http",
    .summary = "Opens all sockets, then sends each one query after the other: GET / HTTP/1.1.",
    .examples =
        {
            {"-c 100 -n 1000", "100 sockets, 1000 queries on each"},
            {"-i ::1 -p 8080", "another address and port"},
            {"-c 10000 --timeout 500ms", "give up after half a second without progress"},
        },
    .closing = "Exit status: 0 all answered well, 1 not all, 2 bad arguments, 130 interrupted.",
    .options = table,
    .number = sizeof(table) / sizeof(table[0]),
    .take = take,
};

/* What stands in a URL and in the Host field: an IPv6 address in brackets, without its zone, which
 * means nothing to the peer (RFC 6874, 4). */
static bool
set_authority(struct http_options *options)
{
    unsigned char address[sizeof(struct in6_addr)];
    char ip[INET6_ADDRSTRLEN];
    size_t length = strcspn(options->ip, "%");
    bool is_ipv4 = inet_pton(AF_INET, options->ip, address) == 1;

    if (length >= sizeof(ip))
        return false;
    memcpy(ip, options->ip, length);
    ip[length] = '\0';
    if (!is_ipv4 && inet_pton(AF_INET6, ip, address) != 1)
        return false;
    snprintf(options->authority, sizeof(options->authority), is_ipv4 ? "%s:%u" : "[%s]:%u", ip,
             options->port);
    return true;
}

static int
take(void *settings, int val)
{
    struct http_options *options = settings;
    unsigned long value = 0;
    bool is_good = true;

    switch (val) {
    case 'i':
        options->ip = optarg;
        break;
    case 'p':
        is_good = command_line_number(&line, "the port (-p)", 1, 65535, &value);
        options->port = (unsigned short)value;
        break;
    case 'n':
        is_good = command_line_number(&line, "the number of queries a socket (-n)", 1, QUERIES_MAX,
                                      &value);
        options->queries = (uint32_t)value;
        break;
    case 'c':
        is_good = command_line_number(&line, "the number of sockets (-c)", 1, SOCKETS_MAX, &value);
        options->sockets = (uint32_t)value;
        break;
    default:
        is_good = command_line_duration(&line, "the timeout (--timeout)", 1, TIMEOUT_MAX, &value);
        options->timeout_ms = (uint32_t)value;
        break;
    }
    return is_good ? COMMAND_LINE_GO_ON : COMMAND_LINE_WRONG;
}

int
http_options_parse(struct http_options *options, int argc, char **argv)
{
    int result;

    *options = (struct http_options){"127.0.0.1", 8000, 1, 1000, 10000, ""};
    result = command_line_parse(&line, options, argc, argv);
    if (result != COMMAND_LINE_GO_ON || set_authority(options))
        return result;
    fprintf(stderr,
            "sxe-http: the ip (-i) is '%s'; it must be an IPv4 or IPv6 address. "
            "Try --help.\n",
            options->ip);
    return COMMAND_LINE_WRONG;
}
