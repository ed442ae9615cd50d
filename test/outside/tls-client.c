/* SPDX-License-Identifier: MIT
 *
 * Clients by docs/tls.md, with servers whose certificates are wrong in one way each, as those of
 * badssl.com are. The test makes its own authorities.
 */
#include <errno.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "outside.h"
#include "sxe-tls.h"

static struct sxe_tls *server;
static struct sxe_tls *client;
static SXE *listener;
static char authority[PATH_MAX];
static char certificate[PATH_MAX];
static char key[PATH_MAX];
static char staple[PATH_MAX];
static char failure[SXE_TLS_PROBLEM_SIZE];
static char asked[64]; /* the server name that the client sent (SNI) */
static int error;
static bool was_resumed;
static bool closes_early; /* the client closes the connection before the handshake is done */

/* ---- Certificates ---- */

struct made {
    X509 *x509;
    EVP_PKEY *key;
};

static struct made root;
static struct made between; /* an intermediate authority, whose certificate the root signed */
static struct made served;

static void
extend(X509 *x509, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

    X509_add_ext(x509, extension, -1);
    X509_EXTENSION_free(extension);
}

/* A certificate signed by issuer, or by itself if that is NULL; valid for 10 days from day
 * `from`. */
static struct made
make(const char *name, const char *names, const struct made *issuer, long from, bool is_authority)
{
    static long serial;
    struct made made = {X509_new(), EVP_EC_gen("P-256")};
    X509_NAME *subject = X509_get_subject_name(made.x509);

    X509_set_version(made.x509, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made.x509), ++serial);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(made.x509, issuer == NULL ? subject : X509_get_subject_name(issuer->x509));
    X509_gmtime_adj(X509_getm_notBefore(made.x509), from * 86400);
    X509_gmtime_adj(X509_getm_notAfter(made.x509), (from + 10) * 86400);
    if (is_authority)
        extend(made.x509, NID_basic_constraints, "critical,CA:TRUE");
    if (names != NULL)
        extend(made.x509, NID_subject_alt_name, names);
    X509_set_pubkey(made.x509, made.key);
    ck_assert_int_gt(X509_sign(made.x509, issuer == NULL ? made.key : issuer->key, EVP_sha256()),
                     0);
    return made;
}

/* Write both certificates, and the first one's key, to one file. */
static void
write_files(const char *path, const struct made *first, const struct made *second)
{
    FILE *file = fopen(path, "w");

    PEM_write_X509(file, first->x509);
    if (second != NULL)
        PEM_write_X509(file, second->x509);
    fclose(file);
}

static void
start_with(struct made made, const struct made *issuer, const struct sxe_tls_pair *pair)
{
    struct sxe_tls_config config = {.pairs = pair, .pair_count = 1};
    FILE *file = fopen(key, "w");

    PEM_write_PrivateKey(file, made.key, NULL, NULL, 0, NULL, NULL);
    fclose(file);
    served = made;
    write_files(certificate, &made, issuer);
    server = sxe_tls_new_server(&config);
    ck_assert_msg(server != NULL, "%s", sxe_tls_problem());
    ck_assert_int_eq(sxe_tls_serve(server, listener), 0);
}

static void
start(struct made made, const struct made *issuer)
{
    start_with(made, issuer, &(struct sxe_tls_pair){.certificate = certificate, .key = key});
}

/* ---- Client and server ---- */

static void
answer(SXE *this, int length)
{
    SXE_UNUSED_PARAMETER(length);
    snprintf(asked, sizeof(asked), "%s", sxe_tls_name(this));
    SXE_BUF_CLEAR(this);
    sxe_write(this, "hello", 5);
    sxe_close(this);
}

static void
ask(SXE *this)
{
    ck_assert_int_eq(sxe_write(this, "hi", 2), 0);
    if (closes_early)
        ck_assert_int_eq(sxe_close(this), 0);
}

static void
take_answer(SXE *this, int length)
{
    SXE_UNUSED_PARAMETER(length);
    was_resumed = sxe_tls_is_resumed(this);
    SXE_BUF_CLEAR(this);
}

static void
end(SXE *this)
{
    error = sxe_error(this);
    snprintf(failure, sizeof(failure), "%s", sxe_tls_failure(this));
    sxe_stop();
}

