/* SPDX-License-Identifier: MIT
 *
 * What: what the files of lib-sxe-tls share.
 * Place: included by them only, in reading order:
 *
 *     sxe-tls-new.c      a configuration: making, reloading, deleting it
 *     sxe-tls-site.c     certificates, and the contexts that have them
 *     sxe-tls-context.c  OpenSSL's contexts: algorithms, trust, SNI, ALPN, staples
 *     sxe-tls-name.c     the names of certificates, and which certificate has a name
 *     sxe-tls-ticket.c   keys of tickets
 *     sxe-tls-local.c    a certificate of localhost, for development
 *     sxe-tls-client.c   a client's hosts and sessions
 *     sxe-tls-peer.c     whose certificate the peer sent
 *     sxe-tls.c          connections: making, timeouts, what programs ask about them
 *     sxe-tls-io.c       the table of sxe-io.h: reading, writing, ending
 *     sxe-tls-bio.c      records between OpenSSL and the loop's buffers
 *     sxe-tls-staple.c   whether a server's staple says that its certificate was revoked
 *     sxe-tls-failure.c  why a connection failed, in words
 *     sxe-tls-state.c    the states of connections, and what is counted
 *     sxe-tls-problem.c  why a call failed, in words
 *
 * They call downwards: no file calls one that calls it, directly or through others.
 */
#ifndef SXE_TLS_PRIVATE_H
#define SXE_TLS_PRIVATE_H

#define SXE_LOG_CONTROL sxe__tls_log

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include "sxe-io.h"
#include "sxe-tls.h"

extern struct sxe_log_control sxe__tls_log;

#define SXE__TLS_RECORD   16384u        /* bytes of plain text in a full record */
#define SXE__TLS_BATCH    65536u        /* most bytes of plain text that one send(2) takes */
#define SXE__TLS_IN_SIZE  (65536u + 5u) /* the longest record that a header can announce */
#define SXE__TLS_SLACK    24576u        /* most bytes of a record that is cut into fragments */
#define SXE__TLS_HELD_MAX 4096u         /* most bytes of records that are held: see hold_records */
#define SXE__TLS_OUT_SIZE (SXE__TLS_HELD_MAX + SXE__TLS_BATCH + 2u * SXE__TLS_SLACK)
#define SXE__TLS_HEADER   5u
/* If more connections are ACTIVE, the oldest ones give their buffers back at once. Allocating
 * buffers again costs little beside a record, and the heap does not grow by those of a wave of
 * connections. */
#define SXE__TLS_ACTIVE_MAX 128u
#define SXE__TLS_READS_MAX  4u /* calls of recv(2) in one call of read */

/* How many records in a row may bring no byte for the program, during and after the handshake. */
#define SXE__TLS_SHAKING_RECORDS_MAX 1024u
#define SXE__TLS_EMPTY_RECORDS_MAX   64u

/* Bytes of memory that a connection is taken to use in each state; test-tls-faults.c compares them
 * with the memory that OpenSSL uses. */
#define SXE__TLS_BYTES_SHAKING 65536u
#define SXE__TLS_BYTES_ACTIVE  49152u
#define SXE__TLS_BYTES_QUIET   15360u

enum sxe__tls_state {
    SXE__TLS_FREE,
    SXE__TLS_SHAKING,
    SXE__TLS_ACTIVE,
    SXE__TLS_QUIET,
    SXE__TLS_STATES
};

/* The TLS of the socket with the same id. */
struct sxe__tls_connection {
    struct sxe_tls *tls; /* of a listener: the configuration of the connections that it accepts */
    SSL *ssl;            /* OpenSSL's object; NULL: no byte has come yet */
    char *host;          /* of a client: the host that it expects; owned */
    char *failure;       /* why the connection failed; owned */
    char *names;         /* the names in the peer's certificate; owned; NULL: not asked for yet */
    void (*on_ready)(SXE *s); /* called when the handshake is done; may be NULL */
    char *kept;               /* records that the kernel did not take; owned */
    uint32_t kept_at;
    uint32_t kept_length;
    uint32_t owed;    /* bytes of plain text in kept records; the next writes begin with them */
    uint16_t records; /* how many records in a row had no plain text */
    int16_t result;   /* the result of all further reads: -errno, or 1 for the end; 0: none yet */

    /* The record of which OpenSSL has taken a part. */
    uint8_t header[SXE__TLS_HEADER];
    uint8_t header_length;
    uint16_t body_length;
    uint16_t body_left;

