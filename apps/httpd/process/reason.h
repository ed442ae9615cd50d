/* SPDX-License-Identifier: MIT
 *
 * What: tells once why a load fails, however often the supervisor tries it again. If a process
 * fails for the same reason as the process before it, it ends without a message.
 *
 * Place: in the supervisor, supervisor.c calls the first three functions; in a process that loads,
 * httpd.c and service.c call the others. A reason is known by a digest of the text that the process
 * wrote to stderr while it loaded; processes send it to the supervisor, and later ones inherit it.
 *
 * Limits: only the first REASON_MAX bytes are compared; in a retry the bytes after them are not
 * shown. Only text that is written through the FILE counts, not lines of the log, which have a time
 * in them.
 */
#ifndef REASON_H
#define REASON_H

#include <stdbool.h>
#include <stdint.h>

#define REASON_MAX 4096

/* A load begins. Unless it is a retry, its reason is told even if the load before it told the same
 * one. */
void reason_begin_load(bool is_retry);

/* The load fails for the reason with this digest. */
void reason_note(uint32_t digest);

/* Whether the load failed for the same reason as the load before it. */
bool reason_is_told(void);

/* From now on look at the text that this process writes to stderr; in a retry hold it back. */
void reason_watch(void);

/* This process serves: show text that was held back. */
void reason_end(void);

/* This process could not load, if reason_end was not called before: show text that was held back,
 * unless it is told; tell the supervisor at the other end of link. */
void reason_fail(int link);

#endif
