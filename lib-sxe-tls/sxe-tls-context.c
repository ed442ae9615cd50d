/* SPDX-License-Identifier: MIT
 *
 * Configures a context of OpenSSL, except for its certificates: versions, algorithms, trusted
 * authorities, and the answers to a client's hello: names, protocols, staples.
 */
#include "sxe-tls-private.h"

#include <limits.h>
#include <openssl/x509v3.h>
#include <stdio.h>

/* Mozilla's "intermediate" without finite-field ciphers, and all of TLS 1.3 but CCM. */
#define CIPHERS_1_2                                              \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:" \
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:" \
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define CIPHERS_1_3 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

/* X25519MLKEM768 exists in OpenSSL from 3.5 on. */
#define GROUPS_NEW "X25519MLKEM768:X25519:P-256:P-384"
#define GROUPS     "X25519:P-256:P-384"

static int
on_name(SSL *ssl, int *alert, void *user)
{
    struct sxe_tls *tls = user;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    const struct sxe__tls_site *site = name == NULL ? NULL : sxe__tls_find(tls->store, name);

    if (site == NULL && tls->config.refuses_unknown_names) {
        *alert = SSL_AD_UNRECOGNIZED_NAME;
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    /* Use the present store: the files may have been read again since the connection came. */
    if (site == NULL)
        site = tls->store->sites;
    return SSL_set_SSL_CTX(ssl, site->context) != NULL ? SSL_TLSEXT_ERR_OK
                                                       : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Choose the protocol (ALPN): RFC 7301, 3.2. */
static int
on_protocols(SSL *ssl, const unsigned char **chosen, unsigned char *length,
             const unsigned char *offered, unsigned offered_length, void *user)
{
    struct sxe_tls *tls = user;
    unsigned char *found = NULL;

    SXE_UNUSED_PARAMETER(ssl);
    if (SSL_select_next_proto(&found, length, tls->protocols, tls->protocols_length, offered,
                              offered_length) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

/* Send the OCSP reply for the certificate that was chosen: RFC 6066, 8. */
static int
on_staple(SSL *ssl, void *user)
{
    const struct sxe_tls *tls = user;
    const X509 *chosen = SSL_get_certificate(ssl);

    for (unsigned i = 0; i < tls->store->pair_count; i++) {
        const struct sxe__tls_pair_read *pair = &tls->store->pairs[i];
        unsigned char *copy;

        if (pair->certificate != chosen || pair->staple == NULL)
            continue;
        copy = OPENSSL_memdup(pair->staple, (size_t)pair->staple_length);
        if (copy == NULL)
            break;
        SSL_set_tlsext_status_ocsp_resp(ssl, copy, pair->staple_length);
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_NOACK;
}

/* Set versions, ciphers and groups. TLS 1.0 and 1.1 are off (RFC 8996). */
static bool
set_algorithms(const struct sxe_tls *tls, SSL_CTX *context)
{
    bool is_modern = tls->config.profile == SXE_TLS_MODERN;

    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return SSL_CTX_set_min_proto_version(context, is_modern ? TLS1_3_VERSION : TLS1_2_VERSION) &&
           SSL_CTX_set_cipher_list(context, CIPHERS_1_2) &&
           SSL_CTX_set_ciphersuites(context, CIPHERS_1_3) &&
           (SSL_CTX_set1_groups_list(context, GROUPS_NEW) ||
            SSL_CTX_set1_groups_list(context, GROUPS));
}

static enum sxe_tls_verify
verify_of(const struct sxe_tls *tls)
{
    if (tls->config.verify != SXE_TLS_DEFAULT)
        return tls->config.verify;
    return tls->is_client ? SXE_TLS_REQUIRED : SXE_TLS_OFF;
}

/* Have OpenSSL decode an authority's extensions now. It decodes them once and keeps the outcome: if
 * there were no memory at the first handshake, it would refuse a good authority from then on.
 * False: there is no memory now. */
static bool
decode_authority(X509 *authority)
{
    X509 *again;
    bool is_bad;

    if (X509_check_purpose(authority, -1, 0) == 1)
        return true;
    again = X509_dup(authority);
    is_bad = again != NULL && X509_check_purpose(again, -1, 0) != 1;
    X509_free(again);
    return is_bad; /* true: go on; handshakes that need a bad authority will fail */
}

/* Read the authorities of a file. False: the problem is set. */
static bool
decode_authorities(const SSL_CTX *context)
{
    const STACK_OF(X509_OBJECT) *trusted = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
    bool has_memory = true;

    for (int i = 0; has_memory && i < sk_X509_OBJECT_num(trusted); i++) {
        X509 *authority = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(trusted, i));

        /* The store also has lists of revoked certificates, for which authority is NULL. */
        has_memory = authority == NULL || decode_authority(authority);
    }
    return has_memory || sxe__tls_refuse("not enough memory for the authorities") != NULL;
}

/* Set which certificates of peers are trusted. False: the problem is set. */
static bool
set_trust(const struct sxe_tls *tls, SSL_CTX *context)
{
    enum sxe_tls_verify verify = verify_of(tls);
    const char *file = tls->config.authorities;
    int mode = SSL_VERIFY_PEER;

    if (verify == SXE_TLS_OFF)
        return true;
    if (verify == SXE_TLS_REQUIRED)
        mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(context, mode, sxe__tls_on_verify);
    /* Trust each authority in the file, also one that another authority has signed. */
    X509_STORE_set_flags(SSL_CTX_get_cert_store(context), X509_V_FLAG_PARTIAL_CHAIN);
    if (file == NULL && tls->is_client)
        return SSL_CTX_set_default_verify_paths(context) == 1 ||
               sxe__tls_refuse("cannot read the system's authorities") != NULL;
    if (file == NULL)
        return sxe__tls_refuse("to verify clients, name those who sign their certificates") != NULL;
    ERR_clear_error(); /* the reason is the first error in the queue */
    if (SSL_CTX_load_verify_file(context, file) != 1)
        return sxe__tls_refuse("cannot read the authorities in %s", file) != NULL;
    if (!tls->is_client)
        SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(file));
    return true;
}

static bool
set_server(struct sxe_tls *tls, SSL_CTX *context)
{
    /* Choose the first cipher of ours that the client has, but ChaCha20 for a client that puts it
     * first: clients without instructions for AES do that. */
    SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                     SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_tlsext_servername_callback(context, on_name);
    SSL_CTX_set_tlsext_servername_arg(context, tls);
    SSL_CTX_set_tlsext_status_cb(context, on_staple);
    SSL_CTX_set_tlsext_status_arg(context, tls);
    if (tls->protocols_length > 0)
        SSL_CTX_set_alpn_select_cb(context, on_protocols, tls);
    /* One ticket is enough: a resumed handshake brings the next one, and making one takes time. */
    return SSL_CTX_set_num_tickets(context, 1) == 1 &&
           sxe__tls_tickets_set(context, tls->config.tickets);
}

static bool
set_client(const struct sxe_tls *tls, SSL_CTX *context)
{
    if (tls->sessions != NULL)
        sxe__tls_keep_sessions(context);
    return (verify_of(tls) == SXE_TLS_OFF || sxe__tls_ask_for_staple(context)) &&
           (tls->protocols_length == 0 ||
            SSL_CTX_set_alpn_protos(context, tls->protocols, tls->protocols_length) == 0);
}

static bool
add_authority(EVP_MD_CTX *sum, X509_OBJECT *object)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    X509 *authority = X509_OBJECT_get0_X509(object); /* NULL for a list of revoked certificates */
    unsigned length = 0;

    return authority == NULL || (X509_digest(authority, EVP_sha256(), digest, &length) == 1 &&
                                 EVP_DigestUpdate(sum, digest, length) == 1);
}

/* A session may be resumed only where the same demands are made on a client's certificate. Servers
 * that share tickets may differ in that, and an authority may be removed from its file. So the
 * session context is a hash of these demands. */
static bool
set_session_context(const struct sxe_tls *tls, SSL_CTX *context)
{
    const STACK_OF(X509_OBJECT) *trusted = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
    const enum sxe_tls_verify verify = verify_of(tls);
    unsigned char digest[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *sum = EVP_MD_CTX_new();
    unsigned length = 0;
    bool is_good = sum != NULL && EVP_DigestInit(sum, EVP_sha256()) == 1 &&
                   EVP_DigestUpdate(sum, &verify, sizeof(verify)) == 1;

    for (int i = 0; is_good && i < sk_X509_OBJECT_num(trusted); i++)
        is_good = add_authority(sum, sk_X509_OBJECT_value(trusted, i));
    is_good = is_good && EVP_DigestFinal(sum, digest, &length) == 1 &&
              SSL_CTX_set_session_id_context(context, digest, length) == 1;
    EVP_MD_CTX_free(sum);
    return is_good || sxe__tls_refuse("OpenSSL refuses the configuration") != NULL;
}

SSL_CTX *
sxe__tls_context(struct sxe_tls *tls)
{
    SSL_CTX *context = SSL_CTX_new(tls->is_client ? TLS_client_method() : TLS_server_method());
    bool is_good = context != NULL && set_algorithms(tls, context) &&
                   (tls->is_client ? set_client(tls, context) : set_server(tls, context));

    if (context == NULL)
        sxe__tls_refuse(
            "OpenSSL makes no context; if memory was short when this program first used "
            "it, start the program again");
    else if (!is_good)
        sxe__tls_refuse("OpenSSL refuses the configuration");
    if (is_good && set_trust(tls, context) && decode_authorities(context) &&
        (tls->is_client || set_session_context(tls, context))) {
        ERR_clear_error(); /* drop OpenSSL's errors about groups that this version does not know */
        return context;
    }
    SSL_CTX_free(context);
    return NULL;
}
