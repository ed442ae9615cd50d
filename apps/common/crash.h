/* SPDX-License-Identifier: MIT
 *
 * What: a report when a process dies of its own fault: a line with the program's version
 * and build id, the process, the signal and the address, and then the calls that led there. It goes
 * to standard error, after the process's last lines of the log.
 *
 * Place: sxe-httpd arms it when a process begins to serve, sxe-lua when it begins. The process
 * still dies of the signal, so there is a core file where the system makes one, and the supervisor
 * of sxe-httpd logs the end.
 *
 * Limits: 64 calls. Signals that another handler has already, a sanitizer's, stay with it.
 */
#ifndef CRASH_H
#define CRASH_H

/* name: the program's, which is borrowed for ever. */
void crash_begin(const char *name);

/* Write the report. Async-signal-safe after crash_begin. */
void crash_report(int fd, int signal_number, const void *address);

#endif
