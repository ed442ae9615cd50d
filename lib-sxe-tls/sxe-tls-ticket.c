/* SPDX-License-Identifier: MIT
 *
 * Holds the keys of tickets: any worker can open a ticket that another one has sealed.
 *
 *     keys[4], in a ring     epoch - 1   epoch   epoch + 1   epoch + 2
 *                            previous   current   next        is made, and then epoch grows
 *
 * One process writes the keys, and all others read them. It only writes the key at epoch + 2, which
 * no reader looks at, and so overwrites the oldest key.
 *
 * A session of TLS 1.3 gets a new ticket with each use. So that it does not go on for ever, each
 * ticket says when the session's full handshake was (RFC 8446, 4.6.1, last paragraph).
 */
#include "sxe-tls-private.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEFAULT_LIFETIME_S 28800u

enum { NAME_SIZE = 16, SECRET_SIZE = 32, IV_SIZE = 16, RING = 4 };

struct key {
    unsigned char name[NAME_SIZE];
    unsigned char cipher[SECRET_SIZE];
    unsigned char digest[SECRET_SIZE];
};

struct sxe_tls_tickets {
    SXE_TIME lifetime;
    pid_t owner;
    _Atomic uint32_t epoch;
    _Atomic SXE_TIME due; /* when the next key becomes the current one */
    struct key keys[RING];
};

/* Fetched only once, because fetching takes locks and searches. */
static EVP_CIPHER *cipher;

static bool
make_key(struct key *key)
{
    return RAND_bytes((unsigned char *)key, sizeof(*key)) == 1;
}

struct sxe_tls_tickets *
sxe_tls_tickets_new(uint32_t lifetime_s)
{
    struct sxe_tls_tickets *tickets =
        mmap(NULL, sizeof(*tickets), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (tickets == MAP_FAILED)
        return NULL;
    (void)madvise(tickets, sizeof(*tickets), MADV_DONTDUMP);
    tickets->lifetime = (lifetime_s == 0 ? DEFAULT_LIFETIME_S : lifetime_s) * SXE_NS_PER_SECOND;
    tickets->owner = getpid();
    atomic_store(&tickets->epoch, 1);
    atomic_store(&tickets->due, sxe_time_ns() + tickets->lifetime);
    /* The key before the first one is made only to fill the ring: no ticket is sealed by it. */
    if (make_key(&tickets->keys[0]) && make_key(&tickets->keys[1]) && make_key(&tickets->keys[2]))
        return tickets;
    ERR_clear_error();
    sxe_tls_tickets_delete(tickets);
    errno = ENOMEM;
    return NULL;
}

void
sxe_tls_tickets_delete(struct sxe_tls_tickets *tickets)
{
    if (tickets == NULL)
        return;
    if (tickets->owner == getpid())
        OPENSSL_cleanse(tickets, sizeof(*tickets));
    munmap(tickets, sizeof(*tickets));
}

uint32_t
sxe_tls_tickets_turn(struct sxe_tls_tickets *tickets)
{
    SXE_TIME now = sxe_time_ns();
    SXE_TIME due = atomic_load(&tickets->due);

    /* If the machine slept for long, all keys are replaced, but each only once. */
    for (unsigned i = 0; i < RING && due <= now; i++) {
        uint32_t epoch = atomic_load(&tickets->epoch);

        if (!make_key(&tickets->keys[(epoch + 2) % RING]))
            break;
        atomic_store(&tickets->epoch, epoch + 1);
        due = i + 1 < RING ? due + tickets->lifetime : now + tickets->lifetime;
        atomic_store(&tickets->due, due);
    }
    ERR_clear_error();
    return due > now ? (uint32_t)((due - now + SXE_NS_PER_SECOND - 1) / SXE_NS_PER_SECOND) : 1;
}

/* Copy the current key (name NULL), or the key with this name: *age is -1, 0 or 1 for the previous,
 * current or next one. False: there is none, or the keys are too old because the process that turns
 * them has stopped doing so. */
static bool
copy_key(struct sxe_tls_tickets *tickets, const unsigned char *name, struct key *key, int *age)
{
    uint32_t epoch = atomic_load(&tickets->epoch);

    if (sxe_time_ns() > atomic_load(&tickets->due) + tickets->lifetime)
        return false;
    for (*age = name == NULL ? 0 : -1; *age <= 1; (*age)++) {
        *key = tickets->keys[(epoch + (uint32_t)*age) % RING];
        if (name == NULL || memcmp(key->name, name, NAME_SIZE) == 0)
            return true;
    }
    return false;
}

static bool
set_digest(EVP_MAC_CTX *mac, struct key *key)
{
    OSSL_PARAM params[] = {
        OSSL_PARAM_octet_string(OSSL_MAC_PARAM_KEY, key->digest, SECRET_SIZE),
        OSSL_PARAM_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)(uintptr_t) "SHA256", 6),
        OSSL_PARAM_END,
    };

    return EVP_MAC_CTX_set_params(mac, params) == 1;
}

