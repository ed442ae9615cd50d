/* SPDX-License-Identifier: MIT
 *
 * What: the line editor of the shell: libedit on the terminal, one character at a time as the loop
 * brings them.
 *
 * Shape: while EDITING the terminal hands over each key, and a line is shown; otherwise it has its
 * former settings, and a program that runs may read from it.
 *
 *     open -- ask --> EDITING -- read: a line or the end, or rest --> not -- ask --> ...  close
 */
#ifndef SXE_LUA_REPL_PRIVATE_H
#define SXE_LUA_REPL_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#include "sxe-http-parse.h"

/* The answer to the Tab key: the text to insert after the typed text, and, if that text is empty,
 * the names to list. Both NULL: no name fits. The texts are valid until the next call. */
struct sxe__lua_completion {
    const char *insert;
    const char *list;
};
typedef void (*sxe__lua_complete)(struct sxe_span text, struct sxe__lua_completion *completion);

/* Open the editor on descriptors 0 and 1. history is a path; "": none. Returns 0, -ENOTTY or
 * -ENOMEM. */
int sxe__lua_editor_open(const char *history, sxe__lua_complete complete);
void sxe__lua_editor_close(void); /* saves the history, or says why it cannot */

void sxe__lua_editor_ask(const char *prompt); /* begins a new line; the prompt is borrowed */
void sxe__lua_editor_rest(void);

/* Call this when descriptor 0 is readable. Returns LINE if the line is complete, and editing has
 * stopped: then *line is the line without its end, valid until sxe__lua_editor_ask is called
 * again. */
enum sxe__lua_typed { SXE__LUA_TYPING, SXE__LUA_TYPED_LINE, SXE__LUA_TYPED_END };
enum sxe__lua_typed sxe__lua_editor_read(struct sxe_span *line);

/* Write whole lines to descriptor 1 or 2, above the line that is edited. */
void sxe__lua_editor_say(int fd, const char *text, size_t length);

void sxe__lua_editor_resized(void);
void sxe__lua_editor_again(void); /* takes the terminal back after another program had it */

#endif
