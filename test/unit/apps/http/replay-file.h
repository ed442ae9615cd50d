/* SPDX-License-Identifier: MIT
 *
 * What: a log in a file that is replayed: its queries in order, and the messages about it.
 */
#ifndef REPLAY_FILE_H
#define REPLAY_FILE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replay-private.h"

#define REPLAY_AGENT "User-Agent: sxe-http/" SXE_VERSION "\r\nAccept: */*\r\n"

static struct load_requests *replay;
static char replay_said[4096];

static const char *
replay_path(void)
{
    static char text[64];

    snprintf(text, sizeof(text), "/tmp/test-http-replay-%d", (int)getpid());
    return text;
}

/* Read a log; sets `replay` and `replay_said`. False: the log was refused. */
static bool
replay_bytes(const char *bytes, size_t length, const struct load_template_options *options,
             double speed, size_t entries_max)
{
    FILE *file = fopen(replay_path(), "wb");
    FILE *err = fmemopen(replay_said, sizeof(replay_said), "w");

    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
    replay_said[0] = '\0';
    replay = load_replay_load(replay_path(), speed, "h:1", options, err, entries_max);
    fclose(err);
    unlink(replay_path());
    return replay != NULL;
}

/* Read a log with the usual options. */
static inline bool
replay_text(const char *text)
{
    static const struct load_template_options options = {0};

    return replay_bytes(text, strlen(text), &options, 1, LOAD_REPLAY_MAX);
}

static inline void
check_replayed(uint64_t nth, const char *wanted)
{
    struct load_query query;

    ck_assert_int_eq(replay->next(replay, nth, &query), 0);
    if (query.length != strlen(wanted) || memcmp(query.bytes, wanted, query.length) != 0)
        ck_abort_msg("is\n%.*s\nwanted\n%s", (int)query.length, query.bytes, wanted);
    ck_assert(query.is_head == (strncmp(wanted, "HEAD ", 5) == 0));
    ck_assert_uint_lt(query.kind, replay->kinds);
    ck_assert(strncmp(replay->kind_names[query.kind], wanted,
                      strlen(replay->kind_names[query.kind])) == 0);
}

#endif
