/* SPDX-License-Identifier: MIT
 *
 * The fixed part of a file's head is planned from a spec, or read from a file that may hold
 * anything. Only five of its numbers are independent; all offsets follow from them, and a head with
 * other offsets is refused.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sxe-pool-layout.h"
#include "sxe-pool-opening-private.h"

#define FIXED_SIZE offsetof(struct sxe__pool_head, checksum)
#define HEAD_SIZE  (FIXED_SIZE + sizeof(uint64_t)) /* bytes of the fixed part with its checksum */
#define WHAT_MAX   200u                            /* the most bytes of a path in a sentence */
#define PAGE_MIN   4096u
#define PAGE_MAX   65536u
#define OPTIONS                                                                 \
    (SXE_POOL_OPTION_LOCKED | SXE_POOL_OPTION_SHARED | SXE_POOL_OPTION_REPAIR | \
     SXE_POOL_OPTION_VERIFIED | SXE_POOL_OPTION_UNVERIFIED)

/* Replace the characters that control a terminal by '?': those of ASCII, and U+80 to U+9F in
 * UTF-8. */
static void
hide_controls(char *text)
{
    for (unsigned char *byte = (unsigned char *)text; *byte != '\0'; byte++) {
        if (byte[0] == 0xc2 && byte[1] >= 0x80 && byte[1] < 0xa0)
            byte[0] = byte[1] = '?';
        else if (byte[0] < ' ' || byte[0] == '\177')
            byte[0] = '?';
    }
}

int
sxe__pool_refuse(const struct sxe__pool_opening *opening, int error, const char *format, ...)
{
    va_list arguments;

    if (opening->why == NULL)
        return -error;
    /* If the path is too long, keep its end, which says more than its beginning. */
    const size_t length = strlen(opening->what);
    const size_t cut = length > WHAT_MAX ? length - WHAT_MAX : 0;
    const int used = snprintf(opening->why, SXE_POOL_WHY_SIZE, "pool %s%s: ", cut > 0 ? "..." : "",
                              opening->what + cut);
    va_start(arguments, format);
    vsnprintf(opening->why + used, SXE_POOL_WHY_SIZE - (size_t)used, format, arguments);
    va_end(arguments);
    hide_controls(opening->why);
    return -error;
}

int
sxe__pool_refuse_errno(const struct sxe__pool_opening *opening, const char *what)
{
    const int error = errno;

    return sxe__pool_refuse(opening, error, "cannot %s: %s", what, strerror(error));
}

/* ---- Offsets in the file ---- */

static uint64_t
round_up_offset(uint64_t size, uint64_t alignment)
{
    return (size + alignment - 1) / alignment * alignment;
}

/* Compute all offsets and the file's size from the checked numbers; false: too large. */
static bool
place_parts(struct sxe__pool_head *head)
{
    const uint64_t nodes = head->number + (uint64_t)head->states * head->shards;
    const uint64_t page = head->page_size;

    if (nodes >= SXE_POOL_DAMAGED || head->extra_size > SXE__POOL_SIZE_LIMIT ||
        head->element_size > SXE__POOL_SIZE_LIMIT / head->number)
        return false;
    head->shards_offset = round_up_offset(sizeof(*head), sizeof(struct sxe__pool_shard));
    head->array_offset =
        round_up_offset(head->shards_offset + head->shards * sizeof(struct sxe__pool_shard), page);
    head->nodes_offset = round_up_offset(head->number * head->element_size, SXE__POOL_ALIGNMENT);
    head->extra_offset = round_up_offset(head->nodes_offset + nodes * sizeof(struct sxe__pool_node),
                                         SXE__POOL_ALIGNMENT);
    head->file_size =
        head->array_offset + round_up_offset(head->extra_offset + head->extra_size, page) + page;
    return head->file_size <= SXE__POOL_SIZE_LIMIT;
}

/* The offset of the head's copy in the file. */
static uint64_t
copy_offset(const struct sxe__pool_head *head)
{
    return head->file_size - head->page_size;
}

