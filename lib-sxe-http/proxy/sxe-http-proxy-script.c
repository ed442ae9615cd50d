/* SPDX-License-Identifier: MIT
 *
 * What: which script of FastCGI answers a request. A path is a script, and may go on after it:
 *
 *     /shop/cart.php/items/7     name: /shop/cart.php     info: /items/7
 *     /shop/                     name: /shop/index.php
 *
 * A script is a regular file below the root whose name has the suffix. That is checked here,
 * because php-fpm may take a part of a path for the script: of /upload/picture.jpg/x.php it would
 * run picture.jpg. Symbolic links may not leave the root. As among files, names that begin with a
 * dot do not exist.
 */
#include "sxe-http-proxy-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sxe-http-beneath-private.h"
#include "sxe-http-uri.h"
#include "sxe-sized-internal.h"

enum { TEXT_SIZE = 1024 };

struct sxe_http_scripts {
    char root[TEXT_SIZE];
    char suffix[TEXT_SIZE];
    char index[TEXT_SIZE];
    char fallback[TEXT_SIZE]; /* "": none */
    int directory;            /* -1: the scripts are not looked for */
    bool has_openat2;
};

/* ---- Making and deleting ---- */

static bool
take_script_text(char to[TEXT_SIZE], const char *text, const char *usual)
{
    const char *from = text != NULL ? text : usual;
    const size_t length = from == NULL ? 0 : strlen(from);

    if (length == 0 || length >= TEXT_SIZE)
        return false;
    memcpy(to, from, length + 1);
    return true;
}

static bool
ends_with_suffix(const struct sxe_http_scripts *scripts, const char *name, size_t length)
{
    const size_t size = strlen(scripts->suffix);

    return length > size && memcmp(name + length - size, scripts->suffix, size) == 0;
}

/* Copy and check the texts. 0 or -EINVAL. */
static int
configure_scripts(struct sxe_http_scripts *scripts, const struct sxe_http_scripts_config *config)
{
    size_t length;

    if (!take_script_text(scripts->root, config->root, NULL) ||
        !take_script_text(scripts->suffix, config->suffix, ".php") ||
        !take_script_text(scripts->index, config->index, "index.php") ||
        (config->fallback != NULL && !take_script_text(scripts->fallback, config->fallback, NULL)))
        return -EINVAL;
    if (strchr(scripts->suffix, '/') != NULL || strchr(scripts->index, '/') != NULL ||
        !ends_with_suffix(scripts, scripts->index, strlen(scripts->index)))
        return -EINVAL;
    if (config->fallback != NULL &&
        (*scripts->fallback != '/' ||
         !ends_with_suffix(scripts, scripts->fallback, strlen(scripts->fallback))))
        return -EINVAL;
    for (length = strlen(scripts->root); length > 0 && scripts->root[length - 1] == '/'; length--)
        scripts->root[length - 1] = '\0';
    return 0;
}

/* Open the directory. 0 or -errno. */
static int
open_script_directory(struct sxe_http_scripts *scripts, const char *root)
{
    scripts->directory = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return scripts->directory < 0 ? -errno
                                  : sxe__http_probe_root(scripts->directory, &scripts->has_openat2);
}

struct sxe_http_scripts *
sxe_http_scripts_new_sized(const struct sxe_http_scripts_config *given, size_t size)
{
    struct sxe_http_scripts *scripts = calloc(1, sizeof(*scripts));
    struct sxe_http_scripts_config config;
    int result;

    if (scripts == NULL)
        return NULL;
    scripts->directory = -1;
    result = sxe__sized_take(&config, sizeof(config), given, size, "sxe_http_scripts_new");
    if (result == 0)
        result = configure_scripts(scripts, &config);
    if (result == 0 && !config.is_remote)
        result = open_script_directory(scripts, config.root);
    if (result < 0) {
        sxe_http_scripts_delete(scripts);
        errno = -result;
        return NULL;
    }
    return scripts;
}

void
sxe_http_scripts_delete(struct sxe_http_scripts *scripts)
{
    if (scripts != NULL && scripts->directory >= 0)
        close(scripts->directory);
    free(scripts);
}

const char *
sxe__http_script_root(const struct sxe_http_scripts *scripts)
{
    return scripts->root;
}

