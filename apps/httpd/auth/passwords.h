/* SPDX-License-Identifier: MIT
 *
 * What: reads files of users and the hashes of their passwords. Each line is "user:hash", with a
 * hash as `htpasswd -B` or `mkpasswd -m sha-512` makes it. Empty lines and lines that begin with #
 * are skipped. A second colon and the text after it are ignored.
 *
 * Place: a process reads the files before it serves, and before it becomes the user of --user;
 * basic-auth.c checks passwords with them.
 *
 * Hashes: bcrypt ($2a$, $2b$, $2y$) and SHA-crypt ($5$, $6$). Weaker hashes are refused, and so are
 * hashes that take many seconds to compute.
 *
 * Limits: a file has at most PASSWORDS_FILE_MAX bytes.
 */
#ifndef PASSWORDS_H
#define PASSWORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "sxe-http.h"

#define PASSWORDS_FILE_MAX (1u << 20)
/* the highest cost of bcrypt; a hash with this cost takes one or two seconds */
#define PASSWORDS_COST_MAX 15
#define PASSWORDS_ROUNDS   5000000 /* the largest number of rounds of SHA-crypt */

struct passwords;

/* Read the file. NULL after a message on standard error that begins with place. */
struct passwords *passwords_read(const char *place, const char *path);
void passwords_free(struct passwords *passwords); /* free the passwords; NULL is allowed */

/* The hash of the user's password. If there is no such user, *is_known becomes false, and the
 * result is the hash of another user, so that checking it takes as long as for a user who exists.
 * All processes that read the same bytes return the same hash for a name. */
const char *passwords_find(const struct passwords *passwords, struct sxe_span user, bool *is_known);

#endif
