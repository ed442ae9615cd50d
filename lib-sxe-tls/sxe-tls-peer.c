/* SPDX-License-Identifier: MIT
 *
 * Says whose certificate the peer sent: names, validity, fingerprint.
 */
#include "sxe-tls-private.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The peer's certificate. NULL: it sent none, the certificate was not verified, or the handshake is
 * not done. */
static X509 *
certificate_of_peer(const SXE *s)
{
    SSL *ssl = sxe_tls_is_secure(s) ? sxe__tls_of(s)->ssl : NULL;
    X509 *peer = ssl == NULL ? NULL : SSL_get0_peer_certificate(ssl);

    return peer != NULL && SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE &&
                   SSL_get_verify_result(ssl) == X509_V_OK
               ? peer
               : NULL;
}

/* ---- Subject and issuer ---- */

/* Copy a distinguished name, or nothing if the room is too small: a text that was cut could pass
 * for the name of another entity. */
static unsigned
write_entity(const X509_NAME *name, char *text, size_t size)
{
    BIO *bio = name == NULL ? NULL : BIO_new(BIO_s_mem());
    char *written = NULL;
    long length = 0;

    if (bio != NULL && X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253) >= 0)
        length = BIO_get_mem_data(bio, &written);
    if ((size_t)length >= size)
        length = 0;
    snprintf(text, size, "%.*s", (int)length, written == NULL ? "" : written);
    BIO_free(bio);
    ERR_clear_error();
    return (unsigned)length;
}

unsigned
sxe_tls_peer_subject(const SXE *this, char *text, size_t size)
{
    X509 *peer = certificate_of_peer(this);

    return write_entity(peer == NULL ? NULL : X509_get_subject_name(peer), text, size);
}

unsigned
sxe_tls_peer_issuer(const SXE *this, char *text, size_t size)
{
    X509 *peer = certificate_of_peer(this);

    return write_entity(peer == NULL ? NULL : X509_get_issuer_name(peer), text, size);
}

/* ---- Alternative names ---- */

/* Whether a name may be shown. One with a blank or a NUL could pass for two names, or for another
 * one. */
static bool
is_printable(const unsigned char *bytes, int length)
{
    for (int i = 0; i < length; i++) {
        if (bytes[i] <= ' ' || bytes[i] > '~')
            return false;
    }
    return length > 0;
}

/* Write a name and a blank. Returns the length, as snprintf does; 0: this name is left out. */
static int
write_name(const GENERAL_NAME *name, char *text, size_t size)
{
    static const char *const kinds[] = {
        [GEN_EMAIL] = "email:", [GEN_DNS] = "DNS:", [GEN_URI] = "URI:"};
    int kind;
    const ASN1_STRING *value = GENERAL_NAME_get0_value(name, &kind);
    bool is_text = kind == GEN_EMAIL || kind == GEN_DNS || kind == GEN_URI;
    const unsigned char *bytes;
    char ip[INET6_ADDRSTRLEN];
    int length;

    if (!is_text && kind != GEN_IPADD)
        return 0;
    bytes = ASN1_STRING_get0_data(value);
    length = ASN1_STRING_length(value);
    if (is_text)
        return is_printable(bytes, length)
                   ? snprintf(text, size, "%s%.*s ", kinds[kind], length, (const char *)bytes)
                   : 0;
    return (length == 4 || length == 16) &&
                   inet_ntop(length == 4 ? AF_INET : AF_INET6, bytes, ip, sizeof(ip)) != NULL
               ? snprintf(text, size, "IP:%s ", ip)
               : 0;
}

/* Write all names, with a blank after each. NULL: there are none, or there is no memory. */
static char *
write_peer_names(const X509 *peer)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(peer, NID_subject_alt_name, NULL, NULL);
    size_t size = 1;
    size_t used = 0;
    char *text;

    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++)
        size += (size_t)write_name(sk_GENERAL_NAME_value(names, i), NULL, 0);
    text = names == NULL ? NULL : calloc(1, size);
    for (int i = 0; text != NULL && i < sk_GENERAL_NAME_num(names); i++)
        used += (size_t)write_name(sk_GENERAL_NAME_value(names, i), text + used, size - used);
    GENERAL_NAMES_free(names);
    ERR_clear_error();
    return text;
}

/* The names are decoded once: a handler may ask for them with each request of a connection. */
unsigned
sxe_tls_peer_names(const SXE *this, char *text, size_t size)
{
    const X509 *peer = certificate_of_peer(this);
    struct sxe__tls_connection *c = peer == NULL ? NULL : sxe__tls_of(this);
    size_t length;

    if (c != NULL && c->names == NULL)
        c->names = write_peer_names(peer);
    length = c == NULL || c->names == NULL ? 0 : strlen(c->names);
    if (length >= size)
        length = size - 1;
    while (length > 0 && c->names[length - 1] != ' ')
        length--;
    length -= length > 0; /* leave out the last blank */
    snprintf(text, size, "%.*s", (int)length, length == 0 ? "" : c->names);
    return (unsigned)length;
}

/* ---- Validity and fingerprint ---- */

bool
sxe_tls_peer_validity(const SXE *this, int64_t *not_before, int64_t *not_after)
{
    X509 *peer = certificate_of_peer(this);
    struct tm first = {0};
    struct tm last = {0};
    bool is_known = peer != NULL && ASN1_TIME_to_tm(X509_get0_notBefore(peer), &first) == 1 &&
                    ASN1_TIME_to_tm(X509_get0_notAfter(peer), &last) == 1;

    *not_before = is_known ? timegm(&first) : 0;
    *not_after = is_known ? timegm(&last) : 0;
    return is_known;
}

/* The system's clock decides, as in a handshake. */
bool
sxe__tls_session_is_stale(SSL_SESSION *session)
{
    X509 *peer = SSL_SESSION_get0_peer(session);
    time_t now = (time_t)sxe_get_time_in_seconds();

    return peer != NULL && X509_cmp_time(X509_get0_notAfter(peer), &now) <= 0;
}

/* Write the fingerprint. Returns the length of the text; 0: no certificate, or no memory. */
static unsigned
write_fingerprint(const X509 *certificate, char text[SXE_TLS_FINGERPRINT_SIZE])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;

    if (certificate != NULL && X509_digest(certificate, EVP_sha256(), digest, &length) != 1)
        length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < length; i++)
        snprintf(text + 2 * (size_t)i, SXE_TLS_FINGERPRINT_SIZE - 2 * (size_t)i, "%02x", digest[i]);
    ERR_clear_error();
    return 2 * length;
}

unsigned
sxe_tls_peer_fingerprint(const SXE *this, char text[SXE_TLS_FINGERPRINT_SIZE])
{
    return write_fingerprint(certificate_of_peer(this), text);
}

unsigned
sxe_tls_local_fingerprint(const struct sxe_tls *tls, char text[SXE_TLS_FINGERPRINT_SIZE])
{
    return write_fingerprint(tls->local, text);
}
