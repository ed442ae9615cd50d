/* SPDX-License-Identifier: MIT
 *
 * What: what one run is asked to do: everything that the command line says, checked, with its
 * defaults. Place: command.c fills it; after that nobody writes it. The worker processes inherit
 * it, so all that it points to is made before they are forked.
 *
 * Shape: the groups of --help. Times are nanoseconds, rates are a second.
 */
#ifndef LOAD_PLAN_H
#define LOAD_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define LOAD_DEPTH_MAX   1024
#define LOAD_WORKERS_MAX 256
#define LOAD_TEXT_MAX    256
#define LOAD_SHARDS_MAX  256

#define LOAD_AUTHORITY_SIZE 272

#define LOAD_THRESHOLDS_MAX 15

#define LOAD_STAGES_MAX 32
#define LOAD_HOSTS_MAX  16

/* Of the probe: its rate times a server's latency is how many it needs, so 16 are enough for
 * 100 a second of 160 ms each. */
#define LOAD_PROBE_SOCKETS 16

/* The model that decides when the next query is sent (Schroeder, Wierman, Harchol-Balter, NSDI
 * 2006). */
enum load_model {
    LOAD_CLOSED,      /* each socket sends the next one when it has the reply: a slow server gets
                         fewer */
    LOAD_PARTLY_OPEN, /* they arrive at a rate; one that finds no free socket waits for one, and its
                         response time counts from when it arrived */
    LOAD_OPEN /* they arrive at a rate and wait for nothing; one that finds no free socket is
                         skipped, and counted */
};

enum load_arrivals { LOAD_POISSON, LOAD_FIXED };

enum load_stop {
    LOAD_STOP_PER_SOCKET, /* -n: each socket has had its queries (2010) */
    LOAD_STOP_TOTAL,      /* --requests: so many were offered, over all sockets */
    LOAD_STOP_TIME,       /* -d: nothing is offered after duration_ns */
    LOAD_STOP_REPLAY      /* the log that is replayed has ended */
};

/* Of a load whose rate follows a line. The first begins at 0/s, each other one where the one before
 * it ended. */
struct load_stage {
    uint64_t end_ns; /* after the beginning; that of the one before it: a step */
    double rate;     /* a second over all workers, at its end */
};

/* One of several servers that a run loads. */
struct load_host {
    char ip[64];
    uint16_t port;
    char path[108];                      /* of a unix socket; "" otherwise */
    char authority[LOAD_AUTHORITY_SIZE]; /* as below */
};

/* Of https. Files are in PEM. */
struct load_tls {
    bool is_used;            /* the URLs are https */
    bool is_insecure;        /* the server's certificate is not verified */
    const char *authorities; /* file of those whose certificates are trusted; NULL: the system's */
    const char *certificate; /* of the client, with its key; NULL: it has none */
    const char *key;
    const char *name; /* that the server's certificate must have; NULL: the URL's host */
};

struct load_requests; /* requests.h */
struct load_expect;   /* expect.h */
struct load_sources;  /* source.h */

struct load_plan {
    /* Where to: one server. */
    char ip[64];           /* connect to; IPv4 or IPv6 text, perhaps with %zone */
    uint16_t port;         /* 1 to 65535 */
    const char *unix_path; /* to this instead, at most 107 bytes, "@name" is abstract; NULL */
    char what
        [LOAD_TEXT_MAX]; /* "GET http://127.0.0.1:8000/", what the first line of a report says */
    char authority[LOAD_AUTHORITY_SIZE]; /* "127.0.0.1:8000": the Host field of the first request */
    unsigned hosts_number; /* 0: that one; otherwise it is the first of these, and workers, whose
                              number is a multiple of theirs, serve one each in turn */
    struct load_host hosts[LOAD_HOSTS_MAX];
    const struct load_sources
        *sources; /* local addresses to connect from; NULL: the system's choice */
    struct load_tls tls;
    unsigned proxy; /* PROXY header at the front of each connection: 0 none, 1, 2 */

    /* How much */
    uint32_t sockets; /* over all workers */
    unsigned workers; /* processes */
    enum load_stop stop;
    uint64_t queries;      /* a socket: STOP_PER_SOCKET */
    uint64_t requests_max; /* in total: STOP_TOTAL */
    uint64_t duration_ns;  /* STOP_TIME */
    uint64_t warmup_ns;    /* at the beginning, not measured; 0 */
    bool is_warmup_auto;   /* so long at most, and no longer than the figures have a trend */
    uint64_t drain_ns;     /* at the end wait so long for what is in flight */
    uint64_t start_at_ns;  /* since 1970: the first trial begins then; 0: at once */