/* Each shard gets runs of consecutive ids, because elements that are close in memory are mostly
 * changed by the same process. The runs are as long as possible with shards of about equal size. */
uint32_t
sxe__pool_shard_shift(uint32_t number, uint32_t shards)
{
    uint32_t shift = 0;

    while (shift < 6 && (uint64_t)shards << (shift + 4) <= number)
        shift++;
    return shift;
}

/* The hash FNV-1a of some bytes. */
static uint64_t
add_to_fnv_hash(uint64_t sum, const void *bytes, size_t length)
{
    for (const unsigned char *byte = bytes; length > 0; byte++, length--)
        sum = (sum ^ *byte) * UINT64_C(0x100000001b3);
    return sum;
}

static uint64_t
layout_of(const struct sxe__pool_head *head)
{
    const uint64_t numbers[] = {head->number, head->states, head->shards, head->element_size,
                                head->extra_size};
    uint64_t sum = add_to_fnv_hash(UINT64_C(0xcbf29ce484222325), numbers, sizeof(numbers));

    sum = add_to_fnv_hash(sum, head->name, sizeof(head->name));
    sum = add_to_fnv_hash(sum, head->state_names, sizeof(head->state_names));
    return add_to_fnv_hash(sum, head->fields, sizeof(head->fields));
}

static uint64_t
checksum_of(const struct sxe__pool_head *head)
{
    return add_to_fnv_hash(UINT64_C(0xcbf29ce484222325), head, FIXED_SIZE);
}

void
sxe__pool_head_seal(struct sxe__pool_head *head)
{
    head->layout = layout_of(head);
    head->checksum = checksum_of(head);
}

/* ---- Values that a head may have ---- */

/* Count words that single spaces separate. 0: there are other spaces, or no word. */
static unsigned
count_state_names(const char *text)
{
    unsigned number = 0;

    for (const char *byte = text; *byte != '\0'; byte++) {
        if (*byte == ' ' && (byte == text || byte[1] == ' ' || byte[1] == '\0'))
            return 0;
        number += byte == text || *byte == ' ';
    }
    return number;
}

/* Find the first word that occurs again among words with single spaces between; NULL: none does. */
static const char *
find_state_name_twice(const char *word)
{
    for (size_t length; *word != '\0'; word += length + (word[length] == ' ')) {
        length = strcspn(word, " ");
        for (const char *other = word + length; *other == ' '; other += strcspn(other, " "))
            if (strcspn(++other, " ") == length && memcmp(other, word, length) == 0)
                return word;
    }
    return NULL;
}

/* Whether a text has bytes that would control the terminal that shows it. */
static bool
has_controls(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == '\177')
            return true;
    return false;
}

/* Check the numbers and names of a head and compute its offsets from them; -error if they are
 * impossible. */
static int
check_planned(const struct sxe__pool_opening *opening, struct sxe__pool_head *head, int error)
{
    if (head->number == 0 || head->states == 0 || head->element_size == 0)
        return sxe__pool_refuse(opening, error,
                                "%u elements of %zu bytes in %u states: none of these may be 0",
                                head->number, (size_t)head->element_size, head->states);
    if (head->shards == 0 || (head->shards & (head->shards - 1)) != 0 ||
        head->shards > SXE_POOL_SHARDS_MAX || head->shards > head->number)
        return sxe__pool_refuse(opening, error,
                                "%u shards: must be a power of 2, at most %u, and no more than "
                                "elements, of which there are %u",
                                head->shards, SXE_POOL_SHARDS_MAX, head->number);
    if (has_controls(head->name) || has_controls(head->state_names) || has_controls(head->fields))
        return sxe__pool_refuse(opening, error,
                                "a control character is in its name, or in those of its states or "
                                "fields: leave it out");
    if (head->state_names[0] != '\0' && count_state_names(head->state_names) != head->states)
        return sxe__pool_refuse(opening, error,
                                "its states are named '%.100s': must be as many words as states, "
                                "%u, with one space between them",
                                head->state_names, head->states);
    const char *twice = find_state_name_twice(head->state_names);
    if (twice != NULL)
        return sxe__pool_refuse(opening, error, "there are two states of the name %.*s",
                                (int)strcspn(twice, " "), twice);
    if (!place_parts(head))
        return sxe__pool_refuse(opening, error,
                                "%u elements of %zu bytes in %u states and %u shards, with %zu "
                                "bytes more, are too much for one pool",
                                head->number, (size_t)head->element_size, head->states,
                                head->shards, (size_t)head->extra_size);
    return 0;
}

