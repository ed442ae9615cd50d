/* SPDX-License-Identifier: MIT
 *
 * What: --confine. A serving process gives up the files and the system calls that it does not need,
 * for ever: Landlock limits the files, a seccomp filter the calls.
 *
 * Place: service.c calls confine_begin after memory was reserved and the log was opened, but before
 * a script runs and before any thread starts, because Landlock holds only for the calling thread
 * and the threads that it starts later.
 *
 * Limits: files that are open already stay usable. A rule holds for the file or directory that its
 * path named when the rule was made. If the kernel lacks one of the two protections, or a container
 * refuses it, a line of the log says so, and the other one is used.
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
    const char *path; /* if this path does not exist, the rule is left out */
    unsigned rights;
};

struct httpd_options;

/* Confine this process, but leave it what the options need. Without --confine it does nothing. 0,
 * or -errno after a message. */
int confine_begin(const struct httpd_options *options);

/* Refuse all access to files except what the rules allow. -EOPNOTSUPP or -ENOSYS: the kernel has no
 * Landlock; -EPERM: a container refuses it. Any other -errno: it failed. */
int confine_files(const struct confine_rule *rules, unsigned number);

/* Refuse system calls, in all threads. -ENOSYS: the kernel has no filters, or there is no filter
 * for this processor; -EPERM: a container refuses filters. In confine-filter.c. */
int confine_calls(void);

#endif
