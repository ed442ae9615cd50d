/* SPDX-License-Identifier: MIT
 *
 * Finding the process that holds a port or socket path, in /proc/net and /proc/PID/fd.
 */
#include "port-holder.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATE_LISTEN    10      /* TCP_LISTEN of the kernel */
#define FLAG_LISTENS    0x10000 /* __SO_ACCEPTCON of the kernel */
#define LINE_SIZE       512
#define PROC_PATH_SIZE  512
#define COMMAND_SIZE    32 /* room for the name of a process; the kernel's names are shorter */
#define NO_USER         (-1)
#define IPV4_BYTES_AT   12
#define HEX_WORD_DIGITS 8

static const uint8_t any_ipv6[16];
static const uint8_t any_ipv4[16] = {[10] = 0xff, [11] = 0xff};

/* The address or path that is in use. */
struct place {
    uint8_t ip[16]; /* an IPv4 address is stored as ::ffff:a.b.c.d */
    unsigned port;
    const char *path; /* the path of a unix socket; NULL: the place is a port */
};

/* A listening socket. */
struct listener {
    unsigned long inode;
    long user; /* the user who owns the socket; NO_USER: not known */
};

/* ---- Lines of /proc/net ---- */

/* Whether `any` is a wildcard address that includes `ip`. Sockets at :: are taken to accept IPv4,
 * too: the table does not show which have IPV6_V6ONLY. */
static bool
is_included(const uint8_t any[16], const uint8_t ip[16])
{
    if (memcmp(any, any_ipv6, sizeof(any_ipv6)) == 0)
        return true;
    return memcmp(any, any_ipv4, sizeof(any_ipv4)) == 0 && memcmp(ip, any_ipv4, IPV4_BYTES_AT) == 0;
}

static bool
is_overlapping(const uint8_t a[16], const uint8_t b[16])
{
    return memcmp(a, b, sizeof(any_ipv6)) == 0 || is_included(a, b) || is_included(b, a);
}

/* The kernel prints an address as hexadecimal numbers of 32 bits, in the byte order of the machine:
 * one for IPv4, four for IPv6. */
static bool
parse_hex_ip(const char *hex, uint8_t ip[16])
{
    size_t words = strlen(hex) / HEX_WORD_DIGITS;
    uint8_t *to = words == 1 ? ip + IPV4_BYTES_AT : ip;

    if ((words != 1 && words != 4) || strlen(hex) % HEX_WORD_DIGITS != 0)
        return false;
    memcpy(ip, any_ipv4, sizeof(any_ipv4));
    for (size_t i = 0; i < words; i++) {
        char digits[HEX_WORD_DIGITS + 1] = "";
        uint32_t word;

        memcpy(digits, hex + i * HEX_WORD_DIGITS, HEX_WORD_DIGITS);
        word = (uint32_t)strtoul(digits, NULL, 16);
        memcpy(to + i * sizeof(word), &word, sizeof(word));
    }
    return true;
}

/* Parse a line like "0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000
 * 0 12345 1 ...". */
static bool
is_listener_at_port(const char *line, const struct place *place, struct listener *listener)
{
    char hex[33];
    uint8_t ip[16];
    unsigned port;
    unsigned state;
    unsigned user;

    if (sscanf(line, " %*u: %32[0-9A-Fa-f]:%4x %*s %2x %*s %*s %*s %9u %*u %19lu", hex, &port,
               &state, &user, &listener->inode) != 5)
        return false;
    listener->user = (long)user;
    return state == STATE_LISTEN && port == place->port && parse_hex_ip(hex, ip) &&
           is_overlapping(ip, place->ip);
}

/* Parse a line like "ffff8880: 00000002 00000000 00010000 0001 01 12345 /run/web.sock". */
static bool
is_listener_at_path(const char *line, const struct place *place, struct listener *listener)
{
    size_t length = strlen(place->path);
    unsigned flags;
    int at = 0;

    if (sscanf(line, "%*s %*s %*s %8x %*s %*s %19lu %n", &flags, &listener->inode, &at) != 2)
        return false;
    listener->user = NO_USER;
    return (flags & FLAG_LISTENS) != 0 && strncmp(line + at, place->path, length) == 0 &&
           line[(size_t)at + length] == '\n';
}

/* ---- Reading /proc ---- */

static bool
find_in_table(const char *proc, const char *table, const struct place *place,
              struct listener *listener)
{
    char path[PROC_PATH_SIZE];
    char line[LINE_SIZE];
    bool found = false;
    FILE *file;

    snprintf(path, sizeof(path), "%s/net/%s", proc, table);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof(line), file) != NULL)
        found = place->path == NULL ? is_listener_at_port(line, place, listener)
                                    : is_listener_at_path(line, place, listener);
    fclose(file);
    return found;
}

