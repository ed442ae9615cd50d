/* SPDX-License-Identifier: MIT
 *
 * What: the entries of the cache. A hash table finds them by name; the pool keeps them in the order
 * of their last use, so the oldest IDLE entry is evicted first.
 */
#include "sxe-http-file-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

/* ---- Construction ---- */

static const char *
name_of_file_state(unsigned state)
{
    static const char *const names[] = {"FREE", "OPENING", "IDLE", "BUSY", "LEAVING"};

    return names[state];
}

static size_t
round_up_content(size_t size, size_t to)
{
    return (size + to - 1) / to * to;
}

static int
allocate_files(struct sxe_http_files *files, uint32_t number)
{
    uint32_t buckets = 1;

    while (buckets < 2 * number)
        buckets *= 2;
    files->buckets_mask = buckets - 1;
    files->buckets = malloc(buckets * sizeof(*files->buckets));
    files->entries = sxe_pool_new("http-files", number, sizeof(*files->entries),
                                  SXE__HTTP_FILE_STATES, SXE_POOL_OPTION_UNLOCKED);
    files->waiters = sxe_pool_new("http-file-waiters", files->config.waiting_max,
                                  sizeof(*files->waiters), 2, SXE_POOL_OPTION_UNLOCKED);
    if (files->buckets == NULL || files->entries == NULL || files->waiters == NULL)
        return -ENOMEM;
    memset(files->buckets, 0xff, buckets * sizeof(*files->buckets));
    return sxe_pool_set_state_to_string(files->entries, name_of_file_state);
}

int
sxe__http_cache_new(struct sxe_http_files *files)
{
    uint32_t number = files->config.entries_max;
    int result = allocate_files(files, number);

    if (result < 0)
        return result;
    files->region_size = round_up_content(SXE__HTTP_NAME_SIZE + files->config.small_max, PAGE);
    files->regions = mmap(NULL, number * files->region_size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (files->regions == MAP_FAILED) {
        files->regions = NULL;
        return -errno;
    }
    /* A huge page would make each entry cost two megabytes. A kernel without huge pages refuses;
     * ignore it. */
    (void)!madvise(files->regions, number * files->region_size, MADV_NOHUGEPAGE);
    for (uint32_t i = 0; i < number; i++) {
        files->entries[i].files = files;
        files->entries[i].name = files->regions + i * files->region_size;
        files->entries[i].fd = -1;
    }
    return 0;
}

void
sxe__http_cache_delete(struct sxe_http_files *files)
{
    if (files->regions != NULL) {
        for (uint32_t i = 0; i < files->config.entries_max; i++) {
            if (files->entries[i].fd >= 0)
                close(files->entries[i].fd);
        }
        munmap(files->regions, files->config.entries_max * files->region_size);
    }
    sxe_pool_delete(files->entries);
    sxe_pool_delete(files->waiters);
    free(files->buckets);
}

/* ---- Names ---- */

/* The hash FNV-1a of a name. */
static uint32_t
hash_of_name(struct sxe_span name)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < name.length; i++)
        hash = (hash ^ (uint8_t)name.base[i]) * 16777619u;
    return hash;
}

static unsigned
id_of(const struct sxe__http_file *file)
{
    return (unsigned)(file - file->files->entries);
}

static uint32_t *
bucket_of(struct sxe_http_files *files, uint32_t hash)
{
    return &files->buckets[hash & files->buckets_mask];
}

static bool
has_file_name(const struct sxe__http_file *file, uint32_t hash, struct sxe_span name)
{
    return file->hash == hash && file->name_length == name.length &&
           memcmp(file->name, name.base, name.length) == 0;
}

struct sxe__http_file *
sxe__http_cache_find(struct sxe_http_files *files, struct sxe_span name)
{
    uint32_t hash = hash_of_name(name);

    for (uint32_t id = *bucket_of(files, hash); id != SXE_NONE; id = files->entries[id].next) {
        if (has_file_name(&files->entries[id], hash, name))
            return &files->entries[id];
    }
    return NULL;
}

static void
remove_cached_file(struct sxe__http_file *file)
{
    uint32_t *link = bucket_of(file->files, file->hash);

    while (*link != id_of(file))
        link = &file->files->entries[*link].next;
    *link = file->next;
}

/* ---- Lives ---- */

static void
set_state(struct sxe__http_file *file, enum sxe__http_file_state state)
{
    sxe_pool_move(file->files->entries, id_of(file), file->state, state);
    file->state = state;
}

