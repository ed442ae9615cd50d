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

#define LOAD_ADDRESSES_MAX 16 /* the most addresses that a host's name may have here */
#define LOAD_IP_SIZE       64

/* The number of the probe's sockets. The probe needs its rate times the server's latency: 16 are
 * enough for 100 requests a second that take 160 ms each. */
#define LOAD_PROBE_SOCKETS 16

/* The model that decides when the next query is sent (Schroeder, Wierman, Harchol-Balter, NSDI
 * 2006). */
enum load_model {
    /* a socket sends its next query when it has the reply to the last one, so a slow server gets
     * fewer queries */
    LOAD_CLOSED,
    LOAD_PARTLY_OPEN, /* queries arrive at a rate; a query that finds no free socket waits for one,
                         and its response time counts from its arrival */
    LOAD_OPEN /* queries arrive at a rate; a query that finds no free socket is skipped, and counted
                 as skipped */
};

enum load_arrivals { LOAD_POISSON, LOAD_FIXED };

enum load_stop {
    LOAD_STOP_PER_SOCKET, /* -n: stop when each socket has sent its number of queries, as in 2010 */
    /* --requests: stop when all sockets together were given requests_max queries */
    LOAD_STOP_TOTAL,
    LOAD_STOP_TIME,  /* -d: send no more queries after duration_ns */
    LOAD_STOP_REPLAY /* --replay: stop when the log has ended */
};

/* A stage of --stages: the rate changes evenly until the stage's end. The first stage begins at
 * 0/s, each other one at the rate at which the stage before it ended. */
struct load_stage {
    /* the stage's end, in ns after the start of the load; if it equals that of the stage before,
     * the rate changes at once */
    uint64_t end_ns;
    double rate; /* the rate at the stage's end, in queries a second over all workers */
};

/* The addresses that a host's name has. New connections take the used ones in turn. */
struct load_addresses {
    unsigned number;
    /* how many of `ip` are used, from the first on; connections do not take the others */
    unsigned used;
    char ip[LOAD_ADDRESSES_MAX][LOAD_IP_SIZE]; /* IPv4 or IPv6 text, perhaps with %zone */
};

/* One of several servers that a run loads. */
struct load_host {
    char ip[LOAD_IP_SIZE];
    uint16_t port;
    char path[108];                      /* the path of a unix socket; "": use ip and port */
    char authority[LOAD_AUTHORITY_SIZE]; /* the host's Host field, as in struct load_plan */
    /* the addresses of the host's name, of which ip is the first; none for a unix socket */
    struct load_addresses addresses;
};

/* Options for https. Files are in PEM. */
struct load_tls {
    bool is_used;            /* the URLs are https */
    bool is_insecure;        /* the server's certificate is not verified */
    const char *authorities; /* file of CA certificates to trust; NULL: the system's */
    const char *certificate; /* file of the client's certificate; NULL: it has none */
    const char *key;         /* file of the certificate's key */
    const char *name; /* the name that must be in the server's certificate; NULL: the URL's host */
    unsigned resume;  /* percent of new connections that resume a session, 0 to 100 */
};

struct load_requests;        /* requests.h */
struct load_expect;          /* expect.h */
struct load_local_addresses; /* local-addresses.h */

struct load_plan {
    /* Where the load goes: one server. */
    char ip[LOAD_IP_SIZE]; /* the address to connect to: IPv4 or IPv6 text, perhaps with %zone */
    /* the addresses of the URL's host, of which ip is the first; none with -i or --unix */
    struct load_addresses addresses;
    uint16_t port; /* 1 to 65535 */
    /* the path of a unix socket to connect to, at most 107 bytes; "@name" is abstract; NULL:
     * connect to ip and port */
    const char *unix_path;
    char what[LOAD_TEXT_MAX]; /* text for a report's first line: "GET http://127.0.0.1:8000/" */
    /* the Host field of the first request, such as "127.0.0.1:8000" */
    char authority[LOAD_AUTHORITY_SIZE];
    /* 0: the run loads only the server above. Otherwise hosts[0] is that server, worker i loads
     * host i % hosts_number, and the number of workers is a multiple of it. */
    unsigned hosts_number;
    struct load_host hosts[LOAD_HOSTS_MAX];
    const struct load_local_addresses
        *local_addresses; /* addresses to connect from; NULL: the system chooses */
    struct load_tls tls;
    /* the version of the PROXY header at the beginning of each connection, 1 or 2; 0: no header */
    unsigned proxy;

    /* How much is sent, and how long */
    uint32_t sockets; /* the number of sockets of all workers together */
    unsigned workers; /* the number of worker processes */
    enum load_stop stop;
    uint64_t queries;      /* for LOAD_STOP_PER_SOCKET: how many queries each socket sends */
    uint64_t requests_max; /* for LOAD_STOP_TOTAL: how many queries all sockets together send */
    uint64_t duration_ns;  /* for LOAD_STOP_TIME: how long to send */
    uint64_t warmup_ns;    /* the first part of the load, which is not measured; 0: none */
    /* whether the warm-up ends as soon as the figures have no trend, but after warmup_ns at the
     * latest */
    bool is_warmup_auto;
    uint64_t drain_ns;    /* how long to wait at the end for replies to queries in flight */
    uint64_t start_at_ns; /* when the first trial begins, in ns since 1970; 0: at once */

