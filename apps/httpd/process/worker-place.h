/* SPDX-License-Identifier: MIT
 *
 * What: the numbers that a serving process gets from its supervisor.
 *
 * Shape: a place is the number of a worker. A slot is the number of a worker's part of the shared
 * memory. While a worker is replaced, the old and the new process have the same place, but
 * different slots, so that only one process writes a part. Readers add up the parts of all slots.
 */
#ifndef WORKER_PLACE_H
#define WORKER_PLACE_H

#define WORKERS_MAX 64

struct worker {
    int link;         /* the descriptor of the socket to the supervisor */
    unsigned workers; /* how many places there are */
    unsigned place;   /* the place of this process, from 0 */
    unsigned slot;    /* the slot of this process, from 0, below SUPERVISOR_CHILDREN * workers */
    unsigned load;    /* how many processes had this place before */
};

#endif