/* See SSL_CTX_set_tlsext_ticket_key_evp_cb(3). 1: go on; 2: go on, and seal a new ticket; 0: no
 * ticket; -1: error. */
static int
on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *context,
          EVP_MAC_CTX *mac, int is_sealing)
{
    struct sxe_tls_tickets *tickets = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    struct key key;
    int result = -1;
    int age;

    if (tickets->owner == getpid())
        (void)!sxe_tls_tickets_turn(tickets);
    if (!copy_key(tickets, is_sealing ? NULL : name, &key, &age))
        return 0;
    if (is_sealing)
        memcpy(name, key.name, NAME_SIZE);
    if ((!is_sealing || RAND_bytes(iv, IV_SIZE) == 1) &&
        EVP_CipherInit_ex2(context, cipher, key.cipher, iv, is_sealing, NULL) == 1 &&
        set_digest(mac, &key))
        result = 1;
    /* A client of TLS 1.3 uses each ticket once (RFC 8446, C.4). */
    if (result == 1 && !is_sealing && (age < 0 || SSL_version(ssl) == TLS1_3_VERSION))
        result = 2;
    OPENSSL_cleanse(&key, sizeof(key));
    return result;
}

/* OpenSSL seals a ticket: add the time of the full handshake, unless the session has it from an
 * earlier ticket. 0: no memory. */
static int
add_start(SSL *ssl, void *unused)
{
    SSL_SESSION *session = SSL_get_session(ssl);
    SXE_TIME now = sxe_time_ns();
    void *start;
    size_t length;

    SXE_UNUSED_PARAMETER(unused);
    if (SSL_SESSION_get0_ticket_appdata(session, &start, &length) == 1 && length > 0)
        return 1;
    return SSL_SESSION_set1_ticket_appdata(session, &now, sizeof(now));
}

/* The name that the client asks for, in the extension server_name (RFC 6066, 3). NULL: none. */
static const char *
asked_name(SSL *ssl, size_t *length)
{
    /* bytes before the name: the length of the list, then the kind and the length of its only
     * element */
    enum { HEAD = 5 };
    const unsigned char *list;
    size_t size;

    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &list, &size) != 1 || size < HEAD)
        return NULL;
    *length = size - HEAD;
    return (const char *)list + HEAD;
}

/* In TLS 1.2 a session belongs to the name that it began with: a server must not resume it for
 * another one (RFC 6066, 3). OpenSSL reports the session's name in place of the name that the
 * client asks for now. */
static bool
has_other_name(SSL *ssl, const SSL_SESSION *session)
{
    const char *began = SSL_SESSION_get0_hostname(session);
    size_t length = 0;
    const char *asked = asked_name(ssl, &length);

    if (SSL_SESSION_get_protocol_version(session) != TLS1_2_VERSION)
        return false;
    if (began == NULL || asked == NULL)
        return began != asked;
    return strlen(began) != length || memcmp(began, asked, length) != 0;
}

static bool
is_over(SSL_SESSION *session, const struct sxe_tls_tickets *tickets)
{
    SXE_TIME start = 0;
    void *data;
    size_t length;

    if (SSL_SESSION_get0_ticket_appdata(session, &data, &length) == 1 && length == sizeof(start))
        memcpy(&start, data, sizeof(start));
    return sxe_time_ns() - start >= tickets->lifetime || sxe__tls_session_is_stale(session);
}

/* OpenSSL has opened a ticket, or could not. A session that has lasted too long is not resumed. */
static SSL_TICKET_RETURN
judge_ticket(SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t length,
             SSL_TICKET_STATUS status, void *unused)
{
    const struct sxe_tls_tickets *tickets = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

    SXE_UNUSED_PARAMETER(name);
    SXE_UNUSED_PARAMETER(length);
    SXE_UNUSED_PARAMETER(unused);
    if ((status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) ||
        is_over(session, tickets) || has_other_name(ssl, session))
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

bool
sxe__tls_tickets_set(SSL_CTX *context, struct sxe_tls_tickets *tickets)
{
    if (cipher == NULL)
        cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
    SSL_CTX_set_app_data(context, tickets);
    SSL_CTX_set_timeout(context, (long)(tickets->lifetime / SXE_NS_PER_SECOND));
    return cipher != NULL && SSL_CTX_set_tlsext_ticket_key_evp_cb(context, on_ticket) == 1 &&
           SSL_CTX_set_session_ticket_cb(context, add_start, judge_ticket, NULL) == 1;
}
