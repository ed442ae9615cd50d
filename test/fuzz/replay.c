/* SPDX-License-Identifier: MIT
 *
 * What: a main() for a fuzzer without libFuzzer. replay-<name> feeds every file of
 * test/fuzz/corpus/<name>/, then variations of them and of random bytes, the same in every run.
 * Place: linked to test/fuzz/fuzz-<name>.c by the Makefile; run by tools/run-tests.sh in the root
 * of the tree.
 *
 * Limits: 256 files of at most 64 KiB. Each input has a heap block of its exact size, so that the
 * address sanitizer sees a read past its end.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILES_MAX = 256,
    BYTES_MAX = 65536,
    VARIATIONS = 4000,
    VARIATIONS_THIN = 1000, /* SXE_SWEEP=thin; see tools/run-tests.sh */
    CHANGES_MAX = 8,
    RANDOM_MAX = 600
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    uint8_t *data;
    size_t size;
};

static struct input corpus[FILES_MAX];
static size_t corpus_size;

/* xorshift: the same numbers everywhere. */
static uint32_t
random_below(uint32_t limit)
{
    static uint32_t state = 2463534242;

    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return limit == 0 ? 0 : state % limit;
}

static void
fail(const char *what, const char *name)
{
    fprintf(stderr, "replay: %s %s\n", what, name);
    exit(EXIT_FAILURE);
}

static void
load(const char *directory, const char *name)
{
    static uint8_t bytes[BYTES_MAX];
    char path[512];
    struct input *input = &corpus[corpus_size++];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    file = fopen(path, "rb");
    if (file == NULL)
        fail("cannot open", path);
    input->size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    input->data = malloc(input->size + 1);
    if (input->data == NULL)
        fail("no memory for", path);
    memcpy(input->data, bytes, input->size);
}

static int
is_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Load the files in the order of their names, so that a number means the same input on each
 * disk. */
static void
load_corpus(const char *directory)
{
    struct dirent **entries = NULL;
    int number = scandir(directory, &entries, is_file, alphasort);

    if (number > FILES_MAX)
        fail("too many files in", directory);
    for (int i = 0; i < number; i++) {
        load(directory, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

static void
run(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size > 0 ? size : 1);

    if (exact == NULL)
        fail("no memory for", "an input");
    if (size > 0)
        memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

/* Change the bytes in one way. Returns the new size. */
static size_t
change(uint8_t *bytes, size_t size)
{
    uint32_t at = random_below((uint32_t)size);
    uint32_t length = random_below((uint32_t)(size - at) + 1);

    switch (random_below(6)) {
    case 0: /* set a byte to another value */
        bytes[at] = (uint8_t)random_below(256);
        return size > 0 ? size : 1;
    case 1: /* flip a bit */
        bytes[at] ^= (uint8_t)(1u << random_below(8));
        return size > 0 ? size : 1;
    case 2: /* insert a byte */
        memmove(bytes + at + 1, bytes + at, size - at);
        bytes[at] = (uint8_t)random_below(256);
        return size + 1;
    case 3: /* remove a part */
        memmove(bytes + at, bytes + at + length, size - at - length);
        return size - length;
    case 4: /* repeat a part */
        memmove(bytes + at + length, bytes + at, size - at);
        return size + length;
    default: /* cut the end */
        return at;
    }
}

static void
run_variation(void)
{
    static uint8_t bytes[BYTES_MAX * 2 + 1];
    uint32_t from = random_below((uint32_t)corpus_size + 1);
    size_t size = from < corpus_size ? corpus[from].size : random_below(RANDOM_MAX);

    for (size_t i = 0; i < size; i++)
        bytes[i] = from < corpus_size ? corpus[from].data[i] : (uint8_t)random_below(256);
    for (uint32_t i = random_below(CHANGES_MAX) + 1; i > 0 && size <= BYTES_MAX; i--)
        size = change(bytes, size);
    run(bytes, size);
}

int
main(int argc, char **argv)
{
    const char *name = argc > 0 ? strstr(argv[0], "replay-") : NULL;
    const char *sweep = getenv("SXE_SWEEP");
    bool is_thin = sweep != NULL && strcmp(sweep, "thin") == 0;
    char directory[256];

    if (name == NULL)
        fail("the program's name is not replay-<name>:", argv[0]);
    snprintf(directory, sizeof(directory), "test/fuzz/corpus/%s", name + strlen("replay-"));
    load_corpus(directory);
    for (size_t i = 0; i < corpus_size; i++)
        run(corpus[i].data, corpus[i].size);
    for (unsigned i = 0; i < (is_thin ? VARIATIONS_THIN : VARIATIONS); i++)
        run_variation();
    /* Each kept input is a check, and all the variations together are one. */
    printf("100%%: Checks: %zu, Failures: 0, Errors: 0\n", corpus_size + 1);
    for (size_t i = 0; i < corpus_size; i++)
        free(corpus[i].data);
    return EXIT_SUCCESS;
}
