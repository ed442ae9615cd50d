/* SPDX-License-Identifier: MIT
 *
 * OpenSSL with one recv and one send for each event, for the limit programs of TLS. All connections
 * share a BIO: OpenSSL reads from it the bytes that the last recv brought, and writes to it the
 * bytes that the next send will send. A program calls SSL_read until OpenSSL needs more bytes, so
 * no bytes of a recv are left in the BIO.
 */
#ifndef LIMIT_TLS_H
#define LIMIT_TLS_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    TLS_IN_MAX = 65536,
    /* the most bytes that OpenSSL writes at once: in a handshake, or a reply with its
     * close_notify */
    TLS_OUT_MAX = 65536,
    TLS_RECORD_MAX = 16384
};

struct tls_stage {
    size_t in_at;
    size_t in_len;
    size_t out_len;
    char in[TLS_IN_MAX];
    char out[TLS_OUT_MAX];
};

static struct tls_stage stage;

static int
tls_bio_read(BIO *bio, char *bytes, size_t size, size_t *taken)
{
    size_t left = stage.in_len - stage.in_at;

    BIO_clear_retry_flags(bio);
    *taken = size < left ? size : left;
    if (*taken == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(bytes, &stage.in[stage.in_at], *taken);
    stage.in_at += *taken;
    return 1;
}

static int
tls_bio_write(BIO *bio, const char *bytes, size_t size, size_t *taken)
{
    BIO_clear_retry_flags(bio);
    *taken = 0;
    if (size > sizeof(stage.out) - stage.out_len) {
        return 0;
    }
    memcpy(&stage.out[stage.out_len], bytes, size);
    stage.out_len += size;
    *taken = size;
    return 1;
}

static long
tls_bio_ctrl(BIO *bio, int what, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return what == BIO_CTRL_FLUSH;
}

/* Make the BIO. NULL: no memory. */
static inline BIO *
tls_bio_new(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stage");
    BIO *bio = NULL;

    if (method != NULL && BIO_meth_set_read_ex(method, tls_bio_read) &&
        BIO_meth_set_write_ex(method, tls_bio_write) && BIO_meth_set_ctrl(method, tls_bio_ctrl)) {
        bio = BIO_new(method);
    }
    if (bio != NULL) {
        BIO_set_init(bio, 1);
    }
    return bio;
}

/* Allow only TLS 1.3, X25519 and one cipher, so that all programs compute the same. */
static inline bool
tls_set_algorithms(SSL_CTX *context, const char *cipher)
{
    SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_read_ahead(context, 1);
    return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_ciphersuites(context, cipher) == 1 &&
           SSL_CTX_set1_groups_list(context, "X25519") == 1;
}

/* Make an SSL that uses the shared BIO. NULL: no memory. */
static inline SSL *
tls_new(SSL_CTX *context, BIO *bio)
{
    SSL *ssl = SSL_new(context);

    if (ssl != NULL) {
        BIO_up_ref(bio);
        SSL_set_bio(ssl, bio, bio);
    }
    return ssl;
}

/* Free an SSL. Its session may be resumed, although no close_notify came. */
static inline void
tls_free(SSL *ssl)
{
    if (ssl != NULL) {
        SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    }
    SSL_free(ssl);
}

#endif
