/* SPDX-License-Identifier: MIT
 *
 * What: a report when a process crashes: a line with the program's version and build id, the
 * process, the signal and the address, and then the stack of calls. It goes to standard error,
 * after the process's last lines of the log.
 *
 * Place: sxe-httpd calls crash_begin when a process begins to serve, sxe-lua when it begins. The
 * process still dies of the signal, so the system can write a core file, and the supervisor of
 * sxe-httpd logs the end.
 *
 * Limits: the report lists at most 64 calls. A signal that already has a handler, such as a
 * sanitizer's, keeps that handler and is not reported.
 */
#ifndef CRASH_H
#define CRASH_H

/* Report crashes from now on. name is the program's name, and must stay valid as long as the
 * process runs. */
void crash_begin(const char *name);

/* Write the report. Async-signal-safe after crash_begin. */
void crash_report(int fd, int signal_number, const void *address);

#endif
