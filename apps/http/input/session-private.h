/* SPDX-License-Identifier: MIT
 *
 * What: sessions: a scenario whose requests are steps that one virtual user takes one after the
 * other, with cookies, and with values that came from rows of a file or from earlier replies.
 * Place: inside of script.h: scenario.c finds `steps` in the table and calls http_sessions_load.
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
 *     session.c         the source: users, steps, rows          session-read.c   the table
 *     session-compose.c a query from a step's pieces            session-text.c   texts with places
 *     session-reply.c   what a reply gives                      session-body.c   forms, multipart
 *     session-follow.c  where a redirect leads                  session-data.c   the file of rows
 *
 * Limits: HTTP_STEPS_MAX steps; HTTP_NAMES_MAX names of values; a value that is taken has at most
 * HTTP_TAKEN_MAX bytes, all of a user's HTTP_TAKEN_ROOM. After begin() no memory is asked for.
 */
#ifndef HTTP_SESSION_PRIVATE_H
#define HTTP_SESSION_PRIVATE_H

#include "cookie-jar.h"
#include "expect.h"
#include "rows.h"
#include "script-private.h"
#include "take-json.h"
#include "take-pattern.h"

#define HTTP_STEPS_MAX  64
#define HTTP_NAMES_MAX  64
#define HTTP_TAKES_MAX  8 /* of a step */
#define HTTP_PARTS_MAX  32
#define HTTP_PIECES_MAX 4096
#define HTTP_TAKEN_MAX  4096
#define HTTP_TAKEN_ROOM 16384
#define HTTP_TARGET_MAX 2048
#define HTTP_FOLLOW_MAX 20
#define HTTP_WHY_MAX    128
#define HTTP_LITERAL    UINT16_MAX
#define HTTP_NO_ROW     UINT64_MAX

/* What is done to a value where it is put. */
enum http_escape {
    HTTP_ESCAPE_NONE,  /* a body: nothing */
    HTTP_ESCAPE_URL,   /* a path: all but unreserved characters become %XX (RFC 3986, 2.3) */
    HTTP_ESCAPE_RAW,   /* {raw:x} of a path: only what a target cannot have becomes %XX */
    HTTP_ESCAPE_FIELD, /* a header: control bytes become blanks (RFC 9110, 5.5) */
    HTTP_ESCAPE_FORM,  /* application/x-www-form-urlencoded (WHATWG URL, 5.2) */
    HTTP_ESCAPE_JSON,  /* {json:x}: the inside of a string (RFC 8259, 7) */
};

/* Bytes that stay, or a value. */
struct http_piece {
    const char *text;
    uint32_t length;
    uint16_t value; /* below names_number; HTTP_LITERAL: the text */
    uint8_t escape;
};

/* Pieces that follow one another. */
struct http_pieces {
    uint32_t first;
    uint32_t number;
};

struct http_take {
    uint16_t value;
    const char *name;
    const char *header; /* one of these three */
    const struct http_json_path *json;
    const struct http_pattern *pattern;
    const char *what; /* "header ETag", for messages */
};

/* Of multipart/form-data (RFC 7578). */
struct http_form_part {
    struct http_pieces head; /* its fields */
    struct http_pieces content;
    bool has_values;
};

enum http_content { HTTP_CONTENT_NONE, HTTP_CONTENT_BODY, HTTP_CONTENT_FORM, HTTP_CONTENT_PARTS };

struct http_user_step {
    const char *where; /* "steps[2]" */
    const char *method;
    uint16_t kind;
    bool is_head;
    bool wants_head;
    bool wants_body;
    bool has_expect;
    bool has_own_type; /* headers has a Content-Type */
    uint8_t content;   /* enum http_content */
    unsigned follow;   /* so many redirects at most; 0: none */
    uint64_t pause_min_ns;
    uint64_t pause_max_ns;
    struct http_expect expect;
    struct http_pieces target;
    struct http_pieces fields;
    struct http_pieces own_type; /* that Content-Type */
    struct http_pieces body;
    unsigned parts_number;
    struct http_form_part parts[HTTP_PARTS_MAX];
    unsigned takes_number;
    struct http_take takes[HTTP_TAKES_MAX];
};

/* Where a value comes from. */
struct http_value_name {
    const char *name;
    size_t length;
    uint16_t column; /* of the rows; HTTP_LITERAL: it is taken */
};

struct http_user {
    uint64_t row;
    uint16_t step;
    uint8_t hops;    /* redirects of this step that were followed */
    bool is_hop;     /* the next query is one, to target */
    bool is_get;     /* and its method is GET (RFC 9110, 15.4) */
    bool has_failed; /* what is wrong with the reply is said in why */
    uint16_t target_length;
    uint16_t used; /* of text */
    struct {
        uint16_t at;
        uint16_t length;
    } values[HTTP_NAMES_MAX];     /* in text, of those that are taken */
    char target[HTTP_TARGET_MAX]; /* of the query that is in flight, or of the hop */
    struct http_jar jar;
    char text[HTTP_TAKEN_ROOM];
};