    /* When */
    enum load_model model;
    enum load_arrivals arrivals;
    double rate;     /* queries a second over all workers, at the beginning */
    double rate_end; /* and at the end of duration_ns: a ramp; the same as rate otherwise */
    unsigned
        stages_number; /* 0: rate and rate_end are all; otherwise those are the first and last */
    struct load_stage stages[LOAD_STAGES_MAX];
    double replay_speed;  /* times the log's own speed; 0 unless STOP_REPLAY */
    uint64_t think_ns;    /* between a reply and the socket's next query */
    uint64_t deadline_ns; /* one that waited longer for a socket is shed; 0: never */
    unsigned depth;       /* queries in flight a socket: 1, more is pipelining */
    unsigned ramp;        /* connects under way, over all workers */
    double ramp_rate;     /* connects a second over all workers; 0: as fast as they go */
    uint64_t timeout_ns;  /* for a connect, and for the oldest query in flight on a socket */
    bool is_aborting;     /* connections end with a reset, and not in order */
    uint64_t seed;        /* of all that is random; trials have others, made of it */
    double probe_rate;    /* queries a second of the probe, see run.h; 0: there is none */

    /* Of this load, which all other fields are about, other processes make other parts. */
    unsigned shards;                 /* 0: this one makes all of it */
    unsigned shard;                  /* from 0: the part that this process makes */
    bool has_shard[LOAD_SHARDS_MAX]; /* [shards] those that this run, or this sum of runs, has */

    /* Requests and judgement of replies */
    struct load_requests *requests;
    const struct load_expect *expect; /* never NULL: by default any 2xx with all of its body */

    /* Judging, by the parent only */
    unsigned trials; /* at most LOAD_TRIALS_MAX; 1: a single run */
    double until_ci; /* stop when the interval is narrower than this part of the median; 0 */
    unsigned until_ci_figure; /* enum load_figure: the interval of this one */
    const char *server_cmd;   /* restarted for each trial; NULL */
    const char *baseline_cmd; /* another server, in turn with it, to compare with; NULL */
    double min_effect;        /* of a comparison: a smaller part of 1 is no difference */
    /* 'p99<20ms', as given and already checked; NULL ends them */
    const char *thresholds[LOAD_THRESHOLDS_MAX + 1];
    const char *find;     /* the same: find the highest rate that holds it; NULL */
    const char *baseline; /* a .json to compare with; NULL */
    bool aa;              /* run twice, interleaved: the machine's noise floor */

    /* Saying, by the parent only: paths, "-" is stdout, NULL is nowhere */
    const char *json;
    const char *csv;
    const char *candles; /* the five columns of S8 */
    const char *hgrm;
    const char *hdr;
    const char *html;
    const char *junit;
    const char *jsonl;   /* written while it runs */
    const char *metrics; /* where to listen for those who ask for them; NULL */
    const char *markdown;
    unsigned fanout; /* queries that a page needs at once; 0: nothing is said of pages */
    bool annotate;   /* lines that GitHub shows beside a run */
    bool quiet;      /* no progress on stderr */
    int argc;        /* for the fingerprint */
    char **argv;
};

/* The share of this process of a number that the plan has for all shards. */
static inline uint64_t
load_plan_share(const struct load_plan *plan, uint64_t whole)
{
    return plan->shards == 0 ? whole : whole / plan->shards + (plan->shard < whole % plan->shards);
}

/* The share of this process of the plan's rate. */
static inline double
load_plan_rate(const struct load_plan *plan)
{
    return plan->shards == 0 ? plan->rate : plan->rate / plan->shards;
}

/* Whether the rate is the same all the time. */
static inline bool
load_plan_is_level(const struct load_plan *plan)
{
    return plan->stages_number == 0 && !(plan->rate < plan->rate_end) &&
           !(plan->rate > plan->rate_end);
}

/* When a stage begins. */
static inline uint64_t
load_plan_stage_ns(const struct load_plan *plan, unsigned stage)
{
    return stage == 0 ? 0 : plan->stages[stage - 1].end_ns;
}

/* In which stage that time is; stages_number: after the last one. */
static inline unsigned
load_plan_stage_at(const struct load_plan *plan, uint64_t ns)
{
    unsigned stage = 0;

    while (stage < plan->stages_number && ns >= plan->stages[stage].end_ns)
        stage++;
    return stage;
}

#endif
