/* SPDX-License-Identifier: MIT
 *
 * What: what one run is asked to do: everything that the command line says, checked, with its
 * defaults. Place: command.c fills it; after that nobody writes it. The worker processes inherit
 * the plan, so everything that it points to is made before they are forked.
 *
 * Shape: the groups of --help. Times are in nanoseconds, rates in requests per second.
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

#define LOAD_ADDRESSES_MAX 16 /* of a name */
#define LOAD_IP_SIZE       64

/* Sockets of the probe. It needs its rate times the server's latency: 16 are enough for 100
 * requests a second that take 160 ms each. */
#define LOAD_PROBE_SOCKETS 16

/* The model that decides when the next query is sent (Schroeder, Wierman, Harchol-Balter, NSDI
 * 2006). */
enum load_model {
    LOAD_CLOSED,      /* a socket sends its next query when it has the reply to the last one: a slow
                         server gets fewer */
    LOAD_PARTLY_OPEN, /* queries arrive at a rate; a query that finds no free socket waits for one,
                         and its response time counts from its arrival */
    LOAD_OPEN /* queries arrive at a rate; a query that finds no free socket is skipped, and counted
                 as skipped */
};

enum load_arrivals { LOAD_POISSON, LOAD_FIXED };

enum load_stop {
    LOAD_STOP_PER_SOCKET, /* -n: each socket has had its queries (2010) */
    LOAD_STOP_TOTAL,      /* --requests: requests_max were offered, over all sockets */
    LOAD_STOP_TIME,       /* -d: nothing is offered after duration_ns */
    LOAD_STOP_REPLAY      /* the log that is replayed has ended */
};

/* A stage of --stages: the rate changes evenly until the stage's end. The first stage begins at
 * 0/s, each other one at the rate at which the stage before it ended. */
struct load_stage {
    uint64_t end_ns; /* after the load's begin; equal to the stage before: a step of the rate */
    double rate;     /* queries a second over all workers, at the stage's end */
};

/* The addresses of a host's name: new connections take the used ones in turn. */
struct load_addresses {
    unsigned number;
    unsigned used; /* the first ones; connections do not take the others */
    char ip[LOAD_ADDRESSES_MAX][LOAD_IP_SIZE]; /* IPv4 or IPv6 text, perhaps with %zone */
};

/* One of several servers that a run loads. */
struct load_host {
    char ip[LOAD_IP_SIZE];
    uint16_t port;
    char path[108];                      /* of a unix socket; "": use ip and port */
    char authority[LOAD_AUTHORITY_SIZE]; /* of its Host field, as in struct load_plan */
    struct load_addresses addresses;     /* ip is the first; none of a unix socket */
};

/* Options of https. Files are in PEM. */
struct load_tls {
    bool is_used;            /* the URLs are https */
    bool is_insecure;        /* the server's certificate is not verified */
    const char *authorities; /* file of CA certificates to trust; NULL: the system's */
    const char *certificate; /* file of the client's certificate; NULL: it has none */
    const char *key;         /* file of the certificate's key */
    const char *name;        /* must be in the server's certificate; NULL: the URL's host */
    unsigned resume;         /* percent of new connections that resume a session, 0 to 100 */
};

struct load_requests; /* requests.h */
struct load_expect;   /* expect.h */
struct load_sources;  /* source.h */

struct load_plan {
    /* Where to: one server. */
    char ip[LOAD_IP_SIZE];           /* connect to; IPv4 or IPv6 text, perhaps with %zone */
    struct load_addresses addresses; /* of the URL's host; ip is the first; none: -i, --unix */
    uint16_t port;                   /* 1 to 65535 */
    const char *unix_path; /* connect to this instead: at most 107 bytes, "@name" is abstract; NULL:
                              to ip and port */
    char what[LOAD_TEXT_MAX]; /* for a report's first line: "GET http://127.0.0.1:8000/" */
    char authority[LOAD_AUTHORITY_SIZE]; /* "127.0.0.1:8000": the Host field of the first request */
    unsigned hosts_number; /* 0: only the server above; otherwise hosts[0] is that server, worker i
                              loads host i % hosts_number, and workers is a multiple of it */
    struct load_host hosts[LOAD_HOSTS_MAX];
    const struct load_sources *sources; /* local addresses; NULL: the system chooses */
    struct load_tls tls;
    unsigned proxy; /* PROXY header at the front of each connection: 0 none, 1, 2 */

