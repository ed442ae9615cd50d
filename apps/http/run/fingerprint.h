/* SPDX-License-Identifier: MIT
 *
 * What: a fingerprint: facts about the machine and the programs that a result comes from, as names
 * and values. Place: it is taken once, at the start of a run. Every output contains it, and compare
 * prints the differences between two fingerprints.
 *
 * Shape: kernel, cpu model, cpus online and allowed, governor, turbo, mitigations, memory, clock
 * source, the sysctls that matter to sockets, ulimit -n, steal time, sxe-http's version and
 * compiler, libev, command line (quoted as a shell needs it), and the server's command line:
 * --server-cmd, or that of the process that listens on this machine. A fact that the system hides
 * is "unknown".
 *
 * Limits: reads Linux's /proc and /sys. For tests, a parameter says where they are.
 */
#ifndef LOAD_FINGERPRINT_H
#define LOAD_FINGERPRINT_H

#include "plan.h"

#define LOAD_FACTS_MAX 48
#define LOAD_FACT_MAX  1024

struct load_fact {
    char name[48];             /* the name of the fact: "kernel", "net.core.somaxconn" */
    char value[LOAD_FACT_MAX]; /* its value, one line; a longer value is cut, and ends with "..." */
};

struct load_fingerprint {
    unsigned number;
    struct load_fact facts[LOAD_FACTS_MAX];
};

/* Collect the facts. root is put before each path: "" for this machine, a directory in tests. */
void load_fingerprint_take(struct load_fingerprint *fingerprint, const char *root,
                           const struct load_plan *plan);

#endif
