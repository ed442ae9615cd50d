/* SPDX-License-Identifier: MIT
 *
 * What: TLS of the listener: certificates of --tls-cert and --tls-key, or the one of --tls-dev, and
 * the keys of tickets, which all workers share; and of upstreams.
 *
 * Place: main calls secure_begin before any process is forked; service.c calls the functions that
 * open, serve, reload and close; the supervisor calls secure_turn. secure-none.c stands in if
 * sxe-httpd was built without OpenSSL.
 *
 * Limits: without an option for TLS all calls return at once.
 */
#ifndef SECURE_H
#define SECURE_H

#include <stdbool.h>
#include <stdio.h>

#include "options.h"

bool secure_is_wanted(const struct httpd_options *options);

/* In the first process: make the keys of tickets and the certificate of --tls-dev, which all
 * processes share. 0, or -errno after a message. */
int secure_begin(const struct httpd_options *options);
void secure_end(void);

/* In each serving process: read the files. 0, or -errno after a message. */
int secure_open(const struct httpd_options *options);
bool secure_is_open(void); /* whether this process has certificates */
void secure_close(void);

/* Have the connections of this listener speak TLS, and ask clients for certificates as `clients`
 * says. Call it after sxe_init. 0, or -errno after a message. */
int secure_serve(SXE *listener, enum httpd_clients clients);

/* Read the files again. Errors are logged, and the earlier certificates stay. */
void secure_reload(void);

/* Once a second: read the files again if one changed. An error in them is logged at the
 * second look, as a certificate and its key may be replaced one after the other. */
void secure_look(void);

/* Whether a certificate has this name, and the first certificate's first name (NULL: none). */
bool secure_has_name(const char *name);
const char *secure_first_name(void);

/* The version of TLS that this socket speaks, "TLSv1.3"; "": none. */
const char *secure_version(const SXE *socket);

/* Print the fingerprint of the certificate of --tls-dev. */
void secure_say(FILE *out);

/* TLS of an upstream, as its config's tls, use_tls and tls_failure: read the authorities. NULL
 * after a message, which begins with `where`. Close it after sxe_fini; NULL is allowed. */
struct sxe_tls *secure_open_upstream(const char *where, const struct upstream_tls *settings,
                                     struct sxe_http_upstream_config *config);
void secure_close_upstream(struct sxe_tls *tls);

/* In the first process: make the next key of tickets if it is time. Returns the seconds until the
 * next call. */
uint32_t secure_turn(void *user);

#endif
