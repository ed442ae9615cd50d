/* SPDX-License-Identifier: MIT
 *
 * What: TLS of the load's connections, by lib-sxe-tls. Place: perform.c checks the files before a
 * run, each worker opens its own, and worker-socket.c has each connection use it. handshake-none.c
 * stands in where OpenSSL was not there when sxe-http was built.
 *
 * Limits: no session is kept, so each connection makes a full handshake.
 */
#ifndef LOAD_HANDSHAKE_H
#define LOAD_HANDSHAKE_H

#include "plan.h"
#include "sxe.h"

struct sxe_tls;

/* The name that the plan's server must have: --tls-name, or the host of its authority. */
void load_handshake_name(const struct load_plan *plan, char name[LOAD_AUTHORITY_SIZE]);

/* Whether TLS can be used as the plan wants it: NULL, or what is wrong, a text of this thread. */
const char *load_handshake_check(const struct load_plan *plan);

/* In a worker; NULL: what is wrong was checked before, or there is no memory. */
struct sxe_tls *load_handshake_open(const struct load_plan *plan);
void load_handshake_close(struct sxe_tls *tls); /* after sxe_fini; NULL is allowed */

/* Before it connects: 0, or -errno. */
int load_handshake_begin(struct sxe_tls *tls, SXE *sxe, const char *name);

/* Of a connection: whether its handshake is done; and why it failed, "" if that is not known. */
bool load_handshake_is_done(const SXE *sxe);
const char *load_handshake_failure(const SXE *sxe);

#endif
