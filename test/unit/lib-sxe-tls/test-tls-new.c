/* SPDX-License-Identifier: MIT
 *
 * Tests TLS configurations: files with errors, which certificate a name gets, protocols, client
 * certificates, OCSP staples, reading files again, session tickets.
 */
#include "sxe-tls-private.h"

#include <openssl/ocsp.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <utime.h>

#include "sxe-time.h"
#include "tls-site.h"

static struct sxe_tls *tls;
static SXE *listener;
static struct tls_peer peer;

static bool without_random; /* the system has no random numbers */

/* Replaces the function of OpenSSL. */
int
RAND_bytes(unsigned char *buffer, int size)
{
    return without_random ? 0 : RAND_bytes_ex(NULL, buffer, (size_t)size, 0);
}

static void
expect_problem(const struct sxe_tls *made, const char *part)
{
    ck_assert_ptr_null(made);
    ck_assert_msg(strstr(sxe_tls_problem(), part) != NULL, "\"%s\" does not say \"%s\"",
                  sxe_tls_problem(), part);
}

static struct sxe_tls *
server_of(const char *certificate, const char *key, const char *staple)
{
    struct sxe_tls_pair pair = {certificate, key, staple};
    struct sxe_tls_config config = {.pairs = &pair, .pair_count = 1};

    return sxe_tls_new_server(&config);
}

/* Append to TO.pem the certificates of MORE.pem, `times` times. */
static void
append_certificates(const char *to, const char *more, unsigned times)
{
    FILE *file = fopen(site_path(to, ".pem"), "a");
    X509 *certificate = read_certificate(more);

    for (unsigned i = 0; i < times; i++)
        PEM_write_X509(file, certificate);
    X509_free(certificate);
    fclose(file);
}

START_TEST(what_is_wrong_with_a_configuration_is_said)
{
    struct sxe_tls_config none = {0};
    struct sxe_tls_pair pairs[2] = {{0}};

    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    make_pair("b", RSA_KEY, NULL, NULL);
    write_text(site_path("empty", ".pem"), "");
    expect_problem(sxe_tls_new_server(&none), "needs a certificate");
    none.pair_count = 2;
    none.pairs = pairs;
    expect_problem(sxe_tls_new_client(&none), "not 2");
    expect_problem(sxe_tls_new_client(&(struct sxe_tls_config){.profile = 77}),
                   "values of their types");
    expect_problem(sxe_tls_new_client(&(struct sxe_tls_config){.verify = 4}),
                   "values of their types");
    expect_problem(sxe_tls_new_local(&none), "makes its certificate itself");
    expect_problem(server_of("/nowhere.pem", site_path("a", ".key"), NULL), "cannot read /nowhere");
    expect_problem(server_of(site_path("a", ".pem"), "/nowhere.key", NULL), "No such file");
    expect_problem(server_of(site_path("empty", ".pem"), site_path("a", ".key"), NULL),
                   "is no certificate");
    expect_problem(server_of(site_path("a", ".pem"), site_path("empty", ".pem"), NULL),
                   "is no private key");
    expect_problem(server_of(site_path("a", ".pem"), site_path("b", ".key"), NULL),
                   "is not the key of");
    expect_problem(server_of(site_path("a", ".pem"), site_path("a", ".key"), "/nowhere.ocsp"),
                   "cannot read");
    expect_problem(
        server_of(site_path("a", ".pem"), site_path("a", ".key"), site_path("a", ".pem")),
        "no reply of OCSP");
    make_pair("weak", WEAK_KEY, NULL, NULL);
    expect_problem(server_with((struct sxe_tls_config){0}, "weak"), "OpenSSL refuses a cert");
    ck_assert_int_eq(mknod(site_path("socket", ".pem"), S_IFSOCK | 0600, 0), 0);
    expect_problem(server_of(site_path("socket", ".pem"), site_path("a", ".key"), NULL),
                   "socket.pem: No such device or address");
    expect_problem(server_of("/tmp", site_path("a", ".key"), NULL), "/tmp");
    expect_problem(server_with((struct sxe_tls_config){.protocols = "h2,,http/1.1"}, "a"),
                   "no list of protocols");
    expect_problem(server_with((struct sxe_tls_config){.verify = SXE_TLS_REQUIRED}, "a"),
                   "name those who sign");
    expect_problem(server_with(((struct sxe_tls_config){.verify = SXE_TLS_OPTIONAL,
                                                        .authorities = "/nowhere.pem"}),
                               "a"),
                   "cannot read the authorities in /nowhere.pem");
    expect_problem(server_with(((struct sxe_tls_config){.verify = SXE_TLS_OPTIONAL,
                                                        .authorities = site_path("a", ".key")}),
                               "a"),
                   "cannot read the authorities in ");
    tls = server_with((struct sxe_tls_config){0}, "a");
    ck_assert_int_eq(sxe_tls_serve(tls, NULL), -EINVAL); /* sxe_init was not called yet */
    ck_assert(sxe_tls_has_name(tls, "A.example"));
    ck_assert(!sxe_tls_has_name(tls, "b.example"));
    ck_assert_str_eq(sxe_tls_first_name(tls), "a.example");
    sxe_tls_delete(tls);
    sxe_tls_delete(NULL);
    site_stop();
}
END_TEST

