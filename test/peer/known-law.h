/* SPDX-License-Identifier: MIT
 *
 * What: when a server of known behaviour answers a request, and what. Place: known-server.c answers
 * so over TCP; unit tests do it in virtual time (test/unit/apps/http/known-world.h), or ask here
 * alone.
 *
 * Shape: a law is a name and its numbers; times are in ms, rates a second, parts of 1 of all:
 *
 *     fixed:MS               every reply takes MS
 *     bimodal:PART,MS1,MS2   this part of the replies takes MS2, the others MS1
 *     lognormal:MS,SIGMA     exp(N(ln MS, SIGMA)): MS is the median
 *     md1:RATE               one queue, each reply takes 1/RATE: M/D/1 if arrivals are Poisson's
 *     capped:RATE            at once, but no more than RATE replies a second; the others wait
 *     stalled:AT,FOR         at once, but nothing from AT after the first request on, for so long
 *     storm:PART,MS          good replies take MS; this part is refused at once, with 503
 *     resets:PART,MS         good replies take MS; this part is a reset at once
 *     lying:PART,MS          replies take MS; this part ends before its Content-Length
 *     hung                   never
 *
 * The nth reply is the same in each run, and among any N consecutive replies the parts differ from
 * PART * N by less than 2: quantiles of N replies are those of the law, not those of a sample.
 */
#ifndef KNOWN_LAW_H
#define KNOWN_LAW_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_GOLDEN 0.6180339887498949
#define KNOWN_NEVER  UINT64_MAX
#define KNOWN_OK     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define KNOWN_503    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy"
#define KNOWN_LIE    "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok"

enum known_law_name {
    KNOWN_FIXED,
    KNOWN_BIMODAL,
    KNOWN_LOGNORMAL,
    KNOWN_MD1,
    KNOWN_CAPPED,
    KNOWN_STALLED,
    KNOWN_STORM,
    KNOWN_RESETS,
    KNOWN_LYING,
    KNOWN_HUNG,
    KNOWN_LAWS
};

struct known_law {
    enum known_law_name name;
    double numbers[3];
    uint64_t replies;
    uint64_t first_ns; /* when the first request came; 0: none did */
    uint64_t free_ns;  /* for md1 and capped: when the next request may be started */
};

struct known_reply {
    uint64_t due_ns;  /* KNOWN_NEVER: no reply will come */
    const char *text; /* the reply; NULL: a reset */
    bool is_last;     /* the connection ends after this reply */
};

static inline uint64_t
known_ns(double ms)
{
    return (uint64_t)(ms * 1e6 + 0.5);
}

/* Parse the text of a law. False: the text is not a law. */
static inline bool
known_law_parse(struct known_law *law, const char *text)
{
    static const struct {
        const char *name;
        unsigned numbers;
    } laws[KNOWN_LAWS] = {
        [KNOWN_FIXED] = {"fixed", 1},         [KNOWN_BIMODAL] = {"bimodal", 3},
        [KNOWN_LOGNORMAL] = {"lognormal", 2}, [KNOWN_MD1] = {"md1", 1},
        [KNOWN_CAPPED] = {"capped", 1},       [KNOWN_STALLED] = {"stalled", 2},
        [KNOWN_STORM] = {"storm", 2},         [KNOWN_RESETS] = {"resets", 2},
        [KNOWN_LYING] = {"lying", 2},         [KNOWN_HUNG] = {"hung", 0},
    };
    size_t length = strcspn(text, ":");
    unsigned name = 0;
    const char *at = text + length;
    char *end;

    while (name < KNOWN_LAWS &&
           (strlen(laws[name].name) != length || strncmp(laws[name].name, text, length) != 0))
        name++;
    if (name == KNOWN_LAWS)
        return false;
    *law = (struct known_law){.name = (enum known_law_name)name};
    for (unsigned i = 0; i < laws[name].numbers; i++) {
        if (*at != (i == 0 ? ':' : ','))
            return false;
        law->numbers[i] = strtod(at + 1, &end);
        at = end;
    }
    return *at == '\0';
}

/* The nth of a sequence that fills (0, 1) evenly. */
static inline double
known_even(uint64_t nth)
{
    double x = ((double)nth + 0.5) * KNOWN_GOLDEN;

    return x - floor(x);
}