/* ---- From a spec ---- */

static int
check_pool_options(const struct sxe__pool_opening *opening)
{
    const SXE_POOL_SPEC *spec = &opening->spec;
    const unsigned both = SXE_POOL_OPTION_LOCKED | SXE_POOL_OPTION_SHARED;
    const unsigned either = SXE_POOL_OPTION_VERIFIED | SXE_POOL_OPTION_UNVERIFIED;

    if ((spec->options & ~OPTIONS) != 0 || (spec->options & both) == both)
        return sxe__pool_refuse(opening, EINVAL,
                                "options 0x%x: give LOCKED or SHARED, and REPAIR if wanted",
                                spec->options);
    if ((spec->options & either) == either)
        return sxe__pool_refuse(
            opening, EINVAL, "options 0x%x: give VERIFIED or UNVERIFIED, not both", spec->options);
    if ((spec->options & SXE_POOL_OPTION_LOCKED) != 0 && spec->file != NULL)
        return sxe__pool_refuse(opening, EINVAL,
                                "LOCKED is for the threads of one process, and has no file: leave "
                                "the file out, or say SHARED");
    return 0;
}

/* Copy a text of the spec (NULL: none) to zeroed memory, which has room for its final 0. */
static int
copy_spec_text(const struct sxe__pool_opening *opening, char *to, size_t size, const char *from)
{
    const size_t length = from == NULL ? 0 : strlen(from);

    if (length >= size)
        return sxe__pool_refuse(opening, EINVAL, "'%.40s...' is %zu bytes long: at most %zu", from,
                                length, size - 1);
    if (length > 0)
        memcpy(to, from, length);
    return 0;
}

static int
copy_texts(const struct sxe__pool_opening *opening, struct sxe__pool_head *head)
{
    const SXE_POOL_SPEC *spec = &opening->spec;
    int result = copy_spec_text(opening, head->name, sizeof(head->name), spec->name);

    if (result == 0)
        result = copy_spec_text(opening, head->state_names, sizeof(head->state_names),
                                spec->state_names);
    if (result == 0)
        result = copy_spec_text(opening, head->fields, sizeof(head->fields), spec->fields);
    if (result == 0 && head->name[0] == '\0')
        result = sxe__pool_refuse(opening, EINVAL, "it has no name: give it one of 1 to %u bytes",
                                  SXE_POOL_NAME_MAX);
    return result;
}

static int
check_fields(const struct sxe__pool_opening *opening, const struct sxe__pool_head *head)
{
    struct sxe_pool_layout layout;
    char why[SXE_POOL_WHY_SIZE];

    if (sxe_pool_layout_parse(&layout, head->fields, why) < 0)
        return sxe__pool_refuse(opening, EINVAL, "its fields: %.300s", why);
    if (layout.size > head->element_size)
        return sxe__pool_refuse(opening, EINVAL, "its fields take %u bytes, its elements have %zu",
                                layout.size, (size_t)head->element_size);
    return 0;
}

int
sxe__pool_head_plan(struct sxe__pool_opening *opening)
{
    const SXE_POOL_SPEC *spec = &opening->spec;
    struct sxe__pool_head *head = &opening->head;
    int result = check_pool_options(opening);

    if (result < 0 || spec->number == 0)
        return result;
    memset(head, 0, sizeof(*head));
    memcpy(head->magic, SXE__POOL_FILE_MAGIC, sizeof(head->magic));
    head->version = SXE__POOL_FILE_VERSION;
    head->byte_order = SXE__POOL_BYTE_ORDER;
    head->fixed_size = FIXED_SIZE;
    head->number = spec->number;
    head->states = spec->states;
    head->shards = spec->shards == 0 ? 1 : spec->shards;
    head->element_size = spec->element_size;
    head->page_size = (uint32_t)sysconf(_SC_PAGESIZE);
    head->extra_size = spec->extra_size;
    result = copy_texts(opening, head);
    if (result == 0)
        result = check_planned(opening, head, EINVAL);
    if (result == 0)
        result = check_fields(opening, head);
    return result;
}

