/* SPDX-License-Identifier: MIT
 *
 * Describes in words why a connection failed. OpenSSL's own texts only name the check that failed;
 * the texts here also name the host, and the certificate's names and dates.
 */
#include "sxe-tls-private.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct line {
    char text[SXE_TLS_PROBLEM_SIZE];
};

/* A text that does not fit is cut. */
static void __attribute__((format(printf, 2, 3)))
add_failure_text(struct line *line, const char *format, ...)
{
    size_t length = strlen(line->text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line->text + length, sizeof(line->text) - length, format, arguments);
    va_end(arguments);
}

/* Add bytes that the peer chose. The text may go to a log or a terminal, so only printable ASCII is
 * kept; each other byte becomes '?'. */
static void
add_peer_bytes(struct line *line, const unsigned char *bytes, int length)
{
    for (int i = 0; i < length; i++)
        add_failure_text(line, "%c", bytes[i] > ' ' && bytes[i] < 0x7f ? bytes[i] : '?');
}

static void
add_time(struct line *line, const ASN1_TIME *time)
{
    char text[64] = "";
    struct tm parts = {0};

    if (ASN1_TIME_to_tm(time, &parts) == 1)
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts);
    add_failure_text(line, "%s", text);
}

static void
add_address(struct line *line, const ASN1_OCTET_STRING *address)
{
    char text[INET6_ADDRSTRLEN] = "?";

    inet_ntop(ASN1_STRING_length(address) == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(address),
              text, sizeof(text));
    add_failure_text(line, "%s", text);
}

static void
add_certificate_names(struct line *line, const X509 *certificate)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    int count = 0;

    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        bool is_address =
            name->type == GEN_IPADD && ASN1_STRING_length(name->d.iPAddress) % 12 == 4;

        if (name->type != GEN_DNS && !is_address)
            continue;
        add_failure_text(line, "%s", count++ == 0 ? "" : ", ");
        if (is_address)
            add_address(line, name->d.iPAddress);
        else
            add_peer_bytes(line, ASN1_STRING_get0_data(name->d.dNSName),
                           ASN1_STRING_length(name->d.dNSName));
    }
    add_failure_text(line, "%s", count == 0 ? "no host at all" : "");
    GENERAL_NAMES_free(names);
}

/* Add the owner's common name, in quotes. */
static void
add_owner(struct line *line, const X509_NAME *owner)
{
    int at = X509_NAME_get_index_by_NID(owner, NID_commonName, -1);
    const ASN1_STRING *name =
        at < 0 ? NULL : X509_NAME_ENTRY_get_data(X509_NAME_get_entry(owner, at));

    add_failure_text(line, "\"");
    if (name != NULL)
        add_peer_bytes(line, ASN1_STRING_get0_data(name), ASN1_STRING_length(name));
    add_failure_text(line, "\"");
}

static void
describe_fault(struct line *line, int error, const X509 *certificate, const char *host)
{
    switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        add_failure_text(line, "the certificate of ");
        add_owner(line, X509_get_subject_name(certificate));
        add_failure_text(line, " has expired: it was valid until ");
        add_time(line, X509_get0_notAfter(certificate));
        return;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        add_failure_text(line, "the certificate of ");
        add_owner(line, X509_get_subject_name(certificate));
        add_failure_text(line, " is not yet valid: it will be from ");
        add_time(line, X509_get0_notBefore(certificate));
        return;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        add_failure_text(line, "the certificate is not for %.100s, but for ", host);
        add_certificate_names(line, certificate);
        return;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        add_failure_text(line, "self-signed: no trusted authority stands for the certificate of ");
        add_owner(line, X509_get_subject_name(certificate));
        return;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        add_failure_text(line, "incomplete chain: the certificate of the issuer ");
        add_owner(line, X509_get_issuer_name(certificate));
        add_failure_text(line, " was not sent, and is not trusted");
        return;
    default:
        add_failure_text(line, "the certificate is not good: %s",
                         X509_verify_cert_error_string(error));
    }
}

int
sxe__tls_on_verify(int is_good, X509_STORE_CTX *chain)
{
    struct sxe__tls_connection *c = sxe__tls_loop->current;
    struct line line = {""};

    if (is_good == 1)
        return 1;
    describe_fault(&line, X509_STORE_CTX_get_error(chain), X509_STORE_CTX_get_current_cert(chain),
                   c->host == NULL ? "" : c->host);
    sxe__tls_note_failure(c, line.text);
    return is_good;
}

void
sxe__tls_note_failure(struct sxe__tls_connection *c, const char *text)
{
    if (c->failure == NULL)
        c->failure = strdup(text);
}

void
sxe__tls_note_revocation(struct sxe__tls_connection *c, const X509 *certificate,
                         const ASN1_GENERALIZEDTIME *time)
{
    struct line line = {"the certificate of "};

    add_owner(&line, X509_get_subject_name(certificate));
    add_failure_text(&line, " was revoked on ");
    add_time(&line, time);
    sxe__tls_note_failure(c, line.text);
}

void
sxe__tls_log_failure(const SXE *s, const char *what)
{
    struct sxe__tls_connection *c = sxe__tls_of(s);
    char code[SXE_TLS_PROBLEM_SIZE] = "no reason was given";
    unsigned long error = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(error);

    if (error != 0)
        ERR_error_string_n(error, code, sizeof(code));
    ERR_clear_error();
    sxe__tls_note_failure(c, reason == NULL ? code : reason);
    SXE_DEBUG_ID(s->id, "%s: TLS: %s; %s", what, code, c->failure == NULL ? "" : c->failure);
}
