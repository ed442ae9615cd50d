/* SPDX-License-Identifier: MIT
 *
 * What: the server in the admin process: its routes, who may do what, and memory for replies.
 *
 * Place: admin.c calls it in the process that it forked.
 */
#ifndef ADMIN_SERVE_H
#define ADMIN_SERVE_H

#include <sys/types.h>

struct httpd_options;

struct admin_service {
    const struct httpd_options *options;
    unsigned short port;                              /* 0: any free one, or a path is given */
    pid_t parent;                                     /* whom actions signal */
    int end_signal;                                   /* it ends then */
    void (*report)(void *user, int result, int port); /* once, when it listens or cannot */
    void *user;
};

/* Until the signal. 0 or -errno. */
int admin_serve(const struct admin_service *service);

#endif
