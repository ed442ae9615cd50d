/* SPDX-License-Identifier: MIT
 *
 * What: replays the requests of an access log (common, combined) or a HAR file, at their own times
 * or N times as fast. Place: --replay; a supplier of requests, see requests.h.
 *
 * Shape: a list of requests in time order, each with its time after the first. Lines that are not
 * requests are counted, and the first is named; if they are more than a tenth, the file is refused.
 * Entries that no server answered, such as data: URLs in a HAR file, are counted separately.
 *
 *     log   method and target; Host and all other fields are those of the command line
 *     HAR   method, target, fields and body; the command line's fields replace those of the same
 *           name, Host is the command line's, fields of one connection (RFC 9110, 7.6.1) and of
 *           HTTP/2 are left out. All requests go to one server, whatever host an entry names.
 *
 * Each method is a kind. A log is read line by line; in memory it takes 12 bytes a request, and
 * each different "GET /target" once.
 *
 * Limits: LOAD_REPLAY_MAX entries (further ones are left out, with a message); lines of 64 KiB.
 * Only HAR files have bodies (postData.text); a POST of a log is sent with an empty body. Times in
 * logs are whole seconds: the entries of one second are spread evenly over it.
 */
#ifndef LOAD_REPLAY_H
#define LOAD_REPLAY_H

#include <stdio.h>

#include "requests.h"
#include "template.h"

#define LOAD_REPLAY_MAX 10000000

/* Load a log; path "-" is stdin. speed is above 0; 1 is the log's own. authority and options may be
 * freed afterwards. NULL after a message on err. */
struct load_requests *load_replay_new(const char *path, double speed, const char *authority,
                                      const struct load_template_options *options, FILE *err);
void load_replay_free(struct load_requests *requests);

#endif
