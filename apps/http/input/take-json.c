/* SPDX-License-Identifier: MIT
 *
 * Finding a value in JSON by its path while reading it once.
 */
#include "take-json.h"

#include <string.h>

#define NOT_A_PATH "it is no path such as $.user.emails[0]"
#define BAD        UINT32_MAX

/* ---- Paths ---- */

struct path_reader {
    struct load_json_path *path;
    const char *at;
    const char *end;
};

static bool
read_index(struct path_reader *reader, uint64_t *index)
{
    const char *begin = reader->at;

    *index = 0;
    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9')
        *index = *index * 10 + (uint64_t)(*reader->at++ - '0');
    return reader->at > begin && reader->at - begin < 10 && reader->at < reader->end &&
           *reader->at++ == ']';
}

/* Read a name and its end, as in "name"] or 'name'], after a [. */
static bool
read_quoted_name(struct path_reader *reader, const char **name, size_t *length)
{
    char quote = *reader->at++;
    const char *end = memchr(reader->at, quote, (size_t)(reader->end - reader->at));

    if (end == NULL || reader->end - end < 2 || end[1] != ']')
        return false;
    *name = reader->at;
    *length = (size_t)(end - reader->at);
    reader->at = end + 2;
    return true;
}

static bool
read_path_name(struct path_reader *reader, const char **name, size_t *length)
{
    *name = reader->at;
    while (reader->at < reader->end && *reader->at != '.' && *reader->at != '[')
        reader->at++;
    *length = (size_t)(reader->at - *name);
    return *length > 0;
}

static bool
read_path_part(struct path_reader *reader)
{
    struct load_json_path *path = reader->path;
    const char **name = &path->parts[path->number].name;
    size_t *length = &path->parts[path->number].length;
    char first = *reader->at++;

    *name = NULL;
    if (first == '.')
        return read_path_name(reader, name, length);
    if (first != '[' || reader->at == reader->end)
        return false;
    if (*reader->at == '"' || *reader->at == '\'')
        return read_quoted_name(reader, name, length);
    return read_index(reader, &path->parts[path->number].index);
}

const char *
load_json_path_compile(struct load_json_path *path, const char *text, size_t length)
{
    struct path_reader reader = {path, text + 1, text + length};

    path->number = 0;
    if (length == 0 || *text != '$')
        return NOT_A_PATH;
    for (; reader.at < reader.end; path->number++) {
        if (path->number == LOAD_JSON_PARTS)
            return "it has more than 16 parts";
        if (!read_path_part(&reader))
            return NOT_A_PATH;
    }
    return NULL;
}

/* ---- Reading ---- */

struct json {
    const char *at;
    const char *end;
};

static void
skip_json_blanks(struct json *json)
{
    while (json->at < json->end &&
           (*json->at == ' ' || *json->at == '\n' || *json->at == '\r' || *json->at == '\t'))
        json->at++;
}

/* Skip blanks. If the next byte is `byte`, take it and return true. */
static bool
take_json_byte(struct json *json, char byte)
{
    skip_json_blanks(json);
    if (json->at == json->end || *json->at != byte)
        return false;
    json->at++;
    return true;
}

static uint32_t
read_hex(struct json *json)
{
    uint32_t value = 0;

    if (json->end - json->at < 4)
        return BAD;
    for (unsigned i = 0; i < 4; i++) {
        char byte = *json->at++;
        char letter = (char)(byte | 0x20);

        if (byte >= '0' && byte <= '9')
            value = value * 16 + (uint32_t)(byte - '0');
        else if (letter >= 'a' && letter <= 'f')
            value = value * 16 + (uint32_t)(letter - 'a') + 10;
        else
            return BAD;
    }
    return value;
}