START_TEST(a_key_with_a_password_is_refused)
{
    EVP_PKEY *key;
    FILE *file;

    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    key = read_private_key("a");
    file = fopen(site_path("a", ".key"), "w");
    PEM_write_PrivateKey(file, key, EVP_aes_128_cbc(), (const unsigned char *)"secret", 6, NULL,
                         NULL);
    fclose(file);
    EVP_PKEY_free(key);
    expect_problem(server_of(site_path("a", ".pem"), site_path("a", ".key"), NULL),
                   "no private key without a password");
    site_stop();
}
END_TEST

/* ---- Chains ---- */

START_TEST(a_certificate_comes_with_those_of_its_issuers)
{
    X509_STORE *store;
    X509 *root;

    site_start();
    make_pair("root", CURVE, NULL, NULL);
    make_pair("between", CURVE, NULL, "root");
    make_pair("a", CURVE, "DNS:a.example", "between");
    append_certificates("a", "between", 1);
    tls = server_with((struct sxe_tls_config){0}, "a");
    plan_start(10);
    listener = serve(tls, push_read);
    peer = peer_tls(listener, "a.example");
    store = SSL_CTX_get_cert_store(peer.context);
    root = read_certificate("root");
    X509_STORE_add_cert(store, root);
    X509_free(root);
    ck_assert(shake(&peer));
    ck_assert_int_eq(sk_X509_num(SSL_get_peer_cert_chain(peer.ssl)), 2);
    tls_stop(&peer, tls);
}
END_TEST

START_TEST(a_chain_is_read_whole_or_not_at_all)
{
    unsigned nth = 0;
    bool touched;

    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    append_certificates("a", "a", 1);
    expect_problem(server_of(site_path("a", ".pem"), "/nowhere.key", NULL), "/nowhere.key");
    do {
        struct sxe_tls *made;

        heap_arm(++nth, false);
        heap.size = 4 * sizeof(void *); /* bytes of the first allocation of a list */
        made = server_of(site_path("a", ".pem"), "/nowhere.key", NULL);
        touched = heap_disarm();
        ck_assert_ptr_null(made);
    } while (touched);
    ck_assert_uint_gt(nth, 1);
    ck_assert_ptr_nonnull(strstr(sxe_tls_problem(), "/nowhere.key"));
    site_stop();
}
END_TEST

START_TEST(authorities_that_cannot_be_read_are_named_with_the_reason)
{
    const struct sxe_tls_config config = {.authorities = "/nowhere.pem"};

    expect_problem(sxe_tls_new_client(&config),
                   "cannot read the authorities in /nowhere.pem: No such file or directory");
}
END_TEST

START_TEST(a_chain_that_is_too_long_to_be_sent_fails_handshakes)
{
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    append_certificates("a", "a", 400);
    tls = server_with((struct sxe_tls_config){0}, "a");
    plan_start(10);
    listener = serve(tls, push_read);
    peer = peer_tls(listener, "a.example");
    ck_assert(!shake(&peer));
    EXPECT("close", peer.ours, EPROTO);
    tls_stop(&peer, tls);
}
END_TEST

/* ---- Names ---- */

static const char *
common_name(struct tls_peer *p)
{
    static char text[64];
    X509 *certificate = SSL_get1_peer_certificate(p->ssl);

    text[0] = '\0';
    if (certificate != NULL)
        X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, text,
                                  sizeof(text));
    X509_free(certificate);
    return text;
}

static SSL_CTX *
only_rsa(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    SSL_CTX_set1_sigalgs_list(context, "RSA-PSS+SHA256:RSA+SHA256");
    return context;
}

