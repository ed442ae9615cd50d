/* SPDX-License-Identifier: MIT
 *
 * What: what a process that serves under a supervisor knows of itself.
 *
 * Shape: a place is what a worker does, a slot is what it owns. While a worker is replaced, the old
 * and the new one have the same place, and never the same slot. So memory that all workers share
 * has a part for each slot, which one process writes, and which whoever reads adds up.
 */
#ifndef WORKER_PLACE_H
#define WORKER_PLACE_H

#define WORKERS_MAX 64

struct worker {
    int link;         /* to the supervisor */
    unsigned workers; /* there are, and so many places */
    unsigned place;   /* from 0 */
    unsigned slot;    /* from 0, less than SUPERVISOR_CHILDREN * workers */
    unsigned load;    /* how many processes the place had before */
};

#endif
