/* SPDX-License-Identifier: MIT
 *
 * What: what the files of lib-sxe-tls share.
 * Place: included by them only, in reading order:
 *
 *     sxe-tls.c          connections: states, timeouts, questions
 *     sxe-tls-client.c   a client's hosts and sessions
 *     sxe-tls-failure.c  why a connection failed, in words
 *     sxe-tls-io.c       the table of sxe-io.h: reading, writing, ending
 *     sxe-tls-bio.c      records between OpenSSL and the loop's buffers
 *     sxe-tls-new.c      a configuration and its contexts; reloading
 *     sxe-tls-site.c     certificates, their names, SNI, ALPN, staples
 *     sxe-tls-ticket.c   keys of tickets
 *     sxe-tls-local.c    a certificate for the first minute
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

#define SXE__TLS_RECORD    16384u        /* bytes of plain text */
#define SXE__TLS_BATCH     65536u        /* of plain text, written with one send(2) */
#define SXE__TLS_IN_SIZE   (65536u + 5u) /* the longest record that a header can announce */
#define SXE__TLS_SLACK     24576u        /* what a record's worth may become in small fragments */
#define SXE__TLS_OUT_SIZE  (SXE__TLS_BATCH + 2u * SXE__TLS_SLACK)
#define SXE__TLS_HEADER    5u
#define SXE__TLS_READS_MAX 4u /* recv(2) in one call of read */

/* Records without a byte for the program, in a row. */
#define SXE__TLS_SHAKING_RECORDS_MAX 1024u
#define SXE__TLS_EMPTY_RECORDS_MAX   64u

/* Bytes that a connection counts for; test-tls-faults.c compares them with what OpenSSL takes. */
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

/* Of the socket with the same id. */
struct sxe__tls_connection {
    struct sxe_tls *tls;      /* of a listener: what it accepts uses that */
    SSL *ssl;                 /* NULL: not a byte came */
    char *host;               /* of a client; owned */
    char *failure;            /* why it failed; owned */
    void (*on_ready)(SXE *s); /* NULL: nobody waits for the handshake */
    char *kept;               /* records that the kernel did not take */
    uint32_t kept_at;
    uint32_t kept_length;
    uint32_t owed;    /* bytes of plain text in them, which the next writes begin with */
    uint16_t records; /* without plain text, in a row */
    int16_t result;   /* of all further reads: -errno, or 1 for the end; 0: go on */

    /* The record that OpenSSL has a part of. */
    uint8_t header[SXE__TLS_HEADER];
    uint8_t header_length;
    uint16_t body_length;
    uint16_t body_left;

    bool is_client;
    bool is_used;     /* since the last look */
    bool is_quiet;    /* in that state */
    bool is_pending;  /* OpenSSL has plain text that had no room */
    bool is_slow;     /* the kernel did not take the last batch at once */
    bool is_broken;   /* OpenSSL can do nothing more with it */
    bool is_cut;      /* it ended without close_notify */
    bool end_sent;    /* close_notify */
    uint8_t overhead; /* bytes of each record at least, beside its plain text */
};

/* All state of one thread's loop. */
struct sxe__tls_loop {
    struct sxe__tls_connection *connections; /* a pool */
    unsigned number;
    unsigned users; /* struct sxe_tls */
    SXE_TIME turn;
    uint32_t steps; /* of handshakes in this turn */
    uint32_t steps_max;
    size_t kept; /* bytes of all connections */
    struct sxe_tls_counts counts;
    BIO *bio;