static void
start_names(bool refuses)
{
    site_start();
    make_pair("one", CURVE, "DNS:one.example,DNS:both.example,DNS:*.wild.example", NULL);
    make_pair("two", RSA_KEY, "DNS:BOTH.example,DNS:two.example,IP:127.0.0.1", NULL);
    make_pair("three.example", CURVE, NULL, NULL);
    make_pair("exact", RSA_KEY, "DNS:exact.wild.example", NULL);
    tls = server_with(
        ((struct sxe_tls_config){.refuses_unknown_names = refuses, .handshakes_max = 1}), "one",
        "two", "three.example", "exact");
    plan_start(10);
    listener = serve(tls, push_read);
}

static void
expect_name(const char *asked, const char *got)
{
    peer = peer_tls(listener, asked);
    ck_assert(shake(&peer));
    ck_assert_msg(strcmp(common_name(&peer), got) == 0, "%s gets %s, not %s",
                  asked == NULL ? "none" : asked, common_name(&peer), got);
    peer_free(&peer);
    pump();
    event_pop();
}

START_TEST(each_name_gets_its_certificate)
{
    start_names(false);
    expect_name("one.example", "one");
    expect_name("ONE.Example.", "one");
    expect_name("both.example", "one");
    expect_name("two.example", "two");
    expect_name("three.example", "three.example");
    expect_name("x.wild.example", "one");
    expect_name("exact.wild.example", "one");
    expect_name("x.y.wild.example", "one");
    expect_name("unknown.example", "one");
    expect_name("localhost", "one");
    expect_name(".x", "one");
    expect_name(NULL, "one");
    peer_context = only_rsa;
    expect_name("both.example", "two");
    expect_name("exact.wild.example", "exact");
    ck_assert_ptr_null(sxe__tls_find(tls->store, ""));
    tls_stop(NULL, tls);
}
END_TEST

START_TEST(a_name_that_is_none_is_left_out)
{
    char names[400];

    site_start();
    snprintf(names, sizeof(names), "DNS:%0300d,DNS:b.example", 0);
    make_pair("a", CURVE, "DNS:a.example", NULL);
    make_pair("b", CURVE, names, NULL);
    tls = server_with((struct sxe_tls_config){0}, "a", "b");
    ck_assert_uint_eq(tls->store->name_count, 2);
    plan_start(10);
    listener = serve(tls, push_read);
    expect_name("b.example", "b");
    tls_stop(NULL, tls);
}
END_TEST

START_TEST(other_names_are_refused_where_wanted)
{
    start_names(true);
    expect_name("one.example", "one");
    for (unsigned i = 0; i < 2; i++) {
        peer = peer_tls(listener, i == 0 ? "unknown.example" : NULL);
        ck_assert(!shake(&peer) || i == 1);
        peer_free(&peer);
        pump();
        event_pop();
    }
    tls_stop(NULL, tls);
}
END_TEST

/* ---- Protocols, versions ---- */

static const char *offered; /* the protocols that the client offers, as in "\x08http/1.1" */

static SSL_CTX *
with_protocols(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    SSL_CTX_set_alpn_protos(context, (const unsigned char *)offered, (unsigned)strlen(offered));
    return context;
}

