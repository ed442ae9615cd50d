/* SPDX-License-Identifier: MIT
 *
 * What: holds the text of the configuration file with which the workers run. If a process has to be
 * started later, but not because of SIGHUP, it gets the same text, even if the file was edited
 * meanwhile.
 *
 * Place: httpd.c holds the text that was read at the start, and reads the file again when the
 * supervisor says so. config-file.c asks for the text; the processes that the supervisor forks
 * inherit it.
 *
 * Shape:
 *     config_text_hold --> serving <--config_text_settle(true)-- next <-- config_text_renew
 *                                     config_text_settle(false): next is dropped
 *
 * Limits: a text has at most CONFIG_FILE_MAX bytes; while a load is in progress, two texts are
 * held.
 */
#ifndef CONFIG_TEXT_H
#define CONFIG_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define CONFIG_FILE_MAX (1u << 20)

/* Copy the text to read: the text of the load in progress, or, if there is no load, the text that
 * the workers have, or, if no text is held, the text of the file. The caller frees the copy. NULL:
 * errno says why; EFBIG: the text is too long. */
char *config_text_copy(const char *path, size_t *length);

/* Hold the text with which this program has started. config_text_end frees it. */
void config_text_hold(char *text, size_t length);

/* Read the file for the next load. If that fails, config_text_copy reports the error. This function
 * never waits, even if the file is a FIFO. */
void config_text_renew(const char *path);

/* The load has ended. If it was good, its text is now the text of the workers; otherwise its text
 * is dropped. */
void config_text_settle(bool is_good);

void config_text_end(void);

#endif
