/* SPDX-License-Identifier: MIT
 *
 * Threads on one pool, of each kind that threads can share; and the same in a program that this
 * test builds with ThreadSanitizer.
 */
#include "../../soak/pool-threads.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "test-main.h"

#if defined(__OPTIMIZE__) && !SXE_HAVE_ASAN
#    define CALLS    100000u
#    define SANITIZE 1
#else
#    define CALLS    20000u
#    define SANITIZE 0
#endif

START_TEST(threads_share_a_pool)
{
    const char *wrong = threads_run(&(struct threads_plan){.options = threads_options[_i / 2],
                                                           .shards = threads_shards[_i % 2],
                                                           .threads = 4,
                                                           .calls = CALLS});

    ck_assert_msg(wrong == NULL, "%s", wrong);
}
END_TEST

/* ---- ThreadSanitizer ---- */

static char directory[] = "/tmp/sxe-threads-XXXXXX";
static char said[4096];

/* Run a command. Returns the exit status; `said` is the beginning of its output. */
static SXE_PRINTF(1, 2) int run(const char *format, ...)
{
    char command[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(command, sizeof(command), format, arguments);
    va_end(arguments);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    const size_t length = fread(said, 1, sizeof(said) - 1, pipe);
    said[length] = '\0';
    char rest[512];
    while (fread(rest, 1, sizeof(rest), pipe) > 0) {
    }
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Whether the compiler has ThreadSanitizer, and the kernel lets such a program run. */
static bool
is_possible(const char *compiler)
{
    return run("echo 'int main(void) { return 0; }' | %s -fsanitize=thread -x c - -o %s/empty 2>&1 "
               "&& %s/empty 2>&1",
               compiler, directory, directory) == 0;
}

START_TEST(thread_sanitizer_finds_no_race)
{
    const char *compiler = getenv("CC") == NULL ? "gcc" : getenv("CC");

    ck_assert_ptr_nonnull(mkdtemp(directory));
    if (!is_possible(compiler))
        printf("skipped: ThreadSanitizer: %s\n", said);
    else {
        /* -Wno-tsan: ThreadSanitizer does not know fences. Here only atomic accesses depend on
         * them. */
        ck_assert_msg(run("%s -std=c11 -D_GNU_SOURCE -DSXE_LOG_NO_2010 -O1 -g -Wno-tsan "
                          "-fsanitize=thread -Ilib-sxe-log -Ilib-sxe-pool -o %s/threads "
                          "test/soak/threads.c lib-sxe-pool/*.c lib-sxe-log/*.c -lpthread 2>&1",
                          compiler, directory) == 0,
                      "%s", said);
        ck_assert_msg(run("%s/threads 5000 2>&1", directory) == 0, "%s", said);
        printf("ThreadSanitizer:\n%s", said);
    }
    run("rm -r %s", directory);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-threads");
    TCase *tcase = tcase_create("threads");

    tcase_add_loop_test(tcase, threads_share_a_pool, 0, 4);
    if (SANITIZE)
        tcase_add_test(tcase, thread_sanitizer_finds_no_race);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