static void
begin(struct sxe_tls_config config)
{
    snprintf(authority, sizeof(authority), "%s", outside_path("authority.pem"));
    snprintf(certificate, sizeof(certificate), "%s", outside_path("a.pem"));
    snprintf(key, sizeof(key), "%s", outside_path("a.key"));
    root = make("root", NULL, NULL, -1, true);
    between = make("between", NULL, &root, -1, true);
    write_files(authority, &root, NULL);
    config.authorities = authority;
    sxe_register(8, 0);
    ck_assert_int_eq(sxe_init(), 0);
    listener = sxe_new_tcp(NULL, "127.0.0.1", 0, NULL, answer, NULL);
    ck_assert_int_eq(sxe_listen(listener), 0);
    client = sxe_tls_new_client(&config);
    ck_assert_msg(client != NULL, "%s", sxe_tls_problem());
}

/* Whether the client trusts the host: it exchanges a word with the server. */
static bool
is_trusted(const char *host)
{
    SXE *dialer = sxe_new_tcp(NULL, "", 0, ask, take_answer, end);

    ck_assert_int_eq(sxe_tls_use(client, dialer, host), 0);
    ck_assert_int_eq(sxe_connect(dialer, "127.0.0.1", sxe_local_port(listener)), 0);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert(error == 0 || error == EPROTO);
    return error == 0;
}

static void
give_back(struct made *made)
{
    X509_free(made->x509);
    EVP_PKEY_free(made->key);
}

static void
finish(void)
{
    give_back(&root);
    give_back(&between);
    give_back(&served);
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_tls_delete(client);
    sxe_tls_delete(server);
    unlink(authority);
    unlink(certificate);
    unlink(key);
}

#define EXPECT_FAILURE(text) ck_assert_msg(strncmp(failure, text, strlen(text)) == 0, "%s", failure)

/* promise: docs/tls.md: the certificate of "a" has expired: it was valid until */
START_TEST(a_certificate_that_has_expired_is_refused)
{
    begin((struct sxe_tls_config){0});
    start(make("a", "DNS:a.example", &root, -20, false), NULL);
    ck_assert(!is_trusted("a.example"));
    EXPECT_FAILURE("the certificate of \"a\" has expired: it was valid until 20");
    finish();
}
END_TEST

/* promise: docs/tls.md: the certificate of "a" is not yet valid: it will be from */
START_TEST(a_certificate_that_is_not_valid_yet_is_refused)
{
    begin((struct sxe_tls_config){0});
    start(make("a", "DNS:a.example", &root, 5, false), NULL);
    ck_assert(!is_trusted("a.example"));
    EXPECT_FAILURE("the certificate of \"a\" is not yet valid: it will be from 20");
    finish();
}
END_TEST

/* promise: docs/tls.md: the certificate is not for a.example, but for b.example, *.b.example */
START_TEST(another_hosts_certificate_is_refused)
{
    begin((struct sxe_tls_config){0});
    start(make("a.example", "DNS:b.example,DNS:*.b.example", &root, -1, false), NULL);
    ck_assert(!is_trusted("a.example"));
    EXPECT_FAILURE("the certificate is not for a.example, but for b.example, *.b.example");
    ck_assert(is_trusted("b.example"));
    finish();
}
END_TEST

/* promise: docs/tls.md: self-signed: no trusted authority stands for the certificate of "a" */
START_TEST(a_certificate_that_signed_itself_is_refused)
{
    begin((struct sxe_tls_config){0});
    start(make("a", "DNS:a.example", NULL, -1, false), NULL);
    ck_assert(!is_trusted("a.example"));
    EXPECT_FAILURE("self-signed: no trusted authority stands for the certificate of \"a\"");
    finish();
}
END_TEST

/* promise: docs/tls.md: A failed handshake is EPROTO, also if the program has closed the connection
 * before its end */
START_TEST(a_refused_host_is_an_error_also_after_a_close)
{
    begin((struct sxe_tls_config){0});
    start(make("a", "DNS:a.example", NULL, -1, false), NULL);
    closes_early = true;
    ck_assert(!is_trusted("a.example"));
    finish();
}
END_TEST

/* promise: docs/tls.md: incomplete chain: the certificate of the issuer "b" was not sent, and is
 * not trusted */
