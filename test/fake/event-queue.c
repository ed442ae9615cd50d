/* SPDX-License-Identifier: MIT
 *
 * The queue of events that callbacks push and tests pop.
 */
#include "event-queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 256 };

static struct event events[EVENTS_MAX];
static unsigned pushed;
static unsigned popped;

void
event_push_data(const char *name, const void *object, long number, const void *data, size_t length)
{
    if (event_count() == EVENTS_MAX) {
        fprintf(stderr, "event_push: \"%s\" is one event too many\n", name);
        abort();
    }
    struct event *event = &events[pushed++ % EVENTS_MAX];
    size_t kept = length < sizeof(event->data) ? length : sizeof(event->data) - 1;

    memset(event, 0, sizeof(*event));
    snprintf(event->name, sizeof(event->name), "%s", name);
    event->object = object;
    event->number = number;
    event->length = length;
    if (kept > 0)
        memcpy(event->data, data, kept);
}

void
event_push(const char *name, const void *object, long number)
{
    event_push_data(name, object, number, NULL, 0);
}

const struct event *
event_pop(void)
{
    static const struct event nothing = {.name = "nothing"};

    return event_count() == 0 ? &nothing : &events[popped++ % EVENTS_MAX];
}

unsigned
event_count(void)
{
    return pushed - popped;
}

void
event_reset(void)
{
    popped = pushed;
}