    struct sxe__tls_connection *current; /* whose SSL calls the BIO */
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

/* Certificates of one set of names, of one kind of key each. */
struct sxe__tls_site {
    SSL_CTX *context;
    unsigned members[2]; /* indexes of pairs, or NO_PAIR: ECDSA (and Ed25519), RSA */
};
#define SXE__TLS_NO_PAIR UINT32_MAX

struct sxe__tls_name {
    char *text; /* in lower case; owned */
    unsigned site;
};

/* All that is read from files; replaced as a whole. */
struct sxe__tls_store {
    struct sxe__tls_pair_read *pairs;
    unsigned pair_count;
    struct sxe__tls_site *sites; /* the first is the default */
    unsigned site_count;
    struct sxe__tls_name *names; /* sorted */
    const char *first_name;      /* of the first pair, without a *; NULL: none */
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
    unsigned char *protocols;     /* as ALPN writes them */
    unsigned protocols_length;
    bool is_client;
    bool is_user; /* of this thread's loop */
    struct sxe_tls_tickets *own_tickets;
    struct sxe__tls_store *store;
    struct sxe__tls_session *sessions; /* of a client: the oldest first */
    uint32_t session_count;
    X509 *local; /* of sxe_tls_new_local */
    EVP_PKEY *local_key;
    char *local_pem;
};

/* ---- sxe-tls.c ---- */

static inline struct sxe__tls_connection *
sxe__tls_of(const SXE *s)
{
    return &sxe__tls_loop->connections[s->id];
}

/* The handshake is done. */
void sxe__tls_shaken(SXE *s, struct sxe__tls_connection *c);

/* It has bytes to read or write. */
void sxe__tls_wake(struct sxe__tls_connection *c);

/* Whether this step of a handshake may be made in this turn. */
bool sxe__tls_may_shake(void);

/* Whether memory_max allows one more. */
bool sxe__tls_has_memory(const struct sxe_tls *tls);
void sxe__tls_forget(struct sxe__tls_connection *c); /* it closes */

SXE_MUST_USE int sxe__tls_open(struct sxe_tls *tls); /* this thread's loop */
void sxe__tls_close(struct sxe_tls *tls);

/* ---- sxe-tls-client.c ---- */

/* Have a client's context give us its sessions. */
void sxe__tls_keep_sessions(SSL_CTX *context);
void sxe__tls_drop_sessions(struct sxe_tls *tls);

/* ---- sxe-tls-failure.c ---- */

/* For SSL_CTX_set_verify: note what is wrong with a certificate. */
int sxe__tls_on_verify(int is_good, X509_STORE_CTX *chain);

/* Keep and log why it failed: this, or from OpenSSL's queue of errors, which is empty then. What
 * was noted first stays. */
void sxe__tls_note_failure(struct sxe__tls_connection *c, const char *text);
void sxe__tls_log_failure(const SXE *s, const char *what);

/* ---- sxe-tls-io.c ---- */

extern const struct sxe_io_table sxe__tls_io;

/* ---- sxe-tls-bio.c ---- */

SXE_MUST_USE BIO *sxe__tls_bio_new(void);

/* Bytes of the record that OpenSSL has, and how many it needs at least to go on. */
uint32_t sxe__tls_record_has(const struct sxe__tls_connection *c);
uint32_t sxe__tls_record_needs(const struct sxe__tls_connection *c);

/* ---- sxe-tls-new.c ---- */

/* Set sxe_tls_problem, with OpenSSL's reason if there is one. NULL. */
void *sxe__tls_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A server's SSL for a new connection; NULL: no memory. */
SXE_MUST_USE SSL *sxe__tls_ssl(struct sxe_tls *tls);

/* ---- sxe-tls-site.c ---- */

/* Read all files of tls. NULL: the problem is set. */
SXE_MUST_USE struct sxe__tls_store *sxe__tls_store_new(struct sxe_tls *tls);
void sxe__tls_store_delete(struct sxe__tls_store *store);

/* A context with all that does not depend on certificates. NULL: the problem is set. */
SXE_MUST_USE SSL_CTX *sxe__tls_context(struct sxe_tls *tls);

/* The site of that name; NULL: there is none. */
const struct sxe__tls_site *sxe__tls_find(const struct sxe__tls_store *store, const char *name);

/* ---- sxe-tls-ticket.c ---- */

/* Have that context seal and open sessions by these keys. False: OpenSSL refused. */
SXE_MUST_USE bool sxe__tls_tickets_set(SSL_CTX *context, struct sxe_tls_tickets *tickets);

/* ---- sxe-tls-local.c ---- */

SXE_MUST_USE bool sxe__tls_local_make(struct sxe_tls *tls);

#endif
