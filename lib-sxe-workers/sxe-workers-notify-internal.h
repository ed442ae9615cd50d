/* SPDX-License-Identifier: MIT
 *
 * What: sends messages about the server's state to systemd, or to another program that started this
 * one with the variable NOTIFY_SOCKET, as sd_notify(3) does, but without its library. Without this
 * variable nothing is sent.
 *
 * Place: sxe-workers-loop.c and sxe-workers.c call it, and sxe-httpd where it has no supervisor.
 *
 * Limits: datagrams of a unix socket, by path or abstract name. A message is lost if the socket's
 * queue is full. The same error of sending is logged once.
 */
#ifndef SXE_WORKERS_NOTIFY_INTERNAL_H
#define SXE_WORKERS_NOTIFY_INTERNAL_H

#include <stdint.h>

/* Send these lines, NAME=VALUE each, with line ends between them. */
void sxe__notify_send(const char *lines);

void sxe__notify_ready(unsigned workers);
void
sxe__notify_reloading(void); /* also sends MONOTONIC_USEC, which systemd needs since version 253 */
void sxe__notify_stopping(void);

/* How many nanoseconds may pass between two calls of sxe__notify_alive: half of WATCHDOG_USEC. 0:
 * there is no watchdog. */
uint64_t sxe__notify_period_ns(void);
void sxe__notify_alive(void);

#endif
