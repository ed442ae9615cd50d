/* SPDX-License-Identifier: MIT
 *
 * What: a page about a directory, in HTML: its directories, then its files, both in the order of
 * their names. Threads make listings one after the other, in memory that all listings share. A
 * short one becomes the content of its entry, a long one a file without a name (memfd_create(2)).
 */
#include "sxe-http-file-private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sxe-always-internal.h"

#define ROWS_MAX     10000u
#define ROW_HTML_MAX (NAME_MAX * 3 + NAME_MAX * 6 + 200)
#define HTML_SIZE    ((size_t)ROWS_MAX * ROW_HTML_MAX + 12 * SXE__HTTP_PATH_ROOM + 4096)
#define DIRENTS_SIZE (32u * 1024)

struct row {
    const char *name;
    uint64_t size; /* size of the file in bytes */
    int64_t modified;
    uint16_t length; /* length of the name */
    bool is_directory;
};

struct sxe__http_listing {
    _Alignas(struct dirent64) char dirents[DIRENTS_SIZE];
    struct row rows[ROWS_MAX];
    uint32_t number;
    bool is_cut; /* the directory has more than ROWS_MAX names */
    size_t names_used;
    size_t html_used;
    char names[ROWS_MAX * NAME_MAX];
    char html[HTML_SIZE];
};

