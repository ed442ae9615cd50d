/* SPDX-License-Identifier: MIT
 *
 * What: lists of networks, "127.0.0.1, 10.0.0.0/8, 2001:db8::/32", and whether an address is in one
 * of them.
 *
 * Place: a program reads such a list from its options, and asks it about the address of a peer: for
 * example, whether the peer is a trusted proxy. Pure: no I/O, no allocation.
 *
 * Shape: everything is an IPv6 address; IPv4 is ::ffff:0:0/96, so that a client that a dual-stack
 * listener shows as ::ffff:10.1.2.3 is in 10.0.0.0/8. A shorter prefix than /96 matches IPv6 alone:
 * ::/0 is all of IPv6 and nothing of IPv4.
 *
 *     10.0.0.0/8  ->  ::ffff:10.0.0.0 / 104
 *
 * Limits: SXE_CIDR_MAX networks; a match looks at each. No names, no zones. A port or scope of the
 * address is ignored.
 *
 * Example:
 *     struct sxe_cidr_list trusted = {0};
 *     struct sxe_span wrong;
 *
 *     if (sxe_cidr_add(&trusted, "127.0.0.0/8, ::1, unix", &wrong) < 0)
 *         fprintf(stderr, "'%.*s' is not a network\n", (int)wrong.length, wrong.base);
 *     if (sxe_cidr_match(&trusted, (const struct sockaddr *)&peer))
 *         believe(this);
 */
#ifndef SXE_CIDR_H
#define SXE_CIDR_H

#include <stdbool.h>
#include <sys/socket.h>

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_CIDR_MAX 64

struct sxe_cidr {
    uint8_t address[16]; /* the network's first address */
    uint8_t bits;        /* how many of the address's first bits are compared: 0 to 128 */
};

/* {0} is the empty list. */
struct sxe_cidr_list {
    struct sxe_cidr networks[SXE_CIDR_MAX]; /* ro */
    unsigned number;                        /* ro */
    bool has_unix;                          /* ro: whether peers on unix sockets match */
};

/* Add networks separated by commas, blanks around them allowed: an address, an address and how many
 * bits of it count ("10.0.0.0/8"), or "unix", which is every peer on a unix socket. 0; -EINVAL: an
 * item is none of these, or has bits set after those that count; -ENOSPC: more than SXE_CIDR_MAX.
 * After an error the list is unchanged, and *wrong (may be NULL) is the faulty item in text. */
SXE_PUBLIC SXE_MUST_USE int sxe_cidr_add(struct sxe_cidr_list *list, const char *text,
                                         struct sxe_span *wrong);

/* Whether address is in one of the networks: false for NULL, and for other families than IPv4, IPv6
 * and unix. */
SXE_PUBLIC bool sxe_cidr_match(const struct sxe_cidr_list *list, const struct sockaddr *address);

/* Whether an address as text is of the public internet. False for loopback, private, link-local and
 * reserved ones (RFC 6890), for those of IPv4 inside of IPv6, too, and for a text that is no
 * address. For a client that calls URLs of strangers. */
SXE_PUBLIC bool sxe_cidr_is_public(const char *ip);

#ifdef __cplusplus
}
#endif

#endif
