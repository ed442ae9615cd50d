/* SPDX-License-Identifier: MIT
 *
 * What: declarations that the sources of the handler of static files share.
 *
 *     sxe-http-file.c           new, delete; a request's method and path -> a name
 *     sxe-http-file-serve.c     a name -> an entry, now or when a thread has opened it
 *     sxe-http-file-cache.c     the entries: found by name, held, replaced, evicted
 *     sxe-http-file-reply.c     an entry -> the reply
 *     sxe-http-file-open.c      in threads: names beneath the root, contents, siblings
 *     sxe-http-file-listing.c   in threads: a page about a directory
 *     sxe-http-file-type.c      extensions -> content types
 *
 * Shape: an entry is one name, opened once. When it is old, the name is opened for a new entry,
 * which replaces the old one, or is dropped if the file has not changed. Requests under way hold
 * their entries.
 *
 *                  no such file: held until the waiting requests are answered
 *     FREE -> OPENING -------------------------------------> LEAVING -> FREE
 *                '-> BUSY -- replaced, and still held ----------^
 *           the last    |^ a
 *           reply ended v| reply         the oldest one makes way, or it is replaced
 *                      IDLE ------------------------------------------> FREE
 *
 * Each entry has a region of address space, whose pages cost memory once they are touched:
 *
 *     | name NUL | content, if it is small |       |
 */
#ifndef SXE_HTTP_FILE_PRIVATE_H
#define SXE_HTTP_FILE_PRIVATE_H

#define SXE_LOG_CONTROL sxe__http_log

#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>

#include "sxe-http-beneath-private.h"
#include "sxe-http-date.h"
#include "sxe-http-file.h"
#include "sxe-http.h"
#include "sxe-work.h"

extern struct sxe_log_control sxe__http_log;

#define SXE__HTTP_NAME_SIZE PATH_MAX /* bytes of a name, with its NUL */
/* bytes of a name, followed by the name of an index or the suffix of a sibling */
#define SXE__HTTP_PATH_SIZE (2 * PATH_MAX)
#define SXE__HTTP_TYPE_MAX  127          /* bytes of a content type */
#define SXE__HTTP_PATH_ROOM (16u * 1024) /* bytes of a path that is not decoded yet */

/* Content codings of siblings, in the order of preference. A sibling is a compressed copy beside a
 * file, such as a.css.gz beside a.css. */
enum { SXE__HTTP_CODINGS = 3 };
#define SXE__HTTP_FILE_LINES 512

struct sxe__http_coding {
    const char *name; /* the coding's name in Content-Encoding (RFC 9110, 8.4.1) */
    const char *suffix;
};
extern const struct sxe__http_coding sxe__http_codings[SXE__HTTP_CODINGS];

enum sxe__http_file_state {
    SXE__HTTP_FILE_FREE,
    SXE__HTTP_FILE_OPENING, /* a thread is opening the file */
    SXE__HTTP_FILE_IDLE,    /* no request holds the entry */
    SXE__HTTP_FILE_BUSY,
    SXE__HTTP_FILE_LEAVING, /* no name leads to the entry any more */
    SXE__HTTP_FILE_STATES
};

/* A request that is not answered yet, and the file that it wants. */
struct sxe__http_wish {
    struct sxe_http_request *request;
    /* the file whose sibling is wanted, held; NULL: the file itself is wanted */
    struct sxe__http_file *base;
    unsigned coding; /* the coding of the wanted sibling, an index in sxe__http_codings */
};

struct sxe__http_waiter {
    struct sxe__http_wish wish;
    struct sxe__http_file *file; /* the entry for which the request waits */
    struct sxe__http_waiter *next;
    struct sxe__http_waiter *prev;
};

struct sxe__http_file {
    /* the first member, so that a pointer to it is also a pointer to the entry */
    struct sxe_work work;
    struct sxe_http_files *files;
    char *name; /* the name; the entry's region begins with it */
    uint32_t name_length;
    uint32_t hash;
    uint32_t next; /* the next entry in the same bucket, or SXE_NONE */
    uint32_t holders;
    enum sxe__http_file_state state;
    struct sxe__http_waiter *first; /* the requests that wait for the file to be opened */
    struct sxe__http_waiter *last;
    /* the name's old entry, held, which this entry may replace; or NULL */
    struct sxe__http_file *known;
    size_t memory;    /* how many bytes the entry adds to files->memory */
    SXE_TIME checked; /* when the file was last found to be as described here */
    bool may_keep;    /* whether memory_max leaves memory for the content */

    /* The thread sets these members while it opens the file; afterwards only `siblings` may
     * change. */
    bool is_same; /* the file is as in `known`: only its siblings may differ */
    bool is_listing;
    bool is_settled;   /* whether a later change of the file would show in its times */
    uint8_t siblings;  /* a bit for each coding that has a sibling */
    uint16_t status;   /* 0: send the file; otherwise the status to answer */
    int error;         /* the errno of a failure; 0: none */
    int fd;            /* the open file; -1: none */
    size_t touched;    /* how many bytes of the region were written to */
    char *content;     /* the whole file; NULL: send it from fd */
    uint64_t size;     /* size of the file in bytes */
    const char *index; /* name of the directory's index file; "": no directory */
    const char *type;
    struct stat found;
    char etag[20];
    char modified[SXE_HTTP_DATE_LENGTH + 1];

