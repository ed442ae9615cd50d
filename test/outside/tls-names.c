/* SPDX-License-Identifier: MIT
 *
 * Servers and clients of docs/tls.md in one loop: which connections are accepted, which are
 * refused, and what each side learns of the other.
 */
#include <errno.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "outside.h"
#include "sxe-tls.h"

static struct sxe_tls *server;
static struct sxe_tls *client;
static SXE *listener;
static SXE *dialer;
static int error;       /* the error in the client's on_close */
static bool was_secure; /* whether the client received data from the server over TLS */
static bool was_ended;  /* whether the server then ended the connection by close_notify */
static char version[16];
static char protocol[16];

static void
greet(SXE *this)
{
    sxe_write(this, "hello", 5);
    sxe_close(this);
}

static void
note(SXE *this, int length)
{
    const char *name;
    unsigned size = sxe_tls_protocol(this, &name);

    SXE_UNUSED_PARAMETER(length);
    was_secure = sxe_tls_is_secure(this);
    snprintf(version, sizeof(version), "%s", sxe_tls_version(this));
    snprintf(protocol, sizeof(protocol), "%.*s", (int)size, size == 0 ? "" : name);
    SXE_BUF_CLEAR(this);
}

static void
stop(SXE *this)
{
    error = sxe_error(this);
    was_ended = sxe_tls_has_ended(this);
    sxe_stop();
}

static void
write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void
serve(struct sxe_tls *with)
{
    server = with;
    ck_assert_msg(server != NULL, "%s", sxe_tls_problem());
    sxe_register(8, 0);
    ck_assert_int_eq(sxe_init(), 0);
    listener = sxe_new_tcp(NULL, "127.0.0.1", 0, greet, NULL, NULL);
    ck_assert_int_eq(sxe_listen(listener), 0);
    ck_assert_int_eq(sxe_tls_serve(server, listener), 0);
}

/* Connect to the host. Returns the errno with which the client's connection ended. */
static int
dial(const struct sxe_tls_config *config, const char *host)
{
    client = sxe_tls_new_client(config);
    ck_assert_msg(client != NULL, "%s", sxe_tls_problem());
    dialer = sxe_new_tcp(NULL, "", 0, NULL, note, stop);
    was_secure = was_ended = false;
    error = -1;
    ck_assert_int_eq(sxe_tls_use(client, dialer, host), 0);
    ck_assert_int_eq(sxe_connect(dialer, "127.0.0.1", sxe_local_port(listener)), 0);
    ck_assert_int_eq(sxe_run(), 0);
    return error;
}

static void
finish(void)
{
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_tls_delete(client);
    sxe_tls_delete(server);
}

/* promise: docs/tls.md: `sxe_tls_new_local` makes a certificate of localhost in memory;
 * `sxe_tls_local_pem` is its text */
START_TEST(the_certificate_for_development_is_of_localhost_only)
{
    struct sxe_tls_config trusting = {.authorities = outside_path("local.pem")};
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s", trusting.authorities);
    trusting.authorities = path;
    serve(sxe_tls_new_local(&(struct sxe_tls_config){0}));
    write_text(path, sxe_tls_local_pem(server));
    ck_assert_int_eq(dial(&trusting, "localhost"), 0);
    ck_assert(was_secure);
    ck_assert_str_eq(version, "TLSv1.3");
    sxe_tls_delete(client);
    ck_assert_int_eq(dial(&trusting, "other.example"), EPROTO);
    ck_assert(!was_secure);
    unlink(path);
    finish();
}
END_TEST

/* promise: docs/tls.md: A failed handshake is EPROTO */
START_TEST(a_certificate_that_nobody_signed_is_refused)
{
    struct sxe_tls_config local = {0};

    serve(sxe_tls_new_local(&local));
    ck_assert_int_eq(dial(&(struct sxe_tls_config){.authorities = NULL}, "localhost"), EPROTO);
    ck_assert(!was_secure);
    finish();
}
END_TEST

/* promise: docs/tls.md: A close sends close_notify */
START_TEST(the_client_learns_that_the_data_are_complete)
{
    serve(sxe_tls_new_local(&(struct sxe_tls_config){0}));
    ck_assert_int_eq(dial(&(struct sxe_tls_config){.verify = SXE_TLS_OFF}, "localhost"), 0);
    ck_assert(was_secure);
    ck_assert(was_ended);
    finish();
}
END_TEST

static size_t came;

static void
count_bytes(SXE *this, int length)
{
    SXE_UNUSED_PARAMETER(length);
    came += SXE_BUF_USED(this);
    SXE_BUF_CLEAR(this);
}

