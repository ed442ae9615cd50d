/* SPDX-License-Identifier: MIT
 *
 * What: redirects a descriptor, that of standard output or of standard error, into a file for a
 * while; what was written can then be read as a text.
 * Example:
 *     struct captured errors = capture(STDERR_FILENO, tmpfile());
 *     fprintf(stderr, "oops");
 *     captured_text(&errors, text, sizeof(text));
 */
#ifndef CAPTURED_H
#define CAPTURED_H

#include <stdio.h>
#include <unistd.h>

struct captured {
    FILE *file;
    int fd;
    int was;
};

static inline struct captured
capture(int fd, FILE *file)
{
    struct captured captured = {.file = file, .fd = fd, .was = dup(fd)};

    fflush(NULL);
    dup2(fileno(file), fd);
    return captured;
}

/* Undo the redirection; the file stays open. */
static inline void
end_capture(const struct captured *captured)
{
    fflush(NULL);
    dup2(captured->was, captured->fd);
    close(captured->was);
}

/* Read the whole file as a text, cut to size, and close the file. */
static inline void
read_back(FILE *file, char *text, size_t size)
{
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

static inline void
captured_text(const struct captured *captured, char *text, size_t size)
{
    end_capture(captured);
    read_back(captured->file, text, size);
}

#endif
