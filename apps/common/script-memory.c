/* SPDX-License-Identifier: MIT
 *
 * Settings of malloc for programs that run scripts.
 */
#include "script-memory.h"

#include <malloc.h>

#define KEPT (32 << 20) /* bytes that are free at the heap's end */
#define STEP (1 << 20)  /* the heap grows by this at least; larger blocks are maps of their own */

void
script_keep_memory(void)
{
#ifdef M_TRIM_THRESHOLD
    (void)mallopt(M_TRIM_THRESHOLD, KEPT);
    (void)mallopt(M_TOP_PAD, STEP);
    (void)mallopt(M_MMAP_THRESHOLD, STEP);
#endif
}