static bool
has_open(const char *proc, long pid, const char *socket)
{
    char path[PROC_PATH_SIZE];
    bool found = false;
    struct dirent *entry;
    DIR *directory;

    snprintf(path, sizeof(path), "%s/%ld/fd", proc, pid);
    directory = opendir(path);
    if (directory == NULL)
        return false;
    while (!found && (entry = readdir(directory)) != NULL) {
        char target[64] = "";

        if (readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1) > 0)
            found = strcmp(target, socket) == 0;
    }
    closedir(directory);
    return found;
}

/* The lowest PID of the processes that have the socket open; 0: no process that we may look at has
 * it open. */
static long
find_process(const char *proc, unsigned long inode)
{
    DIR *directory = opendir(proc);
    char socket[64];
    struct dirent *entry;
    long lowest = 0;

    if (directory == NULL)
        return 0;
    snprintf(socket, sizeof(socket), "socket:[%lu]", inode);
    while ((entry = readdir(directory)) != NULL) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);

        if (pid > 0 && *end == '\0' && (lowest == 0 || pid < lowest) && has_open(proc, pid, socket))
            lowest = pid;
    }
    closedir(directory);
    return lowest;
}

/* The process's name; "a program" if it has ended. Any user may give a process any name: bytes that
 * could control a terminal become question marks. */
static void
read_command(const char *proc, long pid, char command[COMMAND_SIZE])
{
    char path[PROC_PATH_SIZE];
    FILE *file;

    snprintf(command, COMMAND_SIZE, "a program");
    snprintf(path, sizeof(path), "%s/%ld/comm", proc, pid);
    file = fopen(path, "re");
    if (file == NULL)
        return;
    if (fgets(command, COMMAND_SIZE, file) != NULL)
        command[strcspn(command, "\n")] = '\0';
    for (char *at = command; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~')
            *at = '?';
    }
    fclose(file);
}

/* ---- Messages ---- */

/* Write the process or user that listens, such as "nginx (pid 123)". listener NULL: no listening
 * socket was found. */
static void
describe_holder(const char *proc, const struct listener *listener, char text[PORT_HOLDER_MAX])
{
    long pid = listener != NULL ? find_process(proc, listener->inode) : 0;
    char command[COMMAND_SIZE];

    if (pid > 0) {
        read_command(proc, pid, command);
        snprintf(text, PORT_HOLDER_MAX, "%s (pid %ld)", command, pid);
    } else if (listener == NULL) {
        snprintf(text, PORT_HOLDER_MAX, "a process that %s does not show", proc);
    } else if (listener->user == NO_USER) {
        snprintf(text, PORT_HOLDER_MAX, "a process whose name is hidden from us");
    } else {
        snprintf(text, PORT_HOLDER_MAX, "a process of user %ld whose name is hidden from us",
                 listener->user);
    }
}

/* Parse an address into the form of struct place. A text that is no address becomes ::, which
 * overlaps with every address. */
static void
parse_text_ip(const char *text, uint8_t ip[16])
{
    char without_zone[INET6_ADDRSTRLEN];

    memcpy(ip, any_ipv4, sizeof(any_ipv4));
    if (inet_pton(AF_INET, text, ip + IPV4_BYTES_AT) == 1)
        return;
    snprintf(without_zone, sizeof(without_zone), "%.*s", (int)strcspn(text, "%"), text);
    if (inet_pton(AF_INET6, without_zone, ip) != 1)
        memcpy(ip, any_ipv6, sizeof(any_ipv6));
}

static bool
find_port(const char *proc, const char *ip, unsigned short port, struct listener *listener)
{
    struct place place = {.port = port};

    parse_text_ip(ip != NULL ? ip : "", place.ip);
    return find_in_table(proc, "tcp", &place, listener) ||
           find_in_table(proc, "tcp6", &place, listener);
}

static bool
find_path(const char *proc, const char *path, struct listener *listener)
{
    struct place place = {.path = path};

    return find_in_table(proc, "unix", &place, listener);
}

void
port_holder_of_port(const char *proc, const char *ip, unsigned short port, char *text, size_t size)
{
    struct listener listener;
    char holder[PORT_HOLDER_MAX];
    bool found = find_port(proc, ip, port, &listener);

    describe_holder(proc, found ? &listener : NULL, holder);
    snprintf(text, size, "port %u is in use by %s", port, holder);
}

void
port_holder_of_path(const char *proc, const char *path, char *text, size_t size)
{
    struct listener listener;
    char holder[PORT_HOLDER_MAX];
    bool found = find_path(proc, path, &listener);

    describe_holder(proc, found ? &listener : NULL, holder);
    snprintf(text, size, "%s is in use by %s", path, holder);
}

long
port_holder_pid_of_port(const char *proc, const char *ip, unsigned short port)
{
    struct listener listener;

    return find_port(proc, ip, port, &listener) ? find_process(proc, listener.inode) : 0;
}

long
port_holder_pid_of_path(const char *proc, const char *path)
{
    struct listener listener;

    return find_path(proc, path, &listener) ? find_process(proc, listener.inode) : 0;
}
