/* SPDX-License-Identifier: MIT
 *
 * What: the server in the admin process: its routes, which requests it refuses, and its replies.
 *
 * Place: admin.c calls it in the process that it forked.
 */
#ifndef ADMIN_SERVE_H
#define ADMIN_SERVE_H

#include <sys/types.h>

struct httpd_options;

struct admin_service {
    const struct httpd_options *options;
    unsigned short port; /* the port; 0: any free one, or a path is given */
    pid_t parent;        /* the process to which actions send signals */
    int end_signal;      /* the signal that ends admin_serve */
    /* called once, when the server listens or has failed to; result: 0 or -errno */
    void (*report)(void *user, int result, int port);
    void *user;
};

/* Serve until end_signal comes. 0 or the port, or -errno. */
int admin_serve(const struct admin_service *service);

#endif
