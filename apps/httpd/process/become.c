/* SPDX-License-Identifier: MIT
 *
 * Becoming the user of --user, in the directory of --chroot.
 */
#include "become.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sxe-log.h"

#define NO_GROUP ((gid_t)-1)

/* ---- The option ---- */

static bool
take_id(const char *text, unsigned *id)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    *id = (unsigned)value;
    return *text >= '0' && *text <= '9' && *end == '\0' && value < UINT32_MAX;
}

static bool
find_user(struct become *become, const char *name)
{
    unsigned id;
    const bool is_id = take_id(name, &id);
    const struct passwd *entry = is_id ? getpwuid(id) : getpwnam(name);

    become->user = entry != NULL ? entry->pw_uid : id;
    become->group = entry != NULL ? entry->pw_gid : NO_GROUP;
    snprintf(become->name, sizeof(become->name), "%s", entry != NULL ? entry->pw_name : "");
    snprintf(become->home, sizeof(become->home), "%s", entry != NULL ? entry->pw_dir : "/");
    return entry != NULL || is_id;
}

static bool
find_group(struct become *become, const char *name)
{
    unsigned id;
    const bool is_id = take_id(name, &id);
    const struct group *entry = is_id ? NULL : getgrnam(name);

    become->group = entry != NULL ? entry->gr_gid : id;
    return entry != NULL || is_id;
}

bool
become_parse(struct become *become, const char *text)
{
    const size_t length = strcspn(text, ":");
    char name[BECOME_NAME];

    become->is_given = true;
    if (length >= sizeof(name))
        return false;
    memcpy(name, text, length);
    name[length] = '\0';
    return find_user(become, name) &&
           (text[length] == '\0' || find_group(become, text + length + 1)) &&
           become->group != NO_GROUP;
}

/* ---- Before anything is opened ---- */

static int
refuse_other_than_root(const struct become *become)
{
    if (become->root == NULL)
        return 0;
    fprintf(stderr,
            "sxe-httpd: cannot make '%s' the root directory (--chroot): only root can; start it as "
            "root, or leave out --chroot\n",
            become->root);
    return -EPERM;
}

int
become_begin(const struct become *become)
{
    const uid_t now = geteuid();

    if (now == 0 && !become->is_given)
        SXE_WARN("started as root: an error in the server or a script endangers the whole machine, "
                 "and files that only root may read are served; add --user NAME to serve as "
                 "another user, or --user root if root is meant");
    if (now == 0)
        return 0;
    if (!become->is_given || now == become->user)
        return refuse_other_than_root(become);
    fprintf(stderr,
            "sxe-httpd: cannot become user %u (--user): only root can; start it as root, or leave "
            "out --user and start it as the user that serves\n",
            become->user);
    return -EPERM;
}

bool
become_is_other(const struct become *become)
{
    return become->is_given && become->user != 0;
}

/* Create a file for the user. O_EXCL does not follow links, so a user who may write to the
 * directory cannot make root give another file to him. */
void
become_make_file(const struct become *become, const char *path)
{
    int fd;

    if (!become->is_given || geteuid() != 0 || strcmp(path, "-") == 0)
        return;
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (fd < 0)
        return; /* the file exists, or the process that opens it will print why it cannot */
    (void)!fchown(fd, become->user, become->group);
    close(fd);
}

/* ---- The step ---- */

struct groups {
    gid_t each[BECOME_GROUPS];
    int number;
};

/* Get the user's groups. Call it before chroot(2), because after that /etc/group cannot be
 * reached. */
static void
find_groups(const struct become *become, struct groups *groups)
{
    groups->each[0] = become->group;
    groups->number = BECOME_GROUPS;
    if (become->name[0] == '\0')
        groups->number = 1;
    else
        (void)getgrouplist(become->name, become->group, groups->each, &groups->number);
    groups->number = groups->number < BECOME_GROUPS ? groups->number : BECOME_GROUPS;
}

int
become_enter(const struct become *become)
{
    int result;

    if (become->root == NULL)
        return 0;
    result = chroot(become->root) < 0 || chdir("/") < 0 ? -errno : 0;
    if (result < 0)
        fprintf(stderr,
                "sxe-httpd: cannot make '%s' the root directory (--chroot): %s; root can, with an "
                "existing directory, and a container needs CAP_SYS_CHROOT for that\n",
                become->root, strerror(-result));
    return result;
}

/* Become the user. Only root can set groups, so a process that already is this user keeps the
 * groups with which it was started. -EPERM: the process could become root again. */
static int
change_user(const struct become *become, const struct groups *groups, bool is_root)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        (is_root && setgroups((size_t)groups->number, groups->each) < 0) ||
        setgid(become->group) < 0 || setuid(become->user) < 0)
        return -errno;
    return become->user != 0 && setuid(0) == 0 ? -EPERM : 0;
}

/* Libraries look for the user's files in HOME. If HOME were still root's, libpq would fail or do
 * without TLS, because it may not read root's files. */
static void
set_environment(const struct become *become)
{
    (void)setenv("HOME", become->home, 1);
    (void)setenv("USER", become->name, 1);
    (void)setenv("LOGNAME", become->name, 1);
}

/* When the user changes, the kernel clears PR_SET_PDEATHSIG, so set it again. The kernel also
 * forbids other processes of the user to trace this process, and writes no core file of it. So keys
 * of TLS do not leak. */
int
become_now(const struct become *become)
{
    const bool is_root = geteuid() == 0;
    const pid_t parent = getppid();
    struct groups groups;
    int death = 0;
    int result;

    if (!become->is_given)
        return 0;
    find_groups(become, &groups);
    result = become_enter(become);
    if (result < 0)
        return result;
    if (is_root && become_is_other(become))
        set_environment(become);
    (void)prctl(PR_GET_PDEATHSIG, &death);
    result = change_user(become, &groups, is_root);
    (void)prctl(PR_SET_PDEATHSIG, death);
    /* If the parent has ended meanwhile, raise the signal here. (A signal of 0 does nothing.) */
    (void)(getppid() == parent || raise(death));
    if (result < 0)
        fprintf(stderr,
                "sxe-httpd: cannot become user %u, group %u (--user): %s; a container needs "
                "CAP_SETUID and CAP_SETGID for that\n",
                become->user, become->group, strerror(-result));
    return result;
}

/* Like become_now, but keep CAP_KILL. PR_SET_KEEPCAPS keeps all capabilities while the user
 * changes, and then this function drops all others. */
int
become_admin(const struct become *become)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};
    int result;

    if (!become->is_given)
        return 0;
    (void)prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    result = become_now(become);
    (void)syscall(SYS_capget, &head, sets);
    sets[0].permitted &= 1u << CAP_KILL;
    sets[0].effective = sets[0].permitted;
    sets[0].inheritable = 0;
    memset(&sets[1], 0, sizeof(sets[1]));
    if (result == 0 && syscall(SYS_capset, &head, sets) < 0)
        result = -errno;
    return result;
}
