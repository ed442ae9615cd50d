/* SPDX-License-Identifier: MIT
 *
 * What: sessions: a scenario whose requests are steps. A virtual user takes one step after the
 * other, with cookies, and with values from rows of a file or from earlier replies. Place: a part
 * of script.h. If scenario.c finds `steps` in the table, it calls load_sessions_load.
 *
 * Shape: the table is read once, by Lua, into steps that are made of pieces; no query calls Lua. A
 * user is a socket of the worker, which asks for its next query and tells what became of it:
 *
 *     steps[2]  target  "/items/" {id}            {id} is percent-encoded there
 *               fields  "If-None-Match: " {etag} "\r\n" ...
 *               body    "user=" {user} "&csrf=" {token}
 *               takes   token <- pattern, etag <- header ...
 *
 *     next() ... read() what the reply has ... ended() --ok--> the next step, or a new session
 *                                                     '-bad--> the session has failed: a new one
 *
 *     session.c         the supplier: users, steps, rows        session-read.c   the table
 *     session-compose.c a query from a step's pieces            session-text.c   texts with places
 *     session-reply.c   what a reply gives                      session-body.c   forms, multipart
 *     session-follow.c  where a redirect leads                  session-data.c   the file of rows
 *
 * Limits: LOAD_STEPS_MAX steps; LOAD_NAMES_MAX names of values. A value that is taken from a reply
 * has at most LOAD_TAKEN_MAX bytes, and all values of a user together LOAD_TAKEN_ROOM. After
 * begin() no memory is allocated.
 */
#ifndef LOAD_SESSION_PRIVATE_H
#define LOAD_SESSION_PRIVATE_H

#include "cookie-jar.h"
#include "expect.h"
#include "rows.h"
#include "script-private.h"
#include "take-json.h"
#include "take-pattern.h"

#define LOAD_STEPS_MAX  64
#define LOAD_NAMES_MAX  64
#define LOAD_TAKES_MAX  8 /* the most values that a step may take from a reply */
#define LOAD_PARTS_MAX  32
#define LOAD_PIECES_MAX 4096
#define LOAD_TAKEN_MAX  4096
#define LOAD_TAKEN_ROOM 16384
#define LOAD_TARGET_MAX 2048
#define LOAD_FOLLOW_MAX 20
#define LOAD_WHY_MAX    128
#define LOAD_LITERAL    UINT16_MAX
#define LOAD_NO_ROW     UINT64_MAX

/* How a value is escaped where it is inserted. */
enum load_escape {
    LOAD_ESCAPE_NONE, /* in a body: no escape */
    /* in a path: all bytes but unreserved characters become %XX (RFC 3986, 2.3) */
    LOAD_ESCAPE_URL,
    /* {raw:x} in a path: only bytes that are not allowed in a target become %XX */
    LOAD_ESCAPE_RAW,
    LOAD_ESCAPE_FIELD, /* in a header: control bytes become blanks (RFC 9110, 5.5) */
    LOAD_ESCAPE_FORM,  /* in a form: application/x-www-form-urlencoded (WHATWG URL, 5.2) */
    LOAD_ESCAPE_JSON,  /* {json:x}: escaped as in a JSON string, without the quotes (RFC 8259, 7) */
};

/* A part of a text: constant bytes, or the place of a value. */
struct load_piece {
    const char *text;
    uint32_t length;
    uint16_t value; /* the index of the value; LOAD_LITERAL: the piece is constant text */
    uint8_t escape;
};

/* Consecutive elements of the array `pieces`. */
struct load_pieces {
    uint32_t first;
    uint32_t number;
};

struct load_take {
    uint16_t value;
    const char *name;
    /* where the value is taken from: exactly one of header, json and pattern is set */
    const char *header;
    const struct load_json_path *json;
    const struct load_pattern *pattern;
    const char *what; /* the source's name in messages, such as "header ETag" */
};

/* A part of multipart/form-data (RFC 7578). */
struct load_form_part {
    struct load_pieces head; /* the header fields of the part */
    struct load_pieces content;
    bool has_values;
};

enum load_content { LOAD_CONTENT_NONE, LOAD_CONTENT_BODY, LOAD_CONTENT_FORM, LOAD_CONTENT_PARTS };

struct load_user_step {
    const char *where; /* the step's name in messages, "steps[2]" */
    const char *method;
    uint16_t kind;
    bool is_head;
    bool is_last;
    bool wants_head;
    bool wants_body;
    bool has_expect;
    bool has_own_type; /* whether the step's headers have a Content-Type */
    uint8_t content;   /* enum load_content */
    unsigned follow;   /* the largest number of redirects to follow; 0: follow none */
    uint64_t pause_min_ns;
    uint64_t pause_max_ns;
    struct load_expect expect;
    struct load_pieces target;
    struct load_pieces fields;
    /* the value of Content-Type in the step's headers, if has_own_type */
    struct load_pieces own_type;
    struct load_pieces body;
    unsigned parts_number;
    struct load_form_part parts[LOAD_PARTS_MAX];
    unsigned takes_number;
    struct load_take takes[LOAD_TAKES_MAX];
};

/* Where a value comes from. */
struct load_value_name {
    const char *name;
    size_t length;
    uint16_t column; /* the column of the rows; LOAD_LITERAL: a step takes the value from a reply */
};

