/* SPDX-License-Identifier: MIT
 *
 * Rules of Landlock for what a serving process opens.
 */
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config-sites.h"
#include "options.h"
#include "sxe-log.h"

/* The interface of Landlock. Headers of kernels before 5.13 do not have it, and later access rights
 * are in later headers only. */
enum { LANDLOCK_VERSION = 1 << 0, LANDLOCK_BENEATH = 1 };
struct landlock_ruleset {
    uint64_t handled;
};
struct landlock_beneath {
    uint64_t allowed;
    int32_t parent_fd;
} __attribute__((packed));
#ifndef SYS_landlock_create_ruleset
#    define SYS_landlock_create_ruleset 444
#    define SYS_landlock_add_rule       445
#    define SYS_landlock_restrict_self  446
#endif

#define FS_RIGHT(bit) (UINT64_C(1) << (bit))
#define FS_WRITE_FILE FS_RIGHT(1)
#define FS_READ_FILE  FS_RIGHT(2)
#define FS_READ_DIR   FS_RIGHT(3)
#define FS_REMOVE     FS_RIGHT(5)
#define FS_MAKE_REG   FS_RIGHT(8)
#define FS_MAKE_SOCK  FS_RIGHT(9)
#define FS_REFER      FS_RIGHT(13)
#define FS_TRUNCATE   FS_RIGHT(14)
#define FS_IOCTL_DEV  FS_RIGHT(15)

#define FS_READ  (FS_READ_FILE | FS_READ_DIR)
#define FS_WRITE (FS_WRITE_FILE | FS_TRUNCATE)
#define FS_MAKE  (FS_MAKE_REG | FS_MAKE_SOCK)
/* all access rights of version 1 of Landlock */
#define FS_FIRST (FS_RIGHT(13) - 1)

/* ---- The rules ---- */

/* All access rights that this kernel can refuse. Each later version of Landlock can refuse more. */
static uint64_t
rights_of_version(long version)
{
    return FS_FIRST | (version >= 2 ? FS_REFER : 0) | (version >= 3 ? FS_TRUNCATE : 0) |
           (version >= 5 ? FS_IOCTL_DEV : 0);
}

static uint64_t
rights_of_rule(unsigned rights)
{
    return (rights & CONFINE_READ ? FS_READ : 0) | (rights & CONFINE_WRITE ? FS_WRITE : 0) |
           (rights & CONFINE_MAKE ? FS_MAKE : 0) | (rights & CONFINE_REMOVE ? FS_REMOVE : 0);
}

/* Add a rule for a path. 0 or -errno. */
static int
add_rule(int ruleset, const struct confine_rule *rule, uint64_t known)
{
    struct landlock_beneath beneath = {.allowed = rights_of_rule(rule->rights) & known};
    struct stat status;
    int result = 0;

    beneath.parent_fd = open(rule->path, O_PATH | O_CLOEXEC);
    if (beneath.parent_fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -errno;
    if (fstat(beneath.parent_fd, &status) < 0) {
        result = -errno;
    } else {
        if (!S_ISDIR(status.st_mode))
            beneath.allowed &= FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE;
        if (beneath.allowed != 0 &&
            syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_BENEATH, &beneath, 0) < 0)
            result = -errno;
    }
    close(beneath.parent_fd);
    return result;
}

int
confine_files(const struct confine_rule *rules, unsigned number)
{
    struct landlock_ruleset all = {0};
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION);
    int result = 0;
    int ruleset;

    if (version < 0)
        return -errno;
    all.handled = rights_of_version(version);
    ruleset = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0);
    if (ruleset < 0)
        return -errno;
    for (unsigned i = 0; i < number && result == 0; i++)
        result = add_rule(ruleset, &rules[i], all.handled);
    if (result == 0 && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                        syscall(SYS_landlock_restrict_self, ruleset, 0) < 0))
        result = -errno;
    close(ruleset);
    return result;
}

/* ---- Rights that the options need ---- */

enum { RULES_MAX = 256 };

struct rules {
    struct confine_rule each[RULES_MAX];
    /* texts of rules: the directories of paths, and the directories of the targets of links */
    char directories[2 * (HTTPD_PAIRS_MAX * 3 + 5)][PATH_MAX];
    unsigned number;
    unsigned directories_number;
    bool is_full;
};

static void
add_path(struct rules *rules, const char *path, unsigned rights)
{
    if (path == NULL)
        return;
    rules->is_full = rules->number == RULES_MAX;
    if (!rules->is_full)
        rules->each[rules->number++] = (struct confine_rule){path, rights};
}

/* Allow the directory of a file, because a rule for the file itself would not hold for a new file
 * that is renamed to its path. If the path is a link, allow the directory of its target, too: when
 * certbot renews a certificate, the link gets a new target in this directory. */
