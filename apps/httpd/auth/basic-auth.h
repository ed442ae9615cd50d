/* SPDX-License-Identifier: MIT
 *
 * What: guards routes with users and passwords (RFC 7617).
 *
 * Place: config-routes.c calls it before a guarded route answers; service.c opens the files of
 * passwords.
 *
 * Shape: to compute the hash of a password takes 50 to 300 ms, so threads do it (sxe-work.h).
 * Requests with the same user and password share one attempt. A pair of user and password that was
 * right is remembered by its keyed digest.
 *
 *     request --> remembered? --yes--> the route answers
 *                     | no
 *                 [ attempt ] <-- other requests with that user and password
 *                     | a thread: crypt_r
 *                 right? --yes--> remembered; the route answers all of them
 *                     '-- no ---> 401
 *
 * Limits: BASIC_AUTH_ATTEMPTS attempts at a time. A client may have BASIC_AUTH_OF_CLIENT of them;
 * for more it gets 429. BASIC_AUTH_WAITERS requests may wait for attempts; further ones get 503.
 * BASIC_AUTH_KEPT pairs are remembered for BASIC_AUTH_KEEP_S seconds. All these numbers are for
 * each process.
 */
#ifndef BASIC_AUTH_H
#define BASIC_AUTH_H

#include <stdbool.h>

#include "sxe-http.h"

#define BASIC_AUTH_ATTEMPTS  256
#define BASIC_AUTH_OF_CLIENT 4
#define BASIC_AUTH_WAITERS   512
#define BASIC_AUTH_KEPT      1024
#define BASIC_AUTH_KEEP_S    300
#define BASIC_AUTH_THREADS   2

struct passwords;

struct basic_auth {
    const char *file;  /* the path of the file of passwords; NULL: the route is not guarded */
    const char *realm; /* the name that browsers show for the guarded pages; NULL: "Restricted" */
    struct passwords *passwords; /* the passwords in the file; several routes may share them */
};

enum basic_auth_result {
    BASIC_AUTH_GOOD,     /* user and password are right */
    BASIC_AUTH_ANSWERED, /* user and password are wrong, and a reply was sent */
    /* a thread checks the password: then either `passed` is called, or a reply is sent */
    BASIC_AUTH_LATER
};

/* Whether the text can be a realm, which is the name that browsers show. */
bool basic_auth_is_realm(const char *realm);

/* Prepare threads and memory. Call it before sxe_init. 0 or -errno. */
int basic_auth_begin(void);
void basic_auth_end(void); /* call it after sxe_fini */

/* Check the credentials of a request. If the result is BASIC_AUTH_LATER and the credentials are
 * right, passed is called later, in the loop. */
enum basic_auth_result basic_auth_ask(const struct basic_auth *auth,
                                      struct sxe_http_request *request,
                                      struct sxe_http_response *response,
                                      void (*passed)(struct sxe_http_request *request,
                                                     struct sxe_http_response *response));

#endif