    bool is_client;
    bool has_offered; /* a client: the connection offered a session to resume */
    bool is_used;     /* the connection had bytes since the last timeout of its state */
    bool is_held;     /* the kept records ended the handshake, and may leave with a reply */
    bool is_quiet;    /* the connection is QUIET: OpenSSL has freed its buffers */
    bool is_pending;  /* OpenSSL has plain text for which there was no room */
    bool is_slow;     /* the kernel did not take all records of the last write at once */
    bool is_broken;   /* OpenSSL can do nothing more with the connection */
    bool is_cut;      /* the peer ended without close_notify */
    bool end_sent;    /* OpenSSL has made close_notify, which may still be unsent */
    bool was_refused; /* the turn had no step left for this handshake: it waits for a later turn */
    uint8_t overhead; /* how many bytes each record has at least, beside its plain text */
};

/* All state of one thread's loop. */
struct sxe__tls_loop {
    struct sxe__tls_connection *connections; /* the array of a pool */
    unsigned number;
    unsigned users; /* how many struct sxe_tls use the loop */
    SXE_TIME turn;
    uint32_t steps; /* how many steps of handshakes were made in this turn */
    uint32_t steps_max;
    uint32_t refused;  /* how many steps were not allowed in this turn */
    uint32_t reserved; /* how many steps are for connections that were refused in an earlier turn */
    size_t kept;       /* how many bytes of kept records all connections have */
    struct sxe_tls_counts counts;
    BIO *bio;

    struct sxe__tls_connection *current; /* the connection for which OpenSSL is being called */
    bool in_is_over;                     /* the socket's end was read */
    uint32_t in_at;
    uint32_t in_length;
    uint32_t out_length;
    char *in;    /* SXE__TLS_IN_SIZE bytes */
    char *out;   /* SXE__TLS_OUT_SIZE bytes */
    char *plain; /* SXE__TLS_BATCH bytes */
};

extern _Thread_local struct sxe__tls_loop *sxe__tls_loop __attribute__((visibility("hidden")));

/* A file that was read, to see whether it changed. */
struct sxe__tls_file {
    char *path;
    struct stat status;
};

/* The certificates for one set of names: at most one of each kind of key. */
struct sxe__tls_site {
    SSL_CTX *context;
    unsigned members[2]; /* indexes of pairs, or NO_PAIR: ECDSA (and Ed25519), RSA */
};
#define SXE__TLS_NO_PAIR UINT32_MAX

struct sxe__tls_name {
    char *text; /* the name in lower case; owned */
    unsigned site;
};

/* Everything that is read from files; a reload replaces all of it. */
struct sxe__tls_store {
    struct sxe__tls_pair_read *pairs;
    unsigned pair_count;
    struct sxe__tls_site *sites; /* the first is the default */
    unsigned site_count;
    struct sxe__tls_name *names; /* sorted */
    const char *first_name;      /* the first name of the first pair that has no *; NULL: none */
    unsigned name_count;
    struct sxe__tls_file *files;
    unsigned file_count;
};

struct sxe__tls_pair_read {
    X509 *certificate;
    STACK_OF(X509) * chain;
    EVP_PKEY *key;
    unsigned char *staple;
    long staple_length;
};

struct sxe__tls_session {
    char *host;
    SSL_SESSION *session;
};

struct sxe_tls {
    struct sxe_tls_config config; /* texts are owned */
    struct sxe_tls_pair *pairs;   /* owned, with their texts */
    unsigned char *protocols;     /* the protocols in the format of ALPN */
    unsigned protocols_length;
    bool is_client;
    bool is_user; /* whether this configuration is counted in `users` of the thread's loop */
    struct sxe_tls_tickets *own_tickets;
    struct sxe__tls_store *store;
    struct sxe__tls_session *sessions; /* of a client: the sessions, the oldest first */
    uint32_t session_count;
    X509 *local; /* the certificate of sxe_tls_new_local */
    EVP_PKEY *local_key;
    char *local_pem;
};

/* ---- sxe-tls-state.c ---- */

static inline struct sxe__tls_connection *
sxe__tls_of(const SXE *s)
{
    return &sxe__tls_loop->connections[s->id];
}

/* Call when the handshake is done. */
void sxe__tls_shaken(SXE *s, struct sxe__tls_connection *c);

/* Whether the peer's kernel could lose our output if this connection were closed now: a server of
 * TLS 1.3 sends its tickets after the handshake, and a ticket that is unread, or comes after the
 * close, makes our kernel reset the connection. Tickets that the peer sends later than it
 * acknowledges our output do not matter. */
bool sxe__tls_needs_peer_end(const SXE *s, const struct sxe__tls_connection *c);

/* Have OpenSSL free the buffers of an ACTIVE connection, which becomes QUIET. False: it is in the
 * middle of a record, or has output. */
bool sxe__tls_rest(struct sxe__tls_connection *c);

/* Call before bytes are read or written: marks the connection as used, and no longer quiet. */
void sxe__tls_wake(struct sxe__tls_connection *c);

