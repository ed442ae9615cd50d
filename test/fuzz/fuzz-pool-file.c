/* SPDX-License-Identifier: MIT
 *
 * A file that is opened as a pool's: the bytes themselves, or a good file with some bytes changed
 * and, if wanted, the checksum made right again. It is refused with a sentence; or all calls on it
 * come back, and it can be closed.
 *
 *     byte 0        flags
 *     WHOLE         the file
 *     otherwise     offset (2 bytes), value, how: 4 bytes a change
 */
#include "sxe-pool-opening-private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WHOLE = 1, SEAL = 2, REPAIR = 4, OTHER_BOOT = 8, IN_USE = 16 };
enum { FREE, READY, BUSY, STATES, NUMBER = 24 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static union {
    struct sxe__pool_head head;
    uint8_t bytes[1 << 16];
} good, file;
static size_t good_size;

static void
need(int is_so, const char *what)
{
    if (is_so)
        return;
    perror(what);
    abort();
}

/* Make a good file: two shards, elements in all states. */
static void
make_good(void)
{
    static const SXE_POOL_SPEC spec = {.name = "pond",
                                       .number = NUMBER,
                                       .element_size = 12,
                                       .states = STATES,
                                       .shards = 2,
                                       .state_names = "FREE READY BUSY",
                                       .fields = "u32 hits, char[8] name",
                                       .extra_size = 100};
    const int fd = memfd_create("good", MFD_CLOEXEC);
    char *array = sxe_pool_open_fd(fd, &spec, NULL);

    need(array != NULL, "a good pool");
    for (unsigned i = 0; i < NUMBER / 2; i++)
        sxe_pool_take(array, FREE, i % 2 ? READY : BUSY);
    sxe_pool_delete(array);
    const ssize_t length = pread(fd, good.bytes, sizeof(good), 0);
    need(length > 0, "the good pool's bytes");
    good_size = (size_t)length;
    close(fd);
}

/* Make a file from the input. Returns its size. */
static size_t
make_file(const uint8_t *data, size_t size, unsigned flags)
{
    size_t length = good_size;

    if ((flags & WHOLE) != 0) {
        length = size < sizeof(file) ? size : sizeof(file);
        memcpy(file.bytes, data, length);
        return length;
    }
    memcpy(file.bytes, good.bytes, good_size);
    if ((flags & IN_USE) != 0)
        file.head.closed = 0;
    if ((flags & OTHER_BOOT) != 0)
        file.head.boot[5] ^= 1;
    for (size_t i = 0; i + 4 <= size; i += 4) {
        const size_t at = ((size_t)data[i] << 8 | data[i + 1]) % good_size;

        if (data[i + 3] == 'x')
            length = at;
        else if (data[i + 3] == '+')
            file.bytes[at] += data[i + 2];
        else
            file.bytes[at] = data[i + 2];
    }
    if ((flags & SEAL) != 0)
        sxe__pool_head_seal(&file.head);
    return length;
}

static void
use(char *array)
{
    SXE_POOL_WALKER walker;
    char why[SXE_POOL_WHY_SIZE];
    const unsigned number = sxe_pool_get_number(array);
    const unsigned states = sxe_pool_get_states(array);
    size_t size;

    for (unsigned id = 0; id < number; id++)
        sxe_pool_touch(array, id);
    for (unsigned state = 0; state < states && state < 100; state++) {
        unsigned steps = 0;

        sxe_pool_walker_construct(&walker, array, state);
        while (sxe_pool_walker_step(&walker) < number)
            need(++steps <= number, "the end of a walk");
        sxe_pool_take(array, state, (state + 1) % states);
        sxe_pool_take_exact(array, state, 0);
    }
    (void)!sxe_pool_check(array, why);
    memset(array, 1, number * sxe_pool_get_element_size(array));
    char *extra = sxe_pool_get_extra(array, &size);
    if (extra != NULL)
        memset(extra, 1, size);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[SXE_POOL_WHY_SIZE] = "";
    SXE_POOL_SPEC spec = {.number = 0};

    if (size == 0)
        return 0;
    sxe_log_set_level(SXE_LOG_NONE);
    if (good_size == 0)
        make_good();
    if ((data[0] & REPAIR) != 0)
        spec.options = SXE_POOL_OPTION_REPAIR;
    const size_t length = make_file(data + 1, size - 1, data[0]);
    const int fd = memfd_create("file", MFD_CLOEXEC);
    need(fd != -1 && pwrite(fd, file.bytes, length, 0) == (ssize_t)length, "a file");
    char *array = sxe_pool_open_fd(fd, &spec, why);
    if (array != NULL) {
        use(array);
        sxe_pool_delete(array);
    } else
        need(why[0] != '\0', "a sentence");
    close(fd);
    return 0;
}
