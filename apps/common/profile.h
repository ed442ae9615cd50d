/* SPDX-License-Identifier: MIT
 *
 * What: samples the calls that a process is in, C and Lua together, for a flame graph.
 * Place: sxe-httpd calls profile_begin when a process begins to serve, sxe-lua when it begins.
 * tools/flame sends SIGPROF, reads the samples in /proc/PID/fd, and sends SIGPROF again.
 *
 * Shape: the first signal makes a file without a name, which is mapped, and starts a timer of the
 * CPU time of the process's first thread. Each time it fires a record is added:
 *
 *     | head | record | record | ...     until the file is full: then samples are only counted
 *
 *     record  kind, size      of the record, a multiple of 8 bytes
 *             stack           of a record of C: the number of the record of Lua that belongs to it
 *             calls           of C: addresses, of Lua: lines of sxe_lua_ask_for_calls; the
 *                             innermost first
 *
 * The second signal stops the timer, and gives the memory back, but not the file.
 *
 * Limits: 4 MiB, some 20,000 samples; 64 calls of C.
 */
#ifndef PROFILE_H
#define PROFILE_H

#include <stdint.h>

enum profile_kind { PROFILE_C = 1, PROFILE_LUA };

/* The file begins with this. All integers have the byte order of the machine. */
struct profile_head {
    char magic[8]; /* "sxeprof1"; NULs while the timer is stopped */
    uint32_t interval_us;
    uint32_t lost; /* samples for which there was no room */
    uint64_t used; /* bytes of the file, this head included; atomic */
};

struct profile_record {
    uint32_t kind; /* enum profile_kind */
    uint32_t size;
    uint64_t stack; /* from 1; 0: no script ran */
};

/* Let SIGPROF start and stop the profile of the calling thread, which must be the process's
 * first. */
void profile_begin(void);

#endif
