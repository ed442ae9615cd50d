/* SPDX-License-Identifier: MIT
 *
 * What: a socket's unsent output: a chain of chunks that hold records in the order in which they
 * will be sent.
 *
 *     chunk [ head | record payload.. | record payload.. | record ]  ->  chunk [ head | ... ]
 *     out_head ^     ^ out_offset                            out_tail ^
 *
 * A record is one of: bytes that were copied into the chunk, memory or a file that the program
 * lends, our half-close. Records are copied in and out, because a chunk is not aligned for them.
 * out_copied counts the copied bytes that are still to be sent.
 */
#include "sxe-private.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>

#include "sxe-always-internal.h"
#include "sxe-io.h"

enum record_kind { BYTES, BORROWED, FILE_RANGE, END };

struct record {
    uint32_t kind;
    uint32_t fd;
    /* how many bytes are still to be sent; of a BYTES record: the last `left` bytes of its
     * payload */
    size_t left;
    union {
        uint32_t length;  /* of a BYTES record: how many bytes of payload follow the record */
        const char *data; /* of a BORROWED record: the next byte to send */
        off_t offset;     /* of a FILE_RANGE record: the offset of the next byte to send */
    } at;
    SXE_OUT_EVENT_SENT on_sent;
};

/* The head of a chunk. */
struct head {
    uint32_t used;    /* how many bytes of the chunk are in use, this head included */
    uint32_t unacked; /* bytes that the peer had not acknowledged when the kernel was last asked */
};
#define HEAD sizeof(struct head)

_Static_assert(HEAD + sizeof(struct record) + 16 <= SXE__CHUNK_SIZE_MIN, "a chunk holds a record");

static struct head
load_head(uint32_t chunk)
{
    struct head head;

    memcpy(&head, sxe_chunks_data(CONTEXT->chunks, chunk), sizeof(head));
    return head;
}

static void
store_head(uint32_t chunk, struct head head)
{
    memcpy(sxe_chunks_data(CONTEXT->chunks, chunk), &head, sizeof(head));
}

static uint32_t
room_in_tail(const SXE *s)
{
    if (s->u.open.out_tail == SXE_NONE)
        return 0;
    return sxe_chunks_size(CONTEXT->chunks) - load_head(s->u.open.out_tail).used;
}

/* How many chunks output may still take. The rest is for input: otherwise a few peers that do not
 * read could take all chunks, and no other socket could be read. */
static uint32_t
free_for_output(void)
{
    uint32_t left = CONTEXT->output_chunks_max - CONTEXT->output_chunks;
    uint32_t free = sxe_chunks_free(CONTEXT->chunks);

    return free < left ? free : left;
}

size_t
sxe__queue_room(const SXE *s)
{
    size_t each = sxe_chunks_size(CONTEXT->chunks) - HEAD - sizeof(struct record);
    size_t tail = room_in_tail(s);

    tail = tail > sizeof(struct record) ? tail - sizeof(struct record) : 0;
    return tail + each * free_for_output();
}

/* The last chunk of the chain if it has room for size bytes, or else a new one. SXE_NONE: no chunk
 * is free. */
static uint32_t
tail_with_room(SXE *s, size_t size)
{
    uint32_t chunk;

    if (room_in_tail(s) >= size)
        return s->u.open.out_tail;
    if (free_for_output() == 0)
        return SXE_NONE;
    chunk = sxe_chunks_take(CONTEXT->chunks);
    CONTEXT->output_chunks++;
    store_head(chunk, (struct head){.used = HEAD});
    if (s->u.open.out_tail == SXE_NONE) {
        s->u.open.out_head = chunk;
        s->u.open.out_offset = HEAD;
    } else {
        *sxe_chunks_link(CONTEXT->chunks, s->u.open.out_tail) = chunk;
    }
    return s->u.open.out_tail = chunk;
}