void
sxe__pool_head_write(const struct sxe__pool_opening *opening)
{
    struct sxe__pool_head *to = opening->pool->sharing->head;
    const struct sxe__pool_head *from = &opening->head;

    memcpy(to->magic, SXE__POOL_FILE_UNFINISHED, sizeof(to->magic));
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    memcpy(&to->version, &from->version, FIXED_SIZE - offsetof(struct sxe__pool_head, version));
    to->checksum = from->checksum;
    if (opening->fd != -1)
        memcpy((char *)(opening->pool + 1) + copy_offset(from) - from->array_offset, from,
               HEAD_SIZE);
}

/* ---- From a file ---- */

static int
refuse_foreign(const struct sxe__pool_opening *opening, const char *why)
{
    return sxe__pool_refuse(opening, EMEDIUMTYPE, "%s: give another path", why);
}

static bool
is_zero(const void *bytes, size_t length)
{
    const char *byte = bytes;

    return *byte == 0 && memcmp(byte, byte + 1, length - 1) == 0;
}

static int
check_kind(const struct sxe__pool_opening *opening, const struct sxe__pool_head *head)
{
    if (memcmp(head->magic, SXE__POOL_FILE_MAGIC, sizeof(head->magic)) != 0)
        return refuse_foreign(opening, "the file is not that of a pool");
    if (head->byte_order != SXE__POOL_BYTE_ORDER)
        return refuse_foreign(opening, "the pool is of a machine with another byte order");
    if (head->version != SXE__POOL_FILE_VERSION || head->fixed_size != FIXED_SIZE)
        return sxe__pool_refuse(opening, EMEDIUMTYPE,
                                "the pool is of version %u, this library makes version %u and "
                                "reads no other: use the library that made it (its sxe-pool dump "
                                "shows what is in the file), or remove the file",
                                head->version, SXE__POOL_FILE_VERSION);
    if (head->checksum != checksum_of(head))
        return refuse_foreign(opening, "the pool's head is damaged (its checksum is wrong)");
    return 0;
}

/* Parts of a file are mapped at multiples of the machine's page size. */
static int
check_page_size(const struct sxe__pool_opening *opening, const struct sxe__pool_head *head)
{
    const uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);

    if (head->page_size != 0 && head->page_size <= PAGE_MAX && head->page_size % page == 0)
        return 0;
    return sxe__pool_refuse(opening, EMEDIUMTYPE,
                            "the pool was made on a machine with pages of %u bytes, and this "
                            "machine has pages of %u bytes: use it on a machine with pages of %u "
                            "bytes or less, or give another path",
                            head->page_size, page, head->page_size);
}

static int
check_head(struct sxe__pool_opening *opening, const struct sxe__pool_head *head)
{
    struct sxe__pool_head placed = *head;
    char text[80];

    if (memchr(head->name, 0, sizeof(head->name)) == NULL ||
        memchr(head->state_names, 0, sizeof(head->state_names)) == NULL ||
        memchr(head->fields, 0, sizeof(head->fields)) == NULL)
        return refuse_foreign(opening, "the pool's head is damaged (a name has no end)");
    int result = check_page_size(opening, head);
    if (result == 0)
        result = check_planned(opening, &placed, EMEDIUMTYPE);
    if (result < 0)
        return result;
    if (memcmp(&placed, head, FIXED_SIZE) != 0 || head->layout != layout_of(head))
        return refuse_foreign(opening, "the pool's parts are not where its numbers put them");
    const off_t size = lseek(opening->fd, 0, SEEK_END);
    if ((uint64_t)size != head->file_size) {
        snprintf(text, sizeof(text), "the file has %lld bytes, the pool in it %llu",
                 (long long)size, (unsigned long long)head->file_size);
        return refuse_foreign(opening, text);
    }
    return 0;
}

