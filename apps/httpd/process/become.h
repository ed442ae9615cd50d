/* SPDX-License-Identifier: MIT
 *
 * What: --user, the user that serves, and --chroot, its root directory. A process that root started
 * opens the files that only root may open, makes that directory its root, and then becomes that
 * user, with no way back.
 *
 * Place: options.c calls become_parse; main calls become_begin to check that the process may become
 * the user. The serving process calls become_now when its log and certificates are open, before it
 * loads a script; the admin process calls become_admin when it listens. The supervisor stays root:
 * it starts the next processes.
 *
 * Limits: a user with more than BECOME_GROUPS groups gets only that many.
 */
#ifndef BECOME_H
#define BECOME_H

#include <stdbool.h>
#include <sys/types.h>

#define BECOME_NAME   256
#define BECOME_GROUPS 256

struct become {
    bool is_given;
    char name[BECOME_NAME]; /* the user's name; "": the user is a number without a name */
    char home[BECOME_NAME]; /* the user's home directory; "/": it is not known */
    uid_t user;
    gid_t group;
    const char *root; /* the directory of --chroot, borrowed; NULL: none */
};

/* Parse NAME or NAME:GROUP; each may be a number. False: there is no such user or group; or the
 * user is a number that has no name, and no GROUP was given. */
bool become_parse(struct become *become, const char *text);

/* Check that this process may become the user and enter the directory. 0, or -EPERM after a
 * message. Root without --user gets a warning. */
int become_begin(const struct become *become);

/* Whether serving processes become a user other than root. */
bool become_is_other(const struct become *become);

/* Create a file that does not exist, as the user's own: so that the user can open it again later,
 * in a directory where only root may create files. */
void become_make_file(const struct become *become, const char *path);

/* Make the directory of --chroot, if there is one, the root and the current directory of this
 * process. 0, or -errno after a message. */
int become_enter(const struct become *become);

/* Enter the directory of --chroot, and become the user, with the user's groups, no capability and
 * no way back. A process of root gets the user's HOME, USER and LOGNAME. PR_SET_PDEATHSIG stays as
 * it was. Without --user, become_now and become_admin do nothing. 0, or -errno after a message:
 * then the process must end. */
int become_now(const struct become *become);

/* become_now for the admin process, which keeps the right to signal the supervisor (CAP_KILL). */
int become_admin(const struct become *become);

#endif
