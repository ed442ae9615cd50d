/* SPDX-License-Identifier: MIT
 *
 * What: one connection or two, each from a plain socket to a socket of the library, to which the
 * test writes. Place: tests of output; based on sxe-fixture.h.
 *
 *     open_pair(NULL);
 *     ck_assert_int_eq(sxe_write(ours, "hello", 5), 0);
 *     PEER_EXPECT(peer, "hello");
 *     close_pair();
 */
#ifndef PAIR_H
#define PAIR_H

#include <check.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pattern.h"

static SXE *ours;
static int peer;
static SXE *other;
static int other_peer = -1;

static inline void
open_pair(const struct sxe_config *config)
{
    plan_start_with(10, config);
    ours = accept_peer(listen_tcp(push_read), &peer);
}

static inline void
open_two_pairs(void)
{
    SXE *listener;

    plan_start(10);
    listener = listen_tcp(push_read);
    ours = accept_peer(listener, &peer);
    other = accept_peer(listener, &other_peer);
}

static inline void
close_pair(void)
{
    close(peer);
    plan_stop();
}

static inline void
close_two_pairs(void)
{
    close(other_peer);
    close_pair();
}

/* Run fn in an event of the socket `ours`. */
static inline void
in_event(void (*fn)(SXE *))
{
    ck_assert_int_eq(sxe_defer(ours, fn), 0);
    turn(1);
}

/* Open a file that contains the first `length` bytes of the pattern. */
static inline int
pattern_file(size_t length)
{
    int fd = memfd_create("pattern", MFD_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, pattern(length), length, 0), (ssize_t)length);
    return fd;
}

#endif