static void
greet_with_much(SXE *this)
{
    static const char much[200000];

    ck_assert_int_eq(sxe_write(this, much, sizeof(much)), 0);
    sxe_pause(this);
    sxe_close(this);
}

/* promise: docs/tls.md: Output of any size that is written before the end of the handshake waits
 * for that end, also while the connection is paused. */
START_TEST(long_output_before_the_handshake_does_not_delay_it)
{
    serve(sxe_tls_new_local(&(struct sxe_tls_config){0}));
    listener->on_connected = greet_with_much;
    client = sxe_tls_new_client(&(struct sxe_tls_config){.verify = SXE_TLS_OFF});
    dialer = sxe_new_tcp(NULL, "", 0, NULL, count_bytes, stop);
    ck_assert_int_eq(sxe_tls_use(client, dialer, "localhost"), 0);
    ck_assert_int_eq(sxe_connect(dialer, "127.0.0.1", sxe_local_port(listener)), 0);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_int_eq(error, 0);
    ck_assert_uint_eq(came, 200000);
    finish();
}
END_TEST

/* promise: docs/tls.md: a client that offers only other protocols is refused with
 * no_application_protocol */
START_TEST(client_and_server_need_a_protocol_in_common)
{
    struct sxe_tls_config speaks = {.protocols = "h2,http/1.1", .verify = SXE_TLS_OFF};

    serve(sxe_tls_new_local(&(struct sxe_tls_config){.protocols = "http/1.1,http/1.0"}));
    ck_assert_int_eq(dial(&speaks, "localhost"), 0);
    ck_assert_str_eq(protocol, "http/1.1");
    sxe_tls_delete(client);
    speaks.protocols = "h2";
    ck_assert_int_eq(dial(&speaks, "localhost"), EPROTO);
    ck_assert(!was_secure);
    sxe_tls_delete(client);
    speaks.protocols = NULL;
    ck_assert_int_eq(dial(&speaks, "localhost"), 0);
    ck_assert_str_eq(protocol, "");
    finish();
}
END_TEST

/* promise: docs/tls.md: above it a server begins no handshake, and closes the connection. */
START_TEST(a_client_above_the_limit_of_memory_is_closed)
{
    struct sxe_tls_counts counts;

    serve(sxe_tls_new_local(&(struct sxe_tls_config){.memory_max = 1}));
    ck_assert_int_ne(dial(&(struct sxe_tls_config){.verify = SXE_TLS_OFF}, "localhost"), 0);
    ck_assert(!was_secure);
    sxe_tls_count(&counts);
    ck_assert_uint_eq(counts.handshakes, 0);
    finish();
}
END_TEST

/* Write a new key, and a certificate for it with the name dns. */
static void
write_pair(const char *certificate_path, const char *key_path, const char *dns)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    X509_NAME *name = X509_get_subject_name(certificate);
    X509_EXTENSION *names = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, dns);
    FILE *file;

    X509_set_version(certificate, X509_VERSION_3);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)dns, -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -86400);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
    X509_add_ext(certificate, names, -1);
    X509_EXTENSION_free(names);
    X509_set_pubkey(certificate, key);
    ck_assert_int_gt(X509_sign(certificate, key, EVP_sha256()), 0);
    file = fopen(certificate_path, "w");
    PEM_write_X509(file, certificate);
    fclose(file);
    file = fopen(key_path, "w");
    PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL);
    fclose(file);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

/* promise: docs/tls.md: if a key does not fit its certificate, nothing changes, and
 * `sxe_tls_problem` says so. */
START_TEST(a_key_that_does_not_fit_changes_nothing)
{
    char certificate[PATH_MAX];
    char key[PATH_MAX];
    char other[PATH_MAX];
    struct sxe_tls_pair pair = {.certificate = certificate, .key = key};

    snprintf(certificate, sizeof(certificate), "%s", outside_path("a.pem"));
    snprintf(key, sizeof(key), "%s", outside_path("a.key"));
    snprintf(other, sizeof(other), "%s", outside_path("other.key"));
    write_pair(certificate, other, "DNS:a");
    write_pair(certificate, key, "DNS:a");
    serve(sxe_tls_new_server(&(struct sxe_tls_config){.pairs = &pair, .pair_count = 1}));
    ck_assert(!sxe_tls_is_changed(server));
    ck_assert_int_eq(rename(other, key), 0);
    ck_assert(sxe_tls_is_changed(server));
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(sxe_tls_reload(server), -EINVAL);
        ck_assert_ptr_nonnull(strstr(sxe_tls_problem(), key));
    }
    ck_assert_int_eq(dial(&(struct sxe_tls_config){.verify = SXE_TLS_OFF}, "a"), 0);
    ck_assert(was_secure);
    write_pair(certificate, key, "DNS:a");
    ck_assert_int_eq(sxe_tls_reload(server), 0);
    ck_assert(!sxe_tls_is_changed(server));
    sxe_tls_delete(client);
    ck_assert_int_eq(dial(&(struct sxe_tls_config){.verify = SXE_TLS_OFF}, "a"), 0);
    unlink(certificate);
    unlink(key);
    finish();
}
END_TEST

