/* SPDX-License-Identifier: MIT
 *
 * What: the admin process, which shows operators the state of the server at an address of its own:
 * /, /metrics, /status.json, /livez, /readyz; and takes actions: /drain, /reload, /log-level.
 *
 * Place: main starts it before any process serves; the supervisor replaces it if it ends. It needs
 * no worker: it reads the shared memory of admin-metrics.h, and sends signals to the supervisor. So
 * it answers even when all workers are busy or hang.
 *
 * Shape:
 *     main -- admin_begin: maps metrics, forks --> the admin process: listens, answers
 *     supervisor -- admin_look: it has ended, ---> another one at the same address
 *       |           forks                              | POST /drain: SIGTERM, /reload: SIGHUP
 *       |<---------------------------------------------'
 *       '-- admin_end, or the end of main: it ends
 *
 * An action needs the token that GET /token returns. The token and actions are refused in two
 * cases: if the Host is a name other than localhost, which prevents DNS rebinding, and if a browser
 * sends the request for a page of another site, which prevents cross-site request forgery.
 *
 * Limits: ADMIN_CONNECTIONS connections. Each has ADMIN_WAIT_MS to send the head of a request, and
 * the same time again for its body, so that slow clients do not keep a load balancer from /readyz.
 * While ADMIN_TEXTS long replies are being sent, further requests for them get 503.
 */
#ifndef ADMIN_H
#define ADMIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct httpd_options;

#define ADMIN_CONNECTIONS 256
#define ADMIN_WAIT_MS     2000
#define ADMIN_BODY_MAX    4096 /* in bytes; more than any form of the status page sends */
#define ADMIN_TEXTS       4

/* Map the metrics, and start the admin process at the address of --admin. slots is the number of
 * slots (sxe-workers.h) of the workers. 0, or -errno after a message. Without --admin the
 * functions of this file do nothing. */
int admin_begin(const struct httpd_options *options, unsigned slots);

/* Called in the supervisor: replace the admin process if it has ended. The new process calls
 * prepare first, to close the supervisor's descriptors. Returns when the supervisor has to call it
 * again, by the clock of sxe_time_ns; UINT64_MAX: never, because there is no --admin. */
uint64_t admin_look(uint64_t now_ns, void (*prepare)(void));

pid_t admin_pid(void); /* the process id of the admin process; 0: there is none now */

/* Print where the admin process listens. Call it after listening_say. */
void admin_say(const struct httpd_options *options);

void admin_end(void);

/* ---- Options ---- */

/* Parse --admin: [IP:]PORT, or a path with a slash. False: the text is neither. */
bool admin_take_place(struct httpd_options *options, const char *text);

#endif
