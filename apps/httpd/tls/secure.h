/* SPDX-License-Identifier: MIT
 *
 * What: TLS of listeners, and TLS of upstreams. Listeners need the certificates of --tls-cert and
 * --tls-key, or the certificate of --tls-dev, and the keys of tickets, which all workers share.
 *
 * Place: main calls secure_begin before any process is forked; service.c calls the functions that
 * open, serve, reload and close; the supervisor calls secure_turn. secure-none.c stands in if
 * sxe-httpd was built without OpenSSL.
 *
 * Limits: if no option of TLS was given, all functions return at once.
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

/* Let the connections of this listener use TLS. `clients` says whether clients are asked for
 * certificates. Call it after sxe_init. 0, or -errno after a message. */
int secure_serve(SXE *listener, enum httpd_clients clients);

/* Read the files again. If there is an error, log it, and keep the earlier certificates. */
void secure_reload(void);

/* Called once a second: read the files again if one of them has changed. An error in them is logged
 * only at the second look, because a certificate and its key may be replaced one after the
 * other. */
void secure_look(void);

/* secure_has_name: whether a certificate is for this name. secure_first_name: the first name of the
 * first certificate; NULL: there is none. */
bool secure_has_name(const char *name);
const char *secure_first_name(void);

/* The version of TLS that this socket uses, such as "TLSv1.3"; "": it does not use TLS. */
const char *secure_version(const SXE *socket);

/* Print the fingerprint of the certificate of --tls-dev. */
void secure_say(FILE *out);

/* Prepare TLS of an upstream: read its files, and set tls, use_tls and tls_failure of its
 * config. NULL after a message, which begins with `where`. Call secure_close_upstream after
 * sxe_fini; it may get NULL. */
struct sxe_tls *secure_open_upstream(const char *where, const struct upstream_tls *settings,
                                     struct sxe_http_upstream_config *config);
void secure_close_upstream(struct sxe_tls *tls);

/* In the first process: make the next key of tickets if it is time for it. Returns after how many
 * seconds to call it again. */
uint32_t secure_turn(void *user);

#endif