/* The standard normal distribution's quantile, by Newton's method on erfc. */
static inline double
known_normal_quantile(double p)
{
    double x = 0;

    if (p > 0.5)
        return -known_normal_quantile(1 - p);
    for (unsigned i = 0; i < 60; i++) {
        double density = exp(-x * x / 2) / sqrt(2 * M_PI);
        double step = (erfc(-x / M_SQRT2) / 2 - p) / density;

        x -= step < 0.5 ? step : 0.5;
    }
    return x;
}

/* How long a reply takes by theory that waits for no other reply: the law's quantile. For md1 and
 * capped, without a queue; for stalled, outside of the stall. */
static inline uint64_t
known_law_quantile_ns(const struct known_law *law, double fraction)
{
    const double *n = law->numbers;

    switch (law->name) {
    case KNOWN_FIXED:
        return known_ns(n[0]);
    case KNOWN_BIMODAL:
        return known_ns(fraction < 1 - n[0] ? n[1] : n[2]);
    case KNOWN_LOGNORMAL:
        return known_ns(n[0] * exp(n[1] * known_normal_quantile(fraction)));
    case KNOWN_MD1:
        return known_ns(1000 / n[0]);
    case KNOWN_STORM:
    case KNOWN_RESETS:
    case KNOWN_LYING:
        return known_ns(n[1]);
    case KNOWN_HUNG:
        return KNOWN_NEVER;
    case KNOWN_CAPPED:
    case KNOWN_STALLED:
    case KNOWN_LAWS:
        break;
    }
    return 0;
}

/* Pollaczek and Khinchine: the mean time in an M/D/1 system whose load is rate / RATE. */
static inline double
known_md1_mean_ns(const struct known_law *law, double rate)
{
    double load = rate / law->numbers[0];

    return 1e9 / law->numbers[0] * (1 + load / (2 * (1 - load)));
}

static inline uint64_t
known_later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The reply of a law with a PART: the even sequence decides whether the request belongs to the
 * part. */
static inline struct known_reply
known_part(const struct known_law *law, uint64_t now_ns, double even)
{
    struct known_reply good = {now_ns + known_ns(law->numbers[1]), KNOWN_OK, false};

    if (even < 1 - law->numbers[0])
        return good;
    if (law->name == KNOWN_STORM)
        return (struct known_reply){now_ns, KNOWN_503, false};
    if (law->name == KNOWN_RESETS)
        return (struct known_reply){now_ns, NULL, true};
    return (struct known_reply){good.due_ns, KNOWN_LIE, true};
}

/* The next reply, to a request that came now; times never go back. */
static inline struct known_reply
known_law_reply(struct known_law *law, uint64_t now_ns)
{
    double even = known_even(law->replies++);
    struct known_reply reply = {now_ns, KNOWN_OK, false};

    if (law->first_ns == 0)
        law->first_ns = now_ns;
    switch (law->name) {
    case KNOWN_FIXED:
    case KNOWN_BIMODAL:
    case KNOWN_LOGNORMAL:
        reply.due_ns += known_law_quantile_ns(law, even);
        break;
    case KNOWN_MD1:
        reply.due_ns = law->free_ns =
            known_later(now_ns, law->free_ns) + known_ns(1000 / law->numbers[0]);
        break;
    case KNOWN_CAPPED:
        reply.due_ns = known_later(now_ns, law->free_ns);
        law->free_ns = reply.due_ns + known_ns(1000 / law->numbers[0]);
        break;
    case KNOWN_STALLED: {
        uint64_t at_ns = law->first_ns + known_ns(law->numbers[0]);
        uint64_t end_ns = at_ns + known_ns(law->numbers[1]);

        if (now_ns >= at_ns && now_ns < end_ns)
            reply.due_ns = end_ns;
        break;
    }
    case KNOWN_STORM:
    case KNOWN_RESETS:
    case KNOWN_LYING:
        return known_part(law, now_ns, even);
    case KNOWN_HUNG:
    case KNOWN_LAWS:
        reply.due_ns = KNOWN_NEVER;
        break;
    }
    return reply;
}

#endif
