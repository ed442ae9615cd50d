/* SPDX-License-Identifier: MIT
 *
 * What: local addresses to connect from. Each has its own ports, so with several addresses more
 * than 28,000 connections to one server are possible. Place: the option --source gives them; the
 * worker asks for the address of its n-th socket.
 *
 * Shape: 127.0.0.1, a list with commas, ranges 127.0.0.1-127.0.0.8, networks 127.0.0.0/28, ::1.
 * Networks leave out their first and last address if they have more than two.
 *
 * Limits: LOAD_LOCAL_ADDRESSES_MAX ranges. Only the ends of a range are stored, so a /8 takes no
 * more memory than one address.
 */
#ifndef LOAD_LOCAL_ADDRESSES_H
#define LOAD_LOCAL_ADDRESSES_H

#include <stddef.h>
#include <stdint.h>

#define LOAD_LOCAL_ADDRESSES_MAX 64

struct load_local_addresses {
    unsigned ranges;
    uint64_t number; /* ro: how many addresses */
    int family;      /* ro: AF_INET or AF_INET6 */
    struct {
        unsigned char first[16];
        uint64_t number;
    } range[LOAD_LOCAL_ADDRESSES_MAX];
};

/* Parse a list of addresses. NULL, or what is wrong, as a text of this thread that names the wrong
 * part of the list. */
const char *load_local_addresses_parse(struct load_local_addresses *local, const char *text);

/* Try whether this machine has the first `number` addresses, at most 1,000. NULL, or the first
 * address that it does not have, as a text of this thread. */
const char *load_local_addresses_try(const struct load_local_addresses *local, uint64_t number);

/* Write the address whose number is nth modulo `number` as text. size is at least
 * INET6_ADDRSTRLEN. */
void load_local_addresses_text(const struct load_local_addresses *local, uint64_t nth, char *text,
                               size_t size);

#endif
