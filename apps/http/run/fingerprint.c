/* SPDX-License-Identifier: MIT
 *
 * Collecting facts about the machine, the client and the server.
 */
#include "fingerprint.h"

#include <dirent.h>
#include <ev.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "output.h"
#include "port-holder.h"
#include "sxe-util.h"

#define PATH_SIZE 512
/* how many bytes of a file are read; of /proc/cpuinfo this is the part about the first CPUs */
#define FILE_SIZE 16384
#define UNKNOWN   "unknown"

#define CPU_DIRECTORY "/sys/devices/system/cpu"

#ifdef __clang__
#    define COMPILER "clang " __clang_version__
#else
#    define COMPILER "gcc " __VERSION__
#endif

/* The facts that consist of the first line of a file. */
static const struct {
    const char *name;
    const char *path;
} files[] = {
    {"cpus_online", CPU_DIRECTORY "/online"},
    {"governor", CPU_DIRECTORY "/cpu0/cpufreq/scaling_governor"},
    {"clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"},
    {"transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled"},
    {"net.core.somaxconn", "/proc/sys/net/core/somaxconn"},
    {"net.core.netdev_max_backlog", "/proc/sys/net/core/netdev_max_backlog"},
    {"net.core.rmem_max", "/proc/sys/net/core/rmem_max"},
    {"net.core.wmem_max", "/proc/sys/net/core/wmem_max"},
    {"net.ipv4.tcp_rmem", "/proc/sys/net/ipv4/tcp_rmem"},
    {"net.ipv4.tcp_wmem", "/proc/sys/net/ipv4/tcp_wmem"},
    {"net.ipv4.tcp_max_syn_backlog", "/proc/sys/net/ipv4/tcp_max_syn_backlog"},
    {"net.ipv4.ip_local_port_range", "/proc/sys/net/ipv4/ip_local_port_range"},
    {"net.ipv4.tcp_tw_reuse", "/proc/sys/net/ipv4/tcp_tw_reuse"},
    {"net.ipv4.tcp_fin_timeout", "/proc/sys/net/ipv4/tcp_fin_timeout"},
    {"net.ipv4.tcp_syncookies", "/proc/sys/net/ipv4/tcp_syncookies"},
    {"net.ipv4.tcp_congestion_control", "/proc/sys/net/ipv4/tcp_congestion_control"},
};

/* ---- Facts ---- */

/* Add a fact. It is printed as one line, so control bytes are replaced by blanks. */
static void add_fact(struct load_fingerprint *fingerprint, const char *name, const char *format,
                     ...) SXE_PRINTF(3, 4);

static void
add_fact(struct load_fingerprint *fingerprint, const char *name, const char *format, ...)
{
    struct load_fact *fact = &fingerprint->facts[fingerprint->number++];
    va_list arguments;
    int length;

    snprintf(fact->name, sizeof(fact->name), "%s", name);
    va_start(arguments, format);
    length = vsnprintf(fact->value, sizeof(fact->value), format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof(fact->value))
        memcpy(fact->value + sizeof(fact->value) - 4, "...", 4);
    for (char *byte = fact->value; *byte != '\0'; byte++)
        if ((unsigned char)*byte < ' ' || *byte == 0x7f)
            *byte = ' ';
}

/* ---- Files ---- */

/* Read as many bytes of the file as there is room for, and add a '\0'. False: the file cannot be
 * read. */
