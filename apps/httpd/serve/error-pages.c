/* SPDX-License-Identifier: MIT
 *
 * Reads the pages of --error-page.
 */
#include "error-pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "config-origin.h"

/* ---- The option ---- */

/* Read the status and the blank, such as "404 ", with which the text begins. 0: it does not begin
 * in this way. */
static unsigned
status_of_name(const char *text)
{
    if ((*text != '4' && *text != '5') || text[1] < '0' || text[1] > '9' || text[2] < '0' ||
        text[2] > '9' || text[3] != ' ')
        return 0;
    return (unsigned)(*text - '0') * 100 + (unsigned)(text[1] - '0') * 10 +
           (unsigned)(text[2] - '0');
}

static bool
set_path(struct error_pages *pages, unsigned status, const char *path)
{
    unsigned at = 0;

    while (at < pages->number && pages->pages[at].status != status)
        at++;
    if (at == ERROR_PAGES_MAX)
        return false;
    pages->pages[at].status = status;
    pages->paths[at] = path;
    if (at == pages->number)
        pages->number++;
    return true;
}

bool
error_pages_add(struct error_pages *pages, const char *text)
{
    const char *path = text;

    while (status_of_name(path) != 0)
        path += 4;
    if (path == text || *path == '\0')
        return false;
    for (; status_of_name(text) != 0; text += 4) {
        if (!set_path(pages, status_of_name(text), path))
            return false;
    }
    return true;
}

/* ---- The files ---- */

static const char *
type_of_page(const char *path)
{
    const char *dot = strrchr(path, '.');

    if (dot != NULL && strcasecmp(dot, ".json") == 0)
        return "application/json";
    if (dot != NULL && strcasecmp(dot, ".txt") == 0)
        return "text/plain; charset=utf-8";
    return "text/html; charset=utf-8";
}

/* Read the whole file into page, and close fd. 0 or -errno. pread(2) refuses a FIFO, from which a
 * read could wait for ever. */
static int
read_page(int fd, struct sxe_http_page *page)
{
    char *body = malloc(ERROR_PAGE_MAX + 1);
    ssize_t got = body == NULL ? -1 : 1;
    size_t length = 0;
    int result;

    while (got > 0) {
        got = pread(fd, body + length, ERROR_PAGE_MAX + 1 - length, (off_t)length);
        length += got > 0 ? (size_t)got : 0;
    }
    result = got < 0 ? -errno : length > ERROR_PAGE_MAX ? -EFBIG : 0;
    close(fd);
    if (result < 0) {
        free(body);
        return result;
    }
    page->body = body;
    page->length = length;
    return 0;
}

int
error_pages_read(struct error_pages *pages)
{
    for (unsigned i = 0; i < pages->number; i++) {
        struct sxe_http_page *page = &pages->pages[i];
        const int fd = open(pages->paths[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        const int result = fd < 0 ? -errno : read_page(fd, page);

        page->type = type_of_page(pages->paths[i]);
        if (result == 0)
            continue;
        fprintf(stderr,
                "sxe-httpd: %scannot read the error page '%s' for status %u: %s; it must be a "
                "file of at most %u KiB\n",
                config_place_of("error-page"), pages->paths[i], page->status, strerror(-result),
                ERROR_PAGE_MAX / 1024);
        error_pages_free(pages);
        return result;
    }
    return 0;
}

void
error_pages_free(struct error_pages *pages)
{
    for (unsigned i = 0; i < pages->number; i++) {
        free((void *)(uintptr_t)pages->pages[i].body);
        pages->pages[i].body = NULL;
    }
}
