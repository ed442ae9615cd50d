/* SPDX-License-Identifier: MIT
 *
 * Reads files of users and hashes.
 */
#include "passwords.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keyed-digest.h"

struct entry {
    const char *user;
    const char *hash;
    unsigned line;
};

struct passwords {
    struct entry *entries; /* the users, sorted by name */
    unsigned number;
    /* a digest of the file's bytes, which only somebody who knows the file can compute, because it
     * has salts and hashes */
    struct keyed_digest digest;
    /* the bytes of the file, in which the ends of lines and the colons were replaced by NULs */
    char text[];
};

/* ---- Hashes ---- */

static const char digits[] = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* Say what is wrong with a bcrypt hash; rest is its part after $2y$. NULL: nothing is wrong. */
static const char *
fault_of_bcrypt(const char *rest)
{
    const size_t length = strspn(rest, "0123456789");
    const unsigned long cost = strtoul(rest, NULL, 10);

    if (length != 2 || rest[2] != '$' || strlen(rest) != 3 + 53 || strspn(rest + 3, digits) != 53)
        return "is a damaged bcrypt hash";
    if (cost < 4 || cost > PASSWORDS_COST_MAX)
        return "has a cost that is not from 4 to 15";
    return NULL;
}

/* How many bytes at the beginning of the text crypt(3) accepts as a salt. */
static size_t
span_of_salt(const char *text)
{
    size_t length = 0;

    while (text[length] > ' ' && text[length] < 0x7f && strchr("!*:;\\$", text[length]) == NULL)
        length++;
    return length;
}

/* Say what is wrong with a SHA-crypt hash; rest is its part after $5$ or $6$, in which the hash
 * itself must have `length` digits. NULL: nothing is wrong. */
static const char *
fault_of_sha(const char *rest, size_t length)
{
    size_t salt;

    if (strncmp(rest, "rounds=", 7) == 0) {
        char *end;
        const unsigned long rounds = strtoul(rest + 7, &end, 10);

        /* The number must not begin with a sign or a zero, because crypt(3) does not accept
         * them. */
        if (rest[7] < '1' || rest[7] > '9' || *end != '$' || rounds < 1000 ||
            rounds > PASSWORDS_ROUNDS)
            return "has rounds that are not from 1000 to 5000000";
        rest = end + 1;
    }
    salt = span_of_salt(rest);
    if (salt > 16 || rest[salt] != '$' || strlen(rest + salt + 1) != length ||
        strspn(rest + salt + 1, digits) != length)
        return "is a damaged SHA-crypt hash";
    return NULL;
}

/* Say what is wrong with a hash, as the end of a sentence. NULL: nothing is wrong. */
static const char *
fault_of_hash(const char *hash)
{
    static const struct {
        const char *prefix;
        const char *fault;
    } weak[] = {{"$apr1$", "is an MD5 hash (apr1), which is guessed too fast"},
                {"$1$", "is an MD5 hash, which is guessed too fast"},
                {"{SHA}", "is a SHA-1 hash without salt, which is guessed too fast"},
                {"{SSHA}", "is a SHA-1 hash, which is guessed too fast"},
                {"$y$", "is a yescrypt hash, which is not supported"},
                {"$", "is of a kind that is not supported"},
                {"", "is a DES hash or a plain password, which is not safe"}};
    unsigned i = 0;

    if (strncmp(hash, "$2", 2) == 0 && hash[2] != '\0' && strchr("aby", hash[2]) != NULL &&
        hash[3] == '$')
        return fault_of_bcrypt(hash + 4);
    if (strncmp(hash, "$5$", 3) == 0)
        return fault_of_sha(hash + 3, 43);
    if (strncmp(hash, "$6$", 3) == 0)
        return fault_of_sha(hash + 3, 86);
    while (strncmp(hash, weak[i].prefix, strlen(weak[i].prefix)) != 0)
        i++;
    return weak[i].fault;
}

/* ---- Lines ---- */

struct source {
    const char *place;
    const char *path;
    unsigned line;
};

static bool refuse_password_file(const struct source *source, const char *format, ...)
    SXE_PRINTF(2, 3);

static bool
refuse_password_file(const struct source *source, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fprintf(stderr, "sxe-httpd: %s%s:%u: ", source->place, source->path, source->line);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return false;
}

/* Why no request can have this name as its user; NULL: a request can have it. */
static const char *
fault_of_name(const char *name)
{
    for (const char *c = name; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return "has a control character";
    }
    return strlen(name) >= SXE_HTTP_BASIC_MAX ? "has more than 509 bytes" : NULL;
}

