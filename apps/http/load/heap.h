/* SPDX-License-Identifier: MIT
 *
 * What: timed events, the earliest first. Place: the worker's heap has the events of its sockets
 * (next query, next connect, timeout of the reply) and of the run. A ticker wakes the worker for
 * the event at the top. The heap reads no clock.
 *
 * Shape: a binary heap in an array; entries with the same time come out in any order. No entry is
 * removed from the middle: the code that pops an entry checks whether it still applies.
 *
 *              top: 3
 *             5      4         a parent is due no later than its two children
 *            9 7    8 6
 *
 * Limits: the heap has room for as many entries as load_heap_init was told. To push more is an
 * error of the program.
 */
#ifndef LOAD_HEAP_H
#define LOAD_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct load_due {
    uint64_t ns;
    uint32_t id;
    uint32_t what;
};

struct load_heap {
    struct load_due *entries; /* private */
    size_t used;              /* ro */
    size_t room;              /* ro */
};

/* Allocate the entries. 0 or -ENOMEM. */
int load_heap_init(struct load_heap *heap, size_t room);
void load_heap_free(struct load_heap *heap);

void load_heap_push(struct load_heap *heap, struct load_due due);

/* The earliest entry, which stays in the heap; NULL: the heap is empty. */
const struct load_due *load_heap_top(const struct load_heap *heap);

/* Remove and return the earliest entry. The heap must not be empty. */
struct load_due load_heap_pop(struct load_heap *heap);

#endif