int
sxe__http_listing_new(struct sxe_http_files *files)
{
    void *memory;

    if (!files->config.listing)
        return 0;
    memory = mmap(NULL, sizeof(struct sxe__http_listing), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    files->listing = memory;
    return 0;
}

void
sxe__http_listing_delete(struct sxe_http_files *files)
{
    if (files->listing != NULL)
        munmap(files->listing, sizeof(struct sxe__http_listing));
}

size_t
sxe__http_listing_size(void)
{
    return sizeof(struct sxe__http_listing);
}

/* ---- Rows ---- */

/* Look up the target of a link, if it is beneath the root. 0 or -1. */
static int
follow_link(const struct sxe__http_file *file, const char *name, struct stat *found)
{
    char path[SXE__HTTP_PATH_SIZE];
    int fd;
    int result;

    snprintf(path, sizeof(path), "%s%s", strcmp(file->name, ".") == 0 ? "" : file->name, name);
    fd = sxe__http_open_beneath(file->files->root, file->files->has_openat2, path, O_PATH);
    if (fd < 0)
        return -1;
    result = fstat(fd, found);
    close(fd);
    return result;
}

static bool
is_name_shown(const struct sxe__http_file *file, const char *name, size_t length)
{
    if (length > NAME_MAX || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        strchr(name, '\\') != NULL) /* a request's path may not contain a backslash */
        return false;
    return *name != '.' || file->files->config.dot_files;
}

/* Add a row, unless the name is hidden, or is no file or directory beneath the root. */
static void
add_row(struct sxe__http_file *file, int fd, const char *name)
{
    struct sxe__http_listing *listing = file->files->listing;
    struct row *row = &listing->rows[listing->number];
    size_t length = strlen(name);
    struct stat found;

    if (!is_name_shown(file, name, length) || fstatat(fd, name, &found, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (S_ISLNK(found.st_mode) && follow_link(file, name, &found) < 0)
        return;
    if (!S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode))
        return;
    row->name = memcpy(listing->names + listing->names_used, name, length);
    row->length = (uint16_t)length;
    row->size = (uint64_t)found.st_size;
    row->modified = found.st_mtim.tv_sec;
    row->is_directory = S_ISDIR(found.st_mode);
    listing->names_used += length;
    listing->number++;
}

static void
add_rows(struct sxe__http_file *file, int fd, size_t used)
{
    struct sxe__http_listing *listing = file->files->listing;
    size_t at = 0;

    while (at < used && !listing->is_cut) {
        const struct dirent64 *entry = (const void *)(listing->dirents + at);

        at += entry->d_reclen;
        listing->is_cut = listing->number == ROWS_MAX;
        if (!listing->is_cut)
            add_row(file, fd, entry->d_name);
    }
}

static int
read_listing_rows(struct sxe__http_file *file, int fd)
{
    struct sxe__http_listing *listing = file->files->listing;
    ssize_t used;

    do {
        used = getdents64(fd, (void *)listing->dirents, DIRENTS_SIZE);
        if (used < 0)
            return -errno;
        add_rows(file, fd, (size_t)used);
    } while (used > 0 && !listing->is_cut);
    return 0;
}

/* ---- Order ---- */

static bool
is_row_before(const struct row *a, const struct row *b)
{
    size_t length = a->length < b->length ? a->length : b->length;
    int difference;

    if (a->is_directory != b->is_directory)
        return a->is_directory;
    difference = memcmp(a->name, b->name, length);
    return difference != 0 ? difference < 0 : a->length < b->length;
}

static void
swap_rows(struct row *a, struct row *b)
{
    struct row kept = *a;

    *a = *b;
    *b = kept;
}

/* Move the row at `root` down the heap until no row below it sorts after it. */
static void
sift_row_down(struct row *rows, uint32_t number, uint32_t root)
{
    for (uint32_t child; (child = 2 * root + 1) < number; root = child) {
        if (child + 1 < number && is_row_before(&rows[child], &rows[child + 1]))
            child++;
        if (!is_row_before(&rows[root], &rows[child]))
            return;
        swap_rows(&rows[root], &rows[child]);
    }
}

/* Heap sort, because qsort() may allocate. */
static void
sort_rows(struct row *rows, uint32_t number)
{
    for (uint32_t i = number / 2; i > 0; i--)
        sift_row_down(rows, number, i - 1);
    for (uint32_t i = number; i > 1; i--) {
        swap_rows(&rows[0], &rows[i - 1]);
        sift_row_down(rows, i - 1, 0);
    }
}

/* ---- The page: html has room for the longest ---- */

static void
put_page_text(struct sxe__http_listing *listing, const char *text)
{
    size_t length = strlen(text);

    memcpy(listing->html + listing->html_used, text, length);
    listing->html_used += length;
}

static void
put_written_text(struct sxe__http_listing *listing,
                 ssize_t (*write)(struct sxe_span, char *, size_t), const char *text, size_t length)
{
    ssize_t written = write((struct sxe_span){text, length}, listing->html + listing->html_used,
                            HTML_SIZE - listing->html_used);

    listing->html_used += SXE_ALWAYS(written >= 0) ? (size_t)written : 0;
}

static void
put_escaped_path(struct sxe__http_listing *listing, const struct sxe__http_file *file)
{
    struct sxe_span prefix = file->files->prefix;

    put_page_text(listing, "/");
    put_written_text(listing, sxe_http_escape_html, prefix.base, prefix.length);
    if (listing->html[listing->html_used - 1] != '/')
        put_page_text(listing, "/");
    if (strcmp(file->name, ".") != 0)
        put_written_text(listing, sxe_http_escape_html, file->name, file->name_length);
}

static const char before_title[] =
    "<!DOCTYPE html>\n"
    "<html lang=\"en\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>Index of ";

static const char before_heading[] =
    "</title>\n"
    "<style>\n"
    ":root { color-scheme: light dark; }\n"
    "body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;"
    " padding: 0 1rem; }\n"
    "h1 { font-size: 1.25rem; overflow-wrap: anywhere; }\n"
    "table { border-collapse: collapse; width: 100%; }\n"
    "th, td { padding: .25rem .75rem; text-align: left; border-bottom: 1px solid #8884; }\n"
    "th { font-weight: 600; }\n"
    "td:first-child { overflow-wrap: anywhere; }\n"
    ".n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }\n"
    "a { text-decoration: none; }\n"
    "a:hover { text-decoration: underline; }\n"
    "</style>\n"
    "</head>\n"
    "<body>\n"
    "<h1>Index of ";

static const char before_rows[] = "</h1>\n"
                                  "<table>\n"
                                  "<thead>\n"
                                  "<tr><th scope=\"col\">Name</th>"
                                  "<th scope=\"col\" class=\"n\">Size</th>"
                                  "<th scope=\"col\" class=\"n\">Modified (UTC)</th></tr>\n"
                                  "</thead>\n"
                                  "<tbody>\n";

static void
put_page_head(struct sxe__http_listing *listing, const struct sxe__http_file *file)
{
    put_page_text(listing, before_title);
    put_escaped_path(listing, file);
    put_page_text(listing, before_heading);
    put_escaped_path(listing, file);
    put_page_text(listing, before_rows);
    if (strcmp(file->name, ".") != 0)
        put_page_text(listing, "<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
}

static void
put_size(struct sxe__http_listing *listing, uint64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double amount = (double)bytes;
    unsigned unit = 0;
    char text[32];

    for (; amount >= 999.5; unit++)
        amount /= 1000;
    snprintf(text, sizeof(text), unit > 0 && amount < 9.95 ? "%.1f %s" : "%.0f %s", amount,
             units[unit]);
    put_page_text(listing, text);
}

/* Write a time as "06 Nov 1994 08:49". */
static void
put_date(struct sxe__http_listing *listing, int64_t seconds)
{
    char date[SXE_HTTP_DATE_LENGTH];

    sxe_http_date_format(seconds, date);
    memcpy(listing->html + listing->html_used, date + 5, 17);
    listing->html_used += 17;
}

static void
put_row(struct sxe__http_listing *listing, const struct row *row)
{
    const char *slash = row->is_directory ? "/" : "";

    put_page_text(listing, "<tr><td><a href=\"");
    put_written_text(listing, sxe_http_encode_segment, row->name, row->length);
    put_page_text(listing, slash);
    put_page_text(listing, "\">");
    put_written_text(listing, sxe_http_escape_html, row->name, row->length);
    put_page_text(listing, slash);
    put_page_text(listing, "</a></td><td class=\"n\">");
    if (!row->is_directory)
        put_size(listing, row->size);
    put_page_text(listing, "</td><td class=\"n\">");
    put_date(listing, row->modified);
    put_page_text(listing, "</td></tr>\n");
}

static void
put_page(struct sxe__http_listing *listing, const struct sxe__http_file *file)
{
    put_page_head(listing, file);
    for (uint32_t i = 0; i < listing->number; i++)
        put_row(listing, &listing->rows[i]);
    put_page_text(listing, "</tbody>\n</table>\n");
    if (listing->is_cut)
        put_page_text(listing, "<p>There are more: only 10,000 are shown.</p>\n");
    put_page_text(listing, "</body>\n</html>\n");
}

/* ---- Storing the page ---- */

static int
keep_in_file(struct sxe__http_file *file, const struct sxe__http_listing *listing)
{
    int fd = memfd_create("sxe-http-listing", MFD_CLOEXEC);
    size_t used = 0;

    if (fd < 0)
        return -errno;
    while (used < listing->html_used) {
        ssize_t n = write(fd, listing->html + used, listing->html_used - used);

        if (n < 0) {
            int error = errno;

            close(fd);
            return -error;
        }
        used += (size_t)n;
    }
    file->fd = fd;
    return 0;
}

static int
keep_row(struct sxe__http_file *file, const struct sxe__http_listing *listing)
{
    int result = 0;

    if (!file->may_keep)
        return -ENOMEM;
    if (listing->html_used > file->files->config.small_max) {
        result = keep_in_file(file, listing);
    } else {
        file->content =
            memcpy(file->name + file->name_length + 1, listing->html, listing->html_used);
        file->touched = file->name_length + 1 + listing->html_used;
    }
    file->size = listing->html_used;
    file->type = "text/html; charset=utf-8";
    file->is_listing = true;
    return result;
}

int
sxe__http_list(struct sxe__http_file *file, int fd)
{
    struct sxe_http_files *files = file->files;
    struct sxe__http_listing *listing = files->listing;
    int result;

    pthread_mutex_lock(&files->listing_lock);
    listing->number = 0;
    listing->is_cut = false;
    listing->names_used = 0;
    listing->html_used = 0;
    result = read_listing_rows(file, fd);
    if (result == 0) {
        sort_rows(listing->rows, listing->number);
        put_page(listing, file);
        result = keep_row(file, listing);
    }
    /* Give the memory back to the system: the next listing may be made much later. */
    (void)!madvise(listing, sizeof(*listing), MADV_DONTNEED);
    pthread_mutex_unlock(&files->listing_lock);
    close(fd);
    return result;
}
