/* SPDX-License-Identifier: MIT
 *
 * Opening shared pools: valid and wrong specs, the footings, what an opener finds, and which
 * processes can become users.
 */
#include "pool-file.h"

#include <sys/mman.h>
#include <sys/socket.h>

#include "fake-os.h"
#include "fake-time.h"
#include "leaks.h"
#include "test-main.h"

#define LONG_32  "12345678901234567890123456789012"
#define LONG_256 LONG_32 LONG_32 LONG_32 LONG_32 LONG_32 LONG_32 LONG_32 LONG_32

static void
begin(void)
{
    begin_with_no_file();
    note_what_is_open();
}

static void
end(void)
{
    remove_the_file();
    check_that_nothing_is_left();
}

/* ---- Specs ---- */

/* Each spec is the valid one, with one member given again: the last initializer counts. */
#pragma GCC diagnostic ignored "-Woverride-init"

static const struct {
    SXE_POOL_SPEC spec;
    const char *words;
} impossible[] = {
    {{FILE_SPEC, .name = NULL}, "it has no name"},
    {{FILE_SPEC, .name = ""}, "it has no name"},
    {{FILE_SPEC, .name = LONG_32}, "is 32 bytes long: at most 31"},
    {{FILE_SPEC, .element_size = 0}, "64 elements of 0 bytes in 3 states: none of these may be 0"},
    {{FILE_SPEC, .states = 0}, "none of these may be 0"},
    {{FILE_SPEC, .shards = 3}, "3 shards: must be a power of 2"},
    {{FILE_SPEC, .number = 1000, .shards = 128}, "128 shards: must be"},
    {{FILE_SPEC, .number = 3, .shards = 4}, "no more than elements, of which there are 3"},
    {{FILE_SPEC, .options = 64}, "options 0x40"},
    {{FILE_SPEC, .options = SXE_POOL_OPTION_LOCKED | SXE_POOL_OPTION_SHARED}, "options 0x5"},
    {{FILE_SPEC, .options = SXE_POOL_OPTION_LOCKED}, "LOCKED is for the threads of one process"},
    {{FILE_SPEC, .state_names = "FREE BUSY"}, "'FREE BUSY': must be as many words as states, 3"},
    {{FILE_SPEC, .state_names = "FREE  READY BUSY"}, "one space between them"},
    {{FILE_SPEC, .state_names = " FREE READY BUSY"}, "one space between them"},
    {{FILE_SPEC, .state_names = "FREE READY BUSY "}, "one space between them"},
    {{FILE_SPEC, .state_names = "BUSY READY BUSY"}, "there are two states of the name BUSY"},
    {{FILE_SPEC, .state_names = "FREE BUSY BUSY"}, "there are two states of the name BUSY"},
    {{FILE_SPEC, .name = "\033[2J"}, "a control character is in its name"},
    {{.name = "\033[2J\177\302\233 \302\240"}, "pool ?[2J??? \302\240: it has no elements"},
    {{FILE_SPEC, .state_names = "FREE READY\n BUSY"},
     "a control character is in its name, or in those of its states"},
    {{FILE_SPEC, .state_names = LONG_256}, "256 bytes long: at most 255"},
    {{FILE_SPEC, .fields = "u65 hits"}, "its fields: "},
    {{FILE_SPEC, .fields = "u64 hits, u8 more"}, "its fields take 16 bytes, its elements have 8"},
    {{FILE_SPEC, .fields = LONG_256 LONG_256}, "512 bytes long: at most 511"},
    {{FILE_SPEC, .states = UINT32_MAX, .state_names = NULL}, "are too much for one pool"},
    {{FILE_SPEC, .element_size = SIZE_MAX / 32}, "are too much for one pool"},
    {{FILE_SPEC, .extra_size = SIZE_MAX - 5}, "are too much for one pool"},
    {{FILE_SPEC, .file = ""}, "its file's name is empty"},
    {{.name = "pond"}, "it has no elements, and there is no file"},
};

