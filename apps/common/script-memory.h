/* SPDX-License-Identifier: MIT
 *
 * What: settings of malloc for programs that run scripts.
 *
 * Place: sxe-lua and sxe-httpd call it before they make a state of Lua.
 */
#ifndef SCRIPT_MEMORY_H
#define SCRIPT_MEMORY_H

/* Keep memory that Lua frees, up to a limit, instead of giving it to the system at once: each cycle
 * of the garbage collector frees it, and the next one asks for it again, page by page. */
void script_keep_memory(void);

#endif