START_TEST(a_protocol_is_chosen_or_the_client_refused)
{
    const char *protocol;

    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    tls = server_with((struct sxe_tls_config){.protocols = "http/1.1,http/1.0"}, "a");
    plan_start(10);
    listener = serve(tls, push_read);
    peer_context = with_protocols;
    offered = "\x02h2\x08http/1.0\x08http/1.1";
    peer = peer_tls(listener, NULL);
    ck_assert(shake(&peer));
    ck_assert_uint_eq(sxe_tls_protocol(peer.ours, &protocol), 8);
    ck_assert_int_eq(memcmp(protocol, "http/1.1", 8), 0);
    peer_free(&peer);
    pump();
    event_pop();
    offered = "\x02h2";
    peer = peer_tls(listener, NULL);
    ck_assert(!shake(&peer));
    ck_assert_int_eq(ERR_GET_REASON(ERR_peek_last_error()),
                     SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
    EXPECT("close", peer.ours, EPROTO);
    tls_stop(&peer, tls);
}
END_TEST

static int version;

static SSL_CTX *
of_version(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    SSL_CTX_set_security_level(context, 0);
    SSL_CTX_set_min_proto_version(context, version);
    SSL_CTX_set_max_proto_version(context, version);
    return context;
}

START_TEST(old_versions_are_refused)
{
    static const int versions[] = {TLS1_VERSION, TLS1_1_VERSION, TLS1_2_VERSION, TLS1_3_VERSION};

    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    tls = server_with(
        ((struct sxe_tls_config){.profile = _i == 0 ? SXE_TLS_INTERMEDIATE : SXE_TLS_MODERN}), "a");
    plan_start(10);
    listener = serve(tls, push_read);
    peer_context = of_version;
    for (unsigned i = 0; i < 4; i++) {
        version = versions[i];
        peer = peer_tls(listener, NULL);
        ck_assert_int_eq(shake(&peer), i >= (_i == 0 ? 2U : 3U));
        peer_free(&peer);
        pump();
        event_pop();
    }
    tls_stop(NULL, tls);
}
END_TEST

/* ---- Client certificates ---- */

static const char *client_name;

static void
use_certificate(SSL_CTX *context)
{
    if (client_name == NULL)
        return;
    SSL_CTX_use_certificate_file(context, site_path(client_name, ".pem"), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context, site_path(client_name, ".key"), SSL_FILETYPE_PEM);
}

static SSL_CTX *
with_certificate(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    use_certificate(context);
    return context;
}

START_TEST(clients_certificates_are_verified_and_told)
{
    char subject[64];
    char fingerprint[SXE_TLS_FINGERPRINT_SIZE];
    char byte;

    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    make_pair("authority", CURVE, NULL, NULL);
    make_pair("good", CURVE, NULL, "authority");
    make_pair("bad", CURVE, NULL, NULL);
    tls = server_with(
        ((struct sxe_tls_config){.verify = _i == 0 ? SXE_TLS_OPTIONAL : SXE_TLS_REQUIRED,
                                 .authorities = site_path("authority", ".pem")}),
        "a");
    plan_start(10);
    listener = serve(tls, push_read);
    peer_context = with_certificate;
    client_name = "good";
    peer = peer_tls(listener, NULL);
    ck_assert(shake(&peer));
    ck_assert_uint_eq(sxe_tls_peer_subject(peer.ours, subject, sizeof(subject)), 7);
    ck_assert_str_eq(subject, "CN=good");
    ck_assert_uint_eq(sxe_tls_peer_fingerprint(peer.ours, fingerprint), 64);
    ck_assert_uint_eq(strspn(fingerprint, "0123456789abcdef"), 64);
    peer_free(&peer);
    pump();
    event_pop();
    client_name = "bad";
    peer = peer_tls(listener, NULL);
    shake(&peer);
    EXPECT("close", peer.ours, EPROTO);
    peer_free(&peer);
    client_name = NULL;
    peer = peer_tls(listener, NULL);
    shake(&peer);
    if (_i == 0) {
        ck_assert_uint_eq(sxe_tls_peer_subject(peer.ours, subject, sizeof(subject)), 0);
        SSL_write(peer.ssl, "x", 1);
        EXPECT_READ(peer.ours, "x");
    } else {
        EXPECT("close", peer.ours, EPROTO);
        ck_assert_int_le(SSL_read(peer.ssl, &byte, 1), 0);
    }
    tls_stop(&peer, tls);
}
END_TEST

/* ---- OCSP staples ---- */

static SSL_CTX *
asks_status(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    SSL_CTX_set_tlsext_status_type(context, TLSEXT_STATUSTYPE_ocsp);
    return context;
}

/* Start a server in which "a" has a staple and "b" has none. */
static void
start_staple(void)
{
    OCSP_RESPONSE *reply = OCSP_response_create(OCSP_RESPONSE_STATUS_TRYLATER, NULL);
    struct sxe_tls_pair pairs[2];
    struct sxe_tls_config config = {.pairs = pairs, .pair_count = 2};
    BIO *file;

    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    make_pair("b", CURVE, "DNS:b.example", NULL);
    file = BIO_new_file(site_path("a", ".ocsp"), "w");
    i2d_OCSP_RESPONSE_bio(file, reply);
    BIO_free(file);
    OCSP_RESPONSE_free(reply);
    pairs[0] = (struct sxe_tls_pair){site_path("b", ".pem"), site_path("b", ".key"), NULL};
    pairs[1] = (struct sxe_tls_pair){site_path("a", ".pem"), site_path("a", ".key"),
                                     site_path("a", ".ocsp")};
    tls = sxe_tls_new_server(&config);
    plan_start(10);
    listener = serve(tls, push_read);
    peer_context = asks_status;
}

START_TEST(a_staple_is_sent_to_clients_that_ask)
{
    const unsigned char *staple;

    start_staple();
    peer = peer_tls(listener, "a.example");
    ck_assert(shake(&peer));
    ck_assert_int_eq(SSL_get_tlsext_status_ocsp_resp(peer.ssl, &staple), 5);
    peer_free(&peer);
    pump();
    event_pop();
    peer = peer_tls(listener, "b.example");
    ck_assert(shake(&peer));
    ck_assert_int_eq(SSL_get_tlsext_status_ocsp_resp(peer.ssl, &staple), -1);
    tls_stop(&peer, tls);
}
END_TEST

START_TEST(without_memory_for_its_staple_a_certificate_is_sent_without)
{
    const unsigned char *staple;
    unsigned without = 0;
    unsigned nth = 0;
    bool touched;

    start_staple();
    do {
        heap_arm(++nth, false);
        heap.counts = false;
        heap.size = 5; /* bytes of the staple, and of a few other allocations */
        peer = peer_tls(listener, "a.example");
        if (shake(&peer) && SSL_get_tlsext_status_ocsp_resp(peer.ssl, &staple) == -1)
            without++;
        touched = heap_disarm();
        peer_free(&peer);
        pump();
        event_pop();
    } while (touched);
    ck_assert_uint_eq(without, 1);
    tls_stop(NULL, tls);
}
END_TEST

/* ---- Reading files again ---- */

static void
replace(const char *name, const char *by, const char *suffix)
{
    ck_assert_int_eq(rename(site_path(by, suffix), site_path(name, suffix)), 0);
}

START_TEST(files_are_read_again_as_a_whole_or_not_at_all)
{
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    tls = server_with((struct sxe_tls_config){0}, "a");
    plan_start(10);
    listener = serve(tls, push_read);
    ck_assert(!sxe_tls_is_changed(tls));
    expect_name("a.example", "a");
    make_pair("b", CURVE, "DNS:a.example", NULL);
    replace("a", "b", ".pem");
    ck_assert(sxe_tls_is_changed(tls));
    ck_assert_int_eq(sxe_tls_reload(tls), -EINVAL);
    ck_assert_ptr_nonnull(strstr(sxe_tls_problem(), "is not the key of"));
    expect_name("a.example", "a");
    replace("a", "b", ".key");
    peer = peer_tls(listener, "a.example");
    SSL_do_handshake(peer.ssl);
    ck_assert_int_eq(sxe_tls_reload(tls), 0);
    ck_assert(!sxe_tls_is_changed(tls));
    ck_assert(shake(&peer));
    peer_free(&peer);
    pump();
    event_pop();
    expect_name("a.example", "b");
    unlink(site_path("a", ".key"));
    ck_assert(sxe_tls_is_changed(tls));
    tls_stop(NULL, tls);
}
END_TEST

START_TEST(a_changed_file_of_authorities_is_noticed)
{
    struct sxe_tls_config config = {.verify = SXE_TLS_REQUIRED};
    char path[PATH_MAX];

    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    make_pair("c", CURVE, "DNS:c.example", NULL);
    snprintf(path, sizeof(path), "%s", site_path("c", ".pem"));
    config.authorities = path;
    tls = server_with(config, "a");
    ck_assert_ptr_nonnull(tls);
    plan_start(10);
    ck_assert(!sxe_tls_is_changed(tls));
    make_pair("d", CURVE, "DNS:d.example", NULL);
    replace("c", "d", ".pem");
    ck_assert(sxe_tls_is_changed(tls));
    ck_assert_int_eq(sxe_tls_reload(tls), 0);
    ck_assert(!sxe_tls_is_changed(tls));
    tls_stop(NULL, tls);
}
END_TEST

/* ---- Session tickets ---- */

static SSL_SESSION *session;
static unsigned sessions;

static int
keep_session(SSL *ssl, SSL_SESSION *new)
{
    (void)ssl;
    SSL_SESSION_free(session);
    session = new;
    sessions++;
    return 1;
}

static SSL_CTX *
keeps_session(void)
{
    SSL_CTX *context = version == 0 ? SSL_CTX_new(TLS_client_method()) : of_version();

    use_certificate(context);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, keep_session);
    return context;
}