/* ---- Comparing a file's head with the spec ---- */

static int
refuse_number(const struct sxe__pool_opening *opening, const char *what, uint64_t is, uint64_t want)
{
    return sxe__pool_refuse(opening, EEXIST,
                            "it has %llu %s, the program says %llu: let them agree, or give "
                            "another file",
                            (unsigned long long)is, what, (unsigned long long)want);
}

static int
refuse_pool_text(const struct sxe__pool_opening *opening, const char *what, const char *is,
                 const char *want)
{
    return sxe__pool_refuse(opening, EEXIST,
                            "its %s is '%.100s', the program says '%.100s': let them agree, or "
                            "give another file",
                            what, is, want);
}

/* Do not compare texts that either side leaves out, nor the number of shards if the spec leaves it
 * out. */
static int
compare_head(const struct sxe__pool_opening *opening, const struct sxe__pool_head *is)
{
    const struct sxe__pool_head *want = &opening->head;

    if (is->number != want->number)
        return refuse_number(opening, "elements", is->number, want->number);
    if (is->element_size != want->element_size)
        return refuse_number(opening, "bytes an element", is->element_size, want->element_size);
    if (is->states != want->states)
        return refuse_number(opening, "states", is->states, want->states);
    if (is->shards != want->shards && opening->spec.shards != 0)
        return refuse_number(opening, "shards", is->shards, want->shards);
    if (is->extra_size != want->extra_size)
        return refuse_number(opening, "extra bytes", is->extra_size, want->extra_size);
    if (strcmp(is->name, want->name) != 0)
        return refuse_pool_text(opening, "name", is->name, want->name);
    if (is->state_names[0] != '\0' && want->state_names[0] != '\0' &&
        strcmp(is->state_names, want->state_names) != 0)
        return refuse_pool_text(opening, "list of states", is->state_names, want->state_names);
    if (is->fields[0] != '\0' && want->fields[0] != '\0' && strcmp(is->fields, want->fields) != 0)
        return refuse_pool_text(opening, "list of fields", is->fields, want->fields);
    return 0;
}

/* ---- The copy of the head, in the last page of the file ---- */

/* Whether the last `page` bytes of the file hold a whole head that gives the file's size. */
static bool
read_copy_at(int fd, uint64_t size, uint32_t page, struct sxe__pool_head *copy)
{
    return size >= 2 * page &&
           pread(fd, copy, HEAD_SIZE, (off_t)(size - page)) == (ssize_t)HEAD_SIZE &&
           memcmp(copy->magic, SXE__POOL_FILE_MAGIC, sizeof(copy->magic)) == 0 &&
           copy->byte_order == SXE__POOL_BYTE_ORDER && copy->version == SXE__POOL_FILE_VERSION &&
           copy->fixed_size == FIXED_SIZE && copy->checksum == checksum_of(copy) &&
           copy->page_size == page && copy->file_size == size;
}

bool
sxe__pool_head_read_copy(int fd, struct sxe__pool_head *copy)
{
    const off_t size = lseek(fd, 0, SEEK_END);
    bool is_there = false;

    for (uint32_t page = PAGE_MIN; size > 0 && page <= PAGE_MAX && !is_there; page *= 2)
        is_there = read_copy_at(fd, (uint64_t)size, page, copy);
    return is_there;
}

/* Replace a damaged head by its copy, if the spec asks for repair and no process uses the pool. */
static int
restore_head(struct sxe__pool_opening *opening, const struct sxe__pool_head *copy)
{
    if (opening->has_others)
        return sxe__pool_refuse(opening, EUCLEAN,
                                "its head is damaged, and it is in use: close it in every program, "
                                "then have it repaired (SXE_POOL_OPTION_REPAIR; sxe-pool repair)");
    if ((opening->spec.options & SXE_POOL_OPTION_REPAIR) == 0)
        return sxe__pool_refuse(opening, EUCLEAN,
                                "its head is damaged, but the copy of the head at the end of the "
                                "file is whole: remove the file, or have it repaired "
                                "(SXE_POOL_OPTION_REPAIR; sxe-pool repair)");
    if (pwrite(opening->fd, copy, HEAD_SIZE, 0) != (ssize_t)HEAD_SIZE)
        return sxe__pool_refuse_errno(opening, "write the head");
    opening->is_restored = true;
    return 0;
}

