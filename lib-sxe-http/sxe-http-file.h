/* SPDX-License-Identifier: MIT
 *
 * What: a handler that answers requests with the files of a directory: ranges, conditions, types,
 * compressed siblings, index files and listings, from a cache of open files.
 *
 * Place: over sxe-http.h, and sxe-work.h for what blocks. A server's handler, or a route's, as of
 * "/static/{path...}"; its user is the struct sxe_http_files.
 *
 * Shape: a name is looked up in the cache. A thread opens what is not there, or looks again at what
 * was not looked at for a while; requests for the same name wait for that together.
 *
 *     path -> name -> [ cache: name -> descriptor or content ] -> reply
 *                          |    ^ fresh: no system call but the one that sends
 *                    not there, or old
 *                          v    |
 *                 a thread: openat2, fstat, read
 *
 *     | answer       | to                                                                        |
 *     | 200 206 416  | a file that others may read; its index for a directory; or a listing      |
 *     | 304 412      | as the conditions say (RFC 9110, 13)                                      |
 *     | 301          | a directory without the slash at its end                                  |
 *     | 400          | a slash that is escaped, a backslash or a NUL in the path                 |
 *     | 403          | what the system denies; a directory without index and listing             |
 *     | 404          | no such name, or one that leads out of the root; hidden; no regular file  |
 *     | 405 501      | methods but GET, HEAD, OPTIONS                                            |
 *     | 500 503      | the system cannot read it; it has no descriptor, memory or thread for it  |
 *
 * Rules: 1 nothing outside the root is opened: openat2(2) resolves names beneath it, and symbolic
 * links may not leave it; where there is no openat2 none is followed. 2 A sibling "a.js.gz" that is
 * at least as new as "a.js" is sent to those who accept it. 3 A file up to small_max is kept in
 * memory, and leaves in the same write as the head; others are sent by sendfile(2). One that
 * shrinks meanwhile ends the connection.
 *
 * Limits: entries_max names, the longest unused one makes way; names of 4095 bytes; ranges_max
 * ranges a request, or all is sent; 10,000 names a listing, made one at a time. Missing files are
 * not kept.
 *
 * Example:
 *     struct sxe_http_files_config directory = {.root = "/srv/www"};
 *     struct sxe_http_files *files = sxe_http_files_new(&directory);
 *     struct sxe_http_config config = {.handler = sxe_http_files_handle, .user = files};
 *     struct sxe_http *http = files == NULL ? NULL : sxe_http_new(&config);
 *     if (http == NULL || sxe_init() < 0 || sxe_http_listen(http, "127.0.0.1", 8000) < 0)
 *         return 1;
 *     return sxe_run() < 0;
 */
#ifndef SXE_HTTP_FILE_H
#define SXE_HTTP_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sxe-http-handler.h"
#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sxe_http_files;

#define SXE_HTTP_FILES_RANGES_MOST 256

/* 0 and NULL mean the default, given in each comment. Texts are borrowed until delete. */
struct sxe_http_files_config {
    const char *root;          /* the directory; there is no default */
    const char *prefix;        /* what paths have before the name, as "/static"; nothing */
    const char *const *index;  /* for directories, the first that is there; NULL at the end;
                                  "index.html" */
    bool listing;              /* of directories without index */
    bool dot_files;            /* names that begin with a dot are there; only /.well-known is */
    bool no_siblings;          /* .br, .zst and .gz are not looked for */
    bool no_ranges;            /* Range is ignored, and the client told (RFC 9110, 14.3) */
    bool sniff;                /* files come without X-Content-Type-Options: nosniff */
    const char *cache_control; /* value of Cache-Control, without control bytes; none */
    const char *types;         /* lines as of mime.types, "text/x-lua lua wlua\n"; these first, */
    const char *types_file;    /* then those of this file, then a table of the usual ones */
    const char *type_default;  /* application/octet-stream */
    uint32_t entries_max;      /* names in the cache, and so descriptors; 1024 */
    uint32_t small_max;        /* bytes of a file that is kept in memory; 65536, at most 16 MiB */
    size_t memory_max;         /* bytes of all of them; beyond it are only those being sent or
                                  opened; 16 MiB */
    uint32_t revalidate_ms;    /* a file is looked at again when that is over; 1000 */
    uint32_t ranges_max;       /* of a request that are there; beyond it, all is sent; 16, at most
                                  256, for which 4 KiB of the stack are set aside */
    sxe_http_handler missing;  /* answers where there is no such file, with the request's user as it
                                  was; it may send another of the same files. 404 */
    uint32_t waiting_max;      /* requests that wait for threads, then 503; 10000 */
};

/* Before sxe_init: registers threads, and allocates all that it will ever need. Copies the
 * configuration. NULL with errno: ENOMEM; EINVAL; or why the root, or types_file, cannot be
 * opened; the log says more. */
SXE_PUBLIC SXE_MUST_USE struct sxe_http_files *
sxe_http_files_new(const struct sxe_http_files_config *config);

/* After sxe_fini. NULL is allowed. */
SXE_PUBLIC void sxe_http_files_delete(struct sxe_http_files *files);

/* The handler: request->user is the struct sxe_http_files. It has the response's user and on_done.
 */
SXE_PUBLIC enum sxe_http_verdict sxe_http_files_handle(struct sxe_http_request *request,
                                                       struct sxe_http_response *response);

/* Like sxe_http_files_handle, but for the file at another path than the request's, which is
 * escaped, has no prefix, and is for any method. A directory's path has its slash: without, it is
 * redirected (301) where the request's path ends with that path, below a prefix of a handler's, and
 * 404 elsewhere. */
SXE_PUBLIC enum sxe_http_verdict sxe_http_files_send(struct sxe_http_files *files,
                                                     struct sxe_http_request *request,
                                                     struct sxe_span path);

/* Bytes of address space that they have, printed like sxe_plan_print; out may be NULL. */
SXE_PUBLIC size_t sxe_http_files_plan_print(const struct sxe_http_files *files, FILE *out);

#ifdef __cplusplus
}
#endif

#endif