static bool
resumes(void)
{
    unsigned before = sessions;
    bool is_resumed;
    char byte;

    peer = peer_tls(listener, "a.example");
    if (session != NULL)
        SSL_set_session(peer.ssl, session);
    ck_assert(shake(&peer));
    /* In TLS 1.3 the ticket comes after the handshake. */
    for (unsigned i = 0; i < WAIT_TURNS && version == TLS1_3_VERSION && sessions == before; i++) {
        ck_assert_int_le(SSL_read(peer.ssl, &byte, 1), 0);
        peer_turns(&peer);
    }
    is_resumed = SSL_session_reused(peer.ssl);
    ck_assert(sxe_tls_is_resumed(peer.ours) == is_resumed);
    SSL_shutdown(peer.ssl);
    peer_free(&peer);
    pump();
    event_pop();
    return is_resumed;
}

#define LIFETIME ((uint64_t)100000 * SXE_NS_PER_SECOND)

START_TEST(tickets_outlive_their_key_and_sessions_end_a_lifetime_after_they_began)
{
    struct sxe_tls_tickets *tickets = sxe_tls_tickets_new(100000);
    struct sxe_tls_counts counts;

    fake_time_start(1000 * LIFETIME, 1000 * LIFETIME);
    sxe_tls_tickets_delete(tickets);
    tickets = sxe_tls_tickets_new(100000);
    version = _i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;
    peer_context = keeps_session;
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    tls = server_with((struct sxe_tls_config){.tickets = tickets}, "a");
    plan_start(10);
    listener = serve(tls, push_read);
    ck_assert_uint_eq(sxe_tls_tickets_turn(tickets), 100000);
    ck_assert(!resumes());
    ck_assert(resumes());
    sxe_tls_count(&counts);
    ck_assert_uint_eq(counts.handshakes, 2);
    ck_assert_uint_eq(counts.resumed, 1);
    fake_time_advance(LIFETIME * 99 / 100);
    ck_assert(resumes());
    fake_time_advance(LIFETIME / 50);
    ck_assert(!resumes());
    fake_time_advance(LIFETIME * 90 / 100);
    ck_assert(resumes());
    fake_time_advance(LIFETIME * 9 / 100);
    ck_assert(resumes()); /* its ticket was sealed by the key before the present one */
    fake_time_advance(LIFETIME / 50);
    ck_assert(!resumes());
    fake_time_advance(3 * LIFETIME);
    ck_assert(!resumes());
    tls_stop(NULL, tls);
    SSL_SESSION_free(session);
    sxe_tls_tickets_delete(tickets);
    fake_time_stop();
}
END_TEST

