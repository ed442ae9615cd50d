/* SPDX-License-Identifier: MIT
 *
 * What: a text that says what is wrong with something the user gave. Place: returned by what reads
 * URLs, requests, addresses and expectations. Control bytes that were quoted in it become "?".
 *
 * Limits: one text a thread, until the next call; what is longer than LOAD_WRONG_MAX is cut.
 */
#ifndef LOAD_WRONG_H
#define LOAD_WRONG_H

#include "sxe-util.h"

#define LOAD_WRONG_MAX 512

/* Never NULL. */
const char *load_wrong(const char *format, ...) SXE_PRINTF(1, 2);

#endif
