/* SPDX-License-Identifier: MIT
 *
 * Private pools: construction, states, handles, names. Cases that move elements run twice, the
 * second time on a pool that is copied to another address again and again.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake-os.h"
#include "pool-of-ints.h"
#include "sxe-pool-shared.h"
#include "test-main.h"

/* Copy the pool to another address and overwrite the old one; or, if not `really`, do nothing. */
static int *
hop(int *array, int really)
{
    void *old = sxe_pool_to_base(array);
    const size_t size = sxe_pool_size(sxe_pool_get_number(array), sizeof(int), STATES);
    void *new;

    if (!really)
        return array;
    new = new_block(size);
    memcpy(new, old, size);
    memset(old, 0xf0, size);
    free(old);
    return sxe_pool_from_base(new);
}

/* ---- Construction ---- */

static const struct {
    unsigned number;
    size_t element_size;
    unsigned states;
    bool possible;
} sizes[] = {
    {1, 1, 1, true},
    {1000000, 4096, 7, true},
    {0, 1, 1, false},
    {1, 0, 1, false},
    {1, 1, 0, false},
    {UINT32_MAX - 2, 1, 1, true},
    {1, 1, UINT32_MAX - 2, true},
    {UINT32_MAX - 1, 1, 1, false},
    {1, 1, UINT32_MAX - 1, false},
    {UINT32_MAX, 1, UINT32_MAX, false},
    {1, PTRDIFF_MAX - 1024, 1, true},
    {1, PTRDIFF_MAX - 1, 1, false},
    {1, SIZE_MAX, 1, false},
    {2, SIZE_MAX / 2 + 1, 1, false},
    {1u << 31, (size_t)1 << 33, 1, false},
};

START_TEST(size_is_0_for_numbers_that_are_impossible)
{
    const size_t size = sxe_pool_size(sizes[_i].number, sizes[_i].element_size, sizes[_i].states);

    ck_assert_uint_eq(size % SXE__POOL_ALIGNMENT, 0);
    ck_assert_uint_le(size, PTRDIFF_MAX);
    if (!sizes[_i].possible) {
        ck_assert_uint_eq(size, 0);
        ck_assert_ptr_null(sxe_pool_new("no", sizes[_i].number, sizes[_i].element_size,
                                        sizes[_i].states, SXE_POOL_OPTION_UNLOCKED));
        ck_assert_int_eq(errno, EINVAL);
    } else {
        ck_assert_uint_ge(size, sizes[_i].number * sizes[_i].element_size +
                                    ((size_t)sizes[_i].number + sizes[_i].states) * 24 + 128);
    }
}
END_TEST

static const size_t odd_sizes[] = {1, 3, 5, 24, 64, 65};