START_TEST(a_session_made_without_a_certificate_is_no_way_around_one)
{
    struct sxe_tls_tickets *tickets = sxe_tls_tickets_new(0);
    struct sxe_tls *strict;
    SXE *strict_listener;

    version = _i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;
    peer_context = keeps_session;
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    tls = server_with((struct sxe_tls_config){.tickets = tickets}, "a");
    strict = server_with(((struct sxe_tls_config){.tickets = tickets,
                                                  .verify = SXE_TLS_REQUIRED,
                                                  .authorities = site_path("a", ".pem")}),
                         "a");
    plan_start(10);
    listener = serve(tls, push_read);
    strict_listener = serve(strict, push_read);
    ck_assert(!resumes());
    ck_assert(resumes());
    peer = peer_tls(strict_listener, "a.example");
    SSL_set_session(peer.ssl, session);
    shake(&peer);
    EXPECT("close", peer.ours, EPROTO);
    tls_stop(&peer, tls);
    sxe_tls_delete(strict);
    SSL_SESSION_free(session);
    sxe_tls_tickets_delete(tickets);
}
END_TEST

/* TLS 1.2 ties a session to its name (RFC 6066, 3), TLS 1.3 does not. OpenSSL's client offers a
 * session of 1.3 only once. */
START_TEST(the_name_of_a_resumed_session_is_the_one_that_is_asked_for)
{
    static const char *const names[] = {"b.example", NULL, "a.examples"};
    const unsigned tries = _i == 0 ? 3 : 1;

    version = _i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;
    peer_context = keeps_session;
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    tls = server_with((struct sxe_tls_config){0}, "a");
    plan_start(10);
    listener = serve(tls, push_read);
    ck_assert(!resumes());
    for (unsigned i = 0; i < tries; i++) {
        SSL_SESSION *first = session;

        SSL_SESSION_up_ref(first);
        peer = peer_tls(listener, names[i]);
        SSL_set_session(peer.ssl, first);
        ck_assert(shake(&peer));
        ck_assert_int_eq(SSL_session_reused(peer.ssl), version == TLS1_3_VERSION);
        ck_assert_str_eq(sxe_tls_name(peer.ours), names[i] == NULL ? "" : names[i]);
        peer_free(&peer);
        pump();
        event_pop();
        SSL_SESSION_free(session);
        session = first;
    }
    ck_assert(_i == 1 || resumes());
    tls_stop(NULL, tls);
    SSL_SESSION_free(session);
}
END_TEST