    /* The lines of the last reply that had the whole file without a coding, to be used again. */
    uint8_t lines_siblings; /* `siblings` when the lines were made */
    uint16_t lines_length;  /* how many bytes the kept lines have; 0: no lines are kept */
    char lines[SXE__HTTP_FILE_LINES];
};

struct sxe__http_type {
    const char *extension; /* the extension in small letters */
    const char *type;
};

struct sxe__http_types {
    char *text; /* the text that the other pointers point into */
    struct sxe__http_type *types;
    unsigned number;
    const char *usual; /* the content type of files with any other extension */
};

struct sxe__http_listing; /* memory for making a listing, see sxe-http-file-listing.c */

struct sxe_http_files {
    struct sxe_http_files_config config;
    struct sxe_span prefix; /* config.prefix without slashes around it */
    int root;
    /* the handler's own group of threads, so that a root whose file system hangs delays no other
     * root */
    unsigned group;
    bool has_openat2;
    struct sxe__http_types types;
    struct sxe__http_file *entries;   /* the array of a pool */
    struct sxe__http_waiter *waiters; /* the array of a pool */
    uint32_t *buckets;                /* hash table: from the hash of a name to an entry */
    uint32_t buckets_mask;
    char *regions;
    size_t region_size;
    size_t memory; /* how many bytes of contents are in memory, see memory_max */
    struct sxe_http_date_cache date;
    pthread_mutex_t listing_lock;
    struct sxe__http_listing *listing; /* NULL: the handler makes no listings */
    char room[SXE__HTTP_PATH_ROOM];    /* room for making a name */
};

static inline bool
sxe__http_is_directory_path(const char *name, size_t length)
{
    return name[length - 1] == '/' || (length == 1 && *name == '.');
}

/* Whether `a` was changed at the same time as `b`, or later. */
static inline bool
sxe__http_is_as_new(const struct stat *a, const struct stat *b)
{
    if (a->st_mtim.tv_sec != b->st_mtim.tv_sec)
        return a->st_mtim.tv_sec > b->st_mtim.tv_sec;
    return a->st_mtim.tv_nsec >= b->st_mtim.tv_nsec;
}

/* ---- sxe-http-file-serve.c ---- */

SXE_MUST_USE enum sxe_http_verdict sxe__http_file_serve(struct sxe_http_files *files,
                                                        struct sxe_http_request *request,
                                                        struct sxe_span name);

/* ---- sxe-http-file-cache.c ---- */

SXE_MUST_USE int sxe__http_cache_new(struct sxe_http_files *files);
void sxe__http_cache_delete(struct sxe_http_files *files);

/* Find the youngest entry with that name, or NULL. */
struct sxe__http_file *sxe__http_cache_find(struct sxe_http_files *files, struct sxe_span name);

/* Add an entry, in the state OPENING. NULL: all entries are in use. */
struct sxe__http_file *sxe__http_cache_add(struct sxe_http_files *files, struct sxe_span name);

/* A thread has opened the entry; the caller holds it from now on. If there is no such file, or it
 * equals the entry `known`, no name leads to the new entry. */
void sxe__http_cache_opened(struct sxe__http_file *file);
/* From now on no name leads to the entry. */
void sxe__http_cache_remove(struct sxe__http_file *file);
void sxe__http_cache_hold(struct sxe__http_file *file);
/* The caller holds the entry no longer. NULL is allowed. */
void sxe__http_cache_release(struct sxe__http_file *file);
/* A request used an entry that no request holds: make it the youngest. */
void sxe__http_cache_touch(struct sxe__http_file *file);

/* Close the descriptor that has been unused for longest; false: all are in use. */
SXE_MUST_USE bool sxe__http_cache_close_one(struct sxe_http_files *files);

/* ---- sxe-http-file-reply.c ---- */

/* Answer with the contents of `file`, which is `base` or a sibling of it, or with its status.
 * Unless its content is copied, the entry is held until the reply is done. */
void sxe__http_file_reply(const struct sxe__http_wish *wish, struct sxe__http_file *base,
                          struct sxe__http_file *file);
void sxe__http_file_refuse(struct sxe_http_request *request, unsigned status);

/* Answer 301: the request's path with a slash at its end. Location is made from the decoded path,
 * so it cannot be "//host". If the path does not end with `name`, which a handler gave to
 * sxe_http_files_send, answer 404: the names in the directory are not below the request's path. */
void sxe__http_file_redirect(struct sxe_http_files *files, struct sxe_http_request *request,
                             const char *name);

/* Answer 405 or 204, with Allow. */
void sxe__http_file_allow(struct sxe_http_request *request, unsigned status);

/* ---- sxe-http-file-open.c, in threads ---- */

void sxe__http_file_open(struct sxe__http_file *file);

/* ---- sxe-http-file-listing.c ---- */

SXE_MUST_USE int sxe__http_listing_new(struct sxe_http_files *files);
void sxe__http_listing_delete(struct sxe_http_files *files);
size_t sxe__http_listing_size(void); /* bytes of address space that making a listing needs */

/* In threads: make a page about directory fd, the content of the entry. 0 or -errno. This function
 * closes fd. */
SXE_MUST_USE int sxe__http_list(struct sxe__http_file *file, int fd);

/* ---- sxe-http-file-type.c ---- */

SXE_MUST_USE int sxe__http_types_new(struct sxe__http_types *types,
                                     const struct sxe_http_files_config *config);
void sxe__http_types_delete(struct sxe__http_types *types);
const char *sxe__http_type_of(const struct sxe__http_types *types, const char *name);

#endif
