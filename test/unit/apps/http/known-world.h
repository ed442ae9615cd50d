/* SPDX-License-Identifier: MIT
 *
 * What: the server of http-world.h with response times of a known law (test/peer/known-law.h), in
 * virtual time, so that the worker's figures can be compared with theory to the nanosecond.
 *
 *     make_world();
 *     serve_law("md1:1000");
 *     run_world();
 */
#ifndef KNOWN_WORLD_H
#define KNOWN_WORLD_H

#include "http-world.h"
#include "known-law.h"

static struct known_law served;

static inline void
serve_by_law(unsigned client, unsigned query)
{
    struct known_reply reply = known_law_reply(&served, now_ns());
    uint64_t in_ns = reply.due_ns - now_ns();

    (void)query;
    if (reply.due_ns == KNOWN_NEVER)
        return;
    if (reply.text != NULL)
        answer_in(client, in_ns, reply.text);
    if (reply.is_last && reply.text == NULL)
        reset_in(client, in_ns);
    else if (reply.is_last)
        hang_up_in(client, in_ns);
}

/* Serve by this law; to be called after make_world(). */
static inline void
serve_law(const char *law)
{
    ck_assert(known_law_parse(&served, law));
    world.serve = serve_by_law;
}

/* A run of one worker at a rate over this many sockets. */
static inline void
load_world(enum load_model model, double rate, uint64_t duration_ns, unsigned sockets)
{
    world.plan.stop = LOAD_STOP_TIME;
    world.plan.model = model;
    world.plan.rate = world.plan.rate_end = rate;
    world.plan.duration_ns = duration_ns;
    world.plan.sockets = sockets;
}

#endif
