/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-util.h"

#define USAGE_ERROR 2
#define SOCKETS_MAX 10000000ul
#define QUERIES_MAX UINT32_MAX
#define TIMEOUT_MAX 86400.0

static const struct {
    struct option option;
    const char *argument;
    const char *help;
} table[] = {
    {{"ip", required_argument, NULL, 'i'}, "IP", "address to connect to, IPv4 or IPv6 (127.0.0.1)"},
    {{"port", required_argument, NULL, 'p'}, "PORT", "port to connect to (8000)"},
    {{"queries", required_argument, NULL, 'n'}, "N", "queries on each socket (1)"},
    {{"sockets", required_argument, NULL, 'c'}, "N", "sockets, all open at the same time (1000)"},
    {{"timeout", required_argument, NULL, 'T'},
     "S",
     "seconds without any progress, then what is missing has failed (10)"},
    {{"help", no_argument, NULL, 'h'}, "", "print this, and exit"},
    {{"version", no_argument, NULL, 'V'}, "", "print the version, and exit"},
};
#define ROWS (sizeof(table) / sizeof(table[0]))

static void
print_help(void)
{
    printf("usage: sxe-http [options]\n\n"
           "Opens all sockets, then sends each one query after the other: GET / HTTP/1.1.\n\n");
    for (unsigned i = 0; i < ROWS; i++) {
        const struct option *option = &table[i].option;

        if (option->val >= 'a')
            printf("  -%c, --%-9s %-5s %s\n", option->val, option->name, table[i].argument,
                   table[i].help);
        else
            printf("      --%-9s %-5s %s\n", option->name, table[i].argument, table[i].help);
    }
    printf("\nExit status: 0 all answered well, 1 not all, 2 bad arguments, 130 interrupted.\n");
}

static bool
is_made_of(const char *text, const char *characters)
{
    return *text != '\0' && text[strspn(text, characters)] == '\0';
}

/* A whole number from 1 to max, or 0 after saying what is wrong. */
static unsigned long
number(const char *what, const char *text, unsigned long max)
{
    unsigned long value;

    errno = 0;
    value = strtoul(text, NULL, 10);
    if (is_made_of(text, "0123456789") && errno == 0 && value >= 1 && value <= max)
        return value;
    fprintf(stderr, "sxe-http: %s is '%s'; it must be a number from 1 to %lu. Try --help.\n", what,
            text, max);
    return 0;
}

/* Seconds with or without a fraction, in milliseconds; or 0 after saying what is wrong. */
static uint32_t
milliseconds(const char *what, const char *text)
{
    char *end;
    double seconds = strtod(text, &end);

    if (is_made_of(text, ".0123456789") && *end == '\0' && seconds >= 0.001 &&
        seconds <= TIMEOUT_MAX)
        return (uint32_t)(seconds * 1000);
    fprintf(stderr, "sxe-http: %s is '%s'; it must be from 0.001 to %.0f seconds. Try --help.\n",
            what, text, TIMEOUT_MAX);
    return 0;
}

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

/* One option: -1 go on, or the exit status. */
static int
apply(struct http_options *options, int letter)
{
    switch (letter) {
    case 'i':
        options->ip = optarg;
        return -1;
    case 'p':
        options->port = (unsigned short)number("the port (-p)", optarg, 65535);
        return options->port == 0 ? USAGE_ERROR : -1;
    case 'n':
        options->queries =
            (uint32_t)number("the number of queries a socket (-n)", optarg, QUERIES_MAX);
        return options->queries == 0 ? USAGE_ERROR : -1;
    case 'c':
        options->sockets = (uint32_t)number("the number of sockets (-c)", optarg, SOCKETS_MAX);
        return options->sockets == 0 ? USAGE_ERROR : -1;
    case 'T':
        options->timeout_ms = milliseconds("the timeout (--timeout)", optarg);
        return options->timeout_ms == 0 ? USAGE_ERROR : -1;
    case 'h':
        print_help();
        return EXIT_SUCCESS;
    case 'V':
        printf("sxe-http %s\n", SXE_VERSION);
        return EXIT_SUCCESS;
    default:
        fprintf(stderr, "Try sxe-http --help.\n");
        return USAGE_ERROR;
    }
}

int
http_options_parse(struct http_options *options, int argc, char **argv)
{
    struct option all[ROWS + 1] = {{0}};
    int result = -1;
    int letter;

    *options = (struct http_options){"127.0.0.1", 8000, 1, 1000, 10000, ""};
    for (unsigned i = 0; i < ROWS; i++)
        all[i] = table[i].option;
    optind = 1;
    while (result < 0 && (letter = getopt_long(argc, argv, "i:p:n:c:h", all, NULL)) >= 0)
        result = apply(options, letter);
    if (result >= 0)
        return result;
    if (optind < argc) {
        fprintf(stderr, "sxe-http: '%s' is not an option. Try --help.\n", argv[optind]);
        return USAGE_ERROR;
    }
    if (!set_authority(options)) {
        fprintf(stderr,
                "sxe-http: the ip (-i) is '%s'; it must be an IPv4 or IPv6 address. "
                "Try --help.\n",
                options->ip);
        return USAGE_ERROR;
    }
    return -1;
}
