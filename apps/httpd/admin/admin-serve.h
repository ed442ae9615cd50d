/* SPDX-License-Identifier: MIT
 *
 * What: the HTTP server in the admin process: its routes, the requests that it refuses, and its
 * replies.
 *
 * Place: admin.c calls it in the process that it forked.
 */
#ifndef ADMIN_SERVE_H
#define ADMIN_SERVE_H

#include <sys/types.h>

struct httpd_options;

struct admin_service {
    const struct httpd_options *options;
    unsigned short port; /* the port; 0: any free port, or the server listens at a path */
    pid_t parent;        /* the process that gets the signals of actions */
    int end_signal;      /* the signal that ends admin_serve */
    /* called once, when the server listens or has failed to; result: 0 or -errno */
    void (*report)(void *user, int result, int port);
    void *user;
};

/* Serve until end_signal comes. If report has told that the server listens, return its result: the
 * port, or 0 for a path. Otherwise return -errno. */
int admin_serve(const struct admin_service *service);

#endif
