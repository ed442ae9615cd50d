/* SPDX-License-Identifier: MIT
 *
 * What: a text that says what is wrong with something the user gave. Place: returned by functions
 * that read URLs, requests, addresses and expectations. Control bytes in the text become "?".
 *
 * Limits: each thread has one text, which is valid until the thread's next call; a text over
 * LOAD_WRONG_MAX bytes is cut.
 */
#ifndef LOAD_WRONG_H
#define LOAD_WRONG_H

#include "sxe-util.h"

#define LOAD_WRONG_MAX 512

/* Make the text, and return it; never NULL. */
const char *load_wrong(const char *format, ...) SXE_PRINTF(1, 2);

#endif
