/* SPDX-License-Identifier: MIT
 *
 * Reads the staple that a server sends to a client: an OCSP reply in which the authority says
 * whether it has revoked the server's certificate (RFC 6066, 8; RFC 6960).
 *
 * Only a reply that says "revoked", with a good signature, has a consequence. An attacker with a
 * stolen key sends no staple at all, so to refuse replies that are old or damaged would refuse
 * honest servers only.
 */
#include "sxe-tls-private.h"

#include <openssl/ocsp.h>

/* The time at which the certificate was revoked; NULL: the reply does not say that it was. */
static const ASN1_GENERALIZEDTIME *
find_revocation(OCSP_BASICRESP *reply, const X509 *certificate, const X509 *issuer)
{
    /* An authority names the certificate by one of these digests. */
    const EVP_MD *digests[] = {EVP_sha1(), EVP_sha256()};
    ASN1_GENERALIZEDTIME *time = NULL;
    int status = V_OCSP_CERTSTATUS_UNKNOWN;

    for (unsigned i = 0; i < 2 && status != V_OCSP_CERTSTATUS_REVOKED; i++) {
        OCSP_CERTID *id = OCSP_cert_to_id(digests[i], certificate, issuer);

        if (id != NULL)
            OCSP_resp_find_status(reply, id, &status, NULL, &time, NULL, NULL);
        OCSP_CERTID_free(id);
    }
    return status == V_OCSP_CERTSTATUS_REVOKED ? time : NULL;
}

/* Whether the staple says that the first certificate of the chain was revoked; if so, note it. */
static bool
is_revoked(const SSL *ssl, OCSP_BASICRESP *reply, STACK_OF(X509) * chain)
{
    X509_STORE *trusted = SSL_CTX_get_cert_store(SSL_get_SSL_CTX(ssl));
    const X509 *certificate = sk_X509_value(chain, 0);
    const ASN1_GENERALIZEDTIME *time;

    if (OCSP_basic_verify(reply, chain, trusted, 0) != 1)
        return false;
    time = find_revocation(reply, certificate, sk_X509_value(chain, 1));
    if (time != NULL)
        sxe__tls_note_revocation(sxe__tls_loop->current, certificate, time);
    return time != NULL;
}

/* See SSL_CTX_set_tlsext_status_cb(3). OpenSSL calls it once the chain is verified, also if the
 * server sent no staple. 1: go on; 0: end the handshake. */
static int
judge_staple(SSL *ssl, void *unused)
{
    STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
    const unsigned char *bytes = NULL;
    long length = SSL_get_tlsext_status_ocsp_resp(ssl, &bytes);
    OCSP_BASICRESP *reply = NULL;
    OCSP_RESPONSE *response = NULL;
    bool is_bad;

    SXE_UNUSED_PARAMETER(unused);
    if (length > 0 && sk_X509_num(chain) > 1) /* the issuer is known */
        response = d2i_OCSP_RESPONSE(NULL, &bytes, length);
    if (response != NULL)
        reply = OCSP_response_get1_basic(response);
    is_bad = reply != NULL && is_revoked(ssl, reply, chain);
    OCSP_BASICRESP_free(reply);
    OCSP_RESPONSE_free(response);
    ERR_clear_error();
    return !is_bad;
}

bool
sxe__tls_ask_for_staple(SSL_CTX *context)
{
    return SSL_CTX_set_tlsext_status_type(context, TLSEXT_STATUSTYPE_ocsp) == 1 &&
           SSL_CTX_set_tlsext_status_cb(context, judge_staple) == 1;
}
