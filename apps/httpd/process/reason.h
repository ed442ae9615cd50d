/* SPDX-License-Identifier: MIT
 *
 * What: prints only once why a load fails, however often the supervisor tries the load again. If a
 * process fails for the same reason as the process before it, it ends without a message.
 *
 * Place: in the supervisor, sxe-workers.c calls the first three functions; in a process that loads,
 * httpd.c and service.c call the others. Shape: two reasons are equal if the texts that the
 * processes wrote to stderr while they loaded have the same digest. A process that fails sends the
 * digest to the supervisor, and processes that are forked later inherit it.
 *
 * Limits: only the first REASON_MAX bytes of the texts are compared; in a retry the bytes after
 * them are not shown. Only text that is written to the FILE stderr counts. Lines of the log do not
 * count, because they contain a time.
 */
#ifndef REASON_H
#define REASON_H

#include <stdbool.h>
#include <stdint.h>

#define REASON_MAX 4096

/* A load begins. is_retry: the load before it failed, and its reason is not printed again.
 * Otherwise the reason is printed in any case. */
void reason_begin_load(bool is_retry);

/* The load has failed for the reason with this digest. */
void reason_note(uint32_t digest);

/* Whether the load failed for the same reason as the load before it. */
bool reason_is_told(void);

/* From now on keep the text that this process writes to stderr. In a retry, do not show it yet. */
void reason_watch(void);

/* This process serves now: show the text that was held back. */
void reason_end(void);

/* If reason_end was not called, this process could not load. Then show the text that was held back,
 * unless it is the reason of the load before, and send its digest to the supervisor over link. */
void reason_fail(int link);

#endif