/* Of whole pages, so that each has as few of its own as it can. */
#define HTTP_PAGE      4096
#define HTTP_USER_SIZE ((sizeof(struct http_user) + HTTP_PAGE - 1) / HTTP_PAGE * HTTP_PAGE)

enum http_order { HTTP_IN_TURN, HTTP_ONCE, HTTP_RANDOM };

/* Bytes that are put together. There is always room: see http_session_measure. */
struct http_bytes {
    char *bytes;
    size_t length;
};

struct http_sessions {
    struct http_user_step steps[HTTP_STEPS_MAX];
    unsigned number;
    bool has_cookies;
    struct http_piece pieces[HTTP_PIECES_MAX];
    uint32_t pieces_number;
    struct http_value_name names[HTTP_NAMES_MAX];
    unsigned names_number;
    struct sxe_span host; /* of the authority, for cookies */
    const char *authority;
    const char *version;    /* "1.1" */
    struct http_rows *rows; /* NULL: there is no data */
    const char *data;       /* its name */
    enum http_order order;
    char *file;          /* one that is uploaded, while it is read */
    size_t request_room; /* bytes of the longest request */
    char boundary[40];
    bool is_boundary_new; /* all parts have to be looked at for it */

    /* In a worker */
    char *users; /* [users_number] of HTTP_USER_SIZE bytes, mapped */
    uint32_t users_number;
    uint64_t given; /* rows, so far */
    unsigned shard;
    unsigned shards;
    uint64_t random;
    char *request;          /* [request_room], and behind it the body, which has as much */
    char why[HTTP_WHY_MAX]; /* what is wrong with the reply that was read last */
};

static inline struct http_user *
http_session_user(struct http_sessions *sessions, uint32_t client)
{
    return (struct http_user *)(void *)(sessions->users + client * HTTP_USER_SIZE);
}

/* ---- session-read.c, session-text.c, session-body.c, session-data.c: in http_lua_call ---- */

/* Read the table at index 2. */
void http_sessions_read(lua_State *L, struct http_script *script);
void http_session_read_data(lua_State *L, struct http_script *script);

/* Push the path of a file that the scenario names: from the scenario's own folder. */
const char *http_session_push_path(lua_State *L, const struct http_script *script,
                                   const char *name);

void http_session_add_literal(lua_State *L, struct http_sessions *sessions, struct http_pieces *to,
                              const char *text, size_t length);

/* Add a text with places like {name}, whose values are escaped so; where says where it stands. The
 * text has to stay. */
void http_session_add_text(lua_State *L, struct http_sessions *sessions, struct http_pieces *to,
                           const char *where, struct sxe_span text, enum http_escape escape);
bool http_session_has_values(const struct http_sessions *sessions, struct http_pieces pieces);

/* The names and values of the table at the top of the stack, as a list of pairs in its place: those
 * of a list in its order, others in the order of their names. */
void http_session_push_pairs(lua_State *L, const char *where);

/* form and multipart of the step's table. */
void http_session_read_form(lua_State *L, struct http_sessions *sessions,
                            struct http_user_step *step, int table);
void http_session_read_parts(lua_State *L, struct http_script *script, struct http_user_step *step,
                             int table);

/* ---- session-compose.c ---- */

/* Value bytes, escaped, to the end of what is put together. */
void http_session_put(struct http_bytes *to, enum http_escape escape, struct sxe_span value);

/* What request_room has to be, once all steps are read. */
void http_session_measure(struct http_sessions *sessions);
void http_session_compose(struct http_sessions *sessions, struct http_user *user,
                          struct http_query *query);
struct sxe_span http_session_value(const struct http_sessions *sessions,
                                   const struct http_user *user, unsigned value);

/* A boundary that was not used before. */
void http_session_new_boundary(struct http_sessions *sessions);
uint64_t http_session_random(struct http_sessions *sessions);

/* ---- session-reply.c, session-follow.c ---- */

enum http_reading http_session_read_reply(struct http_sessions *sessions, struct http_user *user,
                                          const struct http_exchange *exchange);

/* The value of a field of a head, from place *at on, which moves after it; false: there is none. */
bool http_session_find_field(struct sxe_span head, const char *name, size_t *at,
                             struct sxe_span *value);

/* The user's target becomes that of the Location. NULL, or what is wrong. */
const char *http_session_follow(const struct http_sessions *sessions, struct http_user *user,
                                struct sxe_span location);

#endif