static void
add_directory_of(struct rules *rules, const char *path, unsigned rights)
{
    char target[PATH_MAX];
    const char *const files[] = {path, path == NULL ? NULL : realpath(path, target)};

    if (path == NULL || strcmp(path, "-") == 0)
        return;
    for (unsigned i = 0; i < 2 && files[i] != NULL; i++) {
        char *directory = rules->directories[rules->directories_number++];
        const char *slash = strrchr(files[i], '/');

        snprintf(directory, PATH_MAX, "%.*s", slash == NULL ? 1 : (int)(slash - files[i] + 1),
                 slash == NULL ? "." : files[i]);
        add_path(rules, directory, rights);
    }
}

static void
add_system(struct rules *rules)
{
    static const char *const read[] = {"/usr",
                                       "/lib",
                                       "/lib64",
                                       "/sys",
                                       "/proc/self",
                                       "/proc/sys",
                                       "/etc/resolv.conf",
                                       "/etc/hosts",
                                       "/etc/nsswitch.conf",
                                       "/etc/host.conf",
                                       "/etc/gai.conf",
                                       "/etc/services",
                                       "/etc/protocols",
                                       "/etc/localtime",
                                       "/etc/ld.so.cache",
                                       "/etc/ssl/certs",
                                       "/etc/ssl/openssl.cnf",
                                       "/etc/pki/tls/certs",
                                       "/dev/urandom"};

    for (unsigned i = 0; i < sizeof(read) / sizeof(read[0]); i++)
        add_path(rules, read[i], CONFINE_READ);
    add_path(rules, "/dev/null", CONFINE_READ | CONFINE_WRITE);
}

static void
add_script_rules(struct rules *rules, const struct httpd_options *options)
{
    if (options->script == NULL)
        return;
    add_directory_of(rules, options->script, CONFINE_READ);
    add_path(rules, "./rocks", CONFINE_READ);
    add_path(rules, "/dev/shm", CONFINE_READ | CONFINE_WRITE | CONFINE_MAKE | CONFINE_REMOVE);
    add_directory_of(rules, options->lua_coverage, CONFINE_READ | CONFINE_WRITE | CONFINE_MAKE);
}

static void
add_roots(struct rules *rules, const struct httpd_options *options)
{
    const struct config_site *site =
        options->config.sites == NULL ? NULL : options->config.sites->first;

    add_path(rules, options->files.root, CONFINE_READ);
    for (; site != NULL; site = site->next) {
        for (const struct config_route *route = site->routes; route != NULL; route = route->next)
            add_path(rules, route->root, CONFINE_READ);
    }
}

/* Add files that are opened again while the server runs. With --chroot they are outside of the new
 * root directory, so they cannot be opened again; the supervisor starts new processes, which open
 * them before they are confined. */
static void
add_outside(struct rules *rules, const struct httpd_options *options)
{
    const struct httpd_tls_options *tls = &options->tls;

    if (options->user.root != NULL)
        return;
    for (unsigned i = 0; i < tls->certificates; i++) {
        add_directory_of(rules, tls->certificate[i], CONFINE_READ);
        add_directory_of(rules, tls->key[i], CONFINE_READ);
        add_directory_of(rules, tls->staple[i], CONFINE_READ);
    }
    add_directory_of(rules, tls->client_ca, CONFINE_READ);
    add_directory_of(rules, options->access_log, CONFINE_WRITE | CONFINE_MAKE);
    add_directory_of(rules, options->unix_path, CONFINE_MAKE | CONFINE_REMOVE);
    for (unsigned i = 0; i < options->places_number; i++)
        add_directory_of(rules, options->places[i].path, CONFINE_MAKE | CONFINE_REMOVE);
}

/* Ignore the error if the kernel lacks a protection, or if a container refuses it, but log it.
 * Returns 0, or the error. */
static int
settle_result(int result, const char *what, const char *left)
{
    if (result == -ENOSYS || result == -EOPNOTSUPP || result == -EPERM) {
        SXE_WARN("--confine: the kernel has no %s, or a container refuses it: %s: %s", what,
                 strerror(-result), left);
        return 0;
    }
    if (result < 0)
        fprintf(stderr, "sxe-httpd: cannot confine the process (--confine): %s: %s\n", what,
                strerror(-result));
    return result;
}

int
confine_begin(const struct httpd_options *options)
{
    static struct rules rules;
    int result;

    if (!options->is_confined)
        return 0;
    memset(&rules, 0, sizeof(rules));
    add_system(&rules);
    add_script_rules(&rules, options);
    add_outside(&rules, options);
    add_roots(&rules, options);
    result = rules.is_full ? -E2BIG : confine_files(rules.each, rules.number);
    result = settle_result(result, "Landlock", "files are opened as without it");
    return result < 0 ? result
                      : settle_result(confine_calls(), "filter of calls (seccomp)",
                                      "all system calls are allowed");
}
