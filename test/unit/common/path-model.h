/* SPDX-License-Identifier: MIT
 *
 * What: the normal form of a path, made in the simplest way: a list of segments, each of which is
 * decoded, resolved and encoded again; and what all layers must agree on for any path.
 *
 * Place: used with random paths by test-http-router-oracle.c, and by fuzzers in fuzz-http-uri.c and
 * fuzz-http-router.c.
 *
 * Limits: paths of up to PATH_MODEL_MAX bytes.
 */
#ifndef PATH_MODEL_H
#define PATH_MODEL_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "sxe-http-uri.h"

enum { PATH_MODEL_MAX = 256, PATH_MODEL_ROOM = 3 * PATH_MODEL_MAX + 2 };

/* A byte of a decoded segment, and whether it came from a percent-escape. */
struct path_model_byte {
    unsigned char byte;
    bool is_escape;
};

struct path_model_segment {
    struct path_model_byte bytes[PATH_MODEL_MAX];
    size_t length;
};

struct path_model {
    struct path_model_segment segments[PATH_MODEL_MAX + 1];
    size_t number;
    bool has_slash; /* the path ends in a slash */
};

static inline int
path_model_digit(char c)
{
    const char *at = c == '\0' ? NULL : strchr("00112233445566778899AaBbCcDdEeFf", c);

    return at == NULL ? -1 : (int)(at - "00112233445566778899AaBbCcDdEeFf") / 2;
}

static inline bool
path_model_is_raw(unsigned char byte)
{
    return byte != '\0' && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "-._~!$&'()*+,;=:@[]|",
                                  byte) != NULL;
}

static inline bool
path_model_is_dots(const struct path_model_segment *segment, size_t number)
{
    for (size_t i = 0; i < segment->length; i++) {
        if (segment->bytes[i].byte != '.')
            return false;
    }
    return segment->length == number;
}

/* Split the path at its slashes and decode each segment. Returns 0, -EILSEQ or -EINVAL. */
static inline int
path_model_split(struct path_model *model, struct sxe_span path)
{
    model->number = 0;
    if (path.length == 0 || path.base[0] != '/')
        return -EINVAL;
    for (size_t i = 0; i < path.length; i++) {
        struct path_model_segment *segment;
        struct path_model_byte byte = {(unsigned char)path.base[i], false};

        if (byte.byte == '/') {
            model->segments[model->number++].length = 0;
            continue;
        }
        if (byte.byte == '%') {
            const int high = i + 2 < path.length ? path_model_digit(path.base[i + 1]) : -1;
            const int low = i + 2 < path.length ? path_model_digit(path.base[i + 2]) : -1;

            if (high < 0 || low < 0)
                return -EILSEQ;
            byte = (struct path_model_byte){(unsigned char)(16 * high + low), true};
            i += 2;
        }
        segment = &model->segments[model->number - 1];
        segment->bytes[segment->length++] = byte;
    }
    return 0;
}

/* Remove empty segments first, then dot segments. */
static inline int
path_model_resolve(struct path_model *model)
{
    size_t kept = 0;

    for (size_t i = 0; i < model->number; i++) {
        const struct path_model_segment *segment = &model->segments[i];
        const bool is_one = path_model_is_dots(segment, 1);
        const bool is_two = path_model_is_dots(segment, 2);

        model->has_slash = segment->length == 0 || is_one || is_two;
        if (is_two && kept == 0)
            return -EINVAL;
        if (is_two)
            kept--;
        else if (!model->has_slash)
            model->segments[kept++] = *segment;
    }
    model->number = kept;
    return 0;
}

static inline size_t
path_model_write(const struct path_model *model, char *room)
{
    size_t length = 0;

    for (size_t i = 0; i < model->number; i++) {
        const struct path_model_segment *segment = &model->segments[i];

        room[length++] = '/';
        for (size_t j = 0; j < segment->length; j++) {
            const struct path_model_byte byte = segment->bytes[j];

            if (byte.is_escape && !path_model_is_raw(byte.byte))
                length += (size_t)snprintf(room + length, 4, "%%%02X", byte.byte);
            else
                room[length++] = (char)byte.byte;
        }
    }
    if (model->has_slash || model->number == 0)
        room[length++] = '/';
    return length;
}

/* NULL, or how the library's normal form of a path differs from the model's. */
static inline const char *
path_model_compare(struct sxe_span path, int result, struct sxe_span normal)
{
    static struct path_model model;
    char room[PATH_MODEL_ROOM];
    int wanted = path_model_split(&model, path);

    if (wanted == 0)
        wanted = path_model_resolve(&model);
    else if (result == -EINVAL && wanted == -EILSEQ)
        return NULL; /* the path has both errors, and the library met the dots first */
    if (result != wanted)
        return "another result";
    if (result < 0)
        return NULL;
    const size_t length = path_model_write(&model, room);
    return normal.length == length && memcmp(normal.base, room, length) == 0
               ? NULL
               : "another normal form";
}

/* Whether encoding the decoded bytes gives the normal form again. Then no two normal forms decode
 * to the same name, and the router cannot see two paths where the file system sees one. */
static inline bool
path_model_leads_back(const char *decoded, size_t length, struct sxe_span normal)
{
    char room[PATH_MODEL_ROOM] = "/";
    size_t used = 1;

    for (size_t i = 0; i < length; i++) {
        if (decoded[i] == '/' || path_model_is_raw((unsigned char)decoded[i]))
            room[used++] = decoded[i];
        else
            used += (size_t)snprintf(room + used, 4, "%%%02X", (unsigned char)decoded[i]);
    }
    return used == normal.length && memcmp(room, normal.base, used) == 0;
}

/* Whether the path has bytes that only a program can put there, since the parser refuses them. */
static inline bool
path_model_has_odd_bytes(struct sxe_span path)
{
    for (size_t i = 0; i < path.length; i++) {
        if (path.base[i] != '/' && path.base[i] != '%' &&
            !path_model_is_raw((unsigned char)path.base[i]))
            return true;
    }
    return false;
}

/* NULL, or what two layers disagree on. */
static inline const char *
path_model_check(struct sxe_span path)
{
    char room[PATH_MODEL_ROOM];
    char name[PATH_MODEL_ROOM];
    char value[PATH_MODEL_ROOM];
    struct sxe_span normal = {"", 0};

    if (path.length > PATH_MODEL_MAX)
        return NULL;
    const int result = sxe_http_normalise_path(path, room, path.length, &normal);
    const char *wrong = path_model_compare(path, result, normal);
    if (wrong != NULL)
        return wrong;
    const ssize_t name_length = sxe_http_path_to_file(path, name, sizeof(name));
    if (result < 0)
        return name_length == result ? NULL : "a file at a path that is none";
    const ssize_t length = sxe_http_decode_path(
        (struct sxe_span){normal.base + 1, normal.length - 1}, value, sizeof(value));
    if (length < 0)
        return name_length == length ? NULL : "a file at a path that cannot be decoded";
    if (name_length != (length == 0 ? 1 : length) ||
        memcmp(name, length == 0 ? "." : value, (size_t)name_length) != 0)
        return "another name for files than for handlers";
    if (!path_model_has_odd_bytes(path) && !path_model_leads_back(value, (size_t)length, normal))
        return "two normal forms of one name";
    return NULL;
}

#endif