static int
append_record(SXE *s, const struct record *record, const void *payload, uint32_t length)
{
    uint32_t chunk = tail_with_room(s, sizeof(*record) + length);
    struct head head;
    char *data;

    if (chunk == SXE_NONE)
        return -ENOBUFS;
    head = load_head(chunk);
    data = (char *)sxe_chunks_data(CONTEXT->chunks, chunk) + head.used;
    memcpy(data, record, sizeof(*record));
    if (length > 0)
        memcpy(data + sizeof(*record), payload, length);
    head.used += (uint32_t)sizeof(*record) + length;
    store_head(chunk, head);
    return 0;
}

bool
sxe__queue_is_empty(const SXE *s)
{
    return s->u.open.out_head == SXE_NONE;
}

int
sxe__queue_bytes(SXE *s, const void *data, size_t length)
{
    const char *from = data;

    if (length > sxe__queue_room(s))
        return -ENOBUFS;
    while (length > 0) {
        struct record record = {.kind = BYTES};
        uint32_t room = room_in_tail(s);
        uint32_t piece;

        if (room <= sizeof(record))
            room = sxe_chunks_size(CONTEXT->chunks) - (uint32_t)HEAD;
        piece = room - (uint32_t)sizeof(record);
        piece = length < piece ? (uint32_t)length : piece;
        record.left = piece;
        record.at.length = piece;
        if (SXE_NEVER(append_record(s, &record, from, piece) < 0))
            return -ENOBUFS;
        s->u.open.out_copied += piece;
        from += piece;
        length -= piece;
    }
    return 0;
}

int
sxe__queue_borrowed(SXE *s, const void *data, size_t length, SXE_OUT_EVENT_SENT on_sent)
{
    struct record record = {.kind = BORROWED, .left = length, .at.data = data, .on_sent = on_sent};

    return append_record(s, &record, NULL, 0);
}

int
sxe__queue_file(SXE *s, int fd, off_t offset, size_t length, SXE_OUT_EVENT_SENT on_sent)
{
    struct record record = {.kind = FILE_RANGE,
                            .fd = (uint32_t)fd,
                            .left = length,
                            .at.offset = offset,
                            .on_sent = on_sent};

    return append_record(s, &record, NULL, 0);
}

int
sxe__queue_end(SXE *s)
{
    struct record record = {.kind = END};

    return append_record(s, &record, NULL, 0);
}

/* Where a record is: its chunk, and its offset in it. */
struct place {
    uint32_t chunk;
    uint32_t offset;
};

static void
load_record(struct place at, struct record *record)
{
    memcpy(record, sxe_chunks_data(CONTEXT->chunks, at.chunk) + at.offset, sizeof(*record));
}

static void
store_record(struct place at, const struct record *record)
{
    memcpy(sxe_chunks_data(CONTEXT->chunks, at.chunk) + at.offset, record, sizeof(*record));
}

static struct place
first_record(const SXE *s)
{
    return (struct place){s->u.open.out_head, s->u.open.out_offset};
}

static struct place
place_after(struct place at, const struct record *record)
{
    at.offset += (uint32_t)sizeof(*record) + (record->kind == BYTES ? record->at.length : 0);
    if (at.offset == load_head(at.chunk).used) {
        at.chunk = *sxe_chunks_link(CONTEXT->chunks, at.chunk);
        at.offset = HEAD;
    }
    return at;
}

/* Remove the first record, and its chunk if it was the last one in it. */
static void
pop_record(SXE *s, const struct record *record)
{
    uint32_t chunk = s->u.open.out_head;
    struct place next = place_after(first_record(s), record);

    s->u.open.out_offset = next.offset;
    if (next.chunk == chunk)
        return;
    s->u.open.out_head = next.chunk;
    if (next.chunk == SXE_NONE)
        s->u.open.out_tail = SXE_NONE;
    sxe_chunks_give(CONTEXT->chunks, chunk);
    CONTEXT->output_chunks--;
}

