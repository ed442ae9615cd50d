/* SPDX-License-Identifier: MIT
 *
 * What: certificates in a temporary directory of the test, and TLS peers made with OpenSSL itself
 * on the descriptors of sxe-fixture.h.
 *
 * Place: tests of lib-sxe-tls. OpenSSL allocates by functions of this file, so that its allocations
 * can fail; but they only fail while the library runs (`turn`), not while the peer runs.
 *
 * Example:
 *     site_start();
 *     make_pair("a", CURVE, "DNS:a.example", NULL);
 *     struct sxe_tls *tls = server_with((struct sxe_tls_config){0}, "a", NULL);
 *     listener = serve(tls, push_read);
 *     struct tls_peer peer = peer_tls(listener, "a.example");
 *     ck_assert(shake(&peer));
 */
#ifndef TLS_SITE_H
#define TLS_SITE_H

#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake-os.h"
#include "fake-time.h"
#include "sxe-fixture.h"
#include "sxe-tls.h"
#include "test-main.h"
#include "test-sweep.h"

enum kind { CURVE, RSA_KEY, WEAK_KEY };

/* ---- OpenSSL's memory ---- */

static struct {
    bool counts;
    unsigned number; /* how many allocations were made while `counts` was set */
    unsigned nth;    /* which allocation fails; 0: none */
    bool for_ever;
    size_t size; /* only allocations of this size count; 0: all */
    unsigned struck;
    size_t live;
    bool is_ours; /* the library runs, and not the peer */
    size_t bytes; /* how many bytes the library has allocated */
} heap;

static inline bool
heap_strikes(size_t size)
{
    bool strikes;

    if (!heap.counts || (heap.size > 0 && heap.size != size))
        return false;
    heap.number++;
    strikes =
        heap.nth > 0 && (heap.number == heap.nth || (heap.for_ever && heap.number > heap.nth));
    heap.struck += strikes;
    return strikes;
}

/* The real functions, which fake-os does not count. */
int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t length);
int __real_poll(struct pollfd *fds, nfds_t number, int timeout_ms);

/* The real functions, which fake-os does not count: sweeps of malloc are about the library's
 * own. */
void *__real_malloc(size_t size);
void *__real_realloc(void *old, size_t size);

/* Count bytes that were allocated or freed while the library runs. */
static void *
heap_taken(void *memory)
{
    if (heap.is_ours)
        heap.bytes += malloc_usable_size(memory);
    return memory;
}

static void
heap_given(void *memory)
{
    if (heap.is_ours)
        heap.bytes -= malloc_usable_size(memory);
}

static void *
heap_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    if (heap_strikes(size))
        return NULL;
    heap.live++;
    return heap_taken(__real_malloc(size));
}

static void
heap_free(void *memory, const char *file, int line)
{
    (void)file;
    (void)line;
    heap.live -= memory != NULL;
    heap_given(memory);
    free(memory);
}

static void *
heap_realloc(void *old, size_t size, const char *file, int line)
{
    if (heap_strikes(size))
        return NULL;
    if (size == 0) {
        heap_free(old, file, line);
        return NULL;
    }
    heap.live += old == NULL;
    heap_given(old);
    return heap_taken(__real_realloc(old, size));
}

/* Call this before any function of OpenSSL. */
static inline int
heap_begin(void)
{
    return CRYPTO_set_mem_functions(heap_malloc, heap_realloc, heap_free);
}

static inline void
heap_arm(unsigned nth, bool for_ever)
{
    heap.number = heap.struck = 0;
    heap.nth = nth;
    heap.for_ever = for_ever;
    heap.counts = true;
}

static inline bool
heap_disarm(void)
{
    heap.counts = false;
    heap.nth = 0;
    heap.size = 0;
    return heap.struck > 0;
}

/* ---- Certificates ---- */

static char site_directory[64];

static inline const char *
site_path(const char *name, const char *suffix)
{
    static char paths[8][160];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof(paths[0]), "%s/%s%s", site_directory, name, suffix);
    return path;
}

