/* SPDX-License-Identifier: MIT
 *
 * What: numbers and texts in a form for people and for JSON. A returned text is valid until the
 * eighth call after the one that returned it.
 */
#ifndef POOL_TEXT_H
#define POOL_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* The time since a stamp: "12 ms", "3.2 s", "5m 07s", "2h 05m", "3d 04h"; "-" for the stamp 0. */
const char *pool_age_text(uint64_t now_ns, uint64_t stamp_ns);

/* The text as one line that cannot control a terminal: control characters and bytes that are not
 * UTF-8 become '?'. The result is cut to 4095 bytes. */
const char *pool_plain_text(const char *text);

/* A number and its noun: "1 element", "2 elements"; "1 entry", "2 entries". */
const char *pool_count_text(unsigned long number, const char *what);

/* Print a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void pool_print_json(const char *text, size_t length);

/* The command line of a process, cut to 60 bytes; "?" if it cannot be read. */
const char *pool_command_text(int process);

#endif
