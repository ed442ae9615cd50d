/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "sxe-util.h"

#define USAGE_ERROR     2
#define CONNECTIONS_MAX 10000000ul

static const struct {
    struct option option;
    const char *argument;
    const char *help;
} table[] = {
    {{"ip", required_argument, NULL, 'i'}, "IP", "address to listen on, IPv4 or IPv6 (127.0.0.1)"},
    {{"port", required_argument, NULL, 'p'},
     "PORT",
     "port to listen on; 0: any that is free (8000)"},
    {{"connections", required_argument, NULL, 'c'},
     "N",
     "connections served at once; more wait (10000)"},
    {{"plan", no_argument, NULL, 'P'}, "", "print the memory that would be reserved, and exit"},
    {{"help", no_argument, NULL, 'h'}, "", "print this, and exit"},
    {{"version", no_argument, NULL, 'V'}, "", "print the version, and exit"},
};
#define ROWS (sizeof(table) / sizeof(table[0]))

static void
print_help(void)
{
    printf("usage: sxe-httpd [options]\n\nAnswers every request with \"Hello, World!\".\n\n");
    for (unsigned i = 0; i < ROWS; i++) {
        const struct option *option = &table[i].option;

        if (option->val >= 'a')
            printf("  -%c, --%-12s %-5s %s\n", option->val, option->name, table[i].argument,
                   table[i].help);
        else
            printf("      --%-12s %-5s %s\n", option->name, table[i].argument, table[i].help);
    }
}

/* A whole number from min to max, or -1 after saying what is wrong. */
static long
number(const char *what, const char *text, unsigned long min, unsigned long max)
{
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && value >= min && value <= max)
        return (long)value;
    fprintf(stderr, "sxe-httpd: %s is '%s'; it must be a number from %lu to %lu. Try --help.\n",
            what, text, min, max);
    return -1;
}

static bool
is_address(const char *ip)
{
    struct sockaddr_storage any;

    if (inet_pton(AF_INET, ip, &any) == 1 || inet_pton(AF_INET6, ip, &any) == 1)
        return true;
    fprintf(stderr, "sxe-httpd: the address (-i) is '%s'; it must be IPv4 or IPv6. Try --help.\n",
            ip);
    return false;
}

/* One option: -1 go on, or the exit status. */
static int
apply(struct httpd_options *options, int letter)
{
    long value = 0;

    switch (letter) {
    case 'i':
        options->ip = optarg;
        return is_address(optarg) ? -1 : USAGE_ERROR;
    case 'p':
        value = number("the port (-p)", optarg, 0, 65535);
        options->port = (unsigned short)value;
        return value < 0 ? USAGE_ERROR : -1;
    case 'c':
        value = number("the number of connections (-c)", optarg, 1, CONNECTIONS_MAX);
        options->connections = (unsigned)value;
        return value < 0 ? USAGE_ERROR : -1;
    case 'P':
        options->plan = true;
        return -1;
    case 'h':
        print_help();
        return EXIT_SUCCESS;
    case 'V':
        printf("sxe-httpd %s\n", SXE_VERSION);
        return EXIT_SUCCESS;
    default:
        fprintf(stderr, "Try sxe-httpd --help.\n");
        return USAGE_ERROR;
    }
}

int
httpd_options_parse(struct httpd_options *options, int argc, char **argv)
{
    struct option all[ROWS + 1] = {{0}};
    int result = -1;
    int letter;

    *options = (struct httpd_options){"127.0.0.1", 8000, 10000, false};
    for (unsigned i = 0; i < ROWS; i++)
        all[i] = table[i].option;
    optind = 1;
    while (result < 0 && (letter = getopt_long(argc, argv, "i:p:c:h", all, NULL)) >= 0)
        result = apply(options, letter);
    if (result < 0 && optind < argc) {
        fprintf(stderr, "sxe-httpd: '%s' is not an option. Try --help.\n", argv[optind]);
        result = USAGE_ERROR;
    }
    return result;
}