START_TEST(a_chain_must_be_whole)
{
    struct made made;

    begin((struct sxe_tls_config){0});
    made = make("a", "DNS:a.example", &between, -1, false);
    start(made, NULL);
    ck_assert(!is_trusted("a.example"));
    EXPECT_FAILURE("incomplete chain: the certificate of the issuer \"between\" was not sent, and "
                   "is not trusted");
    write_files(certificate, &made, &between);
    ck_assert_int_eq(sxe_tls_reload(server), 0);
    ck_assert(is_trusted("a.example"));
    finish();
}
END_TEST

/* Write a reply of the root about this certificate (OCSP, RFC 6960). */
static void
write_staple(const struct made *made, int status)
{
    OCSP_BASICRESP *reply = OCSP_BASICRESP_new();
    ASN1_TIME *now = X509_gmtime_adj(NULL, -3600);
    ASN1_TIME *next = X509_gmtime_adj(NULL, 86400);
    OCSP_CERTID *id = OCSP_cert_to_id(NULL, made->x509, root.x509);
    FILE *file = fopen(staple, "w");
    OCSP_RESPONSE *response;
    unsigned char *bytes = NULL;
    int length;

    OCSP_basic_add1_status(reply, id, status, 0, now, now, next);
    OCSP_CERTID_free(id);
    ck_assert_int_eq(OCSP_basic_sign(reply, root.x509, root.key, EVP_sha256(), NULL, 0), 1);
    response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, reply);
    length = i2d_OCSP_RESPONSE(response, &bytes);
    ck_assert_uint_eq(fwrite(bytes, 1, (size_t)length, file), (size_t)length);
    fclose(file);
    OPENSSL_free(bytes);
    OCSP_RESPONSE_free(response);
    OCSP_BASICRESP_free(reply);
    ASN1_TIME_free(now);
    ASN1_TIME_free(next);
}

/* promise: docs/tls.md: the certificate of "a" was revoked on */
START_TEST(a_certificate_that_its_staple_says_was_revoked_is_refused)
{
    struct sxe_tls_pair pair = {.certificate = certificate, .key = key, .staple = staple};
    struct made made;

    begin((struct sxe_tls_config){0});
    snprintf(staple, sizeof(staple), "%s", outside_path("a.der"));
    made = make("a", "DNS:a.example", &root, -1, false);
    write_staple(&made, V_OCSP_CERTSTATUS_REVOKED);
    start_with(made, NULL, &pair);
    ck_assert(!is_trusted("a.example"));
    EXPECT_FAILURE("the certificate of \"a\" was revoked on 20");
    write_staple(&made, V_OCSP_CERTSTATUS_GOOD);
    ck_assert_int_eq(sxe_tls_reload(server), 0);
    ck_assert(is_trusted("a.example"));
    unlink(staple);
    finish();
}
END_TEST

/* promise: docs/tls.md: A `*` matches one whole label. */
START_TEST(a_wildcard_stands_for_one_label)
{
    begin((struct sxe_tls_config){0});
    start(make("a", "DNS:*.a.example,DNS:x*.b.example", &root, -1, false), NULL);
    ck_assert(is_trusted("www.a.example"));
    ck_assert(!is_trusted("a.example"));
    ck_assert(!is_trusted("x.www.a.example"));
    ck_assert(!is_trusted("xy.b.example"));
    finish();
}
END_TEST

/* promise: docs/tls.md: The client sends a host name to the server (SNI), but not an IP address. */
START_TEST(an_address_must_be_in_the_certificate_as_an_address)
{
    begin((struct sxe_tls_config){0});
    start(make("a", "DNS:a.example,DNS:127.0.0.2,IP:127.0.0.1,IP:::1", &root, -1, false), NULL);
    ck_assert(is_trusted("127.0.0.1"));
    ck_assert_str_eq(asked, "");
    ck_assert(is_trusted("::1"));
    ck_assert(!is_trusted("127.0.0.2"));
    ck_assert(is_trusted("a.example."));
    ck_assert_str_eq(asked, "a.example");
    finish();
}
END_TEST

/* promise: docs/tls.md: The certificate's subject does not count. */
START_TEST(a_subject_is_no_name)
{
    begin((struct sxe_tls_config){0});
    start(make("a.example", NULL, &root, -1, false), NULL);
    ck_assert(!is_trusted("a.example"));
    finish();
}
END_TEST

