/* SPDX-License-Identifier: MIT
 *
 * What: memory for one request and its reply. There is address space for as many slots as there are
 * connections; a memory page of a slot costs memory once it is touched. The slot that was given
 * back last is taken first, so few slots are in use, and their pages are in the processor's caches;
 * pages that a large body touched are given back to the kernel.
 */
#include "sxe-http-server-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGN        4096u
#define KEEP_MAX     (64u * 1024)       /* how many bytes of memory one free slot keeps */
#define RESIDENT_MAX (8u * 1024 * 1024) /* how many bytes of memory all free slots keep together */

static size_t
round_up_slot(size_t size, size_t to)
{
    return (size + to - 1) / to * to;
}

static struct sxe__http_slot *
http_slot_at(const struct sxe_http *http, uint32_t index)
{
    return (struct sxe__http_slot *)(void *)(http->slots + index * http->slot_size);
}

int
sxe__http_slots_new(struct sxe_http *http)
{
    const struct sxe_http_config *config = &http->config;
    uint32_t number = config->connections;
    size_t fields = config->head.fields_max * sizeof(struct sxe_http_field);

    http->reply_at = round_up_slot(sizeof(struct sxe__http_slot) + fields, 64);
    http->path_at = round_up_slot(http->reply_at + config->fields_max, 64);
    http->head_at = round_up_slot(http->path_at + 2u * config->head.line_max, ALIGN);
    /* One byte more is for the NUL after a body. */
    http->slot_size =
        round_up_slot(http->head_at + config->head.head_max + config->body_max + 1u, ALIGN);
    http->free_slots = calloc(number, sizeof(*http->free_slots));
    http->touched = calloc(number, sizeof(*http->touched));
    if (http->free_slots == NULL || http->touched == NULL)
        return -ENOMEM;
    http->slots = mmap(NULL, number * http->slot_size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (http->slots == MAP_FAILED) {
        http->slots = NULL;
        SXE_ERROR("cannot reserve %zu bytes of address space for %u requests: %s; lower "
                  "connections or body_max",
                  number * http->slot_size, number, strerror(errno));
        return -ENOMEM;
    }
    /* A huge page would make each slot cost two megabytes. A kernel without huge pages refuses;
     * ignore it. */
    (void)!madvise(http->slots, number * http->slot_size, MADV_NOHUGEPAGE);
    while (http->free_count < number) {
        http->free_slots[http->free_count] = number - http->free_count - 1;
        http->free_count++;
    }
    return 0;
}

void
sxe__http_slots_delete(struct sxe_http *http)
{
    if (http->slots != NULL)
        munmap(http->slots, http->config.connections * http->slot_size);
    free(http->free_slots);
    free(http->touched);
}

void
sxe__http_slot_forget_head(struct sxe__http_slot *slot)
{
    const struct sxe_span none = {NULL, 0};

    slot->head_length = 0;
    /* A refused request has no path or query, but a log may read them. */
    slot->request.raw_path = none;
    slot->request.path = none;
    slot->request.query = none;
    slot->request.match.route = NULL;
    slot->request.match.pattern = NULL;
    slot->request.match.number = 0;
    slot->request.user = slot->user = slot->request.http->config.user;
    sxe_http_parser_next(&slot->request.head);
}

#define CLEARED \
    (offsetof(struct sxe__http_slot, fields) - offsetof(struct sxe__http_slot, response))
_Static_assert(CLEARED <= 80, "more would be a slow string instruction");

void
sxe__http_slot_reset(struct sxe__http_slot *slot)
{
    if (slot->used > slot->most)
        slot->most = slot->used;
    if (slot->head_length == 0)
        sxe__http_slot_forget_head(slot);
    slot->request.data = NULL;
    slot->request.is_authenticated = false;
    slot->request.body = (struct sxe_span){NULL, 0};
    memset((char *)slot + offsetof(struct sxe__http_slot, response), 0, CLEARED);
    slot->since = sxe_time_turn_ns();
    slot->status = 200;
}

struct sxe__http_slot *
sxe__http_slot_take(struct sxe__http_connection *connection)
{
    struct sxe_http *http = connection->http;
    uint32_t index = http->free_slots[--http->free_count];
    struct sxe__http_slot *slot = http_slot_at(http, index);

    http->resident -= http->touched[index];
    slot->connection = connection;
    slot->most = 0;
    /* the slot is used for the first time: its pages are all zeros */
    if (slot->request.http == NULL) {
        slot->request.http = http;
        slot->request.is_traced = http->config.trace;
        slot->index = index;
        sxe_http_parser_init(&slot->request.head, SXE_HTTP_REQUEST, slot->fields,
                             http->config.head.fields_max, &http->config.head);
        sxe__http_slot_reset(slot);
    }
    /* The last head in this slot may have come from another proxy, whose fields were trusted. So
     * parse the head of this proxy, even if it has the same bytes. */
    if (SXE_UNLIKELY(connection->is_forwarding) && slot->head_length > 0)
        sxe__http_slot_forget_head(slot);
    slot->since = sxe_time_turn_ns();
    connection->slot = slot;
    return slot;
}

/* Give the memory after the first `keep` bytes back to the kernel. Returns how many bytes the slot
 * still has. */
static uint32_t
release_pages(struct sxe__http_slot *slot, size_t touched, size_t keep)
{
    if (touched <= keep)
        return (uint32_t)touched;
    (void)!madvise((char *)slot + keep, round_up_slot(touched, ALIGN) - keep, MADV_DONTNEED);
    return (uint32_t)keep;
}

void
sxe__http_slot_give(struct sxe__http_connection *connection)
{
    struct sxe_http *http = connection->http;
    struct sxe__http_slot *slot = connection->slot;
    uint32_t index = slot->index;
    size_t touched = http->head_at + slot->most;

    connection->slot = NULL;
    if (SXE_UNLIKELY(connection->is_forwarding))
        sxe__http_uncount(connection);
    touched = touched > http->touched[index] ? touched : http->touched[index];
    if (touched > KEEP_MAX) /* more bytes than are kept; head_at alone may be more */
        sxe__http_slot_forget_head(slot);
    http->touched[index] = release_pages(slot, touched, KEEP_MAX);
    if (http->resident + http->touched[index] > RESIDENT_MAX)
        http->touched[index] = release_pages(slot, http->touched[index], 0);
    http->resident += http->touched[index];
    http->free_slots[http->free_count++] = index;
}