START_TEST(an_impossible_spec_is_refused_with_a_sentence)
{
    expect_refused(&impossible[_i].spec, EINVAL, impossible[_i].words);
    ck_assert(!file_exists());
}
END_TEST

START_TEST(a_long_path_is_cut_in_front)
{
    char path[600];
    SXE_POOL_SPEC spec = file_spec();

    memset(path, 'x', sizeof(path));
    memcpy(path, "/tmp/", 5);
    memcpy(path + sizeof(path) - 5, "/end", 5);
    spec.file = path;
    expect_refused(&spec, ENAMETOOLONG, "/end: cannot open the file");
    ck_assert_str_eq(strstr(why, "pool ...xxx") != NULL ? "" : why, "");
}
END_TEST

START_TEST(a_path_that_no_system_takes_is_refused)
{
    static char path[PATH_MAX + 10];
    SXE_POOL_SPEC spec = file_spec();

    memset(path, '/', sizeof(path) - 1);
    spec.file = path;
    expect_refused(&spec, ENAMETOOLONG, "longer than 4095 bytes");
}
END_TEST

/* ---- Footings ---- */

START_TEST(more_memory_than_the_machine_has_is_refused)
{
    SXE_POOL_SPEC spec = {
        .name = "lake", .number = 1, .element_size = (size_t)1 << 50, .states = 1};

    /* Fails, because a success would take all memory of the machine. */
    fake_os_fail(FAKE_POSIX_FALLOCATE, 1, 0, EIO);
    spec.options = SXE_POOL_OPTION_LOCKED;
    expect_refused(&spec, ENOMEM, "bytes of memory, and this machine has ");
    spec.options = SXE_POOL_OPTION_SHARED;
    expect_refused(&spec, ENOMEM, "bytes of memory, and this machine has ");
    fake_os_reset();
}
END_TEST

START_TEST(a_file_without_room_is_refused_before_it_takes_all_there_is)
{
    SXE_POOL_SPEC spec = file_spec();

    fake_os_fail(FAKE_POSIX_FALLOCATE, 1, 0, EIO);
    spec.element_size = (size_t)1 << 44;
    expect_refused(&spec, ENOSPC, "bytes, and its file system has ");
    ck_assert(!file_exists());
    fake_os_reset();
}
END_TEST

START_TEST(a_pool_of_threads_needs_no_file)
{
    SXE_POOL_SPEC spec = file_spec();
    size_t size;

    spec.file = NULL;
    spec.options = SXE_POOL_OPTION_LOCKED;
    char *array = open_pool(&spec);
    ck_assert_int_eq(sxe_pool_get_fd(array), -1);
    ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_CREATED);
    ck_assert_uint_eq(sxe_pool_get_shards(array), 2);
    ck_assert_uint_eq(sxe_pool_get_states(array), 3);
    ck_assert_uint_eq(sxe_pool_get_element_size(array), 8);
    ck_assert_str_eq(sxe_pool_get_fields(array), "u64 hits");
    ck_assert_ptr_nonnull(sxe_pool_get_extra(array, &size));
    ck_assert_uint_eq(size, 40);
    ck_assert_int_eq(sxe_pool_get_user(array, 1), getpid());
    ck_assert_int_eq(sxe_pool_get_user(array, 0), 0);
    const unsigned id = sxe_pool_take(array, FREE, BUSY);
    ck_assert_uint_lt(id, 64);
    ck_assert_uint_eq(sxe_pool_get_state(array, id), BUSY);
    ck_assert_int_eq(sxe_pool_check(array, why), 0);
    ck_assert_uint_eq(fake_os_open_fds(), open_before);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(sxe_pool_new_makes_pools_on_each_footing)
{
    static const unsigned options[] = {SXE_POOL_OPTION_UNLOCKED, SXE_POOL_OPTION_LOCKED,
                                       SXE_POOL_OPTION_SHARED};
    char *array = sxe_pool_new("pond", 10, 8, STATES, options[_i]);

    ck_assert_ptr_nonnull(array);
    ck_assert_uint_eq(sxe_pool_take(array, FREE, BUSY), 0);
    ck_assert_uint_eq(sxe_pool_get_states(array), STATES);
    ck_assert_uint_eq(sxe_pool_get_count(array, FREE), 9);
    ck_assert_str_eq(sxe_pool_state_to_string(array, BUSY), "2");
    sxe_pool_delete(array);
}
END_TEST

