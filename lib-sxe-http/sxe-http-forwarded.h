/* SPDX-License-Identifier: MIT
 *
 * What: the fields in which proxies say whose request they pass on: Forwarded (RFC 7239), and its
 * forerunner X-Forwarded-For.
 *
 * Place: a server reads them from requests of proxies that it trusts, see config.forwarding in
 * sxe-http.h. Pure: bytes in, addresses out; no I/O, no allocation.
 *
 * Shape: each proxy adds an element at the right, so only the right end can be believed. Elements
 * are therefore read from the right; what clients put to their left, be it garbage or an open
 * quote, changes nothing:
 *
 *     Forwarded: for=_lie, for=192.0.2.7;proto=https;host=a.example, for="[2001:db8::1]:4711"
 *                          3rd, if the 2nd is trusted                 2nd, if the peer is trusted
 *                          hop 2                                      hop 1
 *
 * Strict: a name stands once in an element; addresses are of RFC 3986, without zones; an address
 * with a colon is quoted, IPv6 in brackets; ports are numbers up to 65535 or _names; quoted strings
 * have no backslash. Blanks are allowed around commas and semicolons.
 *
 * Limits: none of its own.
 *
 * Example:
 *     struct sxe_span rest = value_of_the_field;
 *     struct sxe_http_hop hop;
 *
 *     while (sxe_http_forwarded_last(&rest, &hop) > 0 && hop.address_length > 0 &&
 *            sxe_cidr_match(&trusted, (const struct sockaddr *)&hop.address))
 *         ;
 */
#ifndef SXE_HTTP_FORWARDED_H
#define SXE_HTTP_FORWARDED_H

#include <sys/socket.h>

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The contents of an element. Spans are parts of the field. */
struct sxe_http_hop {
    /* the address in "for"; its port is 0 if "for" has no port, or a _name as port */
    struct sockaddr_storage address;
    socklen_t address_length; /* 0: there is no "for", or "for" is "unknown" or a _name */
    struct sxe_span proto;    /* base NULL: the element has no "proto" */
    struct sxe_span host;     /* the host, with its port; base NULL: the element has no "host" */
};

/* Take the last element of a line of Forwarded; *rest becomes the bytes before the element. Empty
 * elements are skipped. 1; 0: there is no element; -EINVAL: the end of the line is no element, and
 * *rest is unchanged. */
SXE_PUBLIC SXE_MUST_USE int sxe_http_forwarded_last(struct sxe_span *rest,
                                                    struct sxe_http_hop *hop);

/* Like sxe_http_forwarded_last, for a line of X-Forwarded-For: addresses with or without a port,
 * IPv6 with or without brackets, or "unknown". */
SXE_PUBLIC SXE_MUST_USE int sxe_http_forwarded_for_last(struct sxe_span *rest,
                                                        struct sxe_http_hop *hop);

#ifdef __cplusplus
}
#endif

#endif