    /* How much */
    uint32_t sockets; /* over all workers */
    unsigned workers; /* processes */
    enum load_stop stop;
    uint64_t queries;      /* STOP_PER_SOCKET: of each socket */
    uint64_t requests_max; /* STOP_TOTAL: of all sockets */
    uint64_t duration_ns;  /* STOP_TIME */
    uint64_t warmup_ns;    /* at the beginning, not measured; 0: none */
    bool is_warmup_auto;   /* the warm-up ends when figures have no trend, or after warmup_ns */
    uint64_t drain_ns;     /* at the end, how long to wait for replies to queries in flight */
    uint64_t start_at_ns;  /* when the first trial begins, since 1970; 0: at once */

    /* When */
    enum load_model model;
    enum load_arrivals arrivals;
    double rate;     /* queries a second over all workers, at the beginning */
    double rate_end; /* the rate at the end of duration_ns; equal to rate: it does not change */
    unsigned
        stages_number; /* 0: no stages; else rate and rate_end are the stages' first and last */
    struct load_stage stages[LOAD_STAGES_MAX];
    double replay_speed;  /* times the log's own speed; 0 unless STOP_REPLAY */
    uint64_t think_ns;    /* between a reply and the socket's next query */
    uint64_t deadline_ns; /* a query that waited longer for a socket is shed; 0: no limit */
    unsigned depth;       /* most queries in flight on a socket; 2 or more is pipelining */
    unsigned ramp;        /* connects under way, over all workers */
    double ramp_rate;     /* connects a second over all workers; 0: as fast as they go */
    uint64_t timeout_ns;  /* for a connect, and for the oldest query in flight on a socket */
    bool is_aborting;     /* end connections with a reset (RST) instead of FIN */
    uint64_t seed;        /* of all random numbers; each trial derives its own seed from it */
    double probe_rate;    /* queries a second of the probe, see run.h; 0: there is none */

    /* --shard: several processes each make a part of the load. All other fields describe the whole
     * load. */
    unsigned shards;                 /* parts of the load; 0: this process makes all of it */
    unsigned shard;                  /* from 0: the part that this process makes */
    bool has_shard[LOAD_SHARDS_MAX]; /* [shards] whether this run, or merged run, has that part */

    /* Requests and judgement of replies */
    struct load_requests *requests;
    const struct load_expect *expect; /* never NULL: by default any 2xx with all of its body */

    /* Judging, by the parent only */
    unsigned trials; /* at most LOAD_TRIALS_MAX; 1: a single run */
    double until_ci; /* stop when the interval is narrower than this part of the median; 0: no */
    unsigned until_ci_figure; /* enum load_figure: the figure whose interval until_ci is about */
    const char *server_cmd;   /* starts the server for each trial; NULL: it runs already */
    const char *baseline_cmd; /* starts a second server, measured in turn; NULL: no such server */
    double min_effect;        /* a comparison calls smaller differences none; 0.02 is 2 % */
    /* 'p99<20ms', as given and already checked; NULL ends the list */
    const char *thresholds[LOAD_THRESHOLDS_MAX + 1];
    const char *find;     /* find the highest rate at which this condition holds; NULL: no search */
    const char *baseline; /* a .json to compare with; NULL: no comparison */
    bool aa;              /* run twice, interleaved: the machine's noise floor */

    /* Output, by the parent only: paths; "-": stdout; NULL: not written */
    const char *json;
    const char *csv;
    const char *candles; /* the five columns of S8 */
    const char *hgrm;
    const char *hdr;
    const char *html;
    const char *junit;
    const char *jsonl;   /* written while it runs */
    const char *metrics; /* the address where scrapers ask for metrics; NULL: none */
    const char *markdown;
    unsigned fanout; /* queries that a page needs at once; 0: the report has no page times */
    bool annotate;   /* print lines that GitHub shows beside a run */
    bool quiet;      /* no progress on stderr */
    int argc;        /* for the fingerprint */
    char **argv;
};

/* This process's share of a number that the plan has for all shards. */
static inline uint64_t
load_plan_share(const struct load_plan *plan, uint64_t whole)
{
    return plan->shards == 0 ? whole : whole / plan->shards + (plan->shard < whole % plan->shards);
}

/* This process's share of the plan's rate. */
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

/* When a stage begins, ns after the load's begin. */
static inline uint64_t
load_plan_stage_ns(const struct load_plan *plan, unsigned stage)
{
    return stage == 0 ? 0 : plan->stages[stage - 1].end_ns;
}

/* The stage at ns after the load's begin; stages_number: after the last stage. */
static inline unsigned
load_plan_stage_at(const struct load_plan *plan, uint64_t ns)
{
    unsigned stage = 0;

    while (stage < plan->stages_number && ns >= plan->stages[stage].end_ns)
        stage++;
    return stage;
}

#endif
