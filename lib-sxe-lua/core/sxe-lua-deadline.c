/* SPDX-License-Identifier: MIT
 *
 * What: the deadlines of tasks, in a binary heap. Equal deadlines keep the order in which tasks
 * were parked.
 *
 *     heap[0] is the soonest      heap[i] <= heap[2i + 1], heap[2i + 2]
 *     tasks[heap[i]].heap_place == i + 1
 */
#include "sxe-lua-task-private.h"

static bool
is_sooner(uint32_t a, uint32_t b)
{
    const struct sxe__lua_task *tasks = SCHEDULER->tasks;

    if (tasks[a].deadline_ns != tasks[b].deadline_ns)
        return tasks[a].deadline_ns < tasks[b].deadline_ns;
    return sxe_pool_get_time(tasks, a) < sxe_pool_get_time(tasks, b);
}

static void
place_in_heap(uint32_t index, uint32_t at)
{
    SCHEDULER->heap[at] = index;
    SCHEDULER->tasks[index].heap_place = at + 1;
}

/* Put a task at the free place `at` of the heap, or above it, where its deadline belongs. */
static void
rise_in_heap(uint32_t index, uint32_t at)
{
    while (at > 0 && is_sooner(index, SCHEDULER->heap[(at - 1) / 2])) {
        place_in_heap(SCHEDULER->heap[(at - 1) / 2], at);
        at = (at - 1) / 2;
    }
    place_in_heap(index, at);
}

/* Fill a free place with the task below it that has the sooner deadline, then fill the place of
 * that task, and so on. Returns the place that is free at the end. */
static uint32_t
sink_in_heap(uint32_t at)
{
    const uint32_t *heap = SCHEDULER->heap;

    for (uint32_t below; (below = 2 * at + 1) < SCHEDULER->heap_used; at = below) {
        if (below + 1 < SCHEDULER->heap_used && is_sooner(heap[below + 1], heap[below]))
            below++;
        place_in_heap(heap[below], at);
    }
    return at;
}

void
sxe__lua_deadline_add(uint32_t index)
{
    rise_in_heap(index, SCHEDULER->heap_used++);
    /* run_before_wait sets the alarm, and may have run in this turn already: lib-sxe's own watcher
     * runs after run_before_wait, and may begin the next request of a connection. So have the loop
     * make another turn without waiting. */
    if (SCHEDULER->heap[0] == index)
        sxe__lua_turn_soon();
}

void
sxe__lua_deadline_remove(uint32_t index)
{
    uint32_t at = SCHEDULER->tasks[index].heap_place - 1;
    uint32_t last = SCHEDULER->heap[--SCHEDULER->heap_used];

    if (last != index)
        rise_in_heap(last, sink_in_heap(at));
    SCHEDULER->tasks[index].heap_place = 0;
}
