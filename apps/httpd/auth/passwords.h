/* SPDX-License-Identifier: MIT
 *
 * What: files of users and the hashes of their passwords: lines "user:hash", as `htpasswd -B` and
 * `mkpasswd -m sha-512` make the hashes. Empty lines and those that begin with # are skipped; what
 * follows a second colon is ignored.
 *
 * Place: basic-auth.c reads them before a process serves, and before it becomes the user of --user.
 *
 * Hashes: bcrypt ($2a$, $2b$, $2y$) and SHA-crypt ($5$, $6$). Weaker hashes are refused, and so are
 * those that would keep a CPU busy for many seconds.
 *
 * Limits: a file has at most PASSWORDS_FILE_MAX bytes.
 */
#ifndef PASSWORDS_H
#define PASSWORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "sxe-http.h"

#define PASSWORDS_FILE_MAX (1u << 20)
#define PASSWORDS_COST_MAX 15      /* the highest cost of bcrypt, which takes a second or two */
#define PASSWORDS_ROUNDS   5000000 /* the most rounds of SHA-crypt */

struct passwords;

/* Read the file. NULL after a message on standard error that begins with place. */
struct passwords *passwords_read(const char *place, const char *path);
void passwords_free(struct passwords *passwords); /* free the passwords; NULL is allowed */

/* The hash of the user. If there is no such user, *is_known becomes false, and the hash is that of
 * another user, so that checking it takes as long as for a user who exists. In all processes that
 * read the same bytes, a name gets the same hash each time. */
const char *passwords_find(const struct passwords *passwords, struct sxe_span user, bool *is_known);

#endif