    /* When queries are sent */
    enum load_model model;
    enum load_arrivals arrivals;
    double rate;     /* queries a second over all workers, at the beginning */
    double rate_end; /* the rate at the end of duration_ns; equal to rate: it does not change */
    /* 0: the run has no stages. Otherwise rate is the rate at which the first stage begins, and
     * rate_end the rate at which the last one ends. */
    unsigned stages_number;
    struct load_stage stages[LOAD_STAGES_MAX];
    /* the speed of a replay, in multiples of the log's own speed; 0 unless stop is
     * LOAD_STOP_REPLAY */
    double replay_speed;
    uint64_t think_ns;    /* how long a socket waits between a reply and its next query */
    uint64_t deadline_ns; /* a query that waited longer for a socket is shed; 0: no limit */
    unsigned depth;       /* the most queries in flight on a socket; 2 or more is pipelining */
    unsigned ramp;        /* how many sockets may connect at a time, over all workers */
    double ramp_rate;     /* how many sockets connect in a second; 0: as fast as they can */
    /* how long a connect, and the oldest query in flight on a socket, may take */
    uint64_t timeout_ns;
    bool is_aborting;  /* end connections with a reset (RST) instead of FIN */
    uint64_t seed;     /* seed of all random numbers; each trial derives its own seed from it */
    double probe_rate; /* queries a second of the probe, see run.h; 0: there is none */

    /* --shard: several processes each make a part of the load. All other fields describe the whole
     * load. */
    unsigned shards; /* how many parts the load has; 0: this process makes all of it */
    unsigned shard;  /* which part this process makes, from 0 */
    /* [shards] whether this run has that part; after a merge, whether one of the merged runs has
     * it */
    bool has_shard[LOAD_SHARDS_MAX];

    /* Requests and judgement of replies */
    struct load_requests *requests;
    /* what a reply must be; never NULL: by default a reply must have a status 2xx and a whole
     * body */
    const struct load_expect *expect;

    /* How the run is judged; used by the parent process only */
    unsigned trials; /* how many trials, at most LOAD_TRIALS_MAX; 1: a single run */
    /* stop when the confidence interval is narrower than this part of the median; 0: do not look at
     * the interval */
    double until_ci;
    unsigned until_ci_figure; /* the figure whose interval until_ci is about (enum load_figure) */
    /* the command that starts the server for each trial; NULL: the server runs already */
    const char *server_cmd;
    /* the command of a second server, measured alternately with the first; NULL: there is none */
    const char *baseline_cmd;
    double min_effect; /* the smallest difference that a comparison shows; 0.02 is 2 % */
    /* texts such as 'p99<20ms', as given; they were checked, and NULL ends the list */
    const char *thresholds[LOAD_THRESHOLDS_MAX + 1];
    const char *find;     /* find the highest rate at which this condition holds; NULL: no search */
    const char *baseline; /* a JSON file to compare with; NULL: no comparison */
    /* whether to measure the same server as two sides, whose trials alternate, to find the
     * machine's noise */
    bool aa;

    /* Outputs, which only the parent process writes. A path "-" is stdout; NULL: the output is not
     * wanted. */
    const char *json;
    const char *csv;
    /* the path for the five columns of a candlestick chart, as the benchmark S8 needs them */
    const char *candles;
    const char *hgrm;
    const char *hdr;
    const char *html;
    const char *junit;
    const char *jsonl;   /* the path of a file to which a line is written each second */
    const char *metrics; /* the address where scrapers ask for metrics; NULL: none */
    const char *markdown;
    /* how many queries a page sends at the same time; 0: the report has no times of pages */
    unsigned fanout;
    bool annotate; /* whether to print lines that GitHub shows beside a run */
    bool quiet;    /* whether to show no progress on stderr */
    int argc;      /* the command line, for the report */
    char **argv;
};

/* The part that this process makes of a number that the plan has for all shards. */
static inline uint64_t
load_plan_share(const struct load_plan *plan, uint64_t whole)
{
    return plan->shards == 0 ? whole : whole / plan->shards + (plan->shard < whole % plan->shards);
}

/* The part that this process makes of the plan's rate. */
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

/* When a stage begins, in ns after the start of the load. */
static inline uint64_t
load_plan_stage_ns(const struct load_plan *plan, unsigned stage)
{
    return stage == 0 ? 0 : plan->stages[stage - 1].end_ns;
}

/* Find the stage at ns after the start of the load; stages_number: after the last stage. */
static inline unsigned
load_plan_stage_at(const struct load_plan *plan, uint64_t ns)
{
    unsigned stage = 0;

    while (stage < plan->stages_number && ns >= plan->stages[stage].end_ns)
        stage++;
    return stage;
}

#endif
