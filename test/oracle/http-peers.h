/* SPDX-License-Identifier: MIT
 *
 * What: other HTTP parsers behind one interface, for comparison with ours: those of the packages
 * libhttp-parser-dev and node-llhttp (Node's). They are used where installed, never copied here.
 * Place: peer-*.c, one a parser, are compiled by the Makefile when the parser is there; without it
 * http_peer() is NULL, and what compares skips it and says so.
 */
#ifndef HTTP_PEERS_H
#define HTTP_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_PEER_FIELDS_MAX = 256, HTTP_PEER_BODY_MAX = 65536 };

struct http_peer_span {
    const char *base;
    size_t length;
};

/* The result of a parser. */
struct http_peer_message {
    bool head;     /* the head is whole */
    bool complete; /* the body too */
    bool refused;
    bool keep_alive;
    unsigned minor;
    unsigned status;
    const char *why; /* the reason of a refusal, in the parser's words */
    struct http_peer_span target;
    size_t fields; /* fields that have begun */
    size_t values;
    struct http_peer_span names[HTTP_PEER_FIELDS_MAX];
    struct http_peer_span field_values[HTTP_PEER_FIELDS_MAX];
    size_t body_length;
    char body[HTTP_PEER_BODY_MAX];
};

struct http_peer {
    const char *name;
    /* Parse one message, in one piece, with a fresh parser. */
    void (*parse)(bool is_response, const char *data, size_t length,
                  struct http_peer_message *message);
    /* Parse the same request without a body `times` times with one parser, and record its spans.
     * Returns how many fields there were in all. */
    size_t (*repeat)(const char *data, size_t length, size_t times);
    /* Like repeat, but without callbacks. */
    void (*repeat_silently)(const char *data, size_t length, size_t times);
};

extern const struct http_peer http_peer_http_parser __attribute__((weak));
extern const struct http_peer http_peer_llhttp __attribute__((weak));

enum { HTTP_PEERS = 2 };

static inline const struct http_peer *
http_peer(unsigned i)
{
    return i == 0 ? &http_peer_http_parser : &http_peer_llhttp;
}

static inline const char *
http_peer_package(unsigned i)
{
    return i == 0 ? "libhttp-parser-dev" : "node-llhttp";
}

/* Add bytes to a name or a value: they follow those that were added last. */
static inline void
http_peer_add(struct http_peer_span *span, const char *at, size_t length)
{
    if (span->base == NULL)
        span->base = at;
    span->length = (size_t)(at + length - span->base);
}

static inline void
http_peer_name(struct http_peer_message *message, const char *at, size_t length)
{
    if (message->fields == message->values && message->fields < HTTP_PEER_FIELDS_MAX) {
        message->names[message->fields] = (struct http_peer_span){at, 0};
        message->field_values[message->fields++] = (struct http_peer_span){NULL, 0};
    }
    if (message->fields > 0)
        http_peer_add(&message->names[message->fields - 1], at, length);
}

static inline void
http_peer_value(struct http_peer_message *message, const char *at, size_t length)
{
    message->values = message->fields;
    if (message->fields > 0)
        http_peer_add(&message->field_values[message->fields - 1], at, length);
}

static inline void
http_peer_body(struct http_peer_message *message, const char *at, size_t length)
{
    for (size_t i = 0; i < length && message->body_length < HTTP_PEER_BODY_MAX; i++)
        message->body[message->body_length++] = at[i];
}

#endif