/* promise: docs/tls.md: The client verifies the server's certificate unless `verify` is
 * `SXE_TLS_OFF`. */
START_TEST(verification_is_off_only_if_the_program_says_so)
{
    begin((struct sxe_tls_config){.verify = SXE_TLS_OFF});
    start(make("b", NULL, NULL, -20, false), NULL);
    ck_assert(is_trusted("a.example"));
    finish();
}
END_TEST

/* promise: docs/tls.md: The client keeps the last 64 sessions (`sessions_max`) in memory, and
 * offers each to the host with which it was made. */
START_TEST(a_session_is_resumed_with_its_host)
{
    begin((struct sxe_tls_config){0});
    start(make("a", "DNS:a.example,DNS:b.example", &root, -1, false), NULL);
    ck_assert(is_trusted("a.example") && !was_resumed);
    ck_assert(is_trusted("a.example") && was_resumed);
    ck_assert(is_trusted("b.example") && !was_resumed);
    finish();
}
END_TEST

/* promise: docs/tls.md: `sxe_tls_reload` drops all sessions. */
START_TEST(reading_the_files_again_drops_sessions)
{
    begin((struct sxe_tls_config){0});
    start(make("a", "DNS:a.example", &root, -1, false), NULL);
    ck_assert(is_trusted("a.example") && !was_resumed);
    ck_assert_int_eq(sxe_tls_reload(client), 0);
    ck_assert(is_trusted("a.example") && !was_resumed);
    finish();
}
END_TEST

/* ---- TLS on a connection that was plain ---- */

static int started;

static void
start_tls(SXE *this)
{
    started = sxe_tls_start(client, this, "a.example");
    if (started < 0)
        sxe_abort(this);
    else
        ask(this);
}

/* promise: docs/tls.md: `sxe_tls_start` begins TLS on a connection that was plain until then */
START_TEST(a_plain_connection_goes_on_with_tls)
{
    SXE *dialer;

    begin((struct sxe_tls_config){0});
    start(make("a", "DNS:a.example", &root, -1, false), NULL);
    dialer = sxe_new_tcp(NULL, "", 0, start_tls, take_answer, end);
    ck_assert_int_eq(sxe_connect(dialer, "127.0.0.1", sxe_local_port(listener)), 0);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_int_eq(started, 0);
    ck_assert_msg(error == 0, "%s", failure);
    ck_assert_str_eq(asked, "a.example");
    finish();
}
END_TEST

static void
greet(SXE *this)
{
    ck_assert_int_eq(sxe_write(this, "220 hello\r\n", 11), 0);
}

static void
start_without_reading(SXE *this, int length)
{
    SXE_UNUSED_PARAMETER(length);
    start_tls(this);
}

/* promise: docs/tls.md: It returns -EBUSY if bytes of the peer are unread: they came without TLS,
 * and must not be taken for bytes that came by TLS. */
START_TEST(unread_bytes_keep_tls_from_starting)
{
    SXE *dialer;

    begin((struct sxe_tls_config){0});
    listener->on_connected = greet;
    dialer = sxe_new_tcp(NULL, "", 0, NULL, start_without_reading, end);
    ck_assert_int_eq(sxe_connect(dialer, "127.0.0.1", sxe_local_port(listener)), 0);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_int_eq(started, -EBUSY);
    finish();
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_certificate_that_has_expired_is_refused,
                            a_certificate_that_is_not_valid_yet_is_refused,
                            another_hosts_certificate_is_refused,
                            a_certificate_that_signed_itself_is_refused,
                            a_refused_host_is_an_error_also_after_a_close,
                            a_chain_must_be_whole,
                            a_certificate_that_its_staple_says_was_revoked_is_refused,
                            a_wildcard_stands_for_one_label,
                            an_address_must_be_in_the_certificate_as_an_address,
                            a_subject_is_no_name,
                            verification_is_off_only_if_the_program_says_so,
                            a_session_is_resumed_with_its_host,
                            reading_the_files_again_drops_sessions,
                            a_plain_connection_goes_on_with_tls,
                            unread_bytes_keep_tls_from_starting,
                            NULL};

    return outside_run("tls-client", cases);
}