/* ---- Finding ---- */

/* Whether the path, which begins with a slash and has a NUL at its end, is a script. */
static bool
is_script_file(const struct sxe_http_scripts *scripts, const char *path)
{
    struct stat found;
    bool is_regular;
    int fd;

    if (sxe__http_is_hidden(sxe_http_span(path + 1)))
        return false;
    if (scripts->directory < 0)
        return true;
    fd = sxe__http_open_beneath(scripts->directory, scripts->has_openat2, path + 1, O_PATH);
    if (fd < 0)
        return false;
    is_regular = fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
    close(fd);
    return is_regular;
}

/* Decode the path into the room, and split it at the route's {rest...}. *rest becomes the part
 * after the prefix, with a slash at its beginning and a NUL at its end. 0 or -EINVAL. */
static int
decode_script_path(const struct sxe_http_request *request, struct sxe__http_script *script,
                   struct sxe_span *rest)
{
    const struct sxe_span tail = sxe__http_proxy_tail(request);
    const size_t before = tail.length == 0 ? 0 : request->path.length - tail.length;
    ssize_t prefix = sxe_http_decode_path((struct sxe_span){request->path.base, before},
                                          script->room, sizeof(script->room));
    ssize_t length =
        prefix < 0
            ? prefix
            : sxe_http_decode_path(
                  (struct sxe_span){request->path.base + before, request->path.length - before},
                  script->room + prefix, sizeof(script->room) - TEXT_SIZE - (size_t)prefix);

    if (length <= 0 || script->room[prefix] != '/')
        return -EINVAL;
    script->room[prefix + length] = '\0';
    script->prefix = (struct sxe_span){script->room, (size_t)prefix};
    *rest = (struct sxe_span){script->room + prefix, (size_t)length};
    return 0;
}

/* Whether a name has the suffix on a file system that does not tell capitals from small letters. */
static bool
resembles_script(const struct sxe_http_scripts *scripts, const char *name, size_t length)
{
    const size_t size = strlen(scripts->suffix);

    return length >= size && sxe__http_is_same(name + length - size, scripts->suffix, size);
}

/* Find the first segment with the suffix that ends a path to a script. */
static bool
find_in_segments(const struct sxe_http_scripts *scripts, struct sxe_span rest,
                 struct sxe__http_script *script)
{
    char *path = script->room + script->prefix.length;
    size_t at = 0;

    while (at < rest.length) {
        const char *slash = memchr(path + at + 1, '/', rest.length - at - 1);
        const size_t end = slash == NULL ? rest.length : (size_t)(slash - path);
        const char kept = path[end];
        bool is_found;

        script->has_suffix |= resembles_script(scripts, path + at + 1, end - at - 1);
        path[end] = '\0';
        is_found =
            ends_with_suffix(scripts, path + at + 1, end - at - 1) && is_script_file(scripts, path);
        path[end] = kept;
        if (is_found) {
            script->name = (struct sxe_span){path, end};
            script->info = (struct sxe_span){path + end, rest.length - end};
            return true;
        }
        at = end;
    }
    return false;
}

int
sxe__http_script_find(const struct sxe_http_scripts *scripts,
                      const struct sxe_http_request *request, struct sxe__http_script *script)
{
    struct sxe_span rest;
    char *end;

    script->request = request;
    script->has_suffix = false;
    if (decode_script_path(request, script, &rest) < 0)
        return -EINVAL;
    if (find_in_segments(scripts, rest, script))
        return 0;
    end = script->room + script->prefix.length + rest.length;
    if (end[-1] != '/' || script->has_suffix)
        return -ENOENT;
    memcpy(end, scripts->index, strlen(scripts->index) + 1);
    script->name = (struct sxe_span){rest.base, rest.length + strlen(scripts->index)};
    script->info = (struct sxe_span){script->name.base + script->name.length, 0};
    return is_script_file(scripts, rest.base) ? 0 : -ENOENT;
}

bool
sxe__http_script_fall_back(const struct sxe_http_scripts *scripts, struct sxe__http_script *script)
{
    script->name = (struct sxe_span){scripts->fallback, strlen(scripts->fallback)};
    script->info = (struct sxe_span){scripts->fallback, 0};
    return script->name.length > 0;
}
