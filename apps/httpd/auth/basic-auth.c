/* SPDX-License-Identifier: MIT
 *
 * Users and passwords of requests. Threads compute the hashes. A login (a user and password) that
 * was right is remembered.
 */
#include "basic-auth.h"

#include <crypt.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client-key.h"
#include "keyed-digest.h"
#include "passwords.h"
#include "sxe-work.h"

#define WAYS 4 /* how many places in the table a digest may have */

struct attempt;

/* A request that waits for an attempt. */
struct waiter {
    struct sxe_http_request *request;
    const struct basic_auth *auth;
    void (*passed)(struct sxe_http_request *request, struct sxe_http_response *response);
    struct attempt *attempt;
    struct waiter *next;
};

struct attempt {
    /* must be the first member, because a pointer to it is converted to a pointer to the attempt */
    struct sxe_work work;
    struct keyed_digest digest;
    struct client_key client;
    const char *hash;
    bool is_known; /* whether the user exists; if not, `hash` is that of another user */
    bool is_right;
    bool is_busy;
    /* the requests that wait for the result; there are none if all their clients have gone */
    struct waiter *waiters;
    char password[SXE_HTTP_BASIC_MAX + 1];
};

struct kept {
    struct keyed_digest digest;
    uint64_t until_ns;
};

/* All memory of this file, which basic_auth_begin allocates. */
struct room {
    uint64_t key[2];
    unsigned group;
    unsigned turn; /* how many logins were kept so far; chooses the place of the next */
    struct waiter *free;
    struct attempt attempts[BASIC_AUTH_ATTEMPTS];
    struct waiter waiters[BASIC_AUTH_WAITERS];
    struct kept kept[BASIC_AUTH_KEPT];
};

static struct room *room;

bool
basic_auth_is_realm(const char *realm)
{
    for (const char *c = realm; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
            return false;
    }
    return *realm != '\0' && strlen(realm) <= 128;
}

/* ---- In a thread ---- */

/* Whether the texts are equal. The time that this takes depends only on their lengths, so it does
 * not tell how much of a text is right. */
static bool
is_equal_text(const char *one, const char *other)
{
    const size_t length = strlen(one);
    int differs = length != strlen(other);

    for (size_t i = 0; i < length && other[i] != '\0'; i++)
        differs |= one[i] ^ other[i];
    return differs == 0;
}

static void
check_attempt(struct sxe_work *work)
{
    struct attempt *attempt = (struct attempt *)work;
    struct crypt_data data;
    const char *made;

    memset(&data, 0, sizeof(data));
    made = crypt_r(attempt->password, attempt->hash, &data);
    attempt->is_right = made != NULL && is_equal_text(made, attempt->hash) && attempt->is_known;
    explicit_bzero(&data, sizeof(data));
    explicit_bzero(attempt->password, sizeof(attempt->password));
}

/* ---- Logins that were right ---- */

static struct kept *
places_of(const struct keyed_digest *digest)
{
    return &room->kept[digest->half[0] % (BASIC_AUTH_KEPT / WAYS) * WAYS];
}

static bool
is_same_digest(const struct keyed_digest *one, const struct keyed_digest *other)
{
    return ((one->half[0] ^ other->half[0]) | (one->half[1] ^ other->half[1])) == 0;
}

static bool
is_digest_kept(const struct keyed_digest *digest)
{
    const struct kept *places = places_of(digest);
    const uint64_t now_ns = sxe_time_turn_ns();

    for (unsigned i = 0; i < WAYS; i++) {
        if (places[i].until_ns > now_ns && is_same_digest(&places[i].digest, digest))
            return true;
    }
    return false;
}

/* Keep a login in one of the places that its digest may have. These places are replaced in turn. */
static void
keep_login(const struct keyed_digest *digest)
{
    struct kept *place = &places_of(digest)[room->turn++ % WAYS];

    place->digest = *digest;
    place->until_ns = sxe_time_turn_ns() + BASIC_AUTH_KEEP_S * (uint64_t)SXE_NS_PER_SECOND;
}

/* ---- Replies ---- */

static void
refuse_login(const struct basic_auth *auth, struct sxe_http_response *response)
{
    char challenge[192];

    snprintf(challenge, sizeof(challenge), "Basic realm=\"%s\", charset=\"UTF-8\"",
             auth->realm == NULL ? "Restricted" : auth->realm);
    (void)!sxe_http_add_field(response, "WWW-Authenticate", challenge);
    (void)sxe_http_reply_status(response, 401);
}

static void
refuse_for_now(struct sxe_http_response *response, unsigned status)
{
    (void)!sxe_http_add_field(response, "Retry-After", "1");
    (void)sxe_http_reply_status(response, status);
}

/* ---- Attempts ---- */

static void
give_waiter(struct waiter *waiter)
{
    waiter->next = room->free;
    room->free = waiter;
}

static void
finish_attempt(struct sxe_work *work)
{
    struct attempt *attempt = (struct attempt *)work;

    if (attempt->is_right)
        keep_login(&attempt->digest);
    while (attempt->waiters != NULL) {
        const struct waiter waiter = *attempt->waiters;
        struct sxe_http_response *response = sxe_http_response_of(waiter.request);

        give_waiter(attempt->waiters);
        attempt->waiters = waiter.next;
        response->user = NULL;
        response->on_done = NULL;
        waiter.request->is_authenticated = attempt->is_right;
        if (attempt->is_right)
            waiter.passed(waiter.request, response);
        else
            refuse_login(waiter.auth, response);
    }
    attempt->is_busy = false;
}

