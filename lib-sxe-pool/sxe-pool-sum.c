/* SPDX-License-Identifier: MIT
 *
 * The sum of a file that all users have closed, by which the next process that opens it finds bits
 * that flipped and pages that were lost. It is for accidents: an attacker can compute it, too.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sxe-pool-opening-private.h"

#define LANES      4u
#define MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t
mix_word(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * MULTIPLIER;
    return sum ^ sum >> 32;
}

/* Add four words at a time to four sums, the lanes, so that no multiplication has to wait for the
 * one before. Each step of a lane can be undone, so a change of one word always changes the sum.
 * Sizes are multiples of 8. */
static uint64_t
add_words_to_sum(uint64_t sum, const void *bytes, size_t size)
{
    uint64_t lanes[LANES] = {sum, ~sum, sum + MULTIPLIER, sum - MULTIPLIER};
    const uint64_t *word = bytes;
    size_t words = size / sizeof(*word);

    for (; words >= LANES; words -= LANES, word += LANES) {
        for (unsigned i = 0; i < LANES; i++)
            lanes[i] = mix_word(lanes[i], word[i]);
    }
    for (; words > 0; words--)
        lanes[0] = mix_word(lanes[0], *word++);
    for (unsigned i = 0; i < LANES; i++)
        sum = mix_word(sum, lanes[i]);
    return sum;
}

uint64_t
sxe__pool_sum(const struct sxe__pool_head *head, size_t head_size, const void *array, size_t size)
{
    const char *bytes = (const char *)head;
    const size_t first = offsetof(struct sxe__pool_head, boot);
    const size_t last = offsetof(struct sxe__pool_head, sum);
    const size_t next = head->closed == SXE__POOL_CLOSED_BEFORE
                            ? sizeof(*head)
                            : offsetof(struct sxe__pool_head, damaged);
    uint64_t sum = add_words_to_sum(0, bytes + first, last - first);

    sum = add_words_to_sum(sum, bytes + next, head_size - next);
    return add_words_to_sum(sum, array, size);
}

uint64_t
sxe__pool_sum_of(const struct sxe__pool_header *pool)
{
    const struct sxe__pool_sharing *sharing = pool->sharing;
    const size_t own_size = (size_t)((uintptr_t)(pool + 1) - (uintptr_t)sharing);

    return sxe__pool_sum(sharing->head, sharing->head_size, pool + 1,
                         sharing->size - own_size - sharing->copy_size);
}

const char *
sxe__pool_what_changed(const struct sxe__pool_header *pool)
{
    const struct sxe__pool_sharing *sharing = pool->sharing;
    const struct sxe__pool_head *head = sharing->head;

    if (!sharing->is_summed || head->closed == SXE__POOL_IN_USE)
        return NULL;
    if (!sxe__pool_is_closed(head) || (head->is_summed != 0 && head->is_summed != head->closed))
        return "the mark by which it was closed is damaged: bits changed";
    if (head->is_summed == 0)
        return NULL;
    if (head->sum != sxe__pool_sum_of(pool))
        return "what is in the file is not what was in it when it was closed (its sum is "
               "another): bits changed, or pages were lost";
    return sxe__pool_copy_is_whole(sharing)
               ? NULL
               : "the copy of the head at the end of the file is not what it was when the file was "
                 "closed: bits changed, or pages were lost";
}

/* ---- Disks ---- */

const char *sxe__pool_disks = "/sys/dev/block";

/* Read a whole number from a file of the kernel. 0: the file has none. */
static uint64_t
read_number_file(const char *path)
{
    char text[24] = "";
    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd == -1)
        return 0;
    const ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    return length > 0 ? strtoull(text, NULL, 10) : 0;
}

uint64_t
sxe__pool_disk(int fd)
{
    /* A partition has no sequence number: use the number of its disk ("../"). */
    static const char *const places[] = {"", "../"};
    uint64_t sequence = 0;
    struct stat status;
    char path[PATH_MAX];

    if (fstat(fd, &status) != 0)
        return 0;
    for (unsigned i = 0; i < 2 && sequence == 0; i++) {
        snprintf(path, sizeof(path), "%s/%u:%u/%sdiskseq", sxe__pool_disks, major(status.st_dev),
                 minor(status.st_dev), places[i]);
        sequence = read_number_file(path);
    }
    return sequence;
}