/* Free an entry that no request holds and to which no name leads. */
static void
make_free(struct sxe__http_file *file)
{
    struct sxe_http_files *files = file->files;

    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    /* Keep the first page of memory, because the entry's next name needs it. */
    if (file->touched > PAGE)
        (void)!madvise(file->name + PAGE, round_up_content(file->touched, PAGE) - PAGE,
                       MADV_DONTNEED);
    file->touched = 0;
    files->memory -= file->memory;
    file->memory = 0;
    set_state(file, SXE__HTTP_FILE_FREE);
}

void
sxe__http_cache_remove(struct sxe__http_file *file)
{
    remove_cached_file(file);
    if (file->holders == 0)
        make_free(file);
    else
        set_state(file, SXE__HTTP_FILE_LEAVING);
}

/* Evict the entry that has been unused for longest. False: all are in use. */
static bool
evict_file(struct sxe_http_files *files)
{
    unsigned id = sxe_pool_get_oldest(files->entries, SXE__HTTP_FILE_IDLE);

    if (id == SXE_POOL_NO_INDEX)
        return false;
    sxe__http_cache_remove(&files->entries[id]);
    return true;
}

static void
keep_to_memory_max(struct sxe_http_files *files)
{
    while (files->memory > files->config.memory_max && evict_file(files))
        continue;
}

bool
sxe__http_cache_close_one(struct sxe_http_files *files)
{
    SXE_POOL_WALKER walker;
    unsigned id;

    sxe_pool_walker_construct(&walker, files->entries, SXE__HTTP_FILE_IDLE);
    while ((id = sxe_pool_walker_step(&walker)) != SXE_POOL_NO_INDEX) {
        if (files->entries[id].fd >= 0) {
            sxe__http_cache_remove(&files->entries[id]);
            return true;
        }
    }
    return false;
}

/* Take the entry that was freed last: its memory is touched already, so that a few files that are
 * opened again and again do not touch that of all entries. */
static unsigned
take_free(struct sxe_http_files *files)
{
    const unsigned id = sxe_pool_get_youngest(files->entries, SXE__HTTP_FILE_FREE);

    if (id != SXE_POOL_NO_INDEX)
        sxe_pool_move(files->entries, id, SXE__HTTP_FILE_FREE, SXE__HTTP_FILE_OPENING);
    return id;
}

struct sxe__http_file *
sxe__http_cache_add(struct sxe_http_files *files, struct sxe_span name)
{
    unsigned id;
    struct sxe__http_file *file;
    uint32_t *bucket;

    do {
        id = take_free(files);
    } while (id == SXE_POOL_NO_INDEX && evict_file(files));
    if (id == SXE_POOL_NO_INDEX)
        return NULL;
    file = &files->entries[id];
    file->state = SXE__HTTP_FILE_OPENING;
    memcpy(file->name, name.base, name.length);
    file->name[name.length] = '\0';
    file->name_length = (uint32_t)name.length;
    file->hash = hash_of_name(name);
    file->holders = 0;
    file->first = NULL;
    file->last = NULL;
    file->may_keep = files->memory <= files->config.memory_max;
    bucket = bucket_of(files, file->hash);
    file->next = *bucket;
    *bucket = id;
    return file;
}

void
sxe__http_cache_opened(struct sxe__http_file *file)
{
    struct sxe_http_files *files = file->files;

    file->holders = 1;
    file->checked = sxe_time_turn_ns();
    if (file->status != 0 || file->is_same) {
        sxe__http_cache_remove(file);
        return;
    }
    set_state(file, SXE__HTTP_FILE_BUSY);
    file->memory =
        file->content != NULL || file->is_listing ? round_up_content(file->size, PAGE) : 0;
    files->memory += file->memory;
    keep_to_memory_max(files);
}

void
sxe__http_cache_hold(struct sxe__http_file *file)
{
    if (file->holders++ == 0)
        set_state(file, SXE__HTTP_FILE_BUSY);
}

void
sxe__http_cache_release(struct sxe__http_file *file)
{
    if (file == NULL || --file->holders > 0)
        return;
    if (file->state == SXE__HTTP_FILE_LEAVING) {
        make_free(file);
        return;
    }
    set_state(file, SXE__HTTP_FILE_IDLE);
    keep_to_memory_max(file->files);
}

void
sxe__http_cache_touch(struct sxe__http_file *file)
{
    struct sxe__http_file *entries = file->files->entries;

    if (sxe_pool_get_youngest(entries, SXE__HTTP_FILE_IDLE) != id_of(file))
        sxe_pool_touch(entries, id_of(file));
}
