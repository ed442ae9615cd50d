/* SPDX-License-Identifier: MIT
 *
 * What: --confine. A serving process gives up the files and the system calls that it does not need,
 * for ever: Landlock limits the files, a seccomp filter the calls.
 *
 * Place: service.c calls confine_begin when memory is reserved and the log is open, before a script
 * runs and before any thread starts: Landlock holds for the calling thread and what it starts.
 *
 * Limits: what is open stays usable. A rule holds for the file or directory that the path named
 * when it was made. A kernel without one of the two, or a container that refuses it, gets a line in
 * the log, and the other is used.
 */
#ifndef CONFINE_H
#define CONFINE_H

#include <stdint.h>

/* Rights on a path and, if it is a directory, on everything below it. */
enum confine_rights {
    CONFINE_READ = 1,   /* read files, and list directories */
    CONFINE_WRITE = 2,  /* write into files that exist, and truncate them */
    CONFINE_MAKE = 4,   /* make files and unix sockets */
    CONFINE_REMOVE = 8, /* remove files and unix sockets */
};

struct confine_rule {
    const char *path; /* a path that does not exist is left out */
    unsigned rights;
};

struct httpd_options;

/* Confine this process as the options need it: nothing without --confine. 0, or -errno after a
 * message. */
int confine_begin(const struct httpd_options *options);

/* Refuse all access to files but what the rules allow. -EOPNOTSUPP, -ENOSYS: the kernel has no
 * Landlock; -EPERM: a container refuses it. Other -errno: it failed. */
int confine_files(const struct confine_rule *rules, unsigned number);

/* Refuse system calls, in all threads. -ENOSYS: the kernel has no filters, or we have none for this
 * processor; -EPERM: a container refuses them. In confine-filter.c. */
int confine_calls(void);

#endif