/* Two pairs of files (certificate, key), and a file with the authorities of clients. */
static char paths[5][PATH_MAX];
static struct sxe_tls_pair pairs[2];

static void
write_two(void)
{
    static const char *const names[] = {"one.pem", "one.key", "wild.pem", "wild.key", "all.pem"};
    FILE *all;

    for (unsigned i = 0; i < 5; i++)
        snprintf(paths[i], PATH_MAX, "%s", outside_path(names[i]));
    all = fopen(paths[4], "w");
    for (unsigned i = 0; i < 2; i++) {
        char text[4096];
        FILE *file;

        pairs[i] = (struct sxe_tls_pair){.certificate = paths[2 * i], .key = paths[2 * i + 1]};
        write_pair(paths[2 * i], paths[2 * i + 1],
                   i == 0 ? "DNS:one.example" : "DNS:*.wild.example");
        file = fopen(paths[2 * i], "r");
        fwrite(text, 1, fread(text, 1, sizeof(text), file), all);
        fclose(file);
    }
    fclose(all);
}

static void
remove_two(void)
{
    for (unsigned i = 0; i < 5; i++)
        unlink(paths[i]);
}

/* promise: docs/tls.md: It also reads a changed file without a signal: each process looks once a
 * second. */
START_TEST(a_changed_file_of_authorities_is_noticed)
{
    struct sxe_tls_config config = {
        .pairs = pairs, .pair_count = 1, .verify = SXE_TLS_REQUIRED, .authorities = paths[4]};

    write_two();
    serve(sxe_tls_new_server(&config));
    ck_assert(!sxe_tls_is_changed(server));
    ck_assert_int_eq(rename(paths[2], paths[4]), 0);
    ck_assert(sxe_tls_is_changed(server));
    ck_assert_int_eq(sxe_tls_reload(server), 0);
    ck_assert(!sxe_tls_is_changed(server));
    remove_two();
    finish();
}
END_TEST

/* promise: docs/tls.md: The server looks up the name that a client asks for exactly, then with its
 * first label as `*`. */
START_TEST(each_name_gets_the_certificate_that_has_it)
{
    static const char *const hosts[] = {"one.example", "two.wild.example", "ONE.example",
                                        "three.example"};
    struct sxe_tls_config trusting = {.authorities = paths[4]};

    write_two();
    serve(sxe_tls_new_server(&(struct sxe_tls_config){.pairs = pairs, .pair_count = 2}));
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(dial(&trusting, hosts[i]), i < 3 ? 0 : EPROTO);
        sxe_tls_delete(client);
    }
    client = NULL;
    remove_two();
    finish();
}
END_TEST

/* promise: docs/tls.md: Other names get the first certificate, or with `refuses_unknown_names` the
 * alert unrecognized_name. */
START_TEST(a_name_of_no_certificate_gets_the_first_or_none)
{
    struct sxe_tls_config config = {.pairs = pairs, .pair_count = 2};
    struct sxe_tls_config any = {.verify = SXE_TLS_OFF};

    write_two();
    config.refuses_unknown_names = true;
    serve(sxe_tls_new_server(&config));
    ck_assert_int_eq(dial(&any, "other.test"), EPROTO);
    sxe_tls_delete(client);
    ck_assert_int_eq(dial(&any, "any.wild.example"), 0);
    finish();
    config.refuses_unknown_names = false;
    serve(sxe_tls_new_server(&config));
    ck_assert_int_eq(dial(&any, "other.test"), 0);
    remove_two();
    finish();
}
END_TEST

static char subject[32];
static char fingerprint[SXE_TLS_FINGERPRINT_SIZE];

static void
look_at_client(SXE *this, int length)
{
    if (length <= 0)
        return;
    sxe_tls_peer_subject(this, subject, sizeof(subject));
    sxe_tls_peer_fingerprint(this, fingerprint);
    SXE_BUF_CLEAR(this);
    sxe_close(this);
}

