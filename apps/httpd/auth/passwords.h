/* SPDX-License-Identifier: MIT
 *
 * What: files of users and the hashes of their passwords: lines "user:hash", as `htpasswd -B` and
 * `mkpasswd -m sha-512` make the hashes. Empty lines and those that begin with # are skipped; what
 * follows a second colon is ignored.
 *
 * Place: basic-auth.c reads them before a process serves, and before it becomes the user of --user.
 *
 * Hashes: bcrypt ($2a$, $2b$, $2y$) and SHA-crypt ($5$, $6$). Weaker ones are refused, and those so
 * costly that a guess would keep a CPU busy for many seconds.
 *
 * Limits: a file has at most PASSWORDS_FILE_MAX bytes.
 */
#ifndef PASSWORDS_H
#define PASSWORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "sxe-http.h"

#define PASSWORDS_FILE_MAX (1u << 20)
#define PASSWORDS_COST_MAX 15      /* of bcrypt: a second or two */
#define PASSWORDS_ROUNDS   5000000 /* of SHA-crypt, at most */

struct passwords;

/* Read the file. NULL after a message on standard error that begins with place. */
struct passwords *passwords_read(const char *place, const char *path);
void passwords_free(struct passwords *passwords); /* NULL is allowed */

/* The hash of the user. *is_known becomes false if there is no such user: then the hash is one of
 * the others', always the same for that name in a file of these bytes, in all processes, so that
 * its check takes as long as one of a user that exists. */
const char *passwords_find(const struct passwords *passwords, struct sxe_span user, bool *is_known);

#endif
