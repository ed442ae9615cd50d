/* SPDX-License-Identifier: MIT
 *
 * What: TLS for the connections of the load. lib-sxe-tls does the work. Place: perform.c checks the
 * files before a run; each worker opens its own contexts, and worker-shake.c uses them for its
 * connections. handshake-none.c replaces handshake.c if sxe-http was built without OpenSSL.
 *
 * Limits: a worker keeps two TLS sessions for each connection, and at most 4096; a new session
 * replaces the oldest.
 */
#ifndef LOAD_HANDSHAKE_H
#define LOAD_HANDSHAKE_H

#include "plan.h"
#include "sxe.h"

struct sxe_tls;

/* Write the name that the server's certificate must have: the value of --tls-name, or the host of
 * the plan's authority. */
void load_handshake_name(const struct load_plan *plan, char name[LOAD_AUTHORITY_SIZE]);

/* Check that TLS can be used as the plan says: NULL, or a sentence that says what is wrong, valid
 * until this thread's next call. */
const char *load_handshake_check(const struct load_plan *plan);

/* Open a context, in a worker. `sessions` is how many TLS sessions the context keeps, so that
 * connections can resume them; 0: none. NULL: no memory (load_handshake_check has found all other
 * errors). */
struct sxe_tls *load_handshake_open(const struct load_plan *plan, uint32_t sessions);
void load_handshake_close(struct sxe_tls *tls); /* call it after sxe_fini; tls may be NULL */

/* Prepare a socket for a TLS handshake, before it connects. 0 or -errno. on_ready is called once,
 * when the handshake is done; it must not read, write or close the socket. */
int load_handshake_begin(struct sxe_tls *tls, SXE *sxe, const char *name,
                         void (*on_ready)(SXE *sxe));

/* Whether the client offered a TLS session for the server to resume, and whether the server resumed
 * it. Both are false until the handshake is done. */
bool load_handshake_has_offered(const SXE *sxe);
bool load_handshake_is_resumed(const SXE *sxe);

/* load_handshake_is_done tells whether the connection's handshake is done; load_handshake_failure
 * tells why it failed, as a text ("": not known). */
bool load_handshake_is_done(const SXE *sxe);
const char *load_handshake_failure(const SXE *sxe);

#endif
