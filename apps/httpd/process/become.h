/* SPDX-License-Identifier: MIT
 *
 * What: --user, the user that serves, and --chroot, its root directory. A process that root started
 * opens the files that only root may open. Then it makes the directory of --chroot its root
 * directory, and becomes the user of --user, with no way back.
 *
 * Place: options.c calls become_parse; main calls become_begin to check that the process may become
 * the user. The serving process calls become_now after it has opened its log and certificates, and
 * before it loads a script. The admin process calls become_admin when it listens. The supervisor
 * stays root, because it has to start further processes.
 *
 * Limits: of a user's groups only BECOME_GROUPS are used.
 */
#ifndef BECOME_H
#define BECOME_H

#include <stdbool.h>
#include <sys/types.h>

#define BECOME_NAME   256
#define BECOME_GROUPS 256

struct become {
    bool is_given;
    char name[BECOME_NAME]; /* the user's name; "": the user is only a number */
    char home[BECOME_NAME]; /* the user's home directory; "/": it is not known */
    uid_t user;
    gid_t group;
    const char *root; /* the directory of --chroot, not owned; NULL: --chroot was not given */
};

/* Parse NAME or NAME:GROUP, where each may be a number. False: there is no such user or group, or
 * the user is a number without a name, and no GROUP was given. */
bool become_parse(struct become *become, const char *text);

/* Check that this process may become the user and enter the directory. 0, or -EPERM after a
 * message. If the process is root, and --user was not given, a warning is printed. */
int become_begin(const struct become *become);

/* Whether serving processes become a user other than root. */
bool become_is_other(const struct become *become);

/* Create a file that belongs to the user, if it does not exist. So the user can open it again
 * later, even in a directory in which only root may create files. */
void become_make_file(const struct become *become, const char *path);

/* Make the directory of --chroot, if there is one, the root and the current directory of this
 * process. 0, or -errno after a message. */
int become_enter(const struct become *become);

/* Enter the directory of --chroot, and become the user, with the user's groups, and without any
 * capability or a way back. A process of root also gets the user's HOME, USER and LOGNAME.
 * PR_SET_PDEATHSIG stays as it was. 0, or -errno after a message: then the process must end.
 * Without --user, become_now and become_admin do nothing. */
int become_now(const struct become *become);

/* Like become_now, but for the admin process, which keeps the right to send signals to the
 * supervisor (CAP_KILL). */
int become_admin(const struct become *become);

#endif
