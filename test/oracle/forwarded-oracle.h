/* SPDX-License-Identifier: MIT
 *
 * What: a line of Forwarded read from the left, by regular expressions that spell the grammar of
 * RFC 7239. forwarded_oracle_compare() says what differs from our reading from the right, or NULL.
 * Place: included by test-http-forwarded.c and fuzz-http-forwarded.c.
 *
 * Shape: only lines that are good as a whole can be read from the left. Ours reads the end of other
 * lines as well; check_suffix() of the fuzzer looks at these.
 */
#ifndef FORWARDED_ORACLE_H
#define FORWARDED_ORACLE_H

#include <netdb.h>
#include <netinet/in.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sxe-http-forwarded.h"

#define FORWARDED_ELEMENTS 64
#define FORWARDED_LINE     1024

#define TOKEN   "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
#define PAIR    "(" TOKEN ")=(" TOKEN "|\"[] !#-[^-~]*\")"
#define OWS     "[ \t]*"
#define ELEMENT OWS "(" PAIR ")?(" OWS ";" OWS "(" PAIR ")?)*" OWS
#define PORT    "(:([0-9]{1,5}|_[0-9A-Za-z._-]+))?"
#define OCTET   "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define IPV4    OCTET "\\." OCTET "\\." OCTET "\\." OCTET

enum forwarded_verdict { FORWARDED_GOOD, FORWARDED_BAD, FORWARDED_EITHER };

struct forwarded_element {
    bool is_there;
    enum forwarded_verdict verdict;
    char name[4][FORWARDED_LINE]; /* values of for, proto, host, by; "": none */
    bool has[4];
};

static regex_t *
forwarded_regex(unsigned which, const char *pattern)
{
    static regex_t compiled[8];
    static bool is_compiled[8];

    if (!is_compiled[which] && regcomp(&compiled[which], pattern, REG_EXTENDED | REG_ICASE) != 0)
        abort();
    is_compiled[which] = true;
    return &compiled[which];
}

static bool
forwarded_fits(unsigned which, const char *pattern, const char *text)
{
    return regexec(forwarded_regex(which, pattern), text, 0, NULL, 0) == 0;
}

/* The address of a node, without its port; length 0: hidden. False: it is no node. */
static bool
forwarded_node(const char *text, struct sockaddr_storage *address, socklen_t *length)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char host[FORWARDED_LINE];
    const char *port = strrchr(text, ':');
    const bool is_bracketed = *text == '[';

    *length = 0;
    if (port != NULL && strchr(port, ']') == NULL && port[1] != '_' && atol(port + 1) > 65535)
        return false;
    if (forwarded_fits(0, "^(unknown|_[0-9A-Za-z._-]+)" PORT "$", text))
        return true;
    if (!forwarded_fits(1, "^(" IPV4 "|\\[[0-9a-f:.]+\\])" PORT "$", text))
        return false;
    snprintf(host, sizeof(host), "%.*s",
             (int)strcspn(text + is_bracketed, is_bracketed ? "]" : ":"), text + is_bracketed);
    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return false;
    memcpy(address, found->ai_addr, found->ai_addrlen);
    *length = found->ai_addrlen;
    freeaddrinfo(found);
    return !is_bracketed || address->ss_family == AF_INET6;
}

static void
forwarded_judge(struct forwarded_element *element, enum forwarded_verdict verdict)
{
    if (element->verdict != FORWARDED_BAD)
        element->verdict = verdict;
}

/* Judge the element by this value. */
static void
forwarded_value(struct forwarded_element *element, unsigned name)
{
    const char *text = element->name[name];
    struct sockaddr_storage address;
    socklen_t length;

    if (name == 0 || name == 3) {
        if (!forwarded_node(text, &address, &length))
            forwarded_judge(element, FORWARDED_BAD);
    } else if (name == 1) {
        if (!forwarded_fits(2, "^[a-z][a-z0-9+.-]*$", text))
            forwarded_judge(element, FORWARDED_BAD);
    } else if (!forwarded_fits(3, "^[]a-z0-9.:_~!$&'()*+,;=%[-]+$", text)) {
        forwarded_judge(element, FORWARDED_BAD);
    } else if (!forwarded_fits(4, "^[a-z0-9]+(\\.[a-z0-9]+)*(:[0-9]{1,5})?$", text)) {
        forwarded_judge(element, FORWARDED_EITHER); /* RFC 3986 has the whole of it */
    }
}

