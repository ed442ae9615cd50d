/* SPDX-License-Identifier: MIT
 *
 * What: a process of its own that shows operators what the server does, at another address:
 * /, /metrics, /status.json, /livez, /readyz, and actions: /drain, /reload, /log-level.
 *
 * Place: main starts it before anything serves, the supervisor replaces it. It reads what
 * admin-metrics.h shares, and signals the supervisor; so it answers however busy the workers are,
 * or when one of them hangs.
 *
 * Shape:
 *     main -- admin_begin: maps metrics, forks --> the admin process: listens, answers
 *     supervisor -- admin_look: it has ended, ---> another one at the same address
 *       |           forks                              | POST /drain: SIGTERM, /reload: SIGHUP
 *       |<---------------------------------------------'
 *       '-- admin_end, or the end of main: it ends
 *
 * An action needs the token that GET /token returns. Both are for clients that ask by address or as
 * localhost, so that a page of another site gets nothing by a name that leads here; and an action
 * that a browser sends for another site is refused.
 *
 * Limits: ADMIN_CONNECTIONS connections, each of which has ADMIN_HEAD_MS to send a request's head,
 * so that idle programs do not keep a balancer from /readyz; ADMIN_TEXTS long replies at a time,
 * then 503.
 */
#ifndef ADMIN_H
#define ADMIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct httpd_options;

#define ADMIN_CONNECTIONS 256
#define ADMIN_HEAD_MS     2000
#define ADMIN_TEXTS       4

/* Where options.admin says; slots: of workers. 0, or -errno after a message. Without --admin it
 * does nothing, like all that follow. */
int admin_begin(const struct httpd_options *options, unsigned slots);

/* In the supervisor: replace the admin process if it has ended. prepare: called in the new one,
 * closes what it has of the supervisor. When to look again, in ns of sxe_time_ns; UINT64_MAX: never
 * (without --admin). */
uint64_t admin_look(uint64_t now_ns, void (*prepare)(void));

pid_t admin_pid(void); /* of the admin process; 0: there is none now */

/* Say where it listens, after where the server does. */
void admin_say(const struct httpd_options *options);

void admin_end(void);

/* ---- Options ---- */

/* [IP:]PORT, or a path with a slash. False: it is neither. */
bool admin_take_place(struct httpd_options *options, const char *text);

#endif
