/* SPDX-License-Identifier: MIT
 *
 * What: structs that a program and the library pass to each other, and that later versions make
 * longer. A program that was built with another version's header has a shorter or a longer struct.
 *
 * Place: the friend interface of all libraries; not installed. docs/linking.md has the rules for
 * programs and the table of all public structs.
 *
 * Shape: as openat2(2). The header's inline function passes sizeof, so programs do not write it:
 *
 *     program        sxe_http_new(&config)                     inline, in the header
 *     libsxe.so.0    sxe_http_new_sized(&config, sizeof(config))
 *                      sxe__sized_take(&own, sizeof(own), config, size, ...)
 *
 *     the program's struct is shorter   its header lacks the last members: they are 0 in `own`, so
 *                                       0 must mean what the library did before it had the member
 *     the program's struct is longer    this library lacks members: bytes that are 0 ask for
 *                                       nothing; others are refused with -E2BIG
 *     the library fills the struct      sxe__sized_give: as many bytes as both have; others are 0
 *
 * Invariant: members are only appended, at or after the old sizeof, and without padding before,
 * between or after them: padding may have any value. Write a member `unsigned reserved_` where
 * padding would be.
 *
 * Limits: an array of structs, a struct within a struct and a struct that is returned by value have
 * no size of their own: they do not change.
 */
#ifndef SXE_SIZED_INTERNAL_H
#define SXE_SIZED_INTERNAL_H

#include <stddef.h>

/* For sentences that functions return. */
#define SXE__SIZED_NEWER                                                                           \
    "the program was built for a newer libsxe, and sets members that this version lacks: install " \
    "the newer version"

/* Visible in libsxe.so.0, because our other libraries call these functions; a program cannot rely
 * on them. */
#pragma GCC visibility push(default)

/* Copy a program's struct, which has `size` bytes, to `own`, and set the members that it lacks to
 * 0. `given` may be NULL: all members are 0; it may be `own`. 0; -E2BIG, also in errno, after a
 * line in the log that begins with the name of the function: the program sets members that `own`
 * lacks; then all members of `own` are 0. */
int sxe__sized_take(void *own, size_t own_size, const void *given, size_t size,
                    const char *function);

/* Copy `own` to the program's struct, which has `size` bytes; those that `own` lacks become 0. */
void sxe__sized_give(void *given, size_t size, const void *own, size_t own_size);

#pragma GCC visibility pop

#endif
