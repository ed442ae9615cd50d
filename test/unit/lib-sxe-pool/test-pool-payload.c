/* SPDX-License-Identifier: MIT
 *
 * Contents of elements: a reader gets what was written, and never a half-written value.
 */
#include "shared-pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "stops.h"
#include "test-main.h"

/* ---- Each element and size, on each footing ---- */

/* The bytes are in memory of exactly this size, so that the sanitizer sees an access beyond it. */
static char *
random_bytes(size_t size)
{
    char *bytes = malloc(size + 1);

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)random();
    return bytes;
}

static void
check_part(char *array, char *model, size_t size, size_t offset, size_t length)
{
    char *part = random_bytes(length);
    char *copy = malloc(size);

    part = realloc(part, length == 0 ? 1 : length);
    memcpy(model + size + offset, part, length);
    sxe_pool_write_part(array, 1, offset, length, part);
    ck_assert_mem_eq(array, model, 3 * size);
    ck_assert_int_eq(sxe_pool_read_part(array, 1, offset, length, part), 0);
    ck_assert_int_eq(memcmp(part, model + size + offset, length), 0);
    ck_assert_int_eq(sxe_pool_read_element(array, 1, copy), 0);
    ck_assert_mem_eq(copy, model + size, size);
    free(part);
    free(copy);
}

START_TEST(any_part_is_written_and_read_and_nothing_else)
{
    for (size_t size = 1; size < 27; size++) {
        char *array = open_footing(_i, 3, size);
        char *model = random_bytes(3 * size);

        for (unsigned id = 0; id < 3; id++)
            sxe_pool_write_element(array, id, model + id * size);
        for (size_t offset = 0; offset <= size; offset++)
            for (size_t length = 0; length <= size - offset; length++)
                check_part(array, model, size, offset, length);
        free(model);
        sxe_pool_delete(array);
    }
}
END_TEST

START_TEST(sums_are_the_same_on_every_footing)
{
    char *array = open_footing(_i, 2, 16);

    ck_assert_uint_eq(sxe_pool_add_u64(array, 1, 8, 40), 40);
    ck_assert_uint_eq(sxe_pool_add_u64(array, 1, 8, 2), 42);
    ck_assert_uint_eq(sxe_pool_add_u64(array, 1, 8, (uint64_t)-43), UINT64_MAX);
    ck_assert_uint_eq(sxe_pool_add_u64(array, 1, 0, 0), 0);
    ck_assert(!sxe_pool_is_torn(array, 1));
    sxe_pool_delete(array);
}
END_TEST

enum { ADDITIONS = 100000 };

START_TEST(two_processes_add_and_no_addition_is_lost)
{
    char *array = open_footing(PROCESSES, 1, 8);
    const pid_t child = fork();

    for (unsigned i = 0; i < ADDITIONS; i++)
        sxe_pool_add_u64(array, 0, 0, child == 0 ? 1 : 1000000);
    if (child == 0)
        _exit(0);
    end_child(child, 0);
    ck_assert_uint_eq(sxe_pool_add_u64(array, 0, 0, 0), ADDITIONS * UINT64_C(1000001));
    sxe_pool_delete(array);
}
END_TEST

/* ---- Reading while another process writes ---- */

enum { SIZE = 200, READS = 200000 };

static bool
is_whole(const char *bytes, size_t size)
{
    return memcmp(bytes, bytes + 1, size - 1) == 0;
}

static bool ended;

static void *
write_until_the_end(void *array)
{
    char value[SIZE];

    for (unsigned i = 0; !__atomic_load_n(&ended, __ATOMIC_RELAXED); i++) {
        memset(value, (int)i, sizeof(value));
        sxe_pool_write_element(array, 0, value);
    }
    return NULL;
}

static void
check_that_all_reads_are_whole(const char *array)
{
    char copy[SIZE];
    unsigned whole = 0;

    for (unsigned i = 0; i < READS || whole == 0; i++) {
        const int result = sxe_pool_read_element(array, 0, copy);

        ck_assert(result == -EBUSY || (result == 0 && is_whole(copy, sizeof(copy))));
        whole += result == 0;
    }
}

START_TEST(a_thread_never_reads_half_of_what_another_writes)
{
    char *array = open_footing(THREADS, 1, SIZE);
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, write_until_the_end, array), 0);
    check_that_all_reads_are_whole(array);
    __atomic_store_n(&ended, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(a_process_never_reads_half_of_what_another_writes)
{
    char *array = open_footing(PROCESSES, 1, SIZE);
    const pid_t child = fork();

    if (child == 0)
        write_until_the_end(join(array));
    check_that_all_reads_are_whole(array);
    kill(child, SIGKILL);
    end_child(child, SIGKILL);
    sxe_pool_delete(array);
}
END_TEST

/* The reader's buffer is on a page without access: the first store into it raises a signal, whose
 * handler writes the element again and then allows the access. */
static struct {
    char *page;
    char *array;
    char value[SIZE];
    unsigned times;
} trap;

static void
write_meanwhile(int signal)
{
    (void)signal;
    memset(trap.value, 'b', sizeof(trap.value));
    sxe_pool_write_element(trap.array, 0, trap.value);
    trap.times++;
    if (mprotect(trap.page, 4096, PROT_READ | PROT_WRITE) != 0)
        _exit(1);
}

START_TEST(what_was_written_while_it_was_read_is_read_again)
{
    trap.page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    trap.array = open_footing(PROCESSES, 1, SIZE);
    memset(trap.value, 'a', sizeof(trap.value));
    sxe_pool_write_element(trap.array, 0, trap.value);
    signal(SIGSEGV, write_meanwhile);
    ck_assert_int_eq(sxe_pool_read_element(trap.array, 0, trap.page), 0);
    signal(SIGSEGV, SIG_DFL);
    ck_assert_uint_eq(trap.times, 1);
    ck_assert_mem_eq(trap.page, trap.value, SIZE);
    munmap(trap.page, 4096);
    sxe_pool_delete(trap.array);
}
END_TEST

/* ---- Writers that are killed ---- */

/* Write a value that ends at a page without access: the writer dies in the middle of its copy. */
static void
die_while_writing(char *array, size_t written)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    memset(pages, 'n', 4096);
    if (mprotect(pages + 4096, 4096, PROT_NONE) != 0)
        _exit(1);
    signal(SIGSEGV, SIG_DFL);
    sxe_pool_write_element(array, 0, pages + 4096 - written);
    _exit(1);
}

