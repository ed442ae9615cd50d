/* SPDX-License-Identifier: MIT
 *
 * Reading a log line by line, or any file piece by piece; both may be a pipe.
 */
#include "replay-private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int
load_reader_open(struct load_reader *reader, const char *path)
{
    reader->error = 0;
    reader->is_ended = reader->is_cut = false;
    reader->from = reader->to = 0;
    reader->fd = open(strcmp(path, "-") == 0 ? "/dev/stdin" : path, O_RDONLY | O_CLOEXEC);
    return reader->fd < 0 ? -errno : 0;
}

void
load_reader_close(struct load_reader *reader)
{
    close(reader->fd);
}

size_t
load_reader_more(struct load_reader *reader)
{
    size_t there = reader->to - reader->from;
    ssize_t number;

    if (there == sizeof(reader->bytes))
        return 0;
    memmove(reader->bytes, reader->bytes + reader->from, there);
    reader->from = 0;
    reader->to = there;
    number = read(reader->fd, reader->bytes + there, sizeof(reader->bytes) - there);
    reader->error = number < 0 ? errno : 0;
    reader->is_ended = number <= 0;
    if (number > 0)
        reader->to += (size_t)number;
    return reader->to - there;
}

/* Return a line, or, if a line is longer than the room, a part of it. */
static bool
take_line_part(struct load_reader *reader, struct sxe_span *line)
{
    const char *end = NULL;
    size_t looked_at = 0;

    for (;;) {
        size_t there = reader->to - reader->from;
        const char *base = reader->bytes + reader->from;

        end = memchr(base + looked_at, '\n', there - looked_at);
        looked_at = there;
        if (end != NULL || reader->is_ended || load_reader_more(reader) == 0)
            break;
    }
    line->base = reader->bytes + reader->from;
    line->length = end == NULL ? reader->to - reader->from : (size_t)(end - line->base);
    reader->from += line->length + (end != NULL);
    reader->is_cut = end == NULL && !reader->is_ended;
    return reader->error == 0 && (end != NULL || line->length > 0);
}

bool
load_reader_line(struct load_reader *reader, struct sxe_span *line)
{
    bool is_rest;
    bool is_there;

    do {
        is_rest = reader->is_cut;
        is_there = take_line_part(reader, line);
    } while (is_rest && is_there);
    return is_there;
}
