/* SPDX-License-Identifier: MIT
 *
 * What: a queue of events. Callbacks push what happened to them; the test runs its loop and pops
 * the events in order, so that an asynchronous test reads like a script, and fails at a missing
 * event as at an unexpected one.
 *
 * Limits: 256 events waiting (then abort), one thread.
 *
 * Example:
 *     ck_assert_str_eq(event_pop()->name, "connected");
 *     ck_assert_uint_eq(event_count(), 0);
 */
#ifndef EVENT_QUEUE_H
#define EVENT_QUEUE_H

#include <stddef.h>

struct event {
    char name[32];
    const void *object; /* the object that the event is about */
    long number;
    char data[256]; /* as much of the data as fits, zero-terminated */
    size_t length;  /* how many bytes were pushed */
};

void event_push(const char *name, const void *object, long number);
void event_push_data(const char *name, const void *object, long number, const void *data,
                     size_t length);

/* The oldest event, valid until the next 256 pushes; one called "nothing" when there is none. */
const struct event *event_pop(void);

unsigned event_count(void);
void event_reset(void);

#endif
