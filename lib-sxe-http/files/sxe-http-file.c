/* SPDX-License-Identifier: MIT
 *
 * What: makes and deletes a handler of static files, and finds what a request asks for: from its
 * method and path to a name beneath the root.
 */
#include "sxe-http-file-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sxe-http-list.h"
#include "sxe-sized-internal.h"

#define DEFAULT(field, value) (config->field = config->field == 0 ? (value) : config->field)

/* The prefix without slashes around it, which is the form in which names begin with the prefix. */
static struct sxe_span
trim_prefix(const char *prefix)
{
    struct sxe_span trimmed = {prefix, strlen(prefix)};

    while (trimmed.length > 0 && *trimmed.base == '/') {
        trimmed.base++;
        trimmed.length--;
    }
    while (trimmed.length > 0 && trimmed.base[trimmed.length - 1] == '/')
        trimmed.length--;
    return trimmed;
}

static void
fill_in_files_config(struct sxe_http_files_config *config)
{
    static const char *const usual_index[] = {"index.html", NULL};

    if (config->prefix == NULL)
        config->prefix = "";
    if (config->index == NULL)
        config->index = usual_index;
    DEFAULT(entries_max, 1024);
    DEFAULT(small_max, 64 * 1024);
    DEFAULT(memory_max, (size_t)16 * 1024 * 1024);
    DEFAULT(revalidate_ms, 1000);
    DEFAULT(ranges_max, 16);
    DEFAULT(waiting_max, 10000);
}

/* Whether the name of an index is too long to be appended to the longest path, see
 * SXE__HTTP_PATH_SIZE. */
static bool
has_long_index(const struct sxe_http_files_config *config)
{
    for (const char *const *index = config->index; *index != NULL; index++) {
        if (strlen(*index) > NAME_MAX)
            return true;
    }
    return false;
}

/* Check a configuration. NULL, or what is wrong. */
static const char *
check_files_config(const struct sxe_http_files_config *config)
{
    if (config->root == NULL)
        return "root must be a directory";
    if (strlen(config->prefix) >= SXE__HTTP_NAME_SIZE)
        return "prefix must have at most 4095 bytes";
    if (config->entries_max < 2 || config->entries_max > 1000000)
        return "entries_max must be 2 to 1,000,000";
    if (config->small_max > 16 * 1024 * 1024)
        return "small_max must be at most 16 MiB";
    if (config->ranges_max > SXE_HTTP_FILES_RANGES_MOST)
        return "ranges_max must be at most 256";
    if (config->waiting_max > 10000000)
        return "waiting_max must be at most 10,000,000";
    if (has_long_index(config))
        return "an index must be the name of a file, of at most 255 bytes";
    if (config->cache_control != NULL && !sxe_http_is_field_value((struct sxe_span){
                                             config->cache_control, strlen(config->cache_control)}))
        return "cache_control must be the value of a field, without control bytes";
    return NULL;
}

static int
open_root(struct sxe_http_files *files)
{
    const char *root = files->config.root;
    int result;

    files->root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    result = files->root < 0 ? -errno : sxe__http_probe_root(files->root, &files->has_openat2);
    if (result < 0) {
        SXE_ERROR("cannot serve the files of %s: %s", root, strerror(-result));
        return result;
    }
    if (!files->has_openat2)
        SXE_WARN("this system has no openat2: symbolic links in %s are not followed", root);
    return 0;
}

static int
make_files(struct sxe_http_files *files)
{
    const char *wrong = check_files_config(&files->config);
    int result;

    if (wrong != NULL) {
        SXE_ERROR("cannot serve files: %s", wrong);
        return -EINVAL;
    }
    result = sxe__http_types_new(&files->types, &files->config);
    if (result == 0)
        result = open_root(files);
    if (result == 0)
        result = sxe__http_cache_new(files);
    return result < 0 ? result : sxe__http_listing_new(files);
}

struct sxe_http_files *
sxe_http_files_new_sized(const struct sxe_http_files_config *config, size_t size)
{
    struct sxe_http_files *files = calloc(1, sizeof(*files));
    int result;

    if (files == NULL)
        return NULL;
    files->root = -1;
    result =
        sxe__sized_take(&files->config, sizeof(files->config), config, size, "sxe_http_files_new");
    pthread_mutex_init(&files->listing_lock, NULL);
    fill_in_files_config(&files->config);
    files->prefix = trim_prefix(files->config.prefix);
    if (result == 0)
        result = make_files(files);
    if (result < 0) {
        sxe_http_files_delete(files);
        errno = -result;
        return NULL;
    }
    files->group = sxe_work_register_group(SXE_WORK_THREADS);
    return files;
}

void
sxe_http_files_delete(struct sxe_http_files *files)
{
    if (files == NULL)
        return;
    sxe__http_cache_delete(files);
    sxe__http_listing_delete(files);
    sxe__http_types_delete(&files->types);
    if (files->root >= 0)
        close(files->root);
    pthread_mutex_destroy(&files->listing_lock);
    free(files);
}

size_t
sxe_http_files_plan_print(const struct sxe_http_files *files, FILE *out)
{
    const struct sxe_http_files_config *config = &files->config;
    size_t entries =
        sxe_pool_size(config->entries_max, sizeof(*files->entries), SXE__HTTP_FILE_STATES);
    size_t waiters = sxe_pool_size(config->waiting_max, sizeof(*files->waiters), 2);
    size_t contents = config->entries_max * files->region_size;
    size_t listing = files->listing == NULL ? 0 : sxe__http_listing_size();

    if (out == NULL)
        return entries + waiters + contents + listing;
    fprintf(out, "%-16s %10u x %7zu = %13zu bytes\n", "http files", config->entries_max,
            sizeof(*files->entries), entries);
    fprintf(out, "%-16s %10u x %7zu = %13zu bytes\n", "http waiting", config->waiting_max,
            sizeof(*files->waiters), waiters);
    fprintf(out, "%-16s %10u x %7zu = %13zu bytes of address space, of contents at most %zu\n",
            "http contents", config->entries_max, files->region_size, contents, config->memory_max);
    fprintf(out, "%-16s %10u x %7zu = %13zu bytes of address space, used while one is made\n",
            "http listing", listing > 0, listing, listing);
    return entries + waiters + contents + listing;
}

