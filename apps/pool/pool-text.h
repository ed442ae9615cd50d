/* SPDX-License-Identifier: MIT
 *
 * What: numbers and texts as people and JSON read them. A returned text belongs to this thread and
 * is valid until the eighth call from now.
 */
#ifndef POOL_TEXT_H
#define POOL_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* "12 ms", "3.2 s", "5m 07s", "2h 05m", "3d 04h"; "-": there is none (stamp 0). */
const char *pool_age_text(uint64_t now_ns, uint64_t stamp_ns);

/* The text as one line that a terminal cannot take for anything else: what does not belong there is
 * '?'. At most 4095 bytes of it. */
const char *pool_plain_text(const char *text);

/* "1 element", "2 elements"; "1 entry", "2 entries". */
const char *pool_count_text(unsigned long number, const char *what);

/* A string of JSON on standard output, quotes included; what is no UTF-8 becomes U+FFFD. */
void pool_print_json(const char *text, size_t length);

/* The command line of a process, cut to 60 bytes; "?" if it cannot be read. */
const char *pool_command_text(int process);

#endif