static char *
copy_of(const struct sxe__pool_sharing *sharing)
{
    return (char *)(uintptr_t)sharing + sharing->size - sharing->copy_size;
}

bool
sxe__pool_copy_is_whole(const struct sxe__pool_sharing *sharing)
{
    const char *copy = copy_of(sharing);

    return memcmp(copy, sharing->head, HEAD_SIZE) == 0 &&
           is_zero(copy + HEAD_SIZE, sharing->copy_size - HEAD_SIZE);
}

void
sxe__pool_copy_write(const struct sxe__pool_sharing *sharing)
{
    memcpy(copy_of(sharing), sharing->head, HEAD_SIZE);
    memset(copy_of(sharing) + HEAD_SIZE, 0, sharing->copy_size - HEAD_SIZE);
}

/* ---- Reading the head ---- */

/* Whether the file has only zeros and holes. Holes are skipped, not read. 1, 0 or -errno. */
static int
is_blank_file(const struct sxe__pool_opening *opening)
{
    char bytes[16384];
    off_t at = 0;

    for (;;) {
        at = lseek(opening->fd, at, SEEK_DATA);
        if (at == -1 && errno == ENXIO)
            return 1;
        const ssize_t length = at == -1 ? -1 : pread(opening->fd, bytes, sizeof(bytes), at);
        if (length < 0)
            return sxe__pool_refuse_errno(opening, "read the file");
        if (length == 0 || !is_zero(bytes, (size_t)length))
            return length == 0;
        at += length;
    }
}

/* Set opening->is_empty if a pool may be made in the file: it is blank, or its maker died. `head`
 * is the beginning of the file. A file with zeros before other data is foreign, unless the zeros
 * took the place of a head whose copy is whole. 0, or -errno. */
static int
see_whether_empty(struct sxe__pool_opening *opening, const struct sxe__pool_head *head,
                  ssize_t length)
{
    struct sxe__pool_head copy;
    const bool has_mark = memcmp(head->magic, SXE__POOL_FILE_UNFINISHED, sizeof(head->magic)) == 0;

    opening->is_empty = length == 0 || has_mark;
    if (opening->is_empty || !is_zero(head, FIXED_SIZE) ||
        sxe__pool_head_read_copy(opening->fd, &copy))
        return 0;
    const int blank = is_blank_file(opening);
    opening->is_empty = blank == 1;
    if (blank == 0)
        return refuse_foreign(opening, "the file begins with zeros, and other data follow");
    return blank < 0 ? blank : 0;
}

/* Find out whether the file is a pool's, empty or foreign; replace a damaged head by its copy. */
static int
read_pool_kind(struct sxe__pool_opening *opening, struct sxe__pool_head *head, ssize_t length)
{
    struct sxe__pool_head copy = {0};

    if ((size_t)length < HEAD_SIZE)
        return refuse_foreign(opening, "the file is too short for a pool");
    int result = check_kind(opening, head);
    if (result < 0 && sxe__pool_head_read_copy(opening->fd, &copy)) {
        *head = copy;
        result = restore_head(opening, &copy);
    }
    return result;
}

int
sxe__pool_head_read(struct sxe__pool_opening *opening)
{
    struct sxe__pool_head head = {0};
    const ssize_t length = pread(opening->fd, &head, HEAD_SIZE, 0);

    if (length < 0)
        return sxe__pool_refuse_errno(opening, "read the file");
    const int looked = see_whether_empty(opening, &head, length);
    if (looked < 0 || opening->is_empty)
        return looked;
    int result = read_pool_kind(opening, &head, length);
    if (result == 0)
        result = check_head(opening, &head);
    if (result == 0 && opening->spec.number != 0)
        result = compare_head(opening, &head);
    opening->head = head;
    return result;
}
