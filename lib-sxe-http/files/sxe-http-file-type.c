/* SPDX-License-Identifier: MIT
 *
 * What: finds the content type for the extension of a file name: in the program's lines, then in
 * those of a mime.types file, then in a built-in table. Used once for each file that is opened.
 */
#include "sxe-http-file-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXTENSION_SIZE 32
#define UTF_8          "; charset=utf-8"

/* The types, sorted by extension, because bsearch needs that. */
static const struct sxe__http_type usual_types[] = {
    {"7z", "application/x-7z-compressed"},
    {"aac", "audio/aac"},
    {"apng", "image/apng"},
    {"atom", "application/atom+xml"},
    {"avi", "video/x-msvideo"},
    {"avif", "image/avif"},
    {"bin", "application/octet-stream"},
    {"bmp", "image/bmp"},
    {"br", "application/x-brotli"},
    {"bz2", "application/x-bzip2"},
    {"c", "text/plain" UTF_8},
    {"cc", "text/plain" UTF_8},
    {"conf", "text/plain" UTF_8},
    {"cpp", "text/plain" UTF_8},
    {"css", "text/css" UTF_8},
    {"csv", "text/csv" UTF_8},
    {"deb", "application/vnd.debian.binary-package"},
    {"diff", "text/plain" UTF_8},
    {"doc", "application/msword"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"eot", "application/vnd.ms-fontobject"},
    {"epub", "application/epub+zip"},
    {"flac", "audio/flac"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"h", "text/plain" UTF_8},
    {"heic", "image/heic"},
    {"htm", "text/html" UTF_8},
    {"html", "text/html" UTF_8},
    {"ico", "image/x-icon"},
    {"ics", "text/calendar" UTF_8},
    {"iso", "application/x-iso9660-image"},
    {"jar", "application/java-archive"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript" UTF_8},
    {"json", "application/json"},
    {"jsonld", "application/ld+json"},
    {"jxl", "image/jxl"},
    {"log", "text/plain" UTF_8},
    {"lua", "text/plain" UTF_8},
    {"m3u8", "application/vnd.apple.mpegurl"},
    {"m4a", "audio/mp4"},
    {"m4v", "video/mp4"},
    {"map", "application/json"},
    {"md", "text/markdown" UTF_8},
    {"mid", "audio/midi"},
    {"mjs", "text/javascript" UTF_8},
    {"mkv", "video/matroska"},
    {"mov", "video/quicktime"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"mpeg", "video/mpeg"},
    {"mpg", "video/mpeg"},
    {"odp", "application/vnd.oasis.opendocument.presentation"},
    {"ods", "application/vnd.oasis.opendocument.spreadsheet"},
    {"odt", "application/vnd.oasis.opendocument.text"},
    {"oga", "audio/ogg"},
    {"ogg", "audio/ogg"},
    {"ogv", "video/ogg"},
    {"opus", "audio/ogg"},
    {"otf", "font/otf"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"ppt", "application/vnd.ms-powerpoint"},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {"py", "text/plain" UTF_8},
    {"rar", "application/vnd.rar"},
    {"rpm", "application/x-rpm"},
    {"rss", "application/rss+xml"},
    {"rtf", "application/rtf"},
    {"sh", "text/plain" UTF_8},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"tgz", "application/gzip"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"toml", "application/toml"},
    {"ts", "video/mp2t"},
    {"ttf", "font/ttf"},
    {"txt", "text/plain" UTF_8},
    {"vtt", "text/vtt" UTF_8},
    {"wasm", "application/wasm"},
    {"wav", "audio/wav"},
    {"weba", "audio/webm"},
    {"webm", "video/webm"},
    {"webmanifest", "application/manifest+json"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xhtml", "application/xhtml+xml"},
    {"xls", "application/vnd.ms-excel"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"xml", "application/xml"},
    {"xz", "application/x-xz"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
};

/* ---- Reading lines of mime.types ---- */

static void
to_small_letters(char *text)
{
    for (; *text != '\0'; text++) {
        if (*text >= 'A' && *text <= 'Z')
            *text = (char)(*text | 0x20);
    }
}

/* Take the next word, and end it with a NUL. NULL: there are no more words. */
static char *
take_type_word(char **text)
{
    char *word = *text + strspn(*text, " \t\r");
    char *end = word + strcspn(word, " \t\r");

    if (end == word)
        return NULL;
    *text = *end == '\0' ? end : end + 1;
    *end = '\0';
    return word;
}

/* Whether the text can be the value of Content-Type. */
static bool
is_type(const char *type)
{
    size_t length = 0;

    for (; type[length] != '\0'; length++) {
        if (type[length] < ' ' || type[length] > '~')
            return false;
    }
    return length <= SXE__HTTP_TYPE_MAX && strchr(type, '/') != NULL;
}

/* Read a line: "text/html html htm # a comment". */
static int
read_types_line(struct sxe__http_types *types, char *line)
{
    char *type;
    char *extension;

    line[strcspn(line, "#")] = '\0';
    type = take_type_word(&line);
    if (type == NULL)
        return 0;
    if (!is_type(type)) {
        SXE_ERROR("cannot use a list of content types: %s is none", type);
        return -EINVAL;
    }
    while ((extension = take_type_word(&line)) != NULL) {
        to_small_letters(extension);
        types->types[types->number++] = (struct sxe__http_type){extension, type};
    }
    return 0;
}

static int
read_types_lines(struct sxe__http_types *types)
{
    char *line = types->text;
    int result = 0;

    while (*line != '\0' && result == 0) {
        char *end = strchrnul(line, '\n');
        char *next = *end == '\0' ? end : end + 1;

        *end = '\0';
        result = read_types_line(types, line);
        line = next;
    }
    return result;
}

/* ---- Reading the types ---- */

/* Append a file after the first `used` bytes of *text. Returns the bytes read, or -errno. */
static ssize_t
append_types_file(const char *path, char **text, size_t used)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat found;
    char *larger;
    ssize_t length = -1;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &found) == 0) {
        larger = realloc(*text, used + (size_t)found.st_size + 1);
        *text = larger == NULL ? *text : larger;
        length = larger == NULL ? -1 : read(fd, larger + used, (size_t)found.st_size);
    }
    if (length < 0)
        length = -errno;
    close(fd);
    return length;
}

