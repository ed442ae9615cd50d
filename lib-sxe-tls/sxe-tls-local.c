/* SPDX-License-Identifier: MIT
 *
 * Makes a self-signed certificate of localhost, for development: in memory only.
 */
#include "sxe-tls-private.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>

#define DAY_S  86400L
#define DAYS   30L
#define SECOND 1L
#define NAMES  "DNS:localhost,IP:127.0.0.1,IP:::1"

static bool
add_extension(X509 *certificate, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    bool is_good = extension != NULL && X509_add_ext(certificate, extension, -1) == 1;

    X509_EXTENSION_free(extension);
    return is_good;
}

/* Fill in a certificate of localhost: serial number, names, validity and use. */
static bool
describe_certificate(X509 *certificate)
{
    X509_NAME *name = X509_get_subject_name(certificate);
    int64_t serial;

    if (RAND_bytes((unsigned char *)&serial, sizeof(serial)) != 1)
        return false;
    serial = (serial & INT64_MAX) | 1;
    return X509_set_version(certificate, X509_VERSION_3) == 1 &&
           ASN1_INTEGER_set_int64(X509_get_serialNumber(certificate), serial) == 1 &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), -DAY_S * SECOND) != NULL &&
           X509_gmtime_adj(X509_getm_notAfter(certificate), DAYS * DAY_S) != NULL &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost",
                                      -1, -1, 0) == 1 &&
           X509_set_issuer_name(certificate, name) == 1 &&
           add_extension(certificate, NID_subject_alt_name, NAMES) &&
           add_extension(certificate, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(certificate, NID_ext_key_usage, "serverAuth");
}

static char *
write_pem(const X509 *certificate)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *text = NULL;
    char *copy = NULL;
    long length;

    if (bio != NULL && PEM_write_bio_X509(bio, certificate) == 1) {
        length = BIO_get_mem_data(bio, &text);
        copy = strndup(text, (size_t)length);
    }
    BIO_free(bio);
    return copy;
}

bool
sxe__tls_local_make(struct sxe_tls *tls)
{
    tls->local_key = EVP_EC_gen("P-256");
    tls->local = X509_new();
    if (tls->local_key != NULL && tls->local != NULL && describe_certificate(tls->local) &&
        X509_set_pubkey(tls->local, tls->local_key) == 1 &&
        X509_sign(tls->local, tls->local_key, EVP_sha256()) > 0)
        tls->local_pem = write_pem(tls->local);
    return tls->local_pem != NULL || sxe__tls_refuse("cannot make a certificate") != NULL;
}
