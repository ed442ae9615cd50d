/* SPDX-License-Identifier: MIT
 *
 * What: what clients really asked for: an access log (common, combined) or a HAR file, sent again
 * at its own times, or N times as fast. Place: --replay; a source of requests, see requests.h.
 *
 * Shape: a list of requests and when each is due after the first, in order of time. Lines that are
 * none are counted and the first of them named; more than a tenth, and the file is refused. Those
 * that asked nothing of a server, like data: in a HAR file, are counted for themselves.
 *
 *     log   method and target; Host and all other fields are those of the command line
 *     HAR   method, target, fields and body; the command line's fields replace those of the same
 *           name, Host is the command line's, fields of one connection (RFC 9110, 7.6.1) and of
 *           HTTP/2 are left out. All goes to the one server, whatever host an entry names.
 *
 * A kind is a method. A log is read line by line; of it remain 12 bytes a request, and each
 * different "GET /target" once.
 *
 * Limits: LOAD_REPLAY_MAX entries, what follows is left out and said; a line of 64 KiB. Bodies are
 * in HAR files only (postData.text); a log's POST is sent with an empty one. A log's second is its
 * finest time: entries of one second are spread evenly over it.
 */
#ifndef LOAD_REPLAY_H
#define LOAD_REPLAY_H

#include <stdio.h>

#include "requests.h"
#include "template.h"

#define LOAD_REPLAY_MAX 10000000

/* path "-" is stdin. speed, above 0, is 1 for the log's own. authority and options are not
 * needed any more when this returns. NULL after saying on err what is wrong. */
struct load_requests *load_replay_new(const char *path, double speed, const char *authority,
                                      const struct load_template_options *options, FILE *err);
void load_replay_free(struct load_requests *requests);

#endif
