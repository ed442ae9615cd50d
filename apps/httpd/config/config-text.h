/* SPDX-License-Identifier: MIT
 *
 * What: holds the text of the configuration file with which the workers run. A process that is
 * started later, but not for SIGHUP, gets the same text, even if the file was edited meanwhile.
 *
 * Place: httpd.c holds the text of the start, and reads the file again when the supervisor says so.
 * config-file.c asks for the text; the processes that the supervisor forks inherit it.
 *
 * Shape:
 *     config_text_hold --> serving <--config_text_settle(true)-- next <-- config_text_renew
 *                                     config_text_settle(false): next is dropped
 *
 * Limits: CONFIG_FILE_MAX bytes, twice while a load is in progress.
 */
#ifndef CONFIG_TEXT_H
#define CONFIG_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define CONFIG_FILE_MAX (1u << 20)

/* Copy a text: that of the load in progress; if none was read for it, the text that the workers
 * have; if none is held, the file's. The caller frees the copy. NULL, and errno; EFBIG: it is too
 * long. */
char *config_text_copy(const char *path, size_t *length);

/* Hold the text with which this program has started. It is freed by config_text_end. */
void config_text_hold(char *text, size_t length);

/* Read the file for the next load. An error shows in config_text_copy. Reading waits for nothing.
 */
void config_text_renew(const char *path);

/* The load has succeeded, so that its text is now the workers'; or failed, so that its text is
 * dropped. */
void config_text_settle(bool is_good);

void config_text_end(void);

#endif
