/* SPDX-License-Identifier: MIT
 *
 * What: reads the values of a table of the configuration file. Messages name the key and its line.
 *
 * Place: config-sites.c and config-upstreams.c call it while the file is read, in protected mode.
 *
 * Shape: the table is on top of the stack. Functions that return bool return false after a message.
 */
#ifndef CONFIG_READER_H
#define CONFIG_READER_H

#include "config-file.h"

struct config_sites;

struct config_reader {
    struct config_file *file;
    lua_State *L;
    struct config_sites *sites;
    uint64_t place; /* the place of the table on top of the stack, see config-lines.h */
    unsigned line;  /* the line of this table, or of the key that was read last */
};

/* Print a message: the key's value is `given`, but must be `must`. If given is NULL, the message
 * does not tell it. Always false. */
bool config_fail(const struct config_reader *reader, const char *key, const char *given,
                 const char *must);

/* From now on, messages refer to this key of the table. */
void config_note_key(struct config_reader *reader, const char *key);

/* Check that the table on top of the stack has only these keys. */
bool config_has_only(struct config_reader *reader, const char *const *names);

/* Pop the text on top of the stack, and keep it until the file is closed. NULL after a message: the
 * value is no text. */
const char *config_take_text(struct config_reader *reader, const char *key);

/* Read the text of a key. If the table has no such key, *text is not changed. */
bool config_read_text(struct config_reader *reader, const char *key, const char **text);

/* Read the value of a key, which is a text or a list of texts, into texts, which has room for
 * `most`. */
bool config_read_texts(struct config_reader *reader, const char *key, const char **texts,
                       unsigned most, unsigned *number);

bool config_read_switch(struct config_reader *reader, const char *key, bool *is_on);

/* ---- config-upstreams.c ---- */

/* Read the key "upstreams" of the file's table, which is on top of the stack. */
bool config_read_upstreams(struct config_reader *reader);

struct config_route;

/* Read the keys of a route that sends requests on to an upstream. The table of the route is on top
 * of the stack. */
bool config_read_proxy(struct config_reader *reader, struct config_route *route);

/* Read the keys of a route that sends requests to FastCGI. */
bool config_read_fastcgi(struct config_reader *reader, struct config_route *route);

/* Free all upstreams of these sites. */
void config_upstreams_free(struct config_sites *sites);

#endif
