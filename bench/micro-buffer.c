/* SPDX-License-Identifier: MIT
 *
 * Measures the cost of chunks, appending and searching. From the top of the tree, after `make`:
 *
 *     gcc -std=c11 -D_GNU_SOURCE -O2 -Ilib-sxe-log -Ilib-sxe-buffer -DSXE_LOG_NO_2010 \
 *         bench/micro-buffer.c build/release/libsxe.a -lev -lm -o /tmp/micro-buffer &&
 * /tmp/micro-buffer
 *
 * Each figure is the best of a few rounds. A round takes some 10 ms or more.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-buffer.h"
#include "sxe-time.h"

enum { ROUNDS = 7, CHUNKS = 1000, CHUNK_SIZE = 4092, TIMES = 1000000, TEXT_SIZE = 16 << 20 };

static struct sxe_chunks *chunks;
static char *text;

static double
best_of(double (*measure)(const char *needle), const char *needle)
{
    double best = measure(needle);

    for (unsigned i = 1; i < ROUNDS; i++) {
        double next = measure(needle);
        best = next < best ? next : best;
    }
    return best;
}

/* How many ns it takes to take a chunk and give it back; it is the same chunk again and again. */
static double
take_give(const char *unused)
{
    uint64_t began = sxe_time_ns();

    (void)unused;
    for (unsigned i = 0; i < TIMES; i++)
        sxe_chunks_give(chunks, sxe_chunks_take(chunks));
    return (double)(sxe_time_ns() - began) / TIMES;
}

/* Like take_give, but all chunks are taken before the first is given back. */
static double
take_all_give_all(const char *unused)
{
    uint64_t began = sxe_time_ns();

    (void)unused;
    for (unsigned i = 0; i < TIMES / CHUNKS; i++) {
        for (unsigned j = 0; j < CHUNKS; j++) {
            if (sxe_chunks_take(chunks) == SXE_NONE)
                abort();
        }
        for (uint32_t j = 0; j < CHUNKS; j++)
            sxe_chunks_give(chunks, j * 7 % CHUNKS);
    }
    return (double)(sxe_time_ns() - began) / TIMES;
}

/* How many ns it takes to append 100 bytes. */
static double
add_100(const char *unused)
{
    struct sxe_buffer buffer = SXE_BUFFER_EMPTY;
    uint64_t began;

    (void)unused;
    if (sxe_buffer_borrow(&buffer, chunks) < 0)
        abort();
    began = sxe_time_ns();
    for (unsigned i = 0; i < TIMES; i++) {
        if (sxe_buffer_add(&buffer, text + i % 1000, 100) < 0)
            sxe_buffer_clear(&buffer);
    }
    began = sxe_time_ns() - began;
    sxe_buffer_give_back(&buffer, chunks);
    return (double)began / TIMES;
}

/* How many ns it takes to print a status line. */
static double
print_line(const char *unused)
{
    struct sxe_buffer buffer = SXE_BUFFER_EMPTY;
    uint64_t began;

    (void)unused;
    if (sxe_buffer_borrow(&buffer, chunks) < 0)
        abort();
    began = sxe_time_ns();
    for (unsigned i = 0; i < TIMES / 10; i++) {
        if (sxe_buffer_printf(&buffer, "HTTP/1.1 %u %s\r\n", 200 + i % 9, "OK") < 0)
            sxe_buffer_clear(&buffer);
    }
    began = sxe_time_ns() - began;
    sxe_buffer_give_back(&buffer, chunks);
    return (double)began / (TIMES / 10);
}

/* How many seconds it takes to search the whole text, whose last bytes are the needle. */
static double
search(void *(*find)(const void *, size_t, const void *, size_t), const char *needle)
{
    size_t length = strlen(needle);
    uint64_t began;

    memcpy(text + TEXT_SIZE - length, needle, length);
    began = sxe_time_ns();
    if (find(text, TEXT_SIZE, needle, length) != text + TEXT_SIZE - length)
        abort();
    return (double)(sxe_time_ns() - began) / 1e9;
}

static double
search_case(const char *needle)
{
    return search(sxe_find, needle);
}

static double
search_nocase(const char *needle)
{
    return search(sxe_find_nocase, needle);
}

/* Fill the text with words that have the letter frequencies of English, in lines, so that every
 * prefix of a needle is found often. */
static void
fill_text(void)
{
    static const char letters[] =
        "eeeeeeeeeeeetttttttttaaaaaaaaooooooooiiiiiiinnnnnnnsssssshhhhhhrrrrrr"
        "ddddllllcccuuummmwwffggyyppbbvk                   ETAOIN/.:\n";
    uint32_t random = 1;

    for (size_t i = 0; i < TEXT_SIZE; i++) {
        random = random * 1664525 + 1013904223;
        text[i] = letters[(random >> 8) % (sizeof(letters) - 1)];
    }
}

int
main(void)
{
    static const char *const needles[] = {
        "#", "\r\n\r\n", "Zebra", "ethanol", "Content-Length", "e quick brown fox jumps ove#"};

    chunks = sxe_chunks_new("bench", CHUNKS, CHUNK_SIZE);
    text = malloc(TEXT_SIZE);
    if (chunks == NULL || text == NULL)
        return EXIT_FAILURE;
    fill_text();
    printf("%-34s %8.1f ns\n", "take and give a chunk", best_of(take_give, NULL));
    printf("%-34s %8.1f ns\n", "take 1000, give 1000: each", best_of(take_all_give_all, NULL));
    printf("%-34s %8.1f ns\n", "add 100 bytes", best_of(add_100, NULL));
    printf("%-34s %8.1f ns\n", "print a 17-byte line", best_of(print_line, NULL));
    printf("\n%-34s %8s %8s\n", "search 16 MiB of text, GB/s", "find", "nocase");
    for (size_t i = 0; i < sizeof(needles) / sizeof(needles[0]); i++) {
        printf("%-34s %8.2f %8.2f\n", i == 1 ? "CR LF CR LF" : needles[i],
               TEXT_SIZE / best_of(search_case, needles[i]) / 1e9,
               TEXT_SIZE / best_of(search_nocase, needles[i]) / 1e9);
    }
    free(text);
    sxe_chunks_delete(chunks);
    return EXIT_SUCCESS;
}