/* Whether the record at this place, or one after it, has bytes. */
static bool
has_bytes_from(struct place at)
{
    struct record record;

    while (at.chunk != SXE_NONE) {
        load_record(at, &record);
        if (record.left > 0)
            return true;
        at = place_after(at, &record);
    }
    return false;
}

/* Point vector to the bytes of the first records, up to a record of another kind. Sets *more if
 * other bytes follow: then they share segments with these ones, and TLS does not end yet. Returns
 * how many entries of vector are used.
 */
static int
gather_records(const SXE *s, struct iovec *vector, bool *more)
{
    struct place at = first_record(s);
    int count = 0;
    struct record record;

    while (at.chunk != SXE_NONE && count < SXE__STAGE_VECTOR) {
        char *end;

        load_record(at, &record);
        if (record.kind > BORROWED)
            break;
        end = sxe_chunks_data(CONTEXT->chunks, at.chunk) + at.offset + sizeof(record);
        end += record.kind == BYTES ? record.at.length : 0;
        vector[count].iov_base =
            record.kind == BYTES ? end - record.left : (char *)(uintptr_t)record.at.data;
        vector[count++].iov_len = record.left;
        at = place_after(at, &record);
    }
    *more = has_bytes_from(at);
    return count;
}

static size_t
queue_length(const SXE *s)
{
    struct place at = first_record(s);
    size_t length = 0;
    struct record record;

    while (at.chunk != SXE_NONE) {
        load_record(at, &record);
        length += record.left;
        at = place_after(at, &record);
    }
    return length;
}

size_t
sxe_io_unacknowledged(const SXE *this)
{
    const size_t lent = CONTEXT->staged == this ? CONTEXT->lent_bytes : 0;
    int in_kernel = 0;

    if (sxe__state(this) < SXE_STATE_IDLE || ioctl(this->fd, SIOCOUTQ, &in_kernel) < 0)
        return 0;
    return (size_t)in_kernel + lent + (sxe_unsent(this) - this->u.open.out_copied) +
           queue_length(this);
}

static void
take_from_first_record(SXE *s, struct record *record, size_t part)
{
    record->left -= part;
    if (record->kind == BYTES)
        s->u.open.out_copied -= (uint32_t)part;
    else if (record->kind == BORROWED)
        record->at.data += part;
    else
        record->at.offset += (off_t)part;
}

/* The peer or the kernel has taken bytes: the timeout of writing starts again. */
static void
touch_writing(const SXE *s)
{
    enum sxe_state state = sxe__state(s);

    if (state == SXE_STATE_WRITING || state == SXE_STATE_CLOSING)
        sxe_pool_touch(CONTEXT->sockets, s->id);
}

bool
sxe__queue_has_peer_read(SXE *s)
{
    struct head head = load_head(s->u.open.out_head);
    uint32_t before = head.unacked;
    int unacked = 0;

    if (ioctl(s->fd, SIOCOUTQ, &unacked) < 0)
        return false;
    head.unacked = (uint32_t)unacked;
    store_head(s->u.open.out_head, head);
    if (head.unacked >= before)
        return false;
    touch_writing(s);
    return true;
}

/* A closing socket whose queue is empty needs no out_offset and out_tail for the queue. So
 * out_offset has the number of bytes that were unacknowledged at the last progress, and out_tail
 * how many timeouts of CLOSING have passed since. The first call counts as progress. */
bool
sxe__queue_is_rest_read(SXE *s)
{
    const uint32_t *timeout_ms = CONTEXT->tables->config.timeout_ms;
    int unacked = 0;

    if (ioctl(s->fd, SIOCOUTQ, &unacked) < 0)
        return false;
    if (s->u.open.out_tail == SXE_NONE || (uint32_t)unacked < s->u.open.out_offset) {
        s->u.open.out_offset = (uint32_t)unacked;
        s->u.open.out_tail = 0;
    } else if (++s->u.open.out_tail * (uint64_t)timeout_ms[SXE_STATE_CLOSING] >=
               timeout_ms[SXE_STATE_WRITING]) {
        return false;
    }
    touch_writing(s);
    return true;
}