START_TEST(a_pool_of_one_thread_answers_the_questions_about_shared_ones)
{
    char *array = sxe_pool_new("pond", 10, 8, STATES, SXE_POOL_OPTION_UNLOCKED);
    size_t size = 5;

    ck_assert_int_eq(sxe_pool_get_fd(array), -1);
    ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_CREATED);
    ck_assert_uint_eq(sxe_pool_get_shards(array), 1);
    ck_assert_uint_eq(sxe_pool_get_element_size(array), 8);
    ck_assert_str_eq(sxe_pool_get_fields(array), "");
    ck_assert_ptr_null(sxe_pool_get_extra(array, &size));
    ck_assert_uint_eq(size, 0);
    ck_assert_int_eq(sxe_pool_get_user(array, 0), 0);
    ck_assert_uint_gt(sxe_pool_get_now(array), 0);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(memory_is_shared_by_handing_on_its_descriptor)
{
    SXE_POOL_SPEC spec = file_spec();

    spec.file = NULL;
    uint64_t *one = (uint64_t *)(uintptr_t)open_pool(&spec);
    uint64_t *two = (uint64_t *)(uintptr_t)sxe_pool_open_fd(sxe_pool_get_fd(one), &spec, why);
    ck_assert_msg(two != NULL, "%s", why);
    ck_assert_str_eq(why, "");
    ck_assert_int_eq(sxe_pool_get_found(one), SXE_POOL_CREATED);
    ck_assert_int_eq(sxe_pool_get_found(two), SXE_POOL_JOINED);
    one[7] = 77;
    ck_assert_uint_eq(two[7], 77);
    const unsigned id = sxe_pool_take(two, FREE, READY);
    ck_assert_uint_eq(sxe_pool_get_state(one, id), READY);
    sxe_pool_delete(one);
    ck_assert_uint_eq(two[7], 77);
    ck_assert_uint_eq(sxe_pool_get_state(two, id), READY);
    sxe_pool_delete(two);
}
END_TEST

START_TEST(memory_that_is_shared_never_becomes_smaller)
{
    SXE_POOL_SPEC spec = file_spec();

    spec.file = NULL;
    char *array = open_pool(&spec);
    ck_assert_int_eq(ftruncate(sxe_pool_get_fd(array), 0), -1);
    ck_assert_int_eq(errno, EPERM);
    sxe_pool_delete(array);
}
END_TEST

static void
send_descriptor(int socket, int fd)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    char bytes[1] = "";
    struct iovec byte = {.iov_base = bytes, .iov_len = 1};
    const struct msghdr message = {.msg_iov = &byte,
                                   .msg_iovlen = 1,
                                   .msg_control = &control,
                                   .msg_controllen = sizeof(control)};

    memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
    ck_assert_int_eq(sendmsg(socket, &message, 0), 1);
}

static int
receive_descriptor(int socket)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    char bytes[1];
    struct iovec byte = {.iov_base = bytes, .iov_len = 1};
    struct msghdr message = {.msg_iov = &byte,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    int fd;

    ck_assert_int_eq(recvmsg(socket, &message, 0), 1);
    memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
    return fd;
}

/* The child gets the pool by its descriptor alone: it was forked before the pool was made. */
static void
use_what_is_received(int socket)
{
    const int fd = receive_descriptor(socket);
    char *array = sxe_pool_open_fd(fd, NULL, why);

    ck_assert_msg(array != NULL, "%s", why);
    ck_assert_uint_lt(sxe_pool_take(array, FREE, BUSY), 64);
    raise(SIGKILL);
}

