/* SPDX-License-Identifier: MIT
 *
 * What: the words of a route before it is in the tree: the list of its methods, the text for Allow
 * made from it, and the parts of its pattern.
 *
 *     sxe-http-route-pattern.c   reads the words, and says what is wrong with them
 *     sxe-http-router.c          the tree
 */
#ifndef SXE_HTTP_ROUTER_PRIVATE_H
#define SXE_HTTP_ROUTER_PRIVATE_H

#include "sxe-http-router.h"

enum {
    /* the most parts of a pattern: its parameters, and the literals between and around them */
    SXE__HTTP_PARTS_MAX = 2 * SXE_HTTP_ROUTE_PARAMETERS + 1,
    SXE__HTTP_ROUTE_ERROR_MAX = 256
};

enum sxe__http_part_kind { SXE__HTTP_LITERAL, SXE__HTTP_PARAMETER, SXE__HTTP_TAIL };

/* A part of a pattern. Its texts are offsets into the pattern. */
struct sxe__http_part {
    enum sxe__http_part_kind kind;
    struct sxe_http_text text; /* the literal, or the literal after a parameter */
};

/* A route's texts as they were given, and the pattern's parts. */
struct sxe__http_words {
    const char *methods;
    const char *pattern;
    char *error; /* room for SXE__HTTP_ROUTE_ERROR_MAX bytes */
    struct sxe__http_part parts[SXE__HTTP_PARTS_MAX];
    unsigned parts_number;
    struct sxe_http_text names[SXE_HTTP_ROUTE_PARAMETERS];
    unsigned names_number;
};

/* A text for Allow: first the methods that enum sxe_http_method knows, in the enum's order; then
 * other methods in the order in which they were added. */
struct sxe__http_allow {
    unsigned known; /* one bit for each method of the enum; the bit of OTHER means nothing */
    size_t length;
    size_t others; /* where the other methods begin in `text` */
    char *text;
};

/* Parse words in which methods, pattern and error are set, and all other members are 0. 0; -EINVAL:
 * the message is in `error`. */
int sxe__http_words_parse(struct sxe__http_words *words);

/* Write the message that says what is wrong with the route. Returns -error. */
SXE_PRINTF(3, 4)
int sxe__http_words_refuse(const struct sxe__http_words *words, int error, const char *format, ...);

/* Take the next method of a list such as "GET,POST". *rest moves past it. False: there are no
 * more. */
bool sxe__http_methods_next(const char **rest, struct sxe_span *method);
bool sxe__http_methods_have(const char *list, struct sxe_span method);

/* Make a text for Allow with more methods added to `old`, whose text may be NULL. The caller owns
 * the new text. If the text is NULL, there is no memory. */
struct sxe__http_allow sxe__http_allow_with(const struct sxe__http_allow *old, const char *methods);

#endif