static void
say(SXE *this)
{
    sxe_write(this, "x", 1);
}

/* promise: docs/tls.md: `verify` and `authorities` ask clients for certificates. */
START_TEST(a_server_that_asks_for_certificates_lets_in_those_that_have_one)
{
    struct sxe_tls_config has_one = {.verify = SXE_TLS_OFF, .pairs = pairs, .pair_count = 1};

    write_two();
    server = sxe_tls_new_server(&(struct sxe_tls_config){
        .pairs = pairs, .pair_count = 1, .verify = SXE_TLS_REQUIRED, .authorities = paths[0]});
    ck_assert_msg(server != NULL, "%s", sxe_tls_problem());
    sxe_register(8, 0);
    ck_assert_int_eq(sxe_init(), 0);
    listener = sxe_new_tcp(NULL, "127.0.0.1", 0, NULL, look_at_client, NULL);
    ck_assert_int_eq(sxe_listen(listener), 0);
    ck_assert_int_eq(sxe_tls_serve(server, listener), 0);
    for (unsigned i = 0; i < 2; i++) {
        client = sxe_tls_new_client(&has_one);
        dialer = sxe_new_tcp(NULL, "", 0, say, note, stop);
        ck_assert_int_eq(sxe_tls_use(client, dialer, "one.example"), 0);
        ck_assert_int_eq(sxe_connect(dialer, "127.0.0.1", sxe_local_port(listener)), 0);
        ck_assert_int_eq(sxe_run(), 0);
        ck_assert_str_eq(subject, i == 0 ? "CN=DNS:one.example" : "");
        ck_assert_uint_eq(strlen(fingerprint), i == 0 ? 64 : 0);
        subject[0] = fingerprint[0] = '\0';
        has_one.pair_count = 0; /* the second client has no certificate */
        sxe_tls_delete(client);
    }
    client = NULL;
    remove_two();
    finish();
}
END_TEST

static void
look_for_quiet(struct sxe_timer *timer)
{
    struct sxe_tls_counts counts;

    SXE_UNUSED_PARAMETER(timer);
    sxe_tls_count(&counts);
    if (counts.quiet == 2 && counts.active == 0)
        sxe_stop();
}

/* promise: docs/tls.md: One second after the last byte OpenSSL's buffers are freed, and then the
 * connection counts as 15 KiB. */
START_TEST(a_quiet_connection_counts_less)
{
    struct sxe_tls_counts counts;
    struct sxe_timer timer;

    server = sxe_tls_new_local(&(struct sxe_tls_config){0});
    sxe_register(8, 0);
    ck_assert_int_eq(sxe_init(), 0);
    listener = sxe_new_tcp(NULL, "127.0.0.1", 0, NULL, note, NULL);
    ck_assert_int_eq(sxe_listen(listener), 0);
    ck_assert_int_eq(sxe_tls_serve(server, listener), 0);
    client = sxe_tls_new_client(&(struct sxe_tls_config){.verify = SXE_TLS_OFF});
    dialer = sxe_new_tcp(NULL, "", 0, say, note, NULL);
    ck_assert_int_eq(sxe_tls_use(client, dialer, "localhost"), 0);
    ck_assert_int_eq(sxe_connect(dialer, "127.0.0.1", sxe_local_port(listener)), 0);
    sxe_timer_init(&timer, look_for_quiet, 0.01, 0.01);
    sxe_timer_start(&timer);
    ck_assert_int_eq(sxe_run(), 0);
    sxe_timer_stop(&timer);
    sxe_tls_count(&counts);
    ck_assert_uint_eq(counts.memory, 2 * 15360);
    finish();
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {the_certificate_for_development_is_of_localhost_only,
                            a_certificate_that_nobody_signed_is_refused,
                            long_output_before_the_handshake_does_not_delay_it,
                            the_client_learns_that_the_data_are_complete,
                            client_and_server_need_a_protocol_in_common,
                            a_client_above_the_limit_of_memory_is_closed,
                            a_key_that_does_not_fit_changes_nothing,
                            a_changed_file_of_authorities_is_noticed,
                            each_name_gets_the_certificate_that_has_it,
                            a_name_of_no_certificate_gets_the_first_or_none,
                            a_server_that_asks_for_certificates_lets_in_those_that_have_one,
                            a_quiet_connection_counts_less,
                            NULL};

    return outside_run("tls-names", cases);
}