/* ---- Names ---- */

/* Take the prefix off a name. 0; 301: the name is the prefix without its slash; or 404. */
static unsigned
take_prefix(struct sxe_span prefix, struct sxe_span *name)
{
    if (prefix.length == 0)
        return 0;
    if (name->length < prefix.length || memcmp(name->base, prefix.base, prefix.length) != 0)
        return 404;
    if (name->length == prefix.length)
        return 301;
    if (name->base[prefix.length] != '/')
        return 404;
    name->base += prefix.length + 1;
    name->length -= prefix.length + 1;
    if (name->length == 0)
        *name = (struct sxe_span){".", 1};
    return 0;
}

bool
sxe__http_is_hidden(struct sxe_span name)
{
    static const char well_known[] = ".well-known";
    const char *end = name.base + name.length;
    const char *p = name.base;

    while (p < end) {
        const char *slash = memchr(p, '/', (size_t)(end - p));
        size_t length = (size_t)((slash == NULL ? end : slash) - p);

        if (*p == '.' && (p != name.base || length != sizeof(well_known) - 1 ||
                          memcmp(p, well_known, length) != 0))
            return true;
        p += length + 1;
    }
    return false;
}

/* Whether the path is a name already: nothing in it must be decoded, resolved, refused or
 * hidden. */
static bool
is_plain_path(struct sxe_span path)
{
    /* The kinds of bytes in a segment. NOT_FIRST: plain, but not as the first byte. */
    enum { PLAIN, NOT_FIRST, NOT_PLAIN };
    static const uint8_t kinds[256] = {['/'] = NOT_FIRST,
                                       ['.'] = NOT_FIRST,
                                       ['%'] = NOT_PLAIN,
                                       ['\\'] = NOT_PLAIN,
                                       ['\0'] = NOT_PLAIN};

    if (path.length == 0 || *path.base != '/')
        return false;
    for (size_t i = 1; i < path.length; i++) {
        unsigned kind = kinds[(uint8_t)path.base[i]];

        if (kind != PLAIN && (kind == NOT_PLAIN || path.base[i - 1] == '/'))
            return false;
    }
    return true;
}

/* Make the name, without the prefix, from any path. 0, or the status that refuses the path. */
static unsigned
decode_name(struct sxe_http_files *files, struct sxe_span path, struct sxe_span prefix,
            struct sxe_span *name)
{
    ssize_t length = sxe_http_path_to_file(path, files->room, sizeof(files->room));
    unsigned status;

    if (length < 0)
        return length == -ENOBUFS ? 404 : 400;
    *name = (struct sxe_span){files->room, (size_t)length};
    status = take_prefix(prefix, name);
    if (status != 0 || files->config.dot_files || (name->length == 1 && *name->base == '.'))
        return status;
    return sxe__http_is_hidden(*name) ? 404 : 0;
}

/* Like decode_name, but if the path is a name already, it is not copied. */
static unsigned
make_name(struct sxe_http_files *files, struct sxe_span path, struct sxe_span prefix,
          struct sxe_span *name)
{
    unsigned status;

    if (is_plain_path(path)) {
        *name = path.length == 1 ? (struct sxe_span){".", 1}
                                 : (struct sxe_span){path.base + 1, path.length - 1};
        status = take_prefix(prefix, name);
    } else {
        status = decode_name(files, path, prefix, name);
    }
    return status == 0 && name->length >= SXE__HTTP_NAME_SIZE ? 404 : status;
}

static enum sxe_http_verdict
serve_request(struct sxe_http_files *files, struct sxe_http_request *request, struct sxe_span path,
              struct sxe_span prefix)
{
    struct sxe_span name;
    unsigned status = make_name(files, path, prefix, &name);

    if (status == 0)
        return sxe__http_file_serve(files, request, name);
    if (status == 301)
        sxe__http_file_redirect(files, request, "");
    else
        sxe__http_file_refuse(request, status);
    return SXE_HTTP_DONE;
}

enum sxe_http_verdict
sxe_http_files_send(struct sxe_http_files *files, struct sxe_http_request *request,
                    struct sxe_span path)
{
    return serve_request(files, request, path, (struct sxe_span){NULL, 0});
}

enum sxe_http_verdict
sxe_http_files_handle(struct sxe_http_request *request, struct sxe_http_response *response)
{
    struct sxe_http_files *files = request->user;

    SXE_UNUSED_PARAMETER(response);
    switch (sxe_http_method(request)) {
    case SXE_HTTP_GET:
    case SXE_HTTP_HEAD:
        return serve_request(files, request, request->path, files->prefix);
    case SXE_HTTP_OTHER:
        sxe__http_file_refuse(request, 501);
        break;
    case SXE_HTTP_OPTIONS:
        sxe__http_file_allow(request, 204);
        break;
    case SXE_HTTP_POST:
    case SXE_HTTP_PUT:
    case SXE_HTTP_DELETE:
    case SXE_HTTP_CONNECT:
    case SXE_HTTP_TRACE:
    case SXE_HTTP_PATCH:
        sxe__http_file_allow(request, 405);
        break;
    }
    return SXE_HTTP_DONE;
}
