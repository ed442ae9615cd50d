/* SPDX-License-Identifier: MIT
 *
 * What: TLS of the listener: certificates of --tls-cert and --tls-key, or the one of --tls-dev, and
 * the keys of tickets, which all workers share.
 *
 * Place: main calls secure_begin before any process is forked; service.c opens, serves, reads again
 * and closes; the supervisor turns the keys. secure-none.c stands in where OpenSSL was not there
 * when sxe-httpd was built.
 *
 * Limits: without an option for TLS all calls return at once.
 */
#ifndef SECURE_H
#define SECURE_H

#include <stdbool.h>
#include <stdio.h>

#include "options.h"

bool secure_is_wanted(const struct httpd_options *options);

/* In the first process: make what all share. 0, or -errno after a message. */
int secure_begin(const struct httpd_options *options);
void secure_end(void);

/* In each serving process: read the files. 0, or -errno after a message. */
int secure_open(const struct httpd_options *options);
bool secure_is_open(void); /* with certificates */
void secure_close(void);

/* After sxe_init: have what this listener accepts speak TLS. 0, or -errno after a message. */
int secure_serve(SXE *listener);

/* Read the files again; what is wrong with them is logged, and the earlier ones stay. */
void secure_reload(void);

/* Once a second: read the files again if one changed. An error in them is logged at the
 * second look, as a certificate and its key may be replaced one after the other. */
void secure_look(void);

/* Whether a certificate has this name, and the first name of the first one; NULL: it has none. */
bool secure_has_name(const char *name);
const char *secure_first_name(void);

/* Print the fingerprint of the certificate of --tls-dev. */
void secure_say(FILE *out);

/* In the first process: make the next key of tickets, if it is time. Seconds until the next one. */
uint32_t secure_turn(void *user);

#endif