START_TEST(elements_of_odd_sizes_are_aligned_and_left_alone)
{
    const size_t size = odd_sizes[_i];
    unsigned char *array = sxe_pool_new("odd", 7, size, STATES, SXE_POOL_OPTION_TIMED);

    ck_assert_ptr_nonnull(array);
    ck_assert_uint_eq((uintptr_t)array % SXE__POOL_ALIGNMENT, 0);
    ck_assert_uint_eq((uintptr_t)sxe__pool_nodes(sxe_pool_to_base(array)) % 8, 0);
    for (size_t i = 0; i < 7 * size; i++)
        ck_assert_uint_eq(array[i], 0);
    memset(array, 0xff, 7 * size);
    for (unsigned i = 0; i < 7; i++)
        ck_assert_uint_eq(sxe_pool_take(array, FREE, BUSY), i);
    memset(array, 0xff, 7 * size);
    for (unsigned i = 0; i < 7; i++)
        sxe_pool_move(array, i, BUSY, DONE);
    for (size_t i = 0; i < 7 * size; i++)
        ck_assert_uint_eq(array[i], 0xff);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(constructing_leaves_the_elements_as_they_are)
{
    unsigned char *array = (unsigned char *)make_pool(3);

    for (size_t i = 0; i < 3 * sizeof(int); i++)
        ck_assert_uint_eq(array[i], 0xa5);
    drop((int *)array);
}
END_TEST

static const struct {
    const char *name;
    unsigned options;
    size_t misaligned;
} refused[] = {
    {NULL, 0, 0},
    {"unknown option", 16, 0},
    {"", 0, 1},
    {"", 0, 32},
};

START_TEST(what_is_impossible_is_refused)
{
    char *block = new_block(sxe_pool_size(1, 1, 1) + 64);

    errno = 0;
    ck_assert_ptr_null(sxe_pool_construct(block + refused[_i].misaligned, refused[_i].name, 1, 1, 1,
                                          refused[_i].options));
    ck_assert_int_eq(errno, EINVAL);
    errno = 0;
    ck_assert_ptr_null(sxe_pool_construct(NULL, "nowhere", 1, 1, 1, 0));
    ck_assert_int_eq(errno, EINVAL);
    if (refused[_i].misaligned == 0) {
        errno = 0;
        ck_assert_ptr_null(sxe_pool_new(refused[_i].name, 1, 1, 1, refused[_i].options));
        ck_assert_int_eq(errno, EINVAL);
    }
    free(block);
}
END_TEST

START_TEST(without_memory_there_is_no_pool)
{
    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    errno = 0;
    ck_assert_ptr_null(sxe_pool_new("dry", 1, 1, 1, SXE_POOL_OPTION_UNLOCKED));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_uint_eq(fake_os_injected(), 1);
}
END_TEST

static const unsigned footings[] = {
    SXE_POOL_OPTION_UNLOCKED,
    SXE_POOL_OPTION_LOCKED,
    SXE_POOL_OPTION_SHARED,
};

START_TEST(a_long_name_is_cut)
{
    void *array = sxe_pool_new("0123456789012345678901234567890123456789", 1, 1, 1, footings[_i]);

    ck_assert_ptr_nonnull(array);
    ck_assert_str_eq(sxe_pool_get_name(array), "0123456789012345678901234567890");
    ck_assert_uint_eq(strlen(sxe_pool_get_name(array)), SXE_POOL_NAME_MAX);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(array_and_block_know_each_other)
{
    int *array = make_pool(5);

    ck_assert_ptr_eq(sxe_pool_from_base(sxe_pool_to_base(array)), array);
    ck_assert_str_eq(sxe_pool_get_name(array), "cess");
    ck_assert_uint_eq(sxe_pool_get_number(array), 5);
    drop(array);
}
END_TEST

START_TEST(what_is_not_a_pool_of_this_version_is_known)
{
    struct sxe__pool_header header = {
        .magic = SXE__POOL_MAGIC, .version = SXE__POOL_VERSION, .header_size = sizeof(header)};

    ck_assert_ptr_eq(sxe_pool_from_base(&header), &header + 1);
    header.header_size++;
    ck_assert_ptr_null(sxe_pool_from_base(&header));
    ck_assert_int_eq(errno, EINVAL);
    header.header_size--;
    header.version++;
    ck_assert_ptr_null(sxe_pool_from_base(&header));
    header.version--;
    header.magic = 0;
    ck_assert_ptr_null(sxe_pool_from_base(&header));
}
END_TEST

START_TEST(deleting_nothing_is_allowed)
{
    sxe_pool_delete(NULL);
    sxe_pool_delete(NULL);
}
END_TEST

/* ---- States ---- */

START_TEST(ids_are_handed_out_in_ascending_order)
{
    int *array = make_pool(1000);

    for (unsigned id = 0; id < 1000; id++) {
        ck_assert_uint_eq(sxe_pool_get_state(array, id), FREE);
        ck_assert_uint_eq(sxe_pool_get_oldest(array, FREE), id);
        ck_assert_uint_eq(sxe_pool_take(array, FREE, BUSY), id);
        array = hop(array, _i && id % 100 == 0);
    }
    drop(array);
}
END_TEST

START_TEST(an_exhausted_state_has_no_index)
{
    int *array = make_pool(2);

    ck_assert_uint_eq(sxe_pool_get_oldest(array, BUSY), SXE_POOL_NO_INDEX);
    ck_assert_uint_eq(sxe_pool_get_youngest(array, BUSY), SXE_POOL_NO_INDEX);
    ck_assert_uint_eq(sxe_pool_get_oldest_time(array, BUSY), 0);
    sxe_pool_take(array, FREE, BUSY);
    array = hop(array, _i);
    sxe_pool_take(array, FREE, BUSY);
    ck_assert_uint_eq(sxe_pool_take(array, FREE, BUSY), SXE_POOL_NO_INDEX);
    ck_assert_uint_eq(sxe_pool_get_count(array, FREE), 0);
    ck_assert_uint_eq(sxe_pool_get_count(array, BUSY), 2);
    drop(array);
}
END_TEST

START_TEST(the_element_freed_first_is_used_again_first)
{
    static const unsigned order[] = {2, 0, 1};
    int *array = make_pool(3);

    while (sxe_pool_take(array, FREE, BUSY) != SXE_POOL_NO_INDEX)
        array = hop(array, _i);
    for (int i = 0; i < 3; i++)
        sxe_pool_move(array, order[i], BUSY, FREE);
    array = hop(array, _i);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(sxe_pool_take(array, FREE, BUSY), order[i]);
    drop(array);
}
END_TEST

START_TEST(elements_move_between_states)
{
    int *array = make_pool(4);

    array[2] = 42;
    ck_assert_uint_eq(sxe_pool_move(array, 2, FREE, DONE), SXE_POOL_LOCK_TAKEN);
    array = hop(array, _i);
    ck_assert_uint_eq(sxe_pool_move(array, 0, FREE, BUSY), SXE_POOL_LOCK_TAKEN);
    ck_assert_uint_eq(sxe_pool_get_state(array, 2), DONE);
    ck_assert_uint_eq(sxe_pool_get_state(array, 0), BUSY);
    ck_assert_uint_eq(sxe_pool_get_count(array, FREE), 2);
    ck_assert_uint_eq(sxe_pool_get_count(array, BUSY), 1);
    ck_assert_uint_eq(sxe_pool_get_count(array, DONE), 1);
    ck_assert_uint_eq(sxe_pool_get_oldest(array, FREE), 1);
    ck_assert_int_eq(array[2], 42);
    drop(array);
}
END_TEST

START_TEST(a_touched_element_becomes_the_youngest)
{
    int *array = make_pool(3);

    ck_assert_uint_eq(sxe_pool_get_youngest(array, FREE), 2);
    ck_assert_uint_eq(sxe_pool_touch(array, 0), SXE_POOL_LOCK_TAKEN);
    ck_assert_uint_eq(sxe_pool_get_youngest(array, FREE), 0);
    array = hop(array, _i);
    ck_assert_uint_eq(sxe_pool_touch(array, 2), SXE_POOL_LOCK_TAKEN);
    ck_assert_uint_eq(sxe_pool_get_count(array, FREE), 3);
    ck_assert_uint_eq(sxe_pool_take(array, FREE, BUSY), 1);
    ck_assert_uint_eq(sxe_pool_take(array, FREE, FREE), 0);
    ck_assert_uint_eq(sxe_pool_take(array, FREE, BUSY), 2);
    ck_assert_uint_eq(sxe_pool_take(array, FREE, BUSY), 0);
    drop(array);
}
END_TEST

START_TEST(trying_tells_the_state_an_element_is_in)
{
    unsigned state = BUSY;
    int *array = make_pool(3);

    ck_assert_uint_eq(sxe_pool_try_move(array, 1, FREE, &state), 1);
    ck_assert_uint_eq(state, BUSY);
    array = hop(array, _i);
    state = DONE;
    ck_assert_uint_eq(sxe_pool_try_move(array, 1, FREE, &state), SXE_POOL_INCORRECT_STATE);
    ck_assert_uint_eq(state, BUSY);
    ck_assert_uint_eq(sxe_pool_get_state(array, 1), BUSY);
    ck_assert_uint_eq(sxe_pool_get_count(array, DONE), 0);
    drop(array);
}
END_TEST

START_TEST(stamps_are_the_time_of_the_turn_and_never_equal)
{
    sxe_time_set_turn_ns(5000);
    int *array = make_pool(3);

    ck_assert_uint_eq(sxe_pool_get_time(array, 0), 5000);
    ck_assert_uint_eq(sxe_pool_get_time(array, 2), 5002);
    sxe_time_set_turn_ns(6000);
    sxe_pool_touch(array, 0);
    array = hop(array, _i);
    sxe_pool_move(array, 1, FREE, BUSY);
    ck_assert_uint_eq(sxe_pool_get_time(array, 0), 6000);
    ck_assert_uint_eq(sxe_pool_get_oldest_time(array, BUSY), 6001);
    ck_assert_uint_eq(sxe_pool_get_oldest_time(array, FREE), 5002);
    sxe_time_set_turn_ns(1000);
    sxe_pool_touch(array, 2);
    ck_assert_uint_eq(sxe_pool_get_time(array, 2), 6002);
    drop(array);
}
END_TEST

START_TEST(without_a_turn_stamps_are_the_time_of_the_clock)
{
    int *array = make_pool(2);
    const uint64_t before = sxe_time_ns();

    sxe_pool_touch(array, 1);
    ck_assert_uint_ge(sxe_pool_get_time(array, 1), before);
    ck_assert_uint_le(sxe_pool_get_time(array, 1), sxe_time_ns());
    drop(array);
}
END_TEST

START_TEST(a_pool_mapped_twice_is_one_pool)
{
    const size_t size = sxe_pool_size(10, sizeof(int), STATES);
    const int fd = memfd_create("pool", MFD_CLOEXEC);

    ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
    void *here = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void *there = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int *array = sxe_pool_construct(here, "shared", 10, sizeof(int), STATES, 0);
    int *same = sxe_pool_from_base(there);

    ck_assert_ptr_ne(array, same);
    ck_assert_uint_eq(sxe_pool_take(array, FREE, BUSY), 0);
    ck_assert_uint_eq(sxe_pool_take(same, FREE, BUSY), 1);
    sxe_pool_move(same, 0, BUSY, DONE);
    ck_assert_uint_eq(sxe_pool_get_state(array, 0), DONE);
    ck_assert_uint_eq(sxe_pool_get_oldest(array, BUSY), 1);
    munmap(here, size);
    munmap(there, size);
    close(fd);
}
END_TEST

/* ---- Handles ---- */

START_TEST(a_handle_is_good_until_its_element_is_free_again)
{
    int *array = make_pool(2);
    const unsigned id = sxe_pool_take(array, FREE, BUSY);
    const uint64_t handle = sxe_pool_get_handle(array, id);

    sxe_pool_move(array, id, BUSY, DONE);
    sxe_pool_touch(array, id);
    array = hop(array, _i);
    ck_assert_uint_eq(sxe_pool_handle_to_index(array, handle), id);
    sxe_pool_move(array, id, DONE, FREE);
    ck_assert_uint_eq(sxe_pool_handle_to_index(array, handle), SXE_POOL_NO_INDEX);
    sxe_pool_move(array, id, FREE, BUSY);
    ck_assert_uint_eq(sxe_pool_handle_to_index(array, handle), SXE_POOL_NO_INDEX);
    ck_assert_uint_eq(sxe_pool_handle_to_index(array, sxe_pool_get_handle(array, id)), id);
    drop(array);
}
END_TEST

START_TEST(staying_free_is_not_a_new_life)
{
    int *array = make_pool(1);
    const uint64_t handle = sxe_pool_get_handle(array, 0);

    sxe_pool_touch(array, 0);
    sxe_pool_move(array, 0, FREE, FREE);
    ck_assert_uint_eq(sxe_pool_handle_to_index(array, handle), 0);
    drop(array);
}
END_TEST

START_TEST(what_never_was_a_handle_has_no_index)
{
    int *array = make_pool(2);
    const uint64_t handle = sxe_pool_get_handle(array, 1);

    ck_assert_uint_eq(sxe_pool_handle_to_index(array, 0), SXE_POOL_NO_INDEX);
    ck_assert_uint_eq(sxe_pool_handle_to_index(array, handle + 1), SXE_POOL_NO_INDEX);
    ck_assert_uint_eq(sxe_pool_handle_to_index(array, UINT64_MAX), SXE_POOL_NO_INDEX);
    drop(array);
}
END_TEST

START_TEST(a_handle_is_never_0_even_after_4_billion_lives)
{
    int *array = make_pool(1);
    struct sxe__pool_node *nodes = sxe__pool_nodes(sxe_pool_to_base(array));

    nodes[0].generation = UINT32_MAX;
    sxe_pool_move(array, 0, FREE, BUSY);
    sxe_pool_move(array, 0, BUSY, FREE);
    ck_assert_uint_eq(sxe_pool_get_handle(array, 0), UINT64_C(1) << 32);
    drop(array);
}
END_TEST

/* ---- Names of states ---- */

START_TEST(states_have_names_or_numbers)
{
    int *array = make_pool(1);

    ck_assert_str_eq(sxe_pool_state_to_string(array, BUSY), "1");
    ck_assert_int_eq(sxe_pool_set_state_to_string(array, NULL), 0);
    ck_assert_int_eq(sxe_pool_set_state_to_string(array, state_name), 0);
    ck_assert_str_eq(sxe_pool_state_to_string(array, BUSY), "BUSY");
    ck_assert_str_eq(sxe_pool_state_to_string(array, STATES), "3");
    ck_assert_int_eq(sxe_pool_set_state_to_string(array, NULL), 0);
    ck_assert_str_eq(sxe_pool_state_to_string(array, BUSY), "1");
    drop(array);
}
END_TEST

START_TEST(four_numbers_stay_valid_at_once)
{
    int *array = make_pool(1);
    const char *texts[4];

    for (unsigned i = 0; i < 4; i++)
        texts[i] = sxe_pool_state_to_string(array, UINT32_MAX - i);
    ck_assert_str_eq(texts[0], "4294967295");
    ck_assert_str_eq(texts[1], "4294967294");
    ck_assert_str_eq(texts[2], "4294967293");
    ck_assert_str_eq(texts[3], "4294967292");
    drop(array);
}
END_TEST

START_TEST(names_of_several_pools_are_kept_apart)
{
    int *arrays[] = {make_pool(1), make_pool(1), make_pool(1)};

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(sxe_pool_set_state_to_string(arrays[i], state_name), 0);
    ck_assert_int_eq(sxe_pool_set_state_to_string(arrays[1], NULL), 0);
    ck_assert_str_eq(sxe_pool_state_to_string(arrays[0], DONE), "DONE");
    ck_assert_str_eq(sxe_pool_state_to_string(arrays[1], DONE), "2");
    ck_assert_str_eq(sxe_pool_state_to_string(arrays[2], DONE), "DONE");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(sxe_pool_set_state_to_string(arrays[i], NULL), 0);
        drop(arrays[i]);
    }
}
END_TEST

START_TEST(a_new_pool_at_an_old_address_has_no_names)
{
    int *array = make_pool(1);

    ck_assert_int_eq(sxe_pool_set_state_to_string(array, state_name), 0);
    ck_assert_ptr_eq(sxe_pool_construct(sxe_pool_to_base(array), "new", 1, 1, 1, 0), array);
    ck_assert_str_eq(sxe_pool_state_to_string(array, FREE), "0");
    drop(array);
}
END_TEST

START_TEST(without_memory_states_stay_numbers)
{
    int *array = make_pool(1);

    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    ck_assert_int_eq(sxe_pool_set_state_to_string(array, state_name), -ENOMEM);
    ck_assert_str_eq(sxe_pool_state_to_string(array, BUSY), "1");
    drop(array);
}
END_TEST

static TCase *
construction(void)
{
    TCase *tcase = tcase_create("construction");

    tcase_add_loop_test(tcase, size_is_0_for_numbers_that_are_impossible, 0, LENGTH_OF(sizes));
    tcase_add_loop_test(tcase, elements_of_odd_sizes_are_aligned_and_left_alone, 0,
                        LENGTH_OF(odd_sizes));
    tcase_add_test(tcase, constructing_leaves_the_elements_as_they_are);
    tcase_add_loop_test(tcase, what_is_impossible_is_refused, 0, LENGTH_OF(refused));
    tcase_add_test(tcase, without_memory_there_is_no_pool);
    tcase_add_loop_test(tcase, a_long_name_is_cut, 0, (int)SXE_COUNT(footings));
    tcase_add_test(tcase, array_and_block_know_each_other);
    tcase_add_test(tcase, what_is_not_a_pool_of_this_version_is_known);
    tcase_add_test(tcase, deleting_nothing_is_allowed);
    return tcase;
}

static TCase *
states(void)
{
    TCase *tcase = tcase_create("states");

    tcase_add_loop_test(tcase, ids_are_handed_out_in_ascending_order, 0, 2);
    tcase_add_loop_test(tcase, an_exhausted_state_has_no_index, 0, 2);
    tcase_add_loop_test(tcase, the_element_freed_first_is_used_again_first, 0, 2);
    tcase_add_loop_test(tcase, elements_move_between_states, 0, 2);
    tcase_add_loop_test(tcase, a_touched_element_becomes_the_youngest, 0, 2);
    tcase_add_loop_test(tcase, trying_tells_the_state_an_element_is_in, 0, 2);
    tcase_add_loop_test(tcase, stamps_are_the_time_of_the_turn_and_never_equal, 0, 2);
    tcase_add_test(tcase, without_a_turn_stamps_are_the_time_of_the_clock);
    tcase_add_test(tcase, a_pool_mapped_twice_is_one_pool);
    return tcase;
}

static TCase *
handles(void)
{
    TCase *tcase = tcase_create("handles");

    tcase_add_loop_test(tcase, a_handle_is_good_until_its_element_is_free_again, 0, 2);
    tcase_add_test(tcase, staying_free_is_not_a_new_life);
    tcase_add_test(tcase, what_never_was_a_handle_has_no_index);
    tcase_add_test(tcase, a_handle_is_never_0_even_after_4_billion_lives);
    return tcase;
}

static TCase *
names(void)
{
    TCase *tcase = tcase_create("names");

    tcase_add_test(tcase, states_have_names_or_numbers);
    tcase_add_test(tcase, four_numbers_stay_valid_at_once);
    tcase_add_test(tcase, names_of_several_pools_are_kept_apart);
    tcase_add_test(tcase, a_new_pool_at_an_old_address_has_no_names);
    tcase_add_test(tcase, without_memory_states_stay_numbers);
    return tcase;
}

int
main(void)
{
    Suite *suite = suite_create("pool");

    suite_add_tcase(suite, construction());
    suite_add_tcase(suite, states());
    suite_add_tcase(suite, handles());
    suite_add_tcase(suite, names());
    return sxe_test_main(suite);
}
