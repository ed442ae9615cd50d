/* SPDX-License-Identifier: MIT
 *
 * A C program that was started with closed standard descriptors: what it prints is lost, and never
 * goes into a dict's file or to a client.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "outside.h"
#include "sxe-dict.h"
#include "sxe.h"

static const char noise[] = "printed by a careless program\n";

/* Close the descriptors 0, 1 and 2 whose bit is set, as the program's parent may have done. */
static void
close_standard(unsigned closed)
{
    for (int fd = 0; fd < 3; fd++) {
        if ((closed >> fd & 1) != 0)
            close(fd);
    }
}

/* Check that each closed descriptor is /dev/null now. Returns 0, or the number of the fault. */
static int
look_at_numbers(unsigned closed)
{
    struct stat null;
    struct stat now;

    if (stat("/dev/null", &null) != 0)
        return 10;
    for (int fd = 0; fd < 3; fd++) {
        if ((closed >> fd & 1) != 0 && (fstat(fd, &now) != 0 || now.st_rdev != null.st_rdev))
            return 11;
    }
    return 0;
}

/* Check that a closed 0 cannot be read, and a closed 1 or 2 not be written. 0: that holds. */
static int
look_at_bytes(unsigned closed)
{
    char byte;

    if ((closed & 1) != 0 && (read(0, &byte, 1) != -1 || errno != EBADF))
        return 12;
    for (int fd = 1; fd < 3; fd++) {
        if ((closed >> fd & 1) != 0 &&
            (write(fd, noise, sizeof(noise) - 1) != -1 || errno != EBADF))
            return 13;
    }
    return 0;
}

static int
keep_in_a_dict(const char *path, unsigned closed, int (*look)(unsigned closed))
{
    SXE_DICT_SPEC spec = {.name = "outside", .cells = 100, .file = path};
    char why[SXE_POOL_WHY_SIZE];
    char value[8];
    SXE_DICT *dict;
    int result;

    close_standard(closed);
    dict = sxe_dict_open(&spec, why);
    if (dict == NULL || sxe_dict_put(dict, "k", 1, "value", 5, 0) != 0)
        return 1;
    result = look(closed);
    if (sxe_dict_get(dict, "k", 1, value, sizeof(value)) != 5 || memcmp(value, "value", 5) != 0)
        result = 3;
    sxe_dict_close(dict);
    return result;
}

static int
listen_at_a_port(const char *path, unsigned closed, int (*look)(unsigned closed))
{
    SXE *listener;

    (void)path;
    close_standard(closed);
    sxe_register(4, 0);
    if (sxe_init() != 0)
        return 1;
    listener = sxe_new_tcp(NULL, "127.0.0.1", 0, NULL, NULL, NULL);
    if (listener == NULL || sxe_listen(listener) != 0)
        return 2;
    return look(closed);
}

typedef int (*program)(const char *path, unsigned closed, int (*look)(unsigned closed));

/* Run each program with each set of closed descriptors, each in a new child. */
static void
run_with_each_set(int (*look)(unsigned closed))
{
    static const program programs[] = {keep_in_a_dict, listen_at_a_port};
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s", outside_path("standard"));
    for (unsigned turn = 0; turn < 2 * 8; turn++) {
        pid_t child = fork();
        int status;

        if (child == 0)
            _exit(programs[turn / 8](path, turn % 8, look));
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        unlink(path);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                      "program %u, closed %u: wait status 0x%x", turn / 8, turn % 8,
                      (unsigned)status);
    }
}

/* promise: lib-sxe-log/sxe-log.h: If descriptor 0, 1 or 2 is closed, open /dev/null for it, so that
 * no file and no socket gets a number to which others write. */
START_TEST(no_file_and_no_socket_gets_a_standard_number)
{
    run_with_each_set(look_at_numbers);
}
END_TEST

/* promise: lib-sxe-log/sxe-log.h: Reading from or writing to such a descriptor still fails with
 * EBADF. */
START_TEST(a_closed_descriptor_is_neither_read_nor_written)
{
    run_with_each_set(look_at_bytes);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {no_file_and_no_socket_gets_a_standard_number,
                            a_closed_descriptor_is_neither_read_nor_written, NULL};

    return outside_run("log-standard", cases);
}
