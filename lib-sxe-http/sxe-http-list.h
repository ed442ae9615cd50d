/* SPDX-License-Identifier: MIT
 *
 * What: walks the elements of a field that is a list (RFC 9110, 5.6.1), through all its lines;
 * finds the value of a field that may occur only once; recognises tokens.
 *
 * Place: sxe-http-conditional.h takes such lists; handlers read any other list field with it. Pure:
 * no allocation, nothing copied.
 *
 * Shape: elements are spans of the caller's bytes. A comma inside quotes separates nothing:
 *
 *     If-None-Match: "a,b" ,, W/"c"        two elements: "a,b" and W/"c"
 *     If-None-Match: "d"                   and a third
 *
 * Limits: an element ends with its line, even inside quotes. Empty elements are left out.
 *
 * Example:
 *     struct sxe_http_list list = sxe_http_list_of(&parser, data, SXE_HTTP_FIELD_CACHE_CONTROL);
 *     struct sxe_span element;
 *     while (sxe_http_list_next(&list, &element))
 *         printf("%.*s\n", (int)element.length, element.base);
 */
#ifndef SXE_HTTP_LIST_H
#define SXE_HTTP_LIST_H

#include "sxe-http-parse.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The place in a list that a program walks. All zeros: the field is missing. A copy walks on
 * independently. */
struct sxe_http_list {
    /* private: the rest of the line; base NULL: the field is missing */
    struct sxe_span rest;
    /* private: finds further lines; NULL: the list is one text */
    const struct sxe_http_parser *parser;
    const char *data;                   /* private */
    const struct sxe_http_field *field; /* private: the present line */
    /* The program may set this: a backslash quotes no byte, as in entity tags. */
    bool backslash_is_plain;
};

/* The list of a known field in all its lines. parser and data must stay while the list is
 * walked. */
SXE_PUBLIC struct sxe_http_list sxe_http_list_of(const struct sxe_http_parser *parser,
                                                 const char *data, enum sxe_http_field_id id);

/* Walk a list in one text; base NULL: the field is missing. */
SXE_PUBLIC struct sxe_http_list sxe_http_list_in(struct sxe_span text);

/* Whether the message has the field, even if the field has no element. */
static inline bool
sxe_http_list_is_there(const struct sxe_http_list *list)
{
    return list->rest.base != NULL;
}

/* Get the next element, without the blanks around it. False: there are no more elements. */
SXE_PUBLIC bool sxe_http_list_next(struct sxe_http_list *list, struct sxe_span *element);

/* The text without the blanks and tabs at both ends. */
SXE_PUBLIC struct sxe_span sxe_http_without_blanks(struct sxe_span text);

/* Whether the whole text is a token (RFC 9110, 5.6.2), as names of fields and methods are. */
SXE_PUBLIC bool sxe_http_is_token(struct sxe_span text);

/* Whether the text may be the value of Host (RFC 9112, 3.2): nothing; or a name without an empty
 * label, or an address, perhaps with a port. */
SXE_PUBLIC bool sxe_http_is_host(struct sxe_span text);

/* Whether a field may have this value (RFC 9110, 5.5): no control byte but the tab, no line end. */
SXE_PUBLIC bool sxe_http_is_field_value(struct sxe_span text);

/* The value of a known field that is no list. base NULL: the message does not have the field. An
 * empty value, which no such field may have: the message has the field more than once (RFC 9110,
 * 5.3). */
SXE_PUBLIC struct sxe_span sxe_http_value_of(const struct sxe_http_parser *parser, const char *data,
                                             enum sxe_http_field_id id);

#ifdef __cplusplus
}
#endif

#endif