/* Whether the connection may make a step of its handshake in this turn. Connections that were
 * refused in the last turn come first: events of new connections are handled before deferred calls,
 * so under load the new ones would otherwise take all steps, and the oldest would wait longest. */
bool sxe__tls_may_shake(struct sxe__tls_connection *c);

/* Whether memory_max allows one more connection. */
bool sxe__tls_has_memory(const struct sxe_tls *tls);
void sxe__tls_forget(struct sxe__tls_connection *c); /* free what a closing connection holds */

void sxe__tls_move(struct sxe__tls_connection *c, enum sxe__tls_state to);

/* ---- sxe-tls.c ---- */

SXE_MUST_USE int sxe__tls_open(struct sxe_tls *tls); /* make this thread's loop, or join it */
void sxe__tls_close(struct sxe_tls *tls);

/* ---- sxe-tls-peer.c ---- */

/* Whether the certificate that the peer sent when the session began is no longer valid. A resumed
 * handshake shows no certificate, so nothing else would notice. */
bool sxe__tls_session_is_stale(SSL_SESSION *session);

/* ---- sxe-tls-client.c ---- */

/* Have OpenSSL pass us the sessions that servers send to connections of this client's context. */
void sxe__tls_keep_sessions(SSL_CTX *context);
void sxe__tls_drop_sessions(struct sxe_tls *tls);

/* ---- sxe-tls-staple.c ---- */

/* Have clients of this context ask for a staple, and refuse a server whose staple says that its
 * certificate was revoked. False: OpenSSL refused. */
SXE_MUST_USE bool sxe__tls_ask_for_staple(SSL_CTX *context);

/* ---- sxe-tls-failure.c ---- */

/* For SSL_CTX_set_verify: note what is wrong with a certificate. */
int sxe__tls_on_verify(int is_good, X509_STORE_CTX *chain);

/* Note that the authority revoked the peer's certificate, and when. */
void sxe__tls_note_revocation(struct sxe__tls_connection *c, const X509 *certificate,
                              const ASN1_GENERALIZEDTIME *time);

/* Note why a connection failed: this text, or else the last error in OpenSSL's queue, which is
 * logged, too, and cleared. The first failure that was noted stays. */
void sxe__tls_note_failure(struct sxe__tls_connection *c, const char *text);
void sxe__tls_log_failure(const SXE *s, const char *what);

/* ---- sxe-tls-io.c ---- */

extern const struct sxe_io_table sxe__tls_io;

/* ---- sxe-tls-bio.c ---- */

SXE_MUST_USE BIO *sxe__tls_bio_new(void);

/* How many bytes of the present record OpenSSL has, and how many more it needs to go on. */
uint32_t sxe__tls_record_has(const struct sxe__tls_connection *c);
uint32_t sxe__tls_record_needs(const struct sxe__tls_connection *c);

/* The SSL for a new connection of a server or a client, on the thread's BIO; NULL: no memory. */
SXE_MUST_USE SSL *sxe__tls_ssl(struct sxe_tls *tls);

/* ---- sxe-tls-problem.c ---- */

/* Set sxe_tls_problem, with OpenSSL's reason if there is one. Returns NULL. */
void *sxe__tls_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- sxe-tls-site.c ---- */

/* Read all files of tls. NULL: the problem is set. */
SXE_MUST_USE struct sxe__tls_store *sxe__tls_store_new(struct sxe_tls *tls);
void sxe__tls_store_delete(struct sxe__tls_store *store);

/* ---- sxe-tls-context.c ---- */

/* Make a context, without certificates. NULL: the problem is set. */
SXE_MUST_USE SSL_CTX *sxe__tls_context(struct sxe_tls *tls);

/* ---- sxe-tls-name.c ---- */

/* Add the alternative names of a pair's certificate, or else its common name (RFC 6125, 6.4.4).
 * False: no memory. */
SXE_MUST_USE bool sxe__tls_add_names(struct sxe__tls_store *store, unsigned pair);

/* Whether the certificate of a pair has this name. Call it before the sites are made. */
bool sxe__tls_pair_has(const struct sxe__tls_store *store, unsigned pair, const char *name);

/* Sort the names when the sites are made, for sxe__tls_find. */
void sxe__tls_sort_names(struct sxe__tls_store *store);

/* The site of this name; NULL: there is none. */
const struct sxe__tls_site *sxe__tls_find(const struct sxe__tls_store *store, const char *name);

/* ---- sxe-tls-ticket.c ---- */

/* Have this context seal and open tickets by these keys. False: OpenSSL refused. */
SXE_MUST_USE bool sxe__tls_tickets_set(SSL_CTX *context, struct sxe_tls_tickets *tickets);

/* ---- sxe-tls-local.c ---- */

SXE_MUST_USE bool sxe__tls_local_make(struct sxe_tls *tls);

#endif
