/* SPDX-License-Identifier: MIT
 *
 * What: messages about the server's state to systemd, or to any other program that started this one
 * with NOTIFY_SOCKET, like sd_notify(3) but without its library. Without that variable nothing is
 * sent.
 *
 * Place: supervisor-loop.c and supervisor.c call it, service.c where there is no supervisor.
 *
 * Limits: datagrams of a unix socket, by path or abstract name. A message is lost if the socket's
 * queue is full. The same error of sending is logged once.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

#include <stdint.h>

/* Send these lines, NAME=VALUE each, with line ends between them. */
void notify_send(const char *lines);

void notify_ready(unsigned workers);
void notify_reloading(void); /* sends MONOTONIC_USEC too, which systemd needs since version 253 */
void notify_stopping(void);

/* Nanoseconds between two calls of notify_alive: half of WATCHDOG_USEC. 0: there is no watchdog. */
uint64_t notify_period_ns(void);
void notify_alive(void);

#endif
