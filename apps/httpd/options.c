/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>

#include "command-line.h"

#define CONNECTIONS_MAX 10000000ul

static int take(void *settings, int letter);

static const struct command_option table[] = {
    {{"ip", required_argument, NULL, 'i'}, "IP", "address to listen on, IPv4 or IPv6 (127.0.0.1)"},
    {{"port", required_argument, NULL, 'p'}, "PORT", "port to listen on; 0: any free one (8000)"},
    {{"connections", required_argument, NULL, 'c'},
     "N",
     "connections served at once; more wait (10000)"},
    {{"plan", no_argument, NULL, 'P'}, "", "print the memory that would be reserved, and exit"},
    COMMAND_LINE_HELP,
    COMMAND_LINE_VERSION,
};

static const struct command_line line = {
    .program = "sxe-httpd",
    .summary = "Answers every request with \"Hello, World!\".",
    .options = table,
    .number = sizeof(table) / sizeof(table[0]),
    .take = take,
};

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

static int
take(void *settings, int letter)
{
    struct httpd_options *options = settings;
    unsigned long value = 0;
    bool is_good = true;

    switch (letter) {
    case 'i':
        options->ip = optarg;
        is_good = is_address(optarg);
        break;
    case 'p':
        is_good = command_line_number(&line, "the port (-p)", 0, 65535, &value);
        options->port = (unsigned short)value;
        break;
    case 'c':
        is_good = command_line_number(&line, "the number of connections (-c)", 1, CONNECTIONS_MAX,
                                      &value);
        options->connections = (unsigned)value;
        break;
    default:
        options->plan = true;
        break;
    }
    return is_good ? COMMAND_LINE_GO_ON : COMMAND_LINE_WRONG;
}

int
httpd_options_parse(struct httpd_options *options, int argc, char **argv)
{
    *options = (struct httpd_options){"127.0.0.1", 8000, 10000, false};
    return command_line_parse(&line, options, argc, argv);
}