/* The clock of the library alone is set, so the next full handshake lets the client in again. */
START_TEST(a_session_ends_with_the_certificate_of_its_client)
{
    version = _i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;
    peer_context = keeps_session;
    client_name = "client";
    fake_time_start(1000 * LIFETIME, (uint64_t)time(NULL) * SXE_NS_PER_SECOND);
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    make_pair("client", CURVE, NULL, NULL);
    tls = server_with(((struct sxe_tls_config){.verify = SXE_TLS_REQUIRED,
                                               .authorities = site_path("client", ".pem")}),
                      "a");
    plan_start(10);
    listener = serve(tls, push_read);
    ck_assert(!resumes());
    ck_assert(resumes());
    fake_time_step_wall((int64_t)(31 * 86400 * SXE_NS_PER_SECOND));
    ck_assert(!resumes());
    tls_stop(NULL, tls);
    SSL_SESSION_free(session);
    fake_time_stop();
}
END_TEST

/* When its authority is removed from the file, a client cannot get in with its ticket either. */
START_TEST(changed_authorities_are_noticed_and_end_sessions)
{
    version = _i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;
    peer_context = keeps_session;
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    make_pair("b", CURVE, NULL, NULL);
    make_pair("authorities", CURVE, NULL, NULL);
    tls = server_with(((struct sxe_tls_config){.verify = SXE_TLS_OPTIONAL,
                                               .authorities = site_path("authorities", ".pem")}),
                      "a");
    plan_start(10);
    listener = serve(tls, push_read);
    ck_assert(!resumes());
    ck_assert(resumes());
    ck_assert(!sxe_tls_is_changed(tls));
    ck_assert_int_eq(sxe_tls_reload(tls), 0);
    ck_assert(resumes());
    replace("authorities", "b", ".pem");
    ck_assert(sxe_tls_is_changed(tls));
    ck_assert_int_eq(sxe_tls_reload(tls), 0);
    ck_assert(!sxe_tls_is_changed(tls));
    ck_assert(!resumes());
    ck_assert(resumes());
    tls_stop(NULL, tls);
    SSL_SESSION_free(session);
}
END_TEST

START_TEST(keys_turn_and_are_forgotten)
{
    struct sxe_tls_tickets *tickets;

    fake_time_start(1000 * LIFETIME, 1000 * LIFETIME);
    tickets = sxe_tls_tickets_new(100000);
    ck_assert_uint_eq(sxe_tls_tickets_turn(tickets), 100000);
    fake_time_advance(LIFETIME / 2);
    ck_assert_uint_eq(sxe_tls_tickets_turn(tickets), 50000);
    fake_time_advance(LIFETIME / 2);
    ck_assert_uint_eq(sxe_tls_tickets_turn(tickets), 100000);
    fake_time_advance(20 * LIFETIME);
    ck_assert_uint_eq(sxe_tls_tickets_turn(tickets), 100000);
    sxe_tls_tickets_delete(tickets);
    fake_time_stop();
    fake_os_fail(FAKE_MMAP, 1, 1, ENOMEM);
    ck_assert_ptr_null(sxe_tls_tickets_new(0));
    ck_assert_int_eq(errno, ENOMEM);
    fake_os_reset();
    sxe_tls_tickets_delete(NULL);
}
END_TEST

START_TEST(without_random_numbers_no_key_is_made)
{
    struct sxe_tls_tickets *tickets;
    struct sxe_tls_config config = {0};

    fake_time_start(1000 * LIFETIME, 1000 * LIFETIME);
    tickets = sxe_tls_tickets_new(100000);
    without_random = true;
    ck_assert_ptr_null(sxe_tls_tickets_new(0));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_ptr_null(sxe_tls_new_local(&config));
    /* The current key stays valid until its time is over. */
    fake_time_advance(LIFETIME);
    ck_assert_uint_eq(sxe_tls_tickets_turn(tickets), 1);
    config.tickets = tickets;
    expect_problem(sxe_tls_new_local(&config), "cannot make a certificate");
    without_random = false;
    ck_assert_uint_eq(sxe_tls_tickets_turn(tickets), 100000);
    sxe_tls_tickets_delete(tickets);
    fake_time_stop();
}
END_TEST

