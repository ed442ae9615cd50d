/* SPDX-License-Identifier: MIT
 *
 * What: the numbers by which a serving process and its supervisor know each other.
 *
 * Shape: a place is the number of a worker; a slot is the number of its part of shared memory.
 * While a worker is replaced, the old and the new process have the same place, but not the same
 * slot: each part is written by one process only. A reader adds up the parts of all slots.
 */
#ifndef WORKER_PLACE_H
#define WORKER_PLACE_H

#define WORKERS_MAX 64

struct worker {
    int link;         /* the socket to the supervisor */
    unsigned workers; /* how many places there are */
    unsigned place;   /* the place, from 0 */
    unsigned slot;    /* the slot, from 0, less than SUPERVISOR_CHILDREN * workers */
    unsigned load;    /* how many processes the place had before */
};

#endif