/* Join the program's lines and those of types_file. */
static int
join_type_texts(struct sxe__http_types *types, const struct sxe_http_files_config *config)
{
    const char *lines = config->types == NULL ? "" : config->types;
    size_t used = strlen(lines);
    ssize_t length = 0;

    types->text = malloc(used + 2);
    if (types->text == NULL)
        return -ENOMEM;
    memcpy(types->text, lines, used);
    types->text[used++] = '\n';
    if (config->types_file != NULL)
        length = append_types_file(config->types_file, &types->text, used);
    if (length < 0) {
        SXE_ERROR("cannot read the content types in %s: %s", config->types_file,
                  strerror((int)-length));
        return (int)length;
    }
    types->text[used + (size_t)length] = '\0';
    return 0;
}

int
sxe__http_types_new(struct sxe__http_types *types, const struct sxe_http_files_config *config)
{
    int result = join_type_texts(types, config);

    types->usual = "application/octet-stream";
    if (result < 0)
        return result;
    if (config->type_default != NULL && !is_type(config->type_default)) {
        SXE_ERROR("type_default cannot be a content type: %s", config->type_default);
        return -EINVAL;
    }
    if (config->type_default != NULL)
        types->usual = config->type_default;
    /* Each type takes at least two bytes of the text: a word and a separator. */
    types->types = calloc(strlen(types->text) / 2 + 1, sizeof(*types->types));
    return types->types == NULL ? -ENOMEM : read_types_lines(types);
}

void
sxe__http_types_delete(struct sxe__http_types *types)
{
    free(types->types);
    free(types->text);
}

/* ---- Asking ---- */

/* Get the extension of a path in small letters. False: the path has none, or one that no type can
 * have. */
static bool
get_extension(const char *path, char extension[EXTENSION_SIZE])
{
    const char *dot = strrchr(path, '.');
    size_t length = dot == NULL ? 0 : strlen(dot + 1);

    if (length == 0 || length >= EXTENSION_SIZE || strchr(dot, '/') != NULL)
        return false;
    memcpy(extension, dot + 1, length + 1);
    to_small_letters(extension);
    return true;
}

static int
compare_extension(const void *extension, const void *type)
{
    return strcmp(extension, ((const struct sxe__http_type *)type)->extension);
}

const char *
sxe__http_type_of(const struct sxe__http_types *types, const char *path)
{
    const struct sxe__http_type *found;
    char extension[EXTENSION_SIZE];

    if (!get_extension(path, extension))
        return types->usual;
    for (unsigned i = 0; i < types->number; i++) {
        if (strcmp(types->types[i].extension, extension) == 0)
            return types->types[i].type;
    }
    found = bsearch(extension, usual_types, sizeof(usual_types) / sizeof(usual_types[0]),
                    sizeof(usual_types[0]), compare_extension);
    return found == NULL ? types->usual : found->type;
}