static void
forwarded_pair(struct forwarded_element *element, const char *text, const regmatch_t *match)
{
    static const char *const names[] = {"for", "proto", "host", "by"};
    const char *value = text + match[3].rm_so;
    size_t length = (size_t)(match[3].rm_eo - match[3].rm_so);

    element->is_there = true;
    if (*value == '"') {
        value++;
        length -= 2;
    }
    for (unsigned i = 0; i < 4; i++) {
        const size_t size = (size_t)(match[2].rm_eo - match[2].rm_so);

        if (size != strlen(names[i]) || strncasecmp(text + match[2].rm_so, names[i], size) != 0)
            continue;
        if (element->has[i])
            forwarded_judge(element, FORWARDED_BAD);
        element->has[i] = true;
        snprintf(element->name[i], FORWARDED_LINE, "%.*s", (int)length, value);
        forwarded_value(element, i);
    }
}

/* Read a good line from the left. Returns the number of elements. */
static unsigned
forwarded_read(const char *text, struct forwarded_element *elements)
{
    unsigned number = 0;
    regmatch_t match[5];

    memset(elements, 0, FORWARDED_ELEMENTS * sizeof(*elements));
    while (regexec(forwarded_regex(5, "^" OWS "(" PAIR ")?" OWS "([;,]|$)"), text, 5, match, 0) ==
           0) {
        const char *end = text + match[4].rm_so;

        if (match[1].rm_so >= 0)
            forwarded_pair(&elements[number], text, match);
        if (*end != ';')
            number += elements[number].is_there;
        if (*end == '\0')
            break;
        text = end + 1;
    }
    return number;
}

static bool
forwarded_is_text(struct sxe_span span, const char *text)
{
    return span.length == strlen(text) && memcmp(span.base, text, span.length) == 0;
}

static const char *
forwarded_compare(const struct forwarded_element *theirs, const struct sxe_http_hop *ours)
{
    struct sockaddr_storage address;
    socklen_t length = 0;

    if (theirs->has[0] && !forwarded_node(theirs->name[0], &address, &length))
        return "a node is none";
    if (length != ours->address_length)
        return "another kind of address";
    if (length == sizeof(struct sockaddr_in) &&
        memcmp(&((const struct sockaddr_in *)&ours->address)->sin_addr,
               &((const struct sockaddr_in *)&address)->sin_addr, 4) != 0)
        return "another IPv4 address";
    if (length == sizeof(struct sockaddr_in6) &&
        memcmp(&((const struct sockaddr_in6 *)&ours->address)->sin6_addr,
               &((const struct sockaddr_in6 *)&address)->sin6_addr, 16) != 0)
        return "another IPv6 address";
    if ((ours->proto.base != NULL) != theirs->has[1] ||
        (theirs->has[1] && !forwarded_is_text(ours->proto, theirs->name[1])))
        return "another proto";
    if ((ours->host.base != NULL) != theirs->has[2] ||
        (theirs->has[2] && !forwarded_is_text(ours->host, theirs->name[2])))
        return "another host";
    return NULL;
}

/* text ends with a NUL, which does not count. */
static const char *
forwarded_oracle_compare(const char *text, size_t length)
{
    static struct forwarded_element elements[FORWARDED_ELEMENTS];
    struct sxe_span rest = {text, length};
    unsigned number;

    if (length >= FORWARDED_LINE || strlen(text) != length ||
        !forwarded_fits(6, "^" ELEMENT "(," ELEMENT ")*$", text))
        return NULL;
    number = 1;
    for (const char *p = text; *p != '\0'; p++)
        number += *p == ',';
    if (number > FORWARDED_ELEMENTS)
        return NULL;
    number = forwarded_read(text, elements);
    while (number-- > 0) {
        const struct forwarded_element *theirs = &elements[number];
        struct sxe_http_hop ours;
        const char *difference;

        if (sxe_http_forwarded_last(&rest, &ours) <= 0)
            return theirs->verdict == FORWARDED_GOOD ? "a good element was refused" : NULL;
        if (theirs->verdict == FORWARDED_BAD)
            return "a bad element was taken";
        difference = forwarded_compare(theirs, &ours);
        if (difference != NULL)
            return difference;
    }
    {
        struct sxe_http_hop more;

        return sxe_http_forwarded_last(&rest, &more) == 0 ? NULL : "an element more";
    }
}

#endif
