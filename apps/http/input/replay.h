/* SPDX-License-Identifier: MIT
 *
 * What: replays the requests of an access log (in the common or combined format) or of a HAR file,
 * at the times of the file or N times as fast. Place: the option --replay; a supplier of requests,
 * see requests.h.
 *
 * Shape: a list of requests in time order, each with its time since the first request. Lines that
 * are not requests are counted, and a message shows the first one. If more than a tenth of the
 * lines are not requests, the file is refused. Entries for which the client sent no request, such
 * as data: URLs in a HAR file, are counted separately.
 *
 *     log   method and target; Host and all other fields are those of the command line
 *     HAR   method, target, fields and body; the command line's fields replace those of the same
 *           name, Host is the command line's, fields of one connection (RFC 9110, 7.6.1) and of
 *           HTTP/2 are left out. All requests go to one server, whatever host an entry names.
 *
 * Each method is a kind of requests. A log is read line by line. In memory it takes 12 bytes for
 * each request, and each different "GET /target" is stored once.
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

/* Load a log. If path is "-", read stdin. speed is above 0; 1 is the log's own speed. authority and
 * options may be freed afterwards. NULL after a message on err. */
struct load_requests *load_replay_new(const char *path, double speed, const char *authority,
                                      const struct load_template_options *options, FILE *err);
void load_replay_free(struct load_requests *requests);

#endif
