/* SPDX-License-Identifier: MIT
 *
 * What: sends messages about the server's state to systemd, or to another program that started this
 * one with the variable NOTIFY_SOCKET, as sd_notify(3) does, but without its library. Without this
 * variable nothing is sent.
 *
 * Place: supervisor-loop.c and supervisor.c call it; if there is no supervisor, service.c does.
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
void notify_reloading(void); /* also sends MONOTONIC_USEC, which systemd needs since version 253 */
void notify_stopping(void);

/* How many nanoseconds may pass between two calls of notify_alive: half of WATCHDOG_USEC. 0: there
 * is no watchdog. */
uint64_t notify_period_ns(void);
void notify_alive(void);

#endif
