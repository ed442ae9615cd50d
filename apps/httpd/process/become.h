/* SPDX-License-Identifier: MIT
 *
 * What: the user that serves, of --user, and the directory of --chroot. A process that root started
 * opens what only root may open, makes that directory its root, and then becomes that user for
 * ever.
 *
 * Place: options.c calls become_parse; main asks become_begin whether the user can be had. The
 * serving process calls become_now when its log and certificates are open, before it loads a
 * script; the admin process calls become_admin when it listens. The supervisor stays root: it
 * starts the next processes.
 *
 * Limits: a user of more than BECOME_GROUPS groups gets that many of them.
 */
#ifndef BECOME_H
#define BECOME_H

#include <stdbool.h>
#include <sys/types.h>

#define BECOME_NAME   256
#define BECOME_GROUPS 256

struct become {
    bool is_given;
    char name[BECOME_NAME]; /* of the user; "": a number without a name */
    uid_t user;
    gid_t group;
    const char *root; /* of --chroot, borrowed; NULL: none */
};

/* NAME, or NAME:GROUP; a number for each will do. False: there is no such user or group, or a
 * number that has no name came without a group. */
bool become_parse(struct become *become, const char *text);

/* Whether this process may become that user and enter that directory. 0, or -EPERM after a message.
 * Root without --user gets a warning. */
int become_begin(const struct become *become);

/* Whether the processes that serve become a user other than root. */
bool become_is_other(const struct become *become);

/* Create a file that does not exist, as the user's own: so that the user can open it again later,
 * in a directory where only root may create files. */
void become_make_file(const struct become *become, const char *path);

/* Make the directory of --chroot, if there is one, the root and the current directory of this
 * process. 0, or -errno after a message. */
int become_enter(const struct become *become);

/* Enter that directory, and become the user, with the user's groups, no capability and no way back.
 * The signal that the kernel sends when the parent ends stays as it was. Without --user it does
 * nothing, like the next. 0, or -errno after a message: then the process must end. */
int become_now(const struct become *become);

/* become_now for the admin process, which keeps the right to signal the supervisor (CAP_KILL). */
int become_admin(const struct become *become);

#endif
