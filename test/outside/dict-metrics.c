/* SPDX-License-Identifier: MIT
 *
 * The counters that a dict keeps about itself, by docs/dict.md and sxe-dict.h.
 */
#include "outside.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sxe-dict.h>
#include <sys/wait.h>

static SXE_DICT *
open_file(const char *path)
{
    const SXE_DICT_SPEC spec = {.name = "outside", .cells = 50, .evicts = true, .file = path};
    char why[SXE_POOL_WHY_SIZE];
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    ck_assert_msg(dict != NULL, "%s", why);
    return dict;
}

/* promise: docs/dict.md: The counts are in the dict, not in each process, so that a monitor sees
 * those of all processes, also of dead ones. */
START_TEST(a_monitor_sees_the_counts_of_the_dead)
{
    const char *path = outside_path("dead.dict");
    SXE_DICT *dict = open_file(path);
    SXE_DICT_STATS stats;
    const pid_t pid = fork();

    if (pid == 0) {
        SXE_DICT *mine = open_file(path);

        for (int i = 0; i < 80; i++)
            sxe_dict_put(mine, &i, sizeof(i), "v", 1, 0);
        for (int i = 0; i < 200; i++)
            (void)sxe_dict_get(mine, &i, sizeof(i), NULL, 0);
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    sxe_dict_get_stats(dict, &stats);
    ck_assert_uint_eq(stats.hits, 50);
    ck_assert_uint_eq(stats.misses, 150);
    ck_assert_uint_eq(stats.evictions, 30);
    ck_assert_uint_eq(stats.expirations, 0);
    sxe_dict_close(dict);
    unlink(path);
}
END_TEST

/* promise: lib-sxe-dict/sxe-dict.h: The numbers are those of all processes together, from the
 * making of the dict on; a dict's file keeps them. */
START_TEST(a_file_keeps_the_counts)
{
    const char *path = outside_path("kept.dict");
    SXE_DICT_STATS stats;

    for (unsigned i = 1; i <= 3; i++) {
        SXE_DICT *dict = open_file(path);

        ck_assert_int_eq(sxe_dict_get(dict, "none", 4, NULL, 0), -ENOENT);
        sxe_dict_get_stats(dict, &stats);
        ck_assert_uint_eq(stats.misses, i);
        sxe_dict_close(dict);
    }
    unlink(path);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_monitor_sees_the_counts_of_the_dead, a_file_keeps_the_counts, NULL};

    return outside_run("dict-metrics", cases);
}
