/* SPDX-License-Identifier: MIT
 *
 * What: SipHash-2-4 with 128 bits, the keyed hash of J.-P. Aumasson and D. J. Bernstein.
 *
 * Place: basic-auth.c recognises a user and password that were right by their digest.
 *
 * Limits: an attacker who reads the key in this process's memory can compute digests quickly, and
 * so try many passwords. The key is random and never leaves the process.
 */
#ifndef KEYED_DIGEST_H
#define KEYED_DIGEST_H

#include <stddef.h>
#include <stdint.h>

struct keyed_digest {
    uint64_t half[2];
};

/* The digest of the bytes. The key consists of two numbers. */
struct keyed_digest keyed_digest(const uint64_t key[2], const void *bytes, size_t length);

#endif