struct load_user {
    uint64_t row;
    uint16_t step;
    uint8_t hops;    /* how many redirects of this step were followed */
    bool is_hop;     /* whether the next query follows a redirect, to `target` */
    bool is_get;     /* whether the query that follows a redirect is a GET (RFC 9110, 15.4) */
    bool has_failed; /* whether the reply cannot be used; `why` of load_sessions says why */
    uint16_t target_length;
    uint16_t used; /* how many bytes of `text` are used */
    struct {
        uint16_t at;
        uint16_t length;
    } values[LOAD_NAMES_MAX];     /* where in `text` each taken value lies */
    char target[LOAD_TARGET_MAX]; /* the target of the query in flight, or of the next redirect */
    struct load_jar jar;
    char text[LOAD_TAKEN_ROOM];
};

/* A user begins at a page of memory, so that the memory that a session uses lies in as few pages as
 * possible. */
#define LOAD_PAGE      4096
#define LOAD_USER_SIZE ((sizeof(struct load_user) + LOAD_PAGE - 1) / LOAD_PAGE * LOAD_PAGE)

enum load_order { LOAD_IN_TURN, LOAD_ONCE, LOAD_RANDOM };

/* Bytes that are put together. There is always room for all of them: see load_session_measure. */
struct load_bytes {
    char *bytes;
    size_t length;
};

struct load_sessions {
    struct load_user_step steps[LOAD_STEPS_MAX];
    unsigned number;
    bool has_cookies;
    struct load_piece pieces[LOAD_PIECES_MAX];
    uint32_t pieces_number;
    struct load_value_name names[LOAD_NAMES_MAX];
    unsigned names_number;
    struct sxe_span host; /* the host of the authority, for cookies */
    const char *authority;
    const char *version;    /* the version of HTTP, "1.1" */
    struct load_rows *rows; /* NULL: there is no file of rows */
    const char *data;       /* the name of the file of rows */
    enum load_order order;
    char *file;          /* the bytes of a file that is to be uploaded, while it is read */
    size_t request_room; /* the length of the longest request that the steps can make, in bytes */
    char boundary[40];
    /* whether the boundary is another one than before the run, so that all parts have to be
     * searched for it */
    bool is_boundary_new;

    /* Members for the worker process */
    char *users; /* users_number times LOAD_USER_SIZE bytes, mapped */
    uint32_t users_number;
    uint64_t given; /* how many rows the users of this worker have got */
    unsigned shard;
    unsigned shards;
    uint64_t random;
    /* room for a request of request_room bytes, and after it for a body of as many bytes */
    char *request;
    char why[LOAD_WHY_MAX]; /* why the last reply that was read cannot be used */
};

static inline struct load_user *
load_session_user(struct load_sessions *sessions, uint32_t client)
{
    return (struct load_user *)(void *)(sessions->users + client * LOAD_USER_SIZE);
}

/* ---- session-read.c, session-text.c, session-body.c, session-data.c: call them inside
 * load_lua_call ---- */

/* Read the scenario's table, which is at index 2. */
void load_sessions_read(lua_State *L, struct load_script *script);
void load_session_read_data(lua_State *L, struct load_script *script);

/* Push the path of a file that the scenario names; it is relative to the scenario's own folder. */
const char *load_session_push_path(lua_State *L, const struct load_script *script,
                                   const char *name);

void load_session_add_literal(lua_State *L, struct load_sessions *sessions, struct load_pieces *to,
                              const char *text, size_t length);

/* Add a text that has places like {name}. The values that are inserted in these places get this
 * escape. where: the text's place in the script, for messages. The text must stay valid. */
void load_session_add_text(lua_State *L, struct load_sessions *sessions, struct load_pieces *to,
                           const char *where, struct sxe_span text, enum load_escape escape);
bool load_session_has_values(const struct load_sessions *sessions, struct load_pieces pieces);

/* Replace the table of names and values at the top of the stack by a list of pairs. If the table is
 * itself a list, keep its order; otherwise order the pairs by name. */
void load_session_push_pairs(lua_State *L, const char *where);

/* Read the keys form and multipart of the step's table. */
void load_session_read_form(lua_State *L, struct load_sessions *sessions,
                            struct load_user_step *step, int table);
void load_session_read_parts(lua_State *L, struct load_script *script, struct load_user_step *step,
                             int table);

/* ---- session-compose.c ---- */

/* Append the bytes of a value, escaped. */
void load_session_put(struct load_bytes *to, enum load_escape escape, struct sxe_span value);

/* Set request_room. Call this function after all steps were read. */
void load_session_measure(struct load_sessions *sessions);
void load_session_compose(struct load_sessions *sessions, struct load_user *user,
                          struct load_query *query);
struct sxe_span load_session_value(const struct load_sessions *sessions,
                                   const struct load_user *user, unsigned value);

/* Choose a boundary for multipart/form-data that was not used before. */
void load_session_new_boundary(struct load_sessions *sessions);
uint64_t load_session_random(struct load_sessions *sessions);

/* ---- session-reply.c, session-follow.c ---- */

enum load_reading load_session_read_reply(struct load_sessions *sessions, struct load_user *user,
                                          const struct load_exchange *exchange);

/* Find a field with this name in a head, from offset *at on, and move *at after it. False: there is
 * none. */
bool load_session_find_field(struct sxe_span head, const char *name, size_t *at,
                             struct sxe_span *value);

/* Set the user's target to the target to which the Location leads. NULL, or what is wrong. */
const char *load_session_follow(const struct load_sessions *sessions, struct load_user *user,
                                struct sxe_span location);

#endif
