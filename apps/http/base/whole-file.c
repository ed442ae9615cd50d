/* SPDX-License-Identifier: MIT
 *
 * Reading a whole file into memory.
 */
#include "whole-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { FIRST_ROOM = 16384 };

/* Read until the end of the file. Returns the bytes; NULL: errno says why. */
static char *
read_descriptor(int fd, size_t *length)
{
    size_t room = FIRST_ROOM;
    char *bytes = malloc(room);
    ssize_t number = 0;

    for (*length = 0; bytes != NULL; *length += (size_t)number) {
        errno = EFBIG;
        if (*length > LOAD_WHOLE_FILE_MAX)
            break;
        if (*length + 1 == room) {
            char *larger = realloc(bytes, room *= 2);

            if (larger == NULL)
                break;
            bytes = larger;
        }
        number = read(fd, bytes + *length, room - 1 - *length);
        if (number < 0)
            break;
        if (number == 0) {
            bytes[*length] = '\0';
            return bytes;
        }
    }
    free(bytes);
    return NULL;
}

char *
load_whole_file(const char *path, size_t *length)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *bytes;
    int error;

    if (fd < 0)
        return NULL;
    bytes = read_descriptor(fd, length);
    error = errno;
    close(fd);
    errno = error;
    return bytes;
}
