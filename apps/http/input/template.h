/* SPDX-License-Identifier: MIT
 *
 * What: makes queries from the command line or from a request file. The bytes of a query are made
 * once; before it is sent, only its places are overwritten. Place: the usual supplier of requests,
 * see requests.h.
 *
 * Shape:  GET /item/{RAND:100:999} HTTP/1.1 CR LF Host: ...      URL, header, body may have places
 *                   ^~~ three digits, overwritten in place: the length never changes
 *
 *     {SEQ}        ten digits, counted over all workers from 0; {SEQ:4} the last four of them
 *     {RAND:a:b}   a to b inclusive, with leading zeros as wide as b
 *     {UUID}       version 4, RFC 9562
 *
 * Other words in braces are left alone, so JSON needs no care; {{SEQ} is the text {SEQ}.
 *
 * Several URLs or requests take turns. A request file has raw requests (CRLF or LF, told apart by
 * their Content-Length; empty lines and lines of # between them), which are sent as they are, but
 * for three things: placeholders are replaced, and Content-Length becomes the length that results;
 * lines end with CRLF; and Host is added if it is missing.
 *
 * Fields: "Name: value" replaces a field that this program adds (Host, User-Agent, Accept); "Name:"
 * leaves that field out, except that Host is then empty. Content-Length is counted here.
 *
 * Limits: LOAD_TEMPLATES_MAX requests; a head of 64 KiB. Requests with the same name are of one
 * kind; if there are more than LOAD_KINDS_MAX names, all requests are of one kind.
 */
#ifndef LOAD_TEMPLATE_H
#define LOAD_TEMPLATE_H

#include "requests.h"

#define LOAD_TEMPLATES_MAX 100000

/* The options and their texts must stay valid as long as requests that were made with them
 * exist. */
struct load_template_options {
    const char *method; /* never NULL; requests of a file do not use it */
    /* texts like "Name: value"; such a field replaces the field of the same name that this program
     * adds */
    const char *const *fields;
    unsigned fields_number;
    const char *body; /* NULL: there is no body */
    size_t body_length;
    bool is_http_1_0;
};

/* Make an empty set of requests. NULL: no memory. The caller frees it with load_templates_free. */
struct load_requests *load_templates_new(const struct load_template_options *options);
void load_templates_free(struct load_requests *requests);

/* Requests that are added from now on are for this host: only the workers that load it send
 * them. */
void load_templates_set_host(struct load_requests *requests, unsigned host);

/* Add a request for a target ("/a?b") at an authority; name is the name of its kind ("GET /a").
 * NULL, or what is wrong, as a text of this thread. */
const char *load_templates_add(struct load_requests *requests, const char *authority,
                               const char *target, const char *name);

/* Add the requests of a file. Requests that have no Host get authority as Host. Returns like
 * load_templates_add. */
const char *load_templates_add_file(struct load_requests *requests, const char *path,
                                    const char *authority);

#endif
