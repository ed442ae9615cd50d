/* SPDX-License-Identifier: MIT
 *
 * Counting lines of scripts with a debug hook, and appending the counts to a file that lcov reads.
 */
#include "coverage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lines.h"

/* A line of a source file. Lines count from 1. */
struct line {
    uint64_t times;
    bool can_run;
};

struct file {
    char *path;
    struct line *lines;
    unsigned room;
    struct file *next;
};

static struct {
    const char *path; /* where to write the counts; NULL: nothing is counted */
    const char *program;
    const char *option;
    struct file *files;
    bool lacks_memory; /* some lines could not be counted */
} coverage;

/* ---- Counting ---- */

/* Find a source file among those that ran, or add it. NULL: no memory. */
static struct file *
add_covered_file(const char *path)
{
    struct file *file = calloc(1, sizeof(*file));

    if (file == NULL)
        return NULL;
    file->path = strdup(path);
    if (file->path == NULL) {
        free(file);
        return NULL;
    }
    file->next = coverage.files;
    coverage.files = file;
    return file;
}

static struct file *
find_covered_file(const char *path)
{
    struct file *file = coverage.files;

    while (file != NULL && strcmp(file->path, path) != 0)
        file = file->next;
    return file != NULL ? file : add_covered_file(path);
}

/* Find a line of a file, or add it. NULL: no memory. */
static struct line *
line_of(struct file *file, unsigned at)
{
    unsigned room = file->room > 0 ? file->room : 256;
    struct line *lines;

    if (at < file->room)
        return &file->lines[at];
    while (room <= at)
        room *= 2;
    lines = realloc(file->lines, room * sizeof(*lines));
    if (lines == NULL)
        return NULL;
    memset(lines + file->room, 0, (room - file->room) * sizeof(*lines));
    file->lines = lines;
    file->room = room;
    return &lines[at];
}

static void
count_line(lua_State *L, lua_Debug *ar)
{
    struct file *file;
    struct line *line;

    lua_getinfo(L, "Sl", ar);
    if (*ar->source != '@' || ar->currentline <= 0)
        return;
    file = find_covered_file(ar->source + 1);
    line = file == NULL ? NULL : line_of(file, (unsigned)ar->currentline);
    if (line == NULL)
        coverage.lacks_memory = true;
    else
        line->times++;
}

/* ---- Writing ---- */

static void
mark_line(void *user, unsigned at)
{
    struct line *line = line_of(user, at);

    if (line == NULL)
        coverage.lacks_memory = true;
    else
        line->can_run = true;
}

static void
print_file(FILE *out, struct file *file)
{
    char path[PATH_MAX];
    unsigned found = 0;
    unsigned hit = 0;

    if (realpath(file->path, path) == NULL || !lines_of_file(path, mark_line, file))
        return;
    fprintf(out, "TN:\nSF:%s\n", path);
    for (unsigned i = 0; i < file->room; i++) {
        if (!file->lines[i].can_run)
            continue;
        fprintf(out, "DA:%u,%llu\n", i, (unsigned long long)file->lines[i].times);
        found++;
        hit += file->lines[i].times > 0;
    }
    fprintf(out, "LF:%u\nLH:%u\nend_of_record\n", found, hit);
}

/* Write all of the text to the file. 0 or -errno. */
static int
append_to_file(const char *path, const char *text, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    ssize_t written;
    int error;

    if (fd < 0)
        return -errno;
    written = write(fd, text, length);
    error = written < 0 ? errno : ENOSPC;
    close(fd);
    return written == (ssize_t)length ? 0 : -error;
}

/* Append the counts with one write(2), so that runs that end at the same time do not mix. 0 or
 * -errno. */
static int
write_files(void)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    int result;

    if (out == NULL)
        return -ENOMEM;
    for (struct file *file = coverage.files; file != NULL; file = file->next)
        print_file(out, file);
    result = fclose(out) != 0 || coverage.lacks_memory ? -ENOMEM : 0;
    if (result == 0)
        result = append_to_file(coverage.path, text, length);
    free(text);
    return result;
}

static void
forget_covered_files(void)
{
    while (coverage.files != NULL) {
        struct file *file = coverage.files;

        coverage.files = file->next;
        free(file->lines);
        free(file->path);
        free(file);
    }
}

int
coverage_end(void)
{
    int result = coverage.path == NULL ? 0 : write_files();

    if (result < 0)
        fprintf(stderr, "%s: the coverage cannot be written to '%s' (%s): %s\n", coverage.program,
                coverage.path, coverage.option, strerror(-result));
    forget_covered_files();
    coverage.path = NULL;
    coverage.lacks_memory = false;
    return result < 0 ? -1 : 0;
}

static void
end_at_exit(void)
{
    coverage_end();
}

void
coverage_begin(lua_State *L, const char *path, const char *program, const char *option)
{
    static bool is_at_exit;
    lua_State *main;

    if (!is_at_exit)
        atexit(end_at_exit);
    is_at_exit = true;
    coverage.path = path;
    coverage.program = program;
    coverage.option = option;
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    main = lua_tothread(L, -1);
    lua_pop(L, 1);
    lua_sethook(main, count_line, LUA_MASKLINE, 0);
    lua_sethook(L, count_line, LUA_MASKLINE, 0);
}