START_TEST(keys_that_nobody_turns_are_refused_after_another_lifetime)
{
    struct sxe_tls_tickets *tickets;

    fake_time_start(1000 * LIFETIME, 1000 * LIFETIME);
    tickets = sxe_tls_tickets_new(100000);
    version = _i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;
    peer_context = keeps_session;
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    tls = server_with((struct sxe_tls_config){.tickets = tickets}, "a");
    plan_start(10);
    listener = serve(tls, push_read);
    ck_assert(!resumes());
    ck_assert(resumes());
    without_random = true; /* from now on no new key can be made */
    fake_time_advance(2 * LIFETIME + SXE_NS_PER_SECOND);
    peer = peer_tls(listener, "a.example");
    SSL_set_session(peer.ssl, session);
    ck_assert(shake(&peer));
    ck_assert(!SSL_session_reused(peer.ssl));
    tls_send(&peer, "hello", 5);
    EXPECT_READ(peer.ours, "hello");
    tls_stop(&peer, tls);
    SSL_SESSION_free(session);
    sxe_tls_tickets_delete(tickets);
    fake_time_stop();
}
END_TEST

/* ---- sxe_tls_new_local ---- */

START_TEST(a_local_server_has_a_certificate_that_clients_can_verify)
{
    struct sxe_tls_config config = {0};
    X509_STORE *store;
    BIO *bio;
    X509 *certificate;

    site_start();
    tls = sxe_tls_new_local(&config);
    plan_start(10);
    listener = serve(tls, push_read);
    peer = peer_tls(listener, "localhost");
    bio = BIO_new_mem_buf(sxe_tls_local_pem(tls), -1);
    certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    store = SSL_CTX_get_cert_store(peer.context);
    X509_STORE_add_cert(store, certificate);
    X509_free(certificate);
    BIO_free(bio);
    SSL_set_verify(peer.ssl, SSL_VERIFY_PEER, NULL);
    SSL_set1_host(peer.ssl, "localhost");
    ck_assert(shake(&peer));
    ck_assert_int_eq(sxe_tls_reload(tls), 0);
    tls_stop(&peer, tls);
}
END_TEST

static Suite *
new_suite(void)
{
    Suite *suite = suite_create("tls-new");
    TCase *tcase = tcase_create("new");

    tcase_add_test(tcase, what_is_wrong_with_a_configuration_is_said);
    tcase_add_test(tcase, a_key_with_a_password_is_refused);
    tcase_add_test(tcase, a_certificate_comes_with_those_of_its_issuers);
    tcase_add_test(tcase, a_chain_is_read_whole_or_not_at_all);
    tcase_add_test(tcase, authorities_that_cannot_be_read_are_named_with_the_reason);
    tcase_add_test(tcase, a_chain_that_is_too_long_to_be_sent_fails_handshakes);
    tcase_add_test(tcase, a_name_that_is_none_is_left_out);
    tcase_add_test(tcase, each_name_gets_its_certificate);
    tcase_add_test(tcase, other_names_are_refused_where_wanted);
    tcase_add_test(tcase, a_protocol_is_chosen_or_the_client_refused);
    tcase_add_loop_test(tcase, old_versions_are_refused, 0, 2);
    tcase_add_loop_test(tcase, clients_certificates_are_verified_and_told, 0, 2);
    tcase_add_test(tcase, a_staple_is_sent_to_clients_that_ask);
    tcase_add_test(tcase, without_memory_for_its_staple_a_certificate_is_sent_without);
    tcase_add_test(tcase, files_are_read_again_as_a_whole_or_not_at_all);
    tcase_add_test(tcase, a_changed_file_of_authorities_is_noticed);
    tcase_add_loop_test(
        tcase, tickets_outlive_their_key_and_sessions_end_a_lifetime_after_they_began, 0, 2);
    tcase_add_loop_test(tcase, the_name_of_a_resumed_session_is_the_one_that_is_asked_for, 0, 2);
    tcase_add_loop_test(tcase, a_session_ends_with_the_certificate_of_its_client, 0, 2);
    tcase_add_loop_test(tcase, a_session_made_without_a_certificate_is_no_way_around_one, 0, 2);
    tcase_add_loop_test(tcase, changed_authorities_are_noticed_and_end_sessions, 0, 2);
    tcase_add_test(tcase, keys_turn_and_are_forgotten);
    tcase_add_test(tcase, without_random_numbers_no_key_is_made);
    tcase_add_loop_test(tcase, keys_that_nobody_turns_are_refused_after_another_lifetime, 0, 2);
    tcase_add_test(tcase, a_local_server_has_a_certificate_that_clients_can_verify);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return heap_begin() == 1 ? sxe_test_main(new_suite()) : EXIT_FAILURE;
}