static inline void
write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static inline void
site_start(void)
{
    snprintf(site_directory, sizeof(site_directory), "/tmp/sxe-tls-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(site_directory));
}

static inline void
site_stop(void)
{
    char command[96];

    snprintf(command, sizeof(command), "rm -r %s", site_directory);
    ck_assert_int_eq(system(command), 0);
}

static inline X509 *
read_certificate(const char *name)
{
    FILE *file = fopen(site_path(name, ".pem"), "r");
    X509 *certificate = PEM_read_X509(file, NULL, NULL, NULL);

    fclose(file);
    return certificate;
}

static inline EVP_PKEY *
read_private_key(const char *name)
{
    FILE *file = fopen(site_path(name, ".key"), "r");
    EVP_PKEY *key = PEM_read_PrivateKey(file, NULL, NULL, NULL);

    fclose(file);
    return key;
}

static inline void
add_extension_to(X509 *certificate, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

    ck_assert_int_eq(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

/* Make NAME.pem and NAME.key, whose common name is NAME. names: the alternative names, such as
 * "DNS:a.example,IP:127.0.0.1", or NULL. issuer: the pair that signs it; NULL: self-signed. It is
 * an authority if it is self-signed, or if its name says so. It is valid for `days` days, `from`
 * days from now on. */
static inline void
make_pair_from(const char *name, enum kind kind, const char *names, const char *issuer, long from,
               long days)
{
    static long serial;
    EVP_PKEY *key = kind == CURVE ? EVP_EC_gen("P-256") : EVP_RSA_gen(kind == RSA_KEY ? 2048 : 512);
    X509 *certificate = X509_new();
    X509_NAME *subject = X509_get_subject_name(certificate);
    X509 *by = issuer == NULL ? certificate : read_certificate(issuer);
    EVP_PKEY *by_key = issuer == NULL ? key : read_private_key(issuer);
    FILE *file;

    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial + getpid() * 1000L);
    X509_gmtime_adj(X509_getm_notBefore(certificate), from * 86400);
    X509_gmtime_adj(X509_getm_notAfter(certificate), (from + days) * 86400);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(by));
    X509_set_pubkey(certificate, key);
    if (issuer == NULL || strncmp(name, "authority", 9) == 0)
        add_extension_to(certificate, NID_basic_constraints, "critical,CA:TRUE");
    if (strcmp(name, "purpose") == 0) /* this certificate is not one for servers */
        add_extension_to(certificate, NID_ext_key_usage, "clientAuth");
    if (names != NULL)
        add_extension_to(certificate, NID_subject_alt_name, names);
    ck_assert_int_gt(X509_sign(certificate, by_key, EVP_sha256()), 0);
    file = fopen(site_path(name, ".pem"), "w");
    PEM_write_X509(file, certificate);
    fclose(file);
    file = fopen(site_path(name, ".key"), "w");
    PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL);
    fclose(file);
    if (issuer != NULL) {
        X509_free(by);
        EVP_PKEY_free(by_key);
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static inline void
make_pair(const char *name, enum kind kind, const char *names, const char *issuer)
{
    make_pair_from(name, kind, names, issuer, -1, 30);
}

/* A server with the pairs of these names, up to NULL. */
#define server_with(config, ...) server_with_names(config, (const char *const[]){__VA_ARGS__, NULL})

static inline struct sxe_tls *
server_with_names(struct sxe_tls_config config, const char *const *names)
{
    struct sxe_tls_pair pairs[8] = {{0}};

    config.pairs = pairs;
    for (config.pair_count = 0; names[config.pair_count] != NULL; config.pair_count++) {
        pairs[config.pair_count].certificate = site_path(names[config.pair_count], ".pem");
        pairs[config.pair_count].key = site_path(names[config.pair_count], ".key");
    }
    return sxe_tls_new_server(&config);
}

static inline SXE *
serve(struct sxe_tls *tls, SXE_IN_EVENT_READ read)
{
    SXE *listener = listen_tcp(read);

    ck_assert_ptr_nonnull(tls);
    ck_assert_int_eq(sxe_tls_serve(tls, listener), 0);
    return listener;
}

/* ---- Peers ---- */

/* How many turns a peer waits at most: tests that expect nothing to come set fewer. */
static unsigned patience = WAIT_TURNS;

struct tls_peer {
    SXE *ours;
    int fd;
    SSL_CTX *context;
    SSL *ssl;
};

static SSL_CTX *(*peer_context)(void); /* NULL: the context of a plain client */

static inline struct tls_peer
peer_on(SXE *ours, int fd, const char *name)
{
    struct tls_peer peer = {.ours = ours, .fd = fd};
    int one = 1;

    fcntl(fd, F_SETFL, O_NONBLOCK);
    __real_setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    peer.context = peer_context != NULL ? peer_context() : SSL_CTX_new(TLS_client_method());
    peer.ssl = SSL_new(peer.context);
    SSL_set_fd(peer.ssl, fd);
    SSL_set_connect_state(peer.ssl);
    if (name != NULL)
        SSL_set_tlsext_host_name(peer.ssl, name);
    return peer;
}

static inline struct tls_peer
peer_tls(SXE *listener, const char *name)
{
    int fd;
    SXE *ours = accept_peer(listener, &fd);

    return peer_on(ours, fd, name);
}

static inline void
library_turns(unsigned times)
{
    bool counts = heap.nth > 0;

    heap.counts = counts;
    heap.is_ours = true;
    turn(times);
    heap.counts = heap.is_ours = false;
    /* Each user of OpenSSL must clear the thread's errors before a call; the peer is another
     * user. */
    ERR_clear_error();
}

/* Turn the loop; the kernel may need a moment to deliver. */
static inline void
peer_turns(const struct tls_peer *peer)
{
    struct pollfd fd = {.fd = peer->fd, .events = POLLIN};

    library_turns(1);
    __real_poll(&fd, 1, 1);
}

/* Turn until the condition holds, or for WAIT_TURNS. */
#define TURN_UNTIL(condition)                                               \
    for (unsigned turns = 0; turns < WAIT_TURNS && !(condition); turns++) { \
        library_turns(1);                                                   \
        __real_poll(NULL, 0, 1);                                            \
    }

/* Expect that our socket is closed. Its error depends on what its peer left unread. */
static inline void
expect_failure(void)
{
    const struct event *event;

    pump();
    event = event_pop();
    ck_assert_ptr_nonnull(event);
    ck_assert_str_eq(event->name, "close");
    ck_assert_int_ne(event->number, 0);
}

/* Shake hands until the handshake is complete or has failed. */
static inline bool
shake(struct tls_peer *peer)
{
    heap.counts = false;
    for (unsigned i = 0; i < patience; i++) {
        int result = SSL_do_handshake(peer->ssl);

        if (result == 1) {
            library_turns(3);
            return true;
        }
        if (SSL_get_error(peer->ssl, result) != SSL_ERROR_WANT_READ)
            return false;
        peer_turns(peer);
    }
    return false;
}

static inline void
tls_send(struct tls_peer *peer, const void *data, size_t length)
{
    size_t at = 0;

    for (unsigned idle = 0; idle < patience && at < length; idle++) {
        int n = SSL_write(peer->ssl, (const char *)data + at, (int)(length - at));

        if (n <= 0) {
            peer_turns(peer);
            continue;
        }
        at += (size_t)n;
        idle = 0;
    }
    ck_assert_uint_eq(at, length);
}

/* Receive bytes, up to length or to the end. Returns how many came. */
static inline size_t
tls_receive(struct tls_peer *peer, void *data, size_t length)
{
    size_t at = 0;

    for (unsigned idle = 0; idle < patience && at < length; idle++) {
        int n = SSL_read(peer->ssl, (char *)data + at, (int)(length - at));

        if (n <= 0 && SSL_get_error(peer->ssl, n) != SSL_ERROR_WANT_READ)
            break;
        if (n <= 0) {
            peer_turns(peer);
            continue;
        }
        at += (size_t)n;
        idle = 0;
    }
    return at;
}

#define TLS_EXPECT(peer, text) tls_expect(peer, text, __LINE__)
static inline void
tls_expect(struct tls_peer *peer, const char *text, int line)
{
    char got[1024] = "";

    ck_assert_uint_lt(strlen(text), sizeof(got));
    tls_receive(peer, got, strlen(text));
    ck_assert_msg(strcmp(got, text) == 0, "line %d: \"%s\" came, not \"%s\"", line, got, text);
}

/* Wait for the end: SSL_ERROR_ZERO_RETURN after close_notify; SSL_ERROR_SSL or SYSCALL if cut. */
static inline int
tls_end(struct tls_peer *peer)
{
    char byte;

    for (unsigned i = 0; i < patience; i++) {
        int n = SSL_read(peer->ssl, &byte, 1);
        int error = SSL_get_error(peer->ssl, n);

        if (error != SSL_ERROR_WANT_READ)
            return error;
        peer_turns(peer);
    }
    return SSL_ERROR_WANT_READ;
}

static inline void
peer_free(struct tls_peer *peer)
{
    SSL_free(peer->ssl);
    SSL_CTX_free(peer->context);
    close(peer->fd);
    ERR_clear_error();
}

/* End everything, the peer first. */
static inline void
tls_stop(struct tls_peer *peer, struct sxe_tls *tls)
{
    if (peer != NULL) {
        peer_free(peer);
        turn(10);
        while (event_count() > 0)
            event_pop();
    }
    plan_stop();
    sxe_tls_delete(tls);
    site_stop();
}

#endif