/* The kernel has taken `sent` bytes: remove them from the first records. */
static void
advance_queue(SXE *s, size_t sent)
{
    touch_writing(s);
    do {
        struct record record;
        size_t part;

        load_record(first_record(s), &record);
        part = sent < record.left ? sent : record.left;
        sent -= part;
        take_from_first_record(s, &record, part);
        if (record.left > 0) {
            store_record(first_record(s), &record);
            return;
        }
        pop_record(s, &record);
        if (record.on_sent != NULL)
            record.on_sent(s, 0);
    } while (sent > 0);
}

/* The functions below write once, and return an outcome or -errno. A kernel that takes only a part
 * of the bytes may still have room: write again, because epoll reports room only after EAGAIN. */
enum outcome { FULL, GO_ON, ENOUGH /* enough for one event */ };

static int
write_bytes(SXE *s)
{
    struct iovec vector[SXE__STAGE_VECTOR];
    bool more;
    int count = gather_records(s, vector, &more);
    ssize_t sent = s->io->write(s, vector, count, more);

    if (sent < 0)
        return sxe__write_failed((int)sent);
    advance_queue(s, (size_t)sent);
    return GO_ON;
}

static void
cork_socket(SXE *s, bool wanted)
{
    if (s->corked != wanted)
        s->io->cork(s, wanted);
    s->corked = wanted;
}

/* Send a slice of a file: to a fast peer sendfile(2) would go on to the end of the file, and keep
 * other sockets waiting. Without a cork each slice would end in a short segment. */
static int
send_file_slice(SXE *s, const struct record *record)
{
    size_t slice = record->left < SXE__FILE_SLICE ? record->left : SXE__FILE_SLICE;
    ssize_t sent;

    if (record->left > slice)
        cork_socket(s, true);
    sent = s->io->sendfile(s, (int)record->fd, record->at.offset, slice);
    if (sent == (ssize_t)record->left)
        cork_socket(s, false);
    if (sent < 0)
        return sxe__write_failed((int)sent);
    if (sent == 0)
        return -ENODATA;
    advance_queue(s, (size_t)sent);
    return sent == SXE__FILE_SLICE ? ENOUGH : GO_ON;
}

static int
write_end(SXE *s, const struct record *record)
{
    int result = sxe__io_end(s);

    if (result == -EAGAIN)
        return FULL;
    pop_record(s, record);
    return result < 0 ? result : GO_ON;
}

static int
write_first_record(SXE *s)
{
    struct record record;

    load_record(first_record(s), &record);
    if (record.left == 0 && record.kind != END) {
        advance_queue(s, 0);
        return GO_ON;
    }
    switch ((enum record_kind)record.kind) {
    case BYTES:
    case BORROWED:
        return write_bytes(s);
    case FILE_RANGE:
        return send_file_slice(s, &record);
    case END:
        break;
    }
    return write_end(s, &record);
}

int
sxe__queue_write(SXE *s)
{
    int result = GO_ON;

    /* The loop ends when a callback ends the socket. One event writes a bounded number of records,
     * so that no peer, however fast it reads, keeps the others waiting. */
    for (int turns = 0; turns < SXE__WRITES_MAX && result == GO_ON; turns++) {
        if (sxe__queue_is_empty(s) || sxe__state(s) == SXE_STATE_CLOSED)
            return 0;
        result = write_first_record(s);
    }
    if (result == FULL)
        (void)sxe__queue_has_peer_read(s);
    return result;
}

size_t
sxe__queue_drop(SXE *s, int result)
{
    size_t dropped = 0;

    while (!sxe__queue_is_empty(s)) {
        struct record record;

        load_record(first_record(s), &record);
        pop_record(s, &record);
        dropped += record.left;
        if (record.on_sent != NULL)
            record.on_sent(s, result);
    }
    s->u.open.out_copied = 0;
    return dropped;
}