static bool
read_system_file(const char *root, const char *path, char *text, size_t size)
{
    char full[PATH_SIZE];
    ssize_t length;
    int file;

    snprintf(full, sizeof(full), "%s%s", root, path);
    file = open(full, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    length = read(file, text, size - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* Read the first line of a file. */
static const char *
read_first_line(const char *root, const char *path, char *text, size_t size)
{
    if (!read_system_file(root, path, text, size))
        return UNKNOWN;
    text[strcspn(text, "\n")] = '\0';
    return text;
}

/* Find the value after "name:" in a text that has one such pair in each line, and end the value
 * with a NUL. NULL: the text has no such name. */
static char *
value_of_name(char *text, const char *name)
{
    size_t length = strlen(name);

    for (char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && strchr(" \t:", line[length]) != NULL) {
            line += length + strspn(line + length, " \t:");
            line[strcspn(line, "\n")] = '\0';
            return line;
        }
    }
    return NULL;
}

static void
add_fact_value(struct load_fingerprint *fingerprint, const char *name, const char *value)
{
    add_fact(fingerprint, name, "%s", value != NULL ? value : UNKNOWN);
}

/* ---- The machine ---- */

static void
add_cpu_model(struct load_fingerprint *fingerprint, const char *root)
{
    char text[FILE_SIZE] = "";
    char flags[FILE_SIZE];
    const char *virtual;

    read_system_file(root, "/proc/cpuinfo", text, sizeof(text));
    memcpy(flags, text, sizeof(flags));
    virtual = value_of_name(flags, "flags");
    add_fact_value(fingerprint, "cpu_model", value_of_name(text, "model name"));
    add_fact_value(fingerprint, "virtual_machine",
                   virtual == NULL                          ? NULL
                   : strstr(virtual, " hypervisor") != NULL ? "yes"
                                                            : "no");
}

static void
add_cpus_allowed(struct load_fingerprint *fingerprint, const char *root)
{
    char text[FILE_SIZE] = "";

    read_system_file(root, "/proc/self/status", text, sizeof(text));
    add_fact_value(fingerprint, "cpus_allowed", value_of_name(text, "Cpus_allowed_list"));
}

/* Add whether turbo is on. The file of Intel's driver is 1 if turbo is off; the file of other
 * drivers is 1 if it is on. */
static void
add_turbo(struct load_fingerprint *fingerprint, const char *root)
{
    char text[16];
    bool is_known = true;
    char on = '0';

    if (!read_system_file(root, CPU_DIRECTORY "/intel_pstate/no_turbo", text, sizeof(text))) {
        is_known = read_system_file(root, CPU_DIRECTORY "/cpufreq/boost", text, sizeof(text));
        on = '1';
    }
    add_fact_value(fingerprint, "turbo", !is_known ? NULL : text[0] == on ? "on" : "off");
}

static void
add_memory(struct load_fingerprint *fingerprint, const char *root)
{
    char text[FILE_SIZE] = "";
    const char *total;

    read_system_file(root, "/proc/meminfo", text, sizeof(text));
    total = value_of_name(text, "MemTotal");
    if (total == NULL)
        add_fact_value(fingerprint, "memory", NULL);
    else
        add_fact(fingerprint, "memory", "%llu MiB", strtoull(total, NULL, 10) / 1024);
}

/* Add which part of the time since boot the hypervisor gave to other guests (steal time). */
static void
add_steal(struct load_fingerprint *fingerprint, const char *root)
{
    char text[FILE_SIZE] = "";
    double fields[8] = {0};
    double all = 0;

    read_system_file(root, "/proc/stat", text, sizeof(text));
    if (sscanf(text, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &fields[0], &fields[1], &fields[2],
               &fields[3], &fields[4], &fields[5], &fields[6], &fields[7]) == 8)
        for (unsigned i = 0; i < 8; i++)
            all += fields[i];
    if (all > 0)
        add_fact(fingerprint, "steal", "%.2f %%", fields[7] / all * 100);
    else
        add_fact_value(fingerprint, "steal", NULL);
}

static int
is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Append a name to a list of names, if there is room. */
static void
add_name_to_list(char *list, size_t size, const char *name)
{
    size_t length = strlen(list);

    snprintf(list + length, size - length, "%s%s", length > 0 ? " " : "", name);
}

/* Add the CPU's vulnerabilities which the kernel mitigates, and those which it does not.
 * Vulnerabilities in other states, such as "Not affected", are left out. */
static void
add_mitigations(struct load_fingerprint *fingerprint, const char *root)
{
    static const char directory[] = CPU_DIRECTORY "/vulnerabilities";
    char mitigated[LOAD_FACT_MAX] = "", vulnerable[LOAD_FACT_MAX] = "";
    char path[PATH_SIZE], text[LOAD_FACT_MAX];
    struct dirent **names;
    const char *state;
    int number;

    snprintf(path, sizeof(path), "%s%s", root, directory);
    number = scandir(path, &names, is_visible, alphasort);
    if (number < 0) {
        add_fact_value(fingerprint, "mitigations", NULL);
        return;
    }
    for (int i = 0; i < number; i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, names[i]->d_name);
        state = read_first_line(root, path, text, sizeof(text));
        if (strstr(state, "Vulnerable") != NULL)
            add_name_to_list(vulnerable, sizeof(vulnerable), names[i]->d_name);
        else if (strstr(state, "Mitigation") != NULL)
            add_name_to_list(mitigated, sizeof(mitigated), names[i]->d_name);
        free(names[i]);
    }
    free(names);
    add_fact(fingerprint, "mitigations", "mitigated: %s; vulnerable: %s",
             *mitigated == '\0' ? "none" : mitigated, *vulnerable == '\0' ? "none" : vulnerable);
}

static void
add_open_files(struct load_fingerprint *fingerprint)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        add_fact_value(fingerprint, "open_files", NULL);
    else
        add_fact(fingerprint, "open_files", "soft %llu hard %llu",
                 (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
}

/* ---- The programs ---- */

/* Append a word, quoted so that a shell reads back the same word. */
static void
add_shell_word(char *text, size_t size, const char *word)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "@%+=:,./_-";
    char byte[2] = "";

    if (*word != '\0' && word[strspn(word, safe)] == '\0') {
        add_name_to_list(text, size, word);
        return;
    }
    add_name_to_list(text, size, "'");
    for (; *word != '\0'; word++) {
        size_t length = strlen(text);

        byte[0] = *word;
        snprintf(text + length, size - length, "%s", *word == '\'' ? "'\\''" : byte);
    }
    snprintf(text + strlen(text), size - strlen(text), "'");
}

static void
add_command(struct load_fingerprint *fingerprint, const struct load_plan *plan)
{
    char text[LOAD_FACT_MAX + 1] = "";

    for (int i = 0; i < plan->argc; i++)
        add_shell_word(text, sizeof(text), plan->argv[i]);
    add_fact_value(fingerprint, "command", text);
}

/* Find the command line of the process that listens at the plan's address; NULL: not known. */
static const char *
read_server_command(const char *root, const struct load_plan *plan, char text[LOAD_FACT_MAX + 1])
{
    char path[PATH_SIZE], words[LOAD_FACT_MAX + 1];
    size_t length;
    long pid = 0;
    FILE *file;

    *text = '\0';
    snprintf(path, sizeof(path), "%s/proc", root);
    if (plan->unix_path != NULL)
        pid = port_holder_pid_of_path(path, plan->unix_path);
    else if (load_is_local(plan))
        pid = port_holder_pid_of_port(path, plan->ip, plan->port);
    snprintf(path, sizeof(path), "%s/proc/%ld/cmdline", root, pid);
    file = pid > 0 ? fopen(path, "re") : NULL;
    if (file == NULL)
        return NULL;
    length = fread(words, 1, sizeof(words) - 1, file);
    words[length] = '\0';
    fclose(file);
    for (const char *word = words; word < words + length; word += strlen(word) + 1)
        if (*word != '\0')
            add_shell_word(text, LOAD_FACT_MAX + 1, word);
    return text;
}

static void
add_server_command(struct load_fingerprint *fingerprint, const char *root,
                   const struct load_plan *plan)
{
    char text[LOAD_FACT_MAX + 1];

    add_fact_value(fingerprint, "server_command",
                   plan->server_cmd != NULL ? plan->server_cmd
                                            : read_server_command(root, plan, text));
}

void
load_fingerprint_take(struct load_fingerprint *fingerprint, const char *root,
                      const struct load_plan *plan)
{
    char text[LOAD_FACT_MAX];

    fingerprint->number = 0;
    add_command(fingerprint, plan);
    add_server_command(fingerprint, root, plan);
    add_fact_value(fingerprint, "sxe_http", SXE_VERSION);
    add_fact_value(fingerprint, "compiler", COMPILER);
    add_fact(fingerprint, "libev", "%d.%d", ev_version_major(), ev_version_minor());
    add_fact_value(fingerprint, "kernel",
                   read_first_line(root, "/proc/sys/kernel/osrelease", text, sizeof(text)));
    add_cpu_model(fingerprint, root);
    add_cpus_allowed(fingerprint, root);
    add_turbo(fingerprint, root);
    add_mitigations(fingerprint, root);
    add_memory(fingerprint, root);
    add_steal(fingerprint, root);
    add_open_files(fingerprint);
    for (unsigned i = 0; i < SXE_COUNT(files); i++)
        add_fact_value(fingerprint, files[i].name,
                       read_first_line(root, files[i].path, text, sizeof(text)));
}
