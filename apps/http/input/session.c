/* SPDX-License-Identifier: MIT
 *
 * What: sessions as a supplier of requests. It knows at which step each user is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "result.h"
#include "session-private.h"

/* ---- Rows ---- */

/* How many of this worker's rows were given to no session yet; UINT64_MAX if rows may be used
 * again, or if there are none. */
static uint64_t
rows_left(const struct load_sessions *sessions)
{
    uint64_t number, share;

    if (sessions->rows == NULL || sessions->order != LOAD_ONCE)
        return UINT64_MAX;
    number = sessions->rows->number;
    share = number / sessions->shards + (sessions->shard < number % sessions->shards);
    return share - sessions->given;
}

/* Choose the row of the next session. In turn, worker i of n takes the rows i, i + n, i + 2n ...,
 * so all workers together use the rows as one worker would. */
static uint64_t
take_row(struct load_sessions *sessions)
{
    uint64_t number = sessions->rows != NULL ? sessions->rows->number : 1;
    uint64_t row = (sessions->shard + sessions->given * sessions->shards) % number;

    sessions->given++;
    return sessions->order == LOAD_RANDOM ? load_session_random(sessions) % number : row;
}

/* Begin a session at the first step, with a new row, and without the cookies and values of the last
 * session. False: no row is left. */
static bool
start_session(struct load_sessions *sessions, struct load_user *user)
{
    user->step = 0;
    user->hops = 0;
    user->is_hop = user->is_get = false;
    user->used = 0;
    memset(user->values, 0, sizeof(user->values));
    load_jar_clear(&user->jar);
    if (rows_left(sessions) == 0)
        return false;
    user->row = take_row(sessions);
    return true;
}

/* ---- In a worker ---- */

static int
next_session_query(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    struct load_script *script = (struct load_script *)requests;
    struct load_sessions *sessions = script->sessions;
    struct load_user *user = load_session_user(sessions, query->client);
    const struct load_user_step *step = &sessions->steps[user->step];
    uint64_t span_ns = step->pause_max_ns - step->pause_min_ns;

    SXE_UNUSED_PARAMETER(sequence);
    user->has_failed = false;
    load_session_compose(sessions, user, query);
    query->kind = step->kind;
    query->is_head = step->is_head;
    query->is_last = step->is_last;
    query->expect = step->has_expect ? &step->expect : NULL;
    query->skips_reply = !step->wants_head;
    query->skips_body = !step->wants_body;
    if (!user->is_hop && step->pause_max_ns > 0)
        query->delay_ns = step->pause_min_ns + load_session_random(sessions) % (span_ns + 1);
    return 0;
}

static enum load_reading
read_reply(struct load_requests *requests, const struct load_exchange *exchange)
{
    struct load_sessions *sessions = ((struct load_script *)requests)->sessions;
    struct load_user *user = load_session_user(sessions, exchange->client);

    return load_session_read_reply(sessions, user, exchange);
}

static void
note_failure(struct load_script *script, const struct load_user *user, enum load_end end)
{
    static const char *const texts[] = {
#define TEXT(enumerator, text, name) text,
        LOAD_EACH_END(TEXT)
#undef TEXT
    };
    struct load_script_slot *slot = &script->slots[script->shard];
    const struct load_sessions *sessions = script->sessions;
    const struct load_user_step *step = &sessions->steps[user->step];

    if (slot->failed_checks++ == 0)
        snprintf(slot->reason, sizeof(slot->reason), "%s (%s): %s", step->where,
                 script->names[step->kind],
                 end == LOAD_END_FAILED_CHECK ? sessions->why : texts[end]);
}

static unsigned
end_step(struct load_requests *requests, uint32_t client, unsigned end)
{
    struct load_script *script = (struct load_script *)requests;
    struct load_sessions *sessions = script->sessions;
    struct load_user *user = load_session_user(sessions, client);
    unsigned went = LOAD_SESSION_COMPLETED;

    if (end == LOAD_END_OK && user->is_hop)
        return 0;
    if (end == LOAD_END_OK && user->step + 1u < sessions->number) {
        user->step++;
        user->hops = 0;
        return 0;
    }
    if (end != LOAD_END_OK) {
        note_failure(script, user, (enum load_end)end);
        went = LOAD_SESSION_FAILED;
    }
    return start_session(sessions, user) ? went : went | LOAD_SESSION_LAST;
}

/* Map memory for all users. Physical memory is needed only for users that are used. False: there is
 * no memory. */
static bool
map_users(struct load_sessions *sessions, uint32_t clients)
{
    size_t size = clients * LOAD_USER_SIZE;

    sessions->users = mmap(NULL, size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sessions->users == MAP_FAILED)
        sessions->users = NULL;
    sessions->request = malloc(2 * sessions->request_room);
    return sessions->users != NULL && sessions->request != NULL;
}

static void
give_memory_back(struct load_sessions *sessions)
{
    if (sessions->users != NULL)
        munmap(sessions->users, sessions->users_number * LOAD_USER_SIZE);
    free(sessions->request);
    sessions->users = NULL;
    sessions->request = NULL;
}

static int
begin_sessions(struct load_requests *requests, unsigned shard, unsigned shards, uint64_t seed)
{
    struct load_script *script = (struct load_script *)requests;
    struct load_sessions *sessions = script->sessions;

    load_script_begin(script, shard, shards, script->parent);
    sessions->shard = shard;
    sessions->shards = shards;
    sessions->given = 0;
    sessions->random = seed ^ (uint64_t)shard << 32;
    /* mmap(2) refuses a length of 0 */
    sessions->users_number = requests->clients > 0 ? requests->clients : 1;
    if (!map_users(sessions, sessions->users_number)) {
        give_memory_back(sessions);
        fprintf(script->err, "sxe-http: %s: no memory for %u users; give fewer connections (-c)\n",
                script->options.path, (unsigned)sessions->users_number);
        load_script_fail(script);
        return -ENOMEM;
    }
    if (rows_left(sessions) < requests->clients)
        requests->clients = (uint32_t)rows_left(sessions);
    for (uint32_t i = 0; i < requests->clients; i++)
        (void)start_session(sessions, load_session_user(sessions, i));
    return 0;
}

static void
end_sessions(struct load_requests *requests, uint64_t *calls, uint64_t *ns)
{
    give_memory_back(((struct load_script *)requests)->sessions);
    load_script_end(requests, calls, ns);
}

/* ---- In the parent ---- */

void
load_sessions_load(lua_State *L, struct load_script *script)
{
    script->sessions = calloc(1, sizeof(*script->sessions));
    if (script->sessions == NULL)
        luaL_error(L, "no memory for the sessions");
    script->requests.begin = begin_sessions;
    script->requests.next = next_session_query;
    script->requests.replied = NULL;
    script->requests.read = read_reply;
    script->requests.ended = end_step;
    script->requests.end = end_sessions;
    script->requests.wants_replies = true;
    load_sessions_read(L, script);
}

void
load_sessions_free(struct load_sessions *sessions)
{
    if (sessions == NULL)
        return;
    give_memory_back(sessions);
    for (unsigned i = 0; i < LOAD_STEPS_MAX; i++)
        load_expect_clear_body(&sessions->steps[i].expect);
    load_rows_free(sessions->rows);
    free(sessions->file);
    free(sessions);
}