START_TEST(memory_goes_to_a_stranger_over_a_socket)
{
    SXE_POOL_SPEC spec = file_spec();
    int sockets[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    const pid_t child = fork();
    if (child == 0)
        use_what_is_received(sockets[1]);
    spec.file = NULL;
    char *array = open_pool(&spec);
    send_descriptor(sockets[0], sxe_pool_get_fd(array));
    end_child(child, SIGKILL);
    ck_assert_uint_eq(sxe_pool_get_count(array, BUSY), 1);
    ck_assert_int_eq(sxe_pool_check(array, why), 0);
    sxe_pool_delete(array);
    close(sockets[0]);
    close(sockets[1]);
}
END_TEST

/* A process that keeps a descriptor of the pool must not make a dead user look alive. */
START_TEST(who_keeps_the_descriptor_does_not_keep_its_owner_alive)
{
    SXE_POOL_SPEC spec = file_spec();
    int sockets[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    spec.file = NULL;
    const pid_t child = fork();
    if (child == 0) {
        char *array = open_pool(&spec);
        ck_assert_int_eq(sxe__pool_lock(sharing_of(array), &sharing_of(array)->shards[0].lock), 0);
        send_descriptor(sockets[1], sxe_pool_get_fd(array));
        raise(SIGKILL);
    }
    const int fd = receive_descriptor(sockets[0]);
    end_child(child, SIGKILL);
    char *array = sxe_pool_open_fd(fd, NULL, why);
    ck_assert_msg(array != NULL, "%s", why);
    ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_COMPLETED);
    sxe_pool_delete(array);
    close(fd);
    close(sockets[0]);
    close(sockets[1]);
}
END_TEST

START_TEST(a_file_without_a_slash_is_in_dev_shm)
{
    SXE_POOL_SPEC spec = file_spec();
    struct stat status;

    spec.file = file_path + strlen("/dev/shm/");
    char *array = open_pool(&spec);
    ck_assert_int_eq(stat(file_path, &status), 0);
    ck_assert_uint_eq(status.st_mode, S_IFREG | 0600);
    ck_assert_uint_eq((uint64_t)status.st_size,
                      sharing_of(array)->head_size + sharing_of(array)->size - 4096);
    ck_assert_int_ge(status.st_blocks * 512, status.st_size);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(a_descriptor_of_a_file_is_as_good_as_its_path)
{
    const SXE_POOL_SPEC spec = file_spec();
    char *array = open_pool(&spec);
    const int fd = sxe_pool_get_fd(array);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(sxe_pool_get_fd(array), fd);
    sxe_pool_delete(join(array));
    sxe_pool_delete(array);
    ck_assert_int_eq(close(fd), -1);
}
END_TEST

START_TEST(an_empty_descriptor_becomes_a_pool_if_its_numbers_are_given)
{
    const int fd = memfd_create("empty", MFD_CLOEXEC);
    const SXE_POOL_SPEC spec = file_spec();

    ck_assert_ptr_null(sxe_pool_open_fd(fd, NULL, why));
    ck_assert_int_eq(errno, EMEDIUMTYPE);
    expect_why("no pool is in the file");
    char *array = sxe_pool_open_fd(fd, &spec, why);
    ck_assert_msg(array != NULL, "%s", why);
    ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_CREATED);
    sxe_pool_delete(array);
    array = sxe_pool_open_fd(fd, NULL, why);
    ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_CLOSED);
    sxe_pool_delete(array);
    close(fd);
    ck_assert(!file_exists());
}
END_TEST

