/* SPDX-License-Identifier: MIT
 *
 * Reads and holds the text of the configuration file.
 */
#include "config-text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct text {
    char *bytes;
    size_t length;
    int error; /* the errno of an error of reading the file; 0: no error */
    bool is_held;
};

static struct text serving;
static struct text next;

static void
drop_text(struct text *text)
{
    free(text->bytes);
    *text = (struct text){.is_held = false};
}

/* Read the whole file into allocated memory. NULL: errno says why. */
static char *
read_config_file(const char *path, int flags, size_t *length)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    char *text = malloc(CONFIG_FILE_MAX + 1);
    int error = text == NULL ? ENOMEM : fd < 0 ? errno : 0;
    ssize_t got = 1;

    *length = 0;
    while (error == 0 && got != 0) {
        got = read(fd, text + *length, CONFIG_FILE_MAX + 1 - *length);
        if (got < 0 && errno != EINTR)
            error = errno;
        *length += got > 0 ? (size_t)got : 0;
        if (*length > CONFIG_FILE_MAX)
            error = EFBIG;
    }
    if (fd >= 0)
        close(fd);
    if (error == 0)
        return text;
    free(text);
    errno = error;
    return NULL;
}

char *
config_text_copy(const char *path, size_t *length)
{
    const struct text *text = next.is_held ? &next : &serving;
    char *copy;

    if (!text->is_held)
        return read_config_file(path, 0, length);
    errno = text->error;
    if (text->error != 0)
        return NULL;
    *length = text->length;
    copy = malloc(text->length + 1);
    return copy == NULL ? NULL : memcpy(copy, text->bytes, text->length);
}

void
config_text_hold(char *text, size_t length)
{
    drop_text(&serving);
    serving = (struct text){.bytes = text, .length = length, .is_held = true};
}

void
config_text_renew(const char *path)
{
    drop_text(&next);
    next.bytes = read_config_file(path, O_NONBLOCK, &next.length);
    next.error = next.bytes == NULL ? errno : 0;
    next.is_held = true;
}

void
config_text_settle(bool is_good)
{
    if (is_good && next.is_held) {
        drop_text(&serving);
        serving = next;
        next = (struct text){.is_held = false};
    }
    drop_text(&next);
}

void
config_text_end(void)
{
    drop_text(&serving);
    drop_text(&next);
}