/* The client of a waiting request has gone. */
static void
on_gone(struct sxe_http_request *request, struct sxe_http_response *response, int result)
{
    struct waiter *waiter = response->user;
    struct attempt *attempt = waiter->attempt;
    struct waiter **link = &attempt->waiters;

    SXE_UNUSED_PARAMETER(request);
    SXE_UNUSED_PARAMETER(result);
    while (*link != waiter)
        link = &(*link)->next;
    *link = waiter->next;
    give_waiter(waiter);
    if (attempt->waiters == NULL && sxe_work_cancel(&attempt->work) == 0)
        attempt->is_busy = false;
}

/* Find the attempt with this digest, or take a free one. NULL: there is none, and *status is the
 * status with which to refuse the request. */
static struct attempt *
find_attempt(const struct keyed_digest *digest, const struct client_key *client, unsigned *status)
{
    struct attempt *free_one = NULL;
    unsigned number = 0;

    for (unsigned i = 0; i < BASIC_AUTH_ATTEMPTS; i++) {
        struct attempt *attempt = &room->attempts[i];

        if (!attempt->is_busy)
            free_one = attempt;
        else if (is_same_digest(&attempt->digest, digest))
            return attempt;
        else if (memcmp(&attempt->client, client, sizeof(*client)) == 0)
            number++;
    }
    *status = number >= BASIC_AUTH_OF_CLIENT ? 429 : 503;
    return number >= BASIC_AUTH_OF_CLIENT ? NULL : free_one;
}

/* Have a thread check the credentials. 0 or -errno. */
static int
submit_attempt(struct attempt *attempt, const struct passwords *passwords,
               const struct sxe_http_basic *basic)
{
    int result;

    memcpy(attempt->password, basic->password.base, basic->password.length);
    attempt->password[basic->password.length] = '\0';
    attempt->hash = passwords_find(passwords, basic->user, &attempt->is_known);
    attempt->work =
        (struct sxe_work){.run = check_attempt, .done = finish_attempt, .group = room->group};
    result = sxe_work_submit(&attempt->work);
    attempt->is_busy = result == 0;
    return result;
}

/* Find the attempt for these credentials, or begin one. NULL: there is none, and *status is the
 * status with which to refuse the request. */
static struct attempt *
attempt_for(const struct basic_auth *auth, const struct sxe_http_request *request,
            const struct sxe_http_basic *basic, const struct keyed_digest *digest, unsigned *status)
{
    struct sockaddr_storage peer;
    const socklen_t length = sxe_http_peer(request, &peer);
    const struct client_key client = client_key_of(&peer, length);
    struct attempt *attempt = find_attempt(digest, &client, status);

    if (attempt == NULL || attempt->is_busy)
        return attempt;
    attempt->digest = *digest;
    attempt->client = client;
    *status = 503;
    return submit_attempt(attempt, auth->passwords, basic) < 0 ? NULL : attempt;
}

/* ---- Requests ---- */

/* Compute the digest of a login. basic->room has the user, a colon, and the password. */
static struct keyed_digest
digest_of(const struct basic_auth *auth, const struct sxe_http_basic *basic)
{
    const uint64_t key[2] = {room->key[0] ^ (uintptr_t)auth->passwords, room->key[1]};

    return keyed_digest(key, basic->room, basic->user.length + 1 + basic->password.length);
}

static enum basic_auth_result
answer_credentials(enum basic_auth_result result, struct sxe_http_basic *basic)
{
    explicit_bzero(basic->room, sizeof(basic->room));
    return result;
}

enum basic_auth_result
basic_auth_ask(const struct basic_auth *auth, struct sxe_http_request *request,
               struct sxe_http_response *response,
               void (*passed)(struct sxe_http_request *request, struct sxe_http_response *response))
{
    struct sxe_http_basic basic;
    struct keyed_digest digest;
    struct waiter *waiter = room->free;
    struct attempt *attempt;
    unsigned status = 503;
    const int result = sxe_http_basic(request, &basic);

    if (result == -EINVAL)
        (void)sxe_http_reply_status(response, 400);
    else if (result < 0)
        refuse_login(auth, response);
    if (result < 0)
        return answer_credentials(BASIC_AUTH_ANSWERED, &basic);
    digest = digest_of(auth, &basic);
    request->is_authenticated = is_digest_kept(&digest);
    if (request->is_authenticated)
        return answer_credentials(BASIC_AUTH_GOOD, &basic);
    attempt = waiter == NULL ? NULL : attempt_for(auth, request, &basic, &digest, &status);
    if (attempt == NULL) {
        refuse_for_now(response, status);
        return answer_credentials(BASIC_AUTH_ANSWERED, &basic);
    }
    room->free = waiter->next;
    *waiter = (struct waiter){.request = request,
                              .auth = auth,
                              .passed = passed,
                              .attempt = attempt,
                              .next = attempt->waiters};
    attempt->waiters = waiter;
    response->user = waiter;
    response->on_done = on_gone;
    return answer_credentials(BASIC_AUTH_LATER, &basic);
}

/* ---- The beginning and the end ---- */

int
basic_auth_begin(void)
{
    room = calloc(1, sizeof(*room));
    if (room == NULL)
        return -ENOMEM;
    if (getrandom(room->key, sizeof(room->key), 0) < 0)
        return -errno;
    for (unsigned i = 0; i < BASIC_AUTH_WAITERS; i++)
        give_waiter(&room->waiters[i]);
    room->group = sxe_work_register_group(BASIC_AUTH_THREADS);
    return 0;
}

void
basic_auth_end(void)
{
    if (room != NULL)
        explicit_bzero(room, sizeof(*room));
    free(room);
    room = NULL;
}
