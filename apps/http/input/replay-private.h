/* SPDX-License-Identifier: MIT
 *
 * What: declarations that the files which read logs share.
 *
 *     replay-reader.c   a file as lines, or as blocks
 *     replay-time.c     times as logs write them
 *     replay-texts.c    each different text once
 *     replay-log.c      lines of an access log        -> entries
 *     replay-har.c      entries of a HAR file         -> entries
 *     replay.c          entries -> requests in order, when each is due, and the bytes of the next
 */
#ifndef LOAD_REPLAY_PRIVATE_H
#define LOAD_REPLAY_PRIVATE_H

#include "replay.h"
#include "result.h"
#include "template-private.h"

/* ---- replay-reader.c ---- */

#define LOAD_READER_ROOM 65536

struct load_reader {
    int fd;
    int error; /* the errno of an error of reading; 0: no error */
    bool is_ended;
    bool is_cut; /* whether the last line was too long, so that its rest comes next */
    size_t from; /* bytes[from] to bytes[to - 1] were read from the file, but not returned yet */
    size_t to;
    char bytes[LOAD_READER_ROOM];
};

/* Open a file; "-" is stdin. 0 or -errno. */
int load_reader_open(struct load_reader *reader, const char *path);
void load_reader_close(struct load_reader *reader);

/* Read more bytes of the file after those that were not returned yet, if there is room for more.
 * Returns how many were read; 0: the end of the file, or reader->error is set. */
size_t load_reader_more(struct load_reader *reader);

/* Read the next line, without its LF. If the line is too long, read only its beginning. False: the
 * end of the file, or reader->error is set. */
bool load_reader_line(struct load_reader *reader, struct sxe_span *line);

/* ---- replay-time.c: these functions read a whole text as nanoseconds since 1970; false: the text
 * is no time ---- */

bool load_replay_log_time(struct sxe_span text, uint64_t *ns); /* "10/Oct/2000:13:55:36 -0700" */
bool load_replay_iso_time(struct sxe_span text, uint64_t *ns); /* "2000-10-10T13:55:36.123-07:00" */

/* ---- replay-texts.c ---- */

struct load_text {
    uint64_t offset;
    uint32_t hash;
    uint16_t length;
    uint16_t kind;
};

/* Texts, each stored once. A struct of zeros holds no text. */
struct load_texts {
    char *bytes;
    size_t bytes_number;
    size_t bytes_room;
    struct load_text *all;
    uint32_t number;
    /* how many texts `all` has room for, half the number of slots; a power of two */
    uint32_t room;
    uint32_t *slots;  /* each slot has the index of a text in `all` + 1, or 0 if it is free */
    uint16_t longest; /* the length of the longest text */
};

/* Find the index of a text; SXE_NONE: the text was not added. */
uint32_t load_texts_find(const struct load_texts *texts, struct sxe_span text);

/* Add a text that was not added before, of at most 65535 bytes. Returns its index; SXE_NONE: no
 * memory. */
uint32_t load_texts_add(struct load_texts *texts, struct sxe_span text, uint16_t kind);
void load_texts_free(struct load_texts *texts);

/* ---- replay.c ---- */

struct load_replay_entry {
    uint64_t at_ns;
    uint32_t request; /* the index of the entry's request in texts, or in templates */
    /* the number of the entry's line in the file, to keep entries of the same time in order */
    uint32_t line;
};

struct load_replay {
    struct load_requests requests;
    /* this member and all up to bad are used while the file is read */
    const struct load_template_options *options;
    const char *authority;
    size_t entries_max;
    struct load_replay_entry *entries;
    size_t number;
    size_t room; /* how many entries, or templates, there is room for */
    bool is_har;
    bool is_cut;     /* whether the file had more than entries_max */
    uint64_t lines;  /* how many lines of a log, or entries of a HAR file, were read */
    uint64_t bad;    /* how many of `lines` are not requests */
    uint64_t bad_at; /* the number of the first line that is not a request; lines count from 1 */
    char bad_text[80];
    /* how many lines have no request to send, because their client sent none to a server */
    uint64_t unasked;

    struct load_texts texts;         /* for a log: each different "GET /target" */
    struct load_template *templates; /* for a HAR file */
    unsigned kinds;
    char names[LOAD_KINDS_MAX][32];
    const char *kind_names[LOAD_KINDS_MAX];
    struct load_template rests[LOAD_KINDS_MAX]; /* for a log: the request for "/" of each method */
    /* an array of `number` indexes in texts, or in templates, in the order of sending */
    uint32_t *order;
    uint64_t *times_ns; /* an array of `number` times, at which the requests of `order` are due */
    char *bytes;        /* for a log: room for the longest request */
    uint64_t random[2];
};

/* Like load_replay_new, but with another limit than LOAD_REPLAY_MAX. */
struct load_requests *load_replay_load(const char *path, double speed, const char *authority,
                                       const struct load_template_options *options, FILE *err,
                                       size_t entries_max);

/* Read a whole file. NULL, or what is wrong. */
const char *load_replay_read_log(struct load_replay *replay, struct load_reader *reader);
const char *load_replay_read_har(struct load_replay *replay, struct load_reader *reader);

/* Find the index of the kind of requests with this method, or add a kind. -1: there are too many
 * kinds, or *wrong is set. */
int load_replay_kind(struct load_replay *replay, struct sxe_span method, const char **wrong);

/* Add a request. NULL, or what is wrong. */
const char *load_replay_add(struct load_replay *replay, uint64_t at_ns, uint32_t request);

/* Count a line that is not a request. The first one is kept for the message. */
void load_replay_refuse(struct load_replay *replay, struct sxe_span line);

#endif
