/* SPDX-License-Identifier: MIT
 *
 * What: a handler that answers requests with the files of a directory: ranges, conditions, types,
 * compressed siblings, index files and listings, from a cache of open files.
 *
 * Place: over sxe-http.h, with threads of sxe-work.h for calls that block. It is the handler of a
 * server, or of a route such as "/static/{path...}"; the handler's user is the struct
 * sxe_http_files.
 *
 * Shape: a name is looked up in the cache. A thread opens a file that is not in it, or checks one
 * that was not checked for revalidate_ms; all requests for that name wait for the same thread.
 *
 *     path -> name -> [ cache: name -> descriptor or content ] -> reply
 *                          |    ^ fresh: no system call but the one that sends
 *                    not there, or old
 *                          v    |
 *                 a thread: openat2, fstat, read
 *
 *     | answer       | to                                                                        |
 *     | 200 206 416  | a file that the server may read; a directory's index, or its listing      |
 *     | 304 412      | as the conditions say (RFC 9110, 13)                                      |
 *     | 301          | a directory without the slash at its end                                  |
 *     | 400          | a slash that is escaped, a backslash or a NUL in the path                 |
 *     | 403          | what the system denies; a directory without index and listing             |
 *     | 404          | no such name, or one that leads out of the root; hidden; no regular file  |
 *     | 405 501      | methods but GET, HEAD, OPTIONS                                            |
 *     | 500 503      | the system cannot read it; it has no descriptor, memory or thread for it  |
 *
 * Rules: 1 nothing outside the root is opened: openat2(2) resolves names beneath it, and symbolic
 * links may not leave it; without openat2 no link is followed. 2 A sibling "a.js.gz" that is at
 * least as new as "a.js" is sent to clients that accept gzip. 3 A file up to small_max is kept in
 * memory, and leaves in the same write as the head; others are sent by sendfile(2). A file that
 * shrinks while it is sent ends the connection.
 *
 * Limits: entries_max names, of which the least recently used makes way; names of 4095 bytes;
 * ranges_max ranges a request, or all is sent; 10,000 names a listing, and one listing made at a
 * time. Missing files are not cached.
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
    const char *root; /* the directory whose files are served; there is no default */
    /* the start of each path, before the name, such as "/static"; default: "" */
    const char *prefix;
    /* names of index files, NULL after the last: for a directory the first one that it has is sent;
     * {"index.html"} */
    const char *const *index;
    bool listing;     /* make listings of directories without index */
    bool dot_files;   /* serve names that begin with a dot; false: only /.well-known */
    bool no_siblings; /* do not look for .br, .zst and .gz */
    bool no_ranges;   /* ignore Range, and say so in Accept-Ranges (RFC 9110, 14.3) */
    bool sniff;       /* do not send X-Content-Type-Options: nosniff */
    /* the value of Cache-Control, without control bytes; NULL: no such field */
    const char *cache_control;
    /* lines as in mime.types, "text/x-lua lua wlua\n"; searched before types_file */
    const char *types;
    /* a file with such lines, searched before the built-in table */
    const char *types_file;
    /* the type of files with any other extension; application/octet-stream */
    const char *type_default;
    /* how many names the cache has, each with a descriptor at most; 1024 */
    uint32_t entries_max;
    /* files up to this size are kept in memory, larger ones stay on disk; 65536, at most 16 MiB */
    uint32_t small_max;
    /* bytes of all files in memory; only files being sent or opened may go beyond it; 16 MiB */
    size_t memory_max;
    /* a file that was checked longer ago than this is checked again; 1000 */
    uint32_t revalidate_ms;
    /* a request with more satisfiable ranges than this gets the whole file; 16, at most 256, for
     * which 4 KiB of the stack are set aside */
    uint32_t ranges_max;
    /* called instead of answering 404, with request->user unchanged; may call sxe_http_files_send.
     * NULL: 404 */
    sxe_http_handler missing;
    /* how many requests may wait for threads; others are answered 503; 10000 */
    uint32_t waiting_max;
};

/* Call this before sxe_init. It registers threads, and allocates all memory that the handler will
 * ever need. Copies the configuration. NULL with errno: ENOMEM; EINVAL; or the reason why the root,
 * or types_file, cannot be opened; the log says more. */
SXE_PUBLIC SXE_MUST_USE struct sxe_http_files *
sxe_http_files_new_sized(const struct sxe_http_files_config *config, size_t size);
static inline SXE_MUST_USE struct sxe_http_files *
sxe_http_files_new(const struct sxe_http_files_config *config_)
{
    return sxe_http_files_new_sized(config_, sizeof(*config_));
}

/* Call this after sxe_fini. NULL is allowed. */
SXE_PUBLIC void sxe_http_files_delete(struct sxe_http_files *files);

/* The handler; request->user is the struct sxe_http_files. The handler sets the response's user and
 * on_done. */
SXE_PUBLIC enum sxe_http_verdict sxe_http_files_handle(struct sxe_http_request *request,
                                                       struct sxe_http_response *response);

/* Like sxe_http_files_handle, but sends the file at `path`, which is escaped and has no prefix, for
 * any method and any path of the request. A directory's path needs its slash at the end: without it
 * the answer is 301 if the request's path ends with `path`, and 404 otherwise. */
SXE_PUBLIC enum sxe_http_verdict sxe_http_files_send(struct sxe_http_files *files,
                                                     struct sxe_http_request *request,
                                                     struct sxe_span path);

/* Return the bytes of address space that `files` has, and print them like sxe_plan_print; out may
 * be NULL. */
SXE_PUBLIC size_t sxe_http_files_plan_print(const struct sxe_http_files *files, FILE *out);

#ifdef __cplusplus
}
#endif

#endif