/* Add the user of a line. False after a message about what is wrong with it. */
static bool
add_user_line(struct passwords *passwords, const struct source *source, char *line)
{
    char *colon = strchr(line, ':');
    const char *fault;

    line[strcspn(line, "\r")] = '\0';
    if (*line == '\0' || *line == '#')
        return true;
    if (colon == NULL || colon == line)
        return refuse_password_file(source,
                                    "the line is not 'user:hash'; make it with htpasswd -B");
    *colon++ = '\0';
    fault = fault_of_name(line);
    if (fault != NULL)
        return refuse_password_file(source, "the user's name %s, so it could never log in", fault);
    colon[strcspn(colon, ":")] = '\0';
    fault = fault_of_hash(colon);
    if (fault != NULL)
        return refuse_password_file(
            source,
            "the password of '%s' %s; make the line with htpasswd -B, or the hash with "
            "mkpasswd -m sha-512",
            line, fault);
    passwords->entries[passwords->number++] =
        (struct entry){.user = line, .hash = colon, .line = source->line};
    return true;
}

static int
compare_users(const void *one, const void *other)
{
    const struct entry *a = one;
    const struct entry *b = other;
    const int result = strcmp(a->user, b->user);

    return result != 0 ? result : a->line < b->line ? -1 : 1;
}

/* Add the users of all lines of the text. False after a message. */
static bool
take_lines(struct passwords *passwords, struct source *source)
{
    char *line = passwords->text;

    while (line != NULL) {
        char *next = strchr(line, '\n');

        source->line++;
        if (next != NULL)
            *next++ = '\0';
        if (!add_user_line(passwords, source, line))
            return false;
        line = next;
    }
    if (passwords->number == 0)
        return refuse_password_file(source, "the file has no user; add one with htpasswd -B");
    qsort(passwords->entries, passwords->number, sizeof(struct entry), compare_users);
    for (unsigned i = 1; i < passwords->number; i++) {
        source->line = passwords->entries[i].line;
        if (strcmp(passwords->entries[i - 1].user, passwords->entries[i].user) == 0)
            return refuse_password_file(source,
                                        "the user '%s' is on line %u, too; remove one of them",
                                        passwords->entries[i].user, passwords->entries[i - 1].line);
    }
    return true;
}

/* ---- Files ---- */

/* Read the whole file, and close fd. NULL: errno says why. */
static struct passwords *
read_and_close(int fd)
{
    static const uint64_t no_key[2];
    struct passwords *passwords = malloc(sizeof(*passwords) + PASSWORDS_FILE_MAX + 1);
    ssize_t got = passwords == NULL ? -1 : 1;
    size_t length = 0;
    int error;

    while (got > 0) {
        got = read(fd, passwords->text + length, PASSWORDS_FILE_MAX + 1 - length);
        length += got > 0 ? (size_t)got : 0;
    }
    error = got < 0 ? errno : length > PASSWORDS_FILE_MAX ? EFBIG : 0;
    if (error == 0 && memchr(passwords->text, '\0', length) != NULL)
        error = EILSEQ;
    close(fd);
    if (error != 0) {
        free(passwords);
        errno = error;
        return NULL;
    }
    passwords->text[length] = '\0';
    passwords->number = 0;
    passwords->digest = keyed_digest(no_key, passwords->text, length);
    return passwords;
}

static unsigned
count_text_lines(const char *text)
{
    unsigned lines = 1;

    while ((text = strchr(text, '\n')) != NULL) {
        lines++;
        text++;
    }
    return lines;
}

struct passwords *
passwords_read(const char *place, const char *path)
{
    struct source source = {.place = place, .path = path};
    /* O_NONBLOCK: opening a FIFO must not wait */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct passwords *passwords = fd < 0 ? NULL : read_and_close(fd);

    if (passwords != NULL) {
        passwords->entries = calloc(count_text_lines(passwords->text), sizeof(struct entry));
        if (passwords->entries != NULL && take_lines(passwords, &source))
            return passwords;
    }
    if (source.line == 0)
        fprintf(stderr,
                "sxe-httpd: %scannot read the file of passwords '%s': %s; it must be a text of at "
                "most 1 MiB\n",
                place, path, strerror(errno));
    passwords_free(passwords);
    return NULL;
}

void
passwords_free(struct passwords *passwords)
{
    if (passwords == NULL)
        return;
    free(passwords->entries);
    free(passwords);
}

/* ---- Users ---- */

/* Like strcmp, but one of the names does not end with a NUL. */
static int
compare_name(struct sxe_span user, const char *name)
{
    const int result = strncmp(user.base, name, user.length);

    return result != 0 ? result : name[user.length] == '\0' ? 0 : -1;
}

const char *
passwords_find(const struct passwords *passwords, struct sxe_span user, bool *is_known)
{
    const struct keyed_digest digest = keyed_digest(passwords->digest.half, user.base, user.length);
    const struct entry *other = &passwords->entries[digest.half[0] % passwords->number];
    unsigned first = 0;
    unsigned end = passwords->number;

    *is_known = true;
    while (first < end) {
        const unsigned middle = first + (end - first) / 2;
        const int result = compare_name(user, passwords->entries[middle].user);

        if (result == 0)
            return passwords->entries[middle].hash;
        if (result < 0)
            end = middle;
        else
            first = middle + 1;
    }
    *is_known = false;
    return other->hash;
}
