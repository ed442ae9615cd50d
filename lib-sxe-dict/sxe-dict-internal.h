/* SPDX-License-Identifier: MIT
 *
 * What: tells a dict from another pool by the head of its file.
 * Place: the friend interface of lib-sxe-dict, for its own sources and for the tool sxe-pool, which
 * lists files that it does not open; not installed.
 */
#ifndef SXE_DICT_INTERNAL_H
#define SXE_DICT_INTERNAL_H

/* The names of the states of each pool that holds a dict, and of no other. */
#define SXE__DICT_STATE_NAMES "FREE LIVE PINNED DIRTY MORE OLD"

#endif