START_TEST(an_element_whose_writer_was_killed_is_torn_until_it_is_written_whole)
{
    char *array = open_footing(PROCESSES, 2, SIZE);
    char value[SIZE];

    memset(value, 'o', sizeof(value));
    sxe_pool_write_element(array, 0, value);
    const pid_t child = fork();
    if (child == 0)
        die_while_writing(array, (size_t)_i * 8);
    end_child(child, SIGSEGV);
    ck_assert(sxe_pool_is_torn(array, 0));
    ck_assert(!sxe_pool_is_torn(array, 1));
    ck_assert_int_eq(sxe_pool_read_element(array, 0, value), -EBUSY);
    memset(value, 'w', sizeof(value));
    sxe_pool_write_element(array, 0, value);
    ck_assert(!sxe_pool_is_torn(array, 0));
    memset(value, 0, sizeof(value));
    ck_assert_int_eq(sxe_pool_read_element(array, 0, value), 0);
    ck_assert(value[0] == 'w' && is_whole(value, sizeof(value)));
    sxe_pool_delete(array);
}
END_TEST

START_TEST(sequence_numbers_may_wrap_round)
{
    char *array = open_footing(PROCESSES, 1, 8);
    char value[8] = "seventh";

    node_of(array, 0)->sequence = UINT32_MAX - 1;
    sxe_pool_write_element(array, 0, value);
    ck_assert_uint_eq(node_of(array, 0)->sequence, 0);
    ck_assert_int_eq(sxe_pool_read_element(array, 0, value), 0);
    ck_assert_str_eq(value, "seventh");
    sxe_pool_delete(array);
}
END_TEST

/* ---- Calls that stop the program ---- */

static char buffer[64];

static void
read_past_the_end(void *array)
{
    (void)!sxe_pool_read_part(array, 1, 9, 4, buffer);
}

static void
write_far_past_the_end(void *array)
{
    sxe_pool_write_part(array, 1, SIZE_MAX, 2, buffer);
}

static void
read_no_element(void *array)
{
    (void)!sxe_pool_read_element(array, 2, buffer);
}

static void
add_to_half_a_word(void *array)
{
    sxe_pool_add_u64(array, 0, 4, 1);
}

static void
add_where_elements_are_not_aligned(void *array)
{
    sxe_pool_add_u64(array, 1, 0, 1);
}

static void
ask_for_no_element(void *array)
{
    ck_assert(!sxe_pool_is_torn(array, 2));
}

static const struct {
    void (*call)(void *array);
    const char *message;
} stops[] = {
    {read_past_the_end, "pool pond: element 1 has no 4 bytes at 9, only 12 in all\n"},
    {write_far_past_the_end,
     "pool pond: element 1 has no 2 bytes at 18446744073709551615, only 12 in all\n"},
    {read_no_element, "pool pond has no element 2, only 2\n"},
    {ask_for_no_element, "pool pond has no element 2, only 2\n"},
    {add_to_half_a_word,
     "pool pond: the u64 at 4 of element 0 is not aligned to 8: elements are 12 bytes\n"},
    {add_where_elements_are_not_aligned,
     "pool pond: the u64 at 0 of element 1 is not aligned to 8: elements are 12 bytes\n"},
};

START_TEST(a_place_that_is_not_there_stops_with_a_message)
{
    for (int footing = 0; footing < FOOTINGS; footing++) {
        char *array = open_footing(footing, 2, 12);

        check_has(message_of(stops[_i].call, array), stops[_i].message);
        sxe_pool_delete(array);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-payload");
    TCase *tcase = tcase_create("payload");

    tcase_add_loop_test(tcase, any_part_is_written_and_read_and_nothing_else, 0, FOOTINGS);
    tcase_add_loop_test(tcase, sums_are_the_same_on_every_footing, 0, FOOTINGS);
    tcase_add_test(tcase, two_processes_add_and_no_addition_is_lost);
    tcase_add_test(tcase, a_thread_never_reads_half_of_what_another_writes);
    tcase_add_test(tcase, a_process_never_reads_half_of_what_another_writes);
    tcase_add_test(tcase, what_was_written_while_it_was_read_is_read_again);
    tcase_add_loop_test(tcase, an_element_whose_writer_was_killed_is_torn_until_it_is_written_whole,
                        0, SIZE / 8);
    tcase_add_test(tcase, sequence_numbers_may_wrap_round);
    tcase_add_loop_test(tcase, a_place_that_is_not_there_stops_with_a_message, 0, LENGTH_OF(stops));
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