/* Read the code point after \u: four digits, or both halves of a surrogate pair. */
static uint32_t
read_code_point(struct json *json)
{
    uint32_t high = read_hex(json), low;

    if (high < 0xD800 || high > 0xDFFF || high == BAD)
        return high;
    if (high > 0xDBFF || json->end - json->at < 2 || json->at[0] != '\\' || json->at[1] != 'u')
        return BAD;
    json->at += 2;
    low = read_hex(json);
    return low < 0xDC00 || low > 0xDFFF ? BAD : 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

static unsigned
put_code_point(char bytes[4], uint32_t code)
{
    unsigned more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char leads[] = {0, 0xC0, 0xE0, 0xF0};

    for (unsigned i = more; i > 0; i--) {
        bytes[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    bytes[0] = (char)(leads[more] | code);
    return more + 1;
}

/* Read the rest of an escape, after its backslash. Returns how many bytes its character has in
 * UTF-8; 0: it is no valid escape. */
static unsigned
read_json_escape(struct json *json, char bytes[4])
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *letter;
    uint32_t code;

    if (json->at == json->end)
        return 0;
    letter = memchr(letters, *json->at++, sizeof(letters) - 1);
    if (letter != NULL) {
        bytes[0] = meant[letter - letters];
        return 1;
    }
    if (json->at[-1] != 'u')
        return 0;
    code = read_code_point(json);
    return code == BAD ? 0 : put_code_point(bytes, code);
}

/* Read the next byte or escape of a string. Returns how many bytes it has in the value; 0: the
 * string has ended, or is broken. */
static unsigned
read_bytes(struct json *json, char bytes[4], bool *is_broken)
{
    *is_broken = json->at == json->end || (unsigned char)*json->at < ' ';
    if (*is_broken || *json->at == '"')
        return 0;
    bytes[0] = *json->at++;
    if (bytes[0] == '\\') {
        unsigned number = read_json_escape(json, bytes);

        *is_broken = number == 0;
        return number;
    }
    return 1;
}

/* How many bytes there are before the next quote, backslash or control byte. */
static size_t
plain_length(const struct json *json)
{
    const char *at = json->at;

    while (at < json->end && *at != '"' && *at != '\\' && (unsigned char)*at >= ' ')
        at++;
    return (size_t)(at - json->at);
}

static void
add_json_bytes(struct load_json_value *value, const char *bytes, size_t number)
{
    if (number > 0 && value->length + number <= value->room)
        memcpy(value->text + value->length, bytes, number);
    value->length += number;
}

/* Read a string after its opening quote. The value gets the bytes that fit into its room, and the
 * length of the whole string. */
static bool
read_json_string(struct json *json, struct load_json_value *value)
{
    bool is_broken = false;
    char bytes[4];
    unsigned number;

    value->length = 0;
    do {
        size_t plain = plain_length(json);

        add_json_bytes(value, json->at, plain);
        json->at += plain;
        number = read_bytes(json, bytes, &is_broken);
        add_json_bytes(value, bytes, number);
    } while (number > 0);
    json->at += !is_broken;
    return !is_broken;
}

/* Skip a string, after its opening quote. */
static bool
skip_json_string(struct json *json)
{
    struct load_json_value nowhere = {NULL, 0, 0};

    json->at += plain_length(json);
    if (json->at < json->end && *json->at == '"') {
        json->at++;
        return true;
    }
    return read_json_string(json, &nowhere);
}

static bool
skip_json_digits(struct json *json)
{
    const char *begin = json->at;

    while (json->at < json->end && *json->at >= '0' && *json->at <= '9')
        json->at++;
    return json->at > begin;
}

static bool
skip_number(struct json *json)
{
    json->at += *json->at == '-';
    if (json->at < json->end && *json->at == '0')
        json->at++;
    else if (!skip_json_digits(json))
        return false;
    if (json->at < json->end && *json->at == '.') {
        json->at++;
        if (!skip_json_digits(json))
            return false;
    }
    if (json->at < json->end && (*json->at | 0x20) == 'e') {
        json->at++;
        json->at += json->at < json->end && (*json->at == '+' || *json->at == '-');
        return skip_json_digits(json);
    }
    return true;
}

/* Skip a string, a number, true, false or null. */
static bool
skip_scalar(struct json *json)
{
    static const char *const words[] = {"true", "false", "null"};

    if (json->at < json->end && (*json->at == '-' || (*json->at >= '0' && *json->at <= '9')))
        return skip_number(json);
    for (unsigned i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);

        if ((size_t)(json->end - json->at) >= length && memcmp(json->at, words[i], length) == 0) {
            json->at += length;
            return true;
        }
    }
    return take_json_byte(json, '"') && skip_json_string(json);
}

/* Skip the name of a member and its colon. */
static bool
skip_name(struct json *json)
{
    return take_json_byte(json, '"') && skip_json_string(json) && take_json_byte(json, ':');
}

/* The open objects and arrays: a bit for each, the innermost in the lowest bit; 1 is an object, 0
 * an array. */
struct nesting {
    uint64_t are_objects;
    unsigned depth;
};

static bool
is_in_object(const struct nesting *nesting)
{
    return nesting->are_objects & 1;
}

/* Call this function after a value. It skips closing brackets, and then a comma and the name of the
 * next member. False: the outermost value is complete (depth is 0), or the text is broken. */
static bool
go_on_after_value(struct json *json, struct nesting *nesting)
{
    while (nesting->depth > 0 && take_json_byte(json, is_in_object(nesting) ? '}' : ']')) {
        nesting->are_objects >>= 1;
        nesting->depth--;
    }
    return nesting->depth > 0 && take_json_byte(json, ',') &&
           (!is_in_object(nesting) || skip_name(json));
}

enum begun { OPENED, ENDED, BROKEN };

/* Begin to skip a value. A scalar, or an empty array or object, is skipped whole. Of another array
 * or object only the opening bracket is skipped, and the name of the first member. */
static enum begun
begin_value(struct json *json, struct nesting *nesting)
{
    bool is_object = take_json_byte(json, '{');

    if (!is_object && !take_json_byte(json, '['))
        return skip_scalar(json) ? ENDED : BROKEN;
    if (nesting->depth == LOAD_JSON_DEPTH)
        return BROKEN;
    if (take_json_byte(json, is_object ? '}' : ']'))
        return ENDED;
    nesting->are_objects = nesting->are_objects << 1 | is_object;
    nesting->depth++;
    return !is_object || skip_name(json) ? OPENED : BROKEN;
}

/* Skip any value. The function is not recursive, because the server decides how deep a value is,
 * and could overflow the stack. */
static bool
skip_value(struct json *json)
{
    struct nesting nesting = {0, 0};

    do {
        enum begun begun;

        while ((begun = begin_value(json, &nesting)) == OPENED)
            continue;
        if (begun == BROKEN)
            return false;
    } while (go_on_after_value(json, &nesting));
    return nesting.depth == 0;
}

/* ---- Finding ---- */

static enum load_json_found
enter_element(struct json *json, uint64_t index)
{
    if (!take_json_byte(json, '[') || take_json_byte(json, ']'))
        return LOAD_JSON_MISSING;
    for (; index > 0; index--) {
        if (!skip_value(json))
            return LOAD_JSON_BROKEN;
        if (!take_json_byte(json, ','))
            return take_json_byte(json, ']') ? LOAD_JSON_MISSING : LOAD_JSON_BROKEN;
    }
    return LOAD_JSON_FOUND;
}

/* Read a member's name after its opening quote. *is_it becomes whether the name equals `name`. */
static bool
read_member(struct json *json, const char *name, size_t length, bool *is_it)
{
    bool is_broken = false;
    char bytes[4];
    unsigned number;
    size_t at = 0;

    *is_it = plain_length(json) == length && memcmp(json->at, name, length) == 0;
    if (*is_it && (size_t)(json->end - json->at) > length && json->at[length] == '"') {
        json->at += length + 1;
        return take_json_byte(json, ':');
    }
    *is_it = true;
    while ((number = read_bytes(json, bytes, &is_broken)) > 0) {
        *is_it = *is_it && at + number <= length && memcmp(name + at, bytes, number) == 0;
        at += number;
    }
    *is_it = *is_it && at == length;
    json->at += !is_broken;
    return !is_broken && take_json_byte(json, ':');
}

static enum load_json_found
enter_member(struct json *json, const char *name, size_t length)
{
    bool is_it;

    if (!take_json_byte(json, '{') || take_json_byte(json, '}'))
        return LOAD_JSON_MISSING;
    for (;;) {
        if (!take_json_byte(json, '"') || !read_member(json, name, length, &is_it))
            return LOAD_JSON_BROKEN;
        if (is_it)
            return LOAD_JSON_FOUND;
        if (!skip_value(json))
            return LOAD_JSON_BROKEN;
        if (!take_json_byte(json, ','))
            return take_json_byte(json, '}') ? LOAD_JSON_MISSING : LOAD_JSON_BROKEN;
    }
}

static enum load_json_found
take_json_value(struct json *json, struct load_json_value *value)
{
    const char *begin;

    if (take_json_byte(json, '"')) {
        if (!read_json_string(json, value))
            return LOAD_JSON_BROKEN;
        return value->length <= value->room ? LOAD_JSON_FOUND : LOAD_JSON_TOO_LONG;
    }
    begin = json->at;
    if (!skip_value(json))
        return LOAD_JSON_BROKEN;
    value->length = (size_t)(json->at - begin);
    if (*begin == 'n')
        return LOAD_JSON_NULL;
    if (value->length > value->room)
        return LOAD_JSON_TOO_LONG;
    memcpy(value->text, begin, value->length);
    return LOAD_JSON_FOUND;
}

enum load_json_found
load_json_find(const struct load_json_path *path, const char *json, size_t length,
               struct load_json_value *value)
{
    struct json reader = {json, json + length};

    for (unsigned i = 0; i < path->number; i++) {
        struct json before = reader;
        enum load_json_found found =
            path->parts[i].name != NULL
                ? enter_member(&reader, path->parts[i].name, path->parts[i].length)
                : enter_element(&reader, path->parts[i].index);

        if (found == LOAD_JSON_MISSING)
            return skip_value(&before) ? LOAD_JSON_MISSING : LOAD_JSON_BROKEN;
        if (found != LOAD_JSON_FOUND)
            return found;
    }
    return take_json_value(&reader, value);
}