START_TEST(what_is_no_descriptor_of_a_pool_is_refused)
{
    SXE_POOL_SPEC spec = file_spec();
    int ends[2];

    ck_assert_ptr_null(sxe_pool_open_fd(-1, NULL, why));
    ck_assert_int_eq(errno, ENOENT);
    expect_why("pool in descriptor -1: cannot open it again by /proc");
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_ptr_null(sxe_pool_open_fd(ends[0], &spec, why));
    ck_assert_int_eq(errno, EMEDIUMTYPE);
    expect_why("not a regular file");
    spec.options = SXE_POOL_OPTION_LOCKED;
    ck_assert_ptr_null(sxe_pool_open_fd(ends[0], &spec, why));
    ck_assert_int_eq(errno, EINVAL);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* ---- Processes that open the pool later ---- */

START_TEST(who_comes_later_is_told_how_it_was_found)
{
    const SXE_POOL_SPEC spec = file_spec();
    char *one = open_pool(&spec);

    ck_assert_int_eq(sxe_pool_get_found(one), SXE_POOL_CREATED);
    char *two = open_pool(&spec);
    ck_assert_int_eq(sxe_pool_get_found(two), SXE_POOL_JOINED);
    const unsigned id = sxe_pool_take(two, FREE, READY);
    sxe_pool_delete(one);
    sxe_pool_delete(two);
    expect_found(&spec, SXE_POOL_CLOSED);
    const pid_t child = fork();
    if (child == 0) {
        one = open_pool(&spec);
        raise(SIGKILL);
    }
    end_child(child, SIGKILL);
    one = open_pool(&spec);
    ck_assert_int_eq(sxe_pool_get_found(one), SXE_POOL_COMPLETED);
    ck_assert_uint_eq(sxe_pool_get_state(one, id), READY);
    sxe_pool_delete(one);
}
END_TEST

static const struct {
    SXE_POOL_SPEC spec;
    const char *words;
} different[] = {
    {{FILE_SPEC, .number = 65}, "it has 64 elements, the program says 65"},
    {{FILE_SPEC, .element_size = 16}, "it has 8 bytes an element, the program says 16"},
    {{FILE_SPEC, .states = 4, .state_names = NULL}, "it has 3 states, the program says 4"},
    {{FILE_SPEC, .shards = 4}, "it has 2 shards, the program says 4"},
    {{FILE_SPEC, .extra_size = 41}, "it has 40 extra bytes, the program says 41"},
    {{FILE_SPEC, .name = "lake"}, "its name is 'pond', the program says 'lake'"},
    {{FILE_SPEC, .state_names = "FREE READY DONE"},
     "list of states is 'FREE READY BUSY', the program says 'FREE READY DONE'"},
    {{FILE_SPEC, .fields = "u64 misses"},
     "list of fields is 'u64 hits', the program says 'u64 misses'"},
};

START_TEST(a_pool_of_another_shape_is_refused_and_what_differs_is_said)
{
    const SXE_POOL_SPEC spec = file_spec();

    make_image();
    expect_refused(&different[_i].spec, EEXIST, different[_i].words);
    expect_found(&spec, SXE_POOL_CLOSED);
}
END_TEST

START_TEST(what_one_side_leaves_out_is_not_compared)
{
    SXE_POOL_SPEC spec = file_spec();

    make_image();
    spec.state_names = NULL;
    spec.fields = NULL;
    spec.shards = 0;
    char *array = open_pool(&spec);
    ck_assert_str_eq(sxe_pool_state_to_string(array, READY), "READY");
    ck_assert_str_eq(sxe_pool_get_fields(array), "u64 hits");
    ck_assert_uint_eq(sxe_pool_get_shards(array), 2);
    sxe_pool_delete(array);
    unlink(file_path);
    sxe_pool_delete(open_pool(&spec));
    spec.state_names = "FREE READY BUSY";
    spec.fields = "u64 hits";
    array = open_pool(&spec);
    ck_assert_str_eq(sxe_pool_state_to_string(array, READY), "1");
    ck_assert_uint_eq(sxe_pool_get_shards(array), 1);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(number_0_opens_whatever_is_there_and_makes_nothing)
{
    const SXE_POOL_SPEC whatever = {.file = file_path};

    expect_refused(&whatever, ENOENT, "No such file or directory");
    ck_assert(!file_exists());
    make_image();
    char *array = open_pool(&whatever);
    ck_assert_str_eq(sxe_pool_get_name(array), "pond");
    ck_assert_uint_eq(sxe_pool_get_number(array), 64);
    ck_assert_str_eq(sxe_pool_state_to_string(array, READY), "READY");
    sxe_pool_delete(array);
}
END_TEST

START_TEST(extra_bytes_are_zero_and_shared)
{
    const SXE_POOL_SPEC spec = file_spec();
    static const char zeros[40];
    char *one = open_pool(&spec);
    char *two = open_pool(&spec);
    size_t size;
    char *extra = sxe_pool_get_extra(one, &size);

    ck_assert_uint_eq(size, 40);
    ck_assert_mem_eq(extra, zeros, 40);
    extra[39] = 'x';
    ck_assert_int_eq(((char *)sxe_pool_get_extra(two, &size))[39], 'x');
    sxe_pool_delete(one);
    sxe_pool_delete(two);
}
END_TEST

START_TEST(elements_are_divided_about_equally_in_runs_as_long_as_may_be)
{
    ck_assert_uint_eq(sxe__pool_shard_shift(1, 1), 0);
    ck_assert_uint_eq(sxe__pool_shard_shift(64, 64), 0);
    ck_assert_uint_eq(sxe__pool_shard_shift(64, 2), 2);
    ck_assert_uint_eq(sxe__pool_shard_shift(1000000, 64), 6);
    ck_assert_uint_eq(sxe__pool_shard_shift(UINT32_MAX, 64), 6);
}
END_TEST

/* ---- Users ---- */

START_TEST(two_openings_in_one_process_are_two_users)
{
    const SXE_POOL_SPEC spec = file_spec();
    char *one = open_pool(&spec);
    char *two = open_pool(&spec);
    struct sxe__pool_sharing *mine = sharing_of(one);
    struct sxe__pool_sharing *others = sharing_of(two);

    ck_assert_uint_ne(mine->token, others->token);
    ck_assert_int_eq(sxe_pool_get_user(one, 0), getpid());
    ck_assert_int_eq(sxe_pool_get_user(one, 1), getpid());
    ck_assert_int_eq(sxe_pool_get_user(one, 2), 0);
    ck_assert_int_eq(sxe_pool_get_user(one, SXE_POOL_SLOTS), 0);
    ck_assert(sxe__pool_is_owner_alive(mine, others->token));
    ck_assert(sxe__pool_is_owner_alive(others, mine->token));
    ck_assert_int_eq(sxe__pool_lock(mine, &mine->shards[1].lock), 0);
    ck_assert_int_eq(sxe__pool_lock(others, &others->shards[1].lock), -EAGAIN);
    sxe__pool_unlock(&mine->shards[1].lock);
    sxe_pool_delete(two);
    ck_assert_int_eq(sxe_pool_get_user(one, 1), 0);
    sxe_pool_delete(one);
}
END_TEST

START_TEST(the_129th_user_is_refused_until_one_leaves)
{
    const SXE_POOL_SPEC spec = file_spec();
    static char *arrays[SXE_POOL_SLOTS];

    for (unsigned i = 0; i < SXE_POOL_SLOTS; i++)
        arrays[i] = open_pool(&spec);
    expect_refused(&spec, EUSERS, "128 processes use it");
    const uint32_t old = sharing_of(arrays[77])->token;
    sxe_pool_delete(arrays[77]);
    ck_assert(!sxe__pool_is_owner_alive(sharing_of(arrays[0]), old));
    arrays[77] = open_pool(&spec);
    const uint32_t new = sharing_of(arrays[77])->token;
    ck_assert_uint_eq(new &(SXE_POOL_SLOTS - 1), old & (SXE_POOL_SLOTS - 1));
    ck_assert_uint_ne(new, old);
    ck_assert(sxe__pool_is_owner_alive(sharing_of(arrays[0]), new));
    ck_assert(!sxe__pool_is_owner_alive(sharing_of(arrays[0]), old));
    ck_assert_int_eq(sxe_pool_get_found(arrays[77]), SXE_POOL_JOINED);
    for (unsigned i = 0; i < SXE_POOL_SLOTS; i++)
        sxe_pool_delete(arrays[i]);
    expect_found(&spec, SXE_POOL_CLOSED);
}
END_TEST

START_TEST(a_token_is_never_0)
{
    const SXE_POOL_SPEC spec = file_spec();

    make_image();
    image.head.slots[0].generation = (1u << 25) - 1;
    store_image(image_size);
    char *array = open_pool(&spec);
    ck_assert_uint_eq(sharing_of(array)->token, 1u << SXE__POOL_SLOT_BITS);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(who_opens_waits_for_who_is_opening)
{
    const SXE_POOL_SPEC spec = file_spec();

    make_image();
    const int fd = open(file_path, O_RDWR);
    ck_assert_int_eq(sxe__pool_opening_lock(fd), 0);
    fake_time_start(SXE_NS_PER_SECOND, SXE_NS_PER_SECOND);
    expect_refused(&spec, EAGAIN, "another process has been opening or closing it for a second");
    /* Two attempts of a second and more each were refused. */
    ck_assert_uint_ge(sxe_time_ns(), 3 * SXE_NS_PER_SECOND);
    close(fd);
    fake_os_fail(FAKE_FCNTL, 1, 5, EAGAIN);
    expect_found(&spec, SXE_POOL_CLOSED);
    fake_time_stop();
    ck_assert_uint_eq(fake_os_injected(), 5);
}
END_TEST

START_TEST(a_new_file_that_another_opens_first_is_left_to_it)
{
    const SXE_POOL_SPEC spec = file_spec();

    fake_time_start(SXE_NS_PER_SECOND, SXE_NS_PER_SECOND);
    fake_os_fail(FAKE_FCNTL, 1, 0, EAGAIN);
    expect_refused(&spec, EAGAIN, "another process");
    fake_os_reset();
    fake_time_stop();
    ck_assert(file_exists());
    expect_found(&spec, SXE_POOL_CREATED);
}
END_TEST

START_TEST(who_cannot_lock_leaves_as_if_killed)
{
    const SXE_POOL_SPEC spec = file_spec();
    char *array = open_pool(&spec);

    fake_time_start(SXE_NS_PER_SECOND, SXE_NS_PER_SECOND);
    fake_os_fail(FAKE_FCNTL, 1, 0, EAGAIN);
    sxe_pool_delete(array);
    fake_os_reset();
    fake_time_stop();
    expect_found(&spec, SXE_POOL_COMPLETED);
}
END_TEST

START_TEST(a_file_that_is_removed_meanwhile_is_made_again)
{
    const SXE_POOL_SPEC spec = file_spec();

    fake_os_fail(FAKE_STAT, 1, 1, ENOENT);
    expect_found(&spec, SXE_POOL_CREATED);
    ck_assert_uint_eq(fake_os_injected(), 1);
    fake_os_fail(FAKE_STAT, 1, 0, ENOENT);
    expect_refused(&spec, EAGAIN, "removed as often as it is made");
}
END_TEST

START_TEST(a_file_that_another_makes_meanwhile_is_opened)
{
    const SXE_POOL_SPEC spec = file_spec();

    make_image();
    fake_os_fail(FAKE_OPEN, 1, 1, ENOENT);
    expect_found(&spec, SXE_POOL_CLOSED);
    ck_assert_uint_eq(fake_os_injected(), 1);
}
END_TEST

/* Another process unlinks the file and makes a new one, while this process waits for the lock. */
START_TEST(a_file_that_is_replaced_meanwhile_is_not_the_one)
{
    struct sxe__pool_opening opening = {.spec = file_spec(), .what = "pond"};

    ck_assert_int_eq(sxe__pool_file_open(&opening), 0);
    ck_assert(opening.is_made);
    ck_assert_int_eq(sxe__pool_file_is_gone(&opening), 0);
    unlink(file_path);
    ck_assert_int_eq(sxe__pool_file_is_gone(&opening), 1);
    make_image();
    ck_assert_int_eq(sxe__pool_file_is_gone(&opening), 1);
    close(opening.fd);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("pool-open");
    TCase *specs = tcase_create("specs");
    TCase *footings = tcase_create("footings");
    TCase *later = tcase_create("later");
    TCase *users = tcase_create("users");

    tcase_add_checked_fixture(specs, begin, end);
    tcase_add_loop_test(specs, an_impossible_spec_is_refused_with_a_sentence, 0,
                        LENGTH_OF(impossible));
    tcase_add_test(specs, a_long_path_is_cut_in_front);
    tcase_add_test(specs, a_path_that_no_system_takes_is_refused);
    suite_add_tcase(s, specs);

    tcase_add_checked_fixture(footings, begin, end);
    tcase_add_test(footings, more_memory_than_the_machine_has_is_refused);
    tcase_add_test(footings, a_file_without_room_is_refused_before_it_takes_all_there_is);
    tcase_add_test(footings, a_pool_of_threads_needs_no_file);
    tcase_add_loop_test(footings, sxe_pool_new_makes_pools_on_each_footing, 0, 3);
    tcase_add_test(footings, a_pool_of_one_thread_answers_the_questions_about_shared_ones);
    tcase_add_test(footings, memory_is_shared_by_handing_on_its_descriptor);
    tcase_add_test(footings, memory_that_is_shared_never_becomes_smaller);
    tcase_add_test(footings, memory_goes_to_a_stranger_over_a_socket);
    tcase_add_test(footings, who_keeps_the_descriptor_does_not_keep_its_owner_alive);
    tcase_add_test(footings, a_file_without_a_slash_is_in_dev_shm);
    tcase_add_test(footings, a_descriptor_of_a_file_is_as_good_as_its_path);
    tcase_add_test(footings, an_empty_descriptor_becomes_a_pool_if_its_numbers_are_given);
    tcase_add_test(footings, what_is_no_descriptor_of_a_pool_is_refused);
    suite_add_tcase(s, footings);

    tcase_add_checked_fixture(later, begin, end);
    tcase_add_test(later, who_comes_later_is_told_how_it_was_found);
    tcase_add_loop_test(later, a_pool_of_another_shape_is_refused_and_what_differs_is_said, 0,
                        LENGTH_OF(different));
    tcase_add_test(later, what_one_side_leaves_out_is_not_compared);
    tcase_add_test(later, number_0_opens_whatever_is_there_and_makes_nothing);
    tcase_add_test(later, extra_bytes_are_zero_and_shared);
    tcase_add_test(later, elements_are_divided_about_equally_in_runs_as_long_as_may_be);
    suite_add_tcase(s, later);

    tcase_add_checked_fixture(users, begin, end);
    tcase_add_test(users, two_openings_in_one_process_are_two_users);
    tcase_add_test(users, the_129th_user_is_refused_until_one_leaves);
    tcase_add_test(users, a_token_is_never_0);
    tcase_add_test(users, who_opens_waits_for_who_is_opening);
    tcase_add_test(users, a_new_file_that_another_opens_first_is_left_to_it);
    tcase_add_test(users, who_cannot_lock_leaves_as_if_killed);
    tcase_add_test(users, a_file_that_is_removed_meanwhile_is_made_again);
    tcase_add_test(users, a_file_that_another_makes_meanwhile_is_opened);
    tcase_add_test(users, a_file_that_is_replaced_meanwhile_is_not_the_one);
    suite_add_tcase(s, users);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
