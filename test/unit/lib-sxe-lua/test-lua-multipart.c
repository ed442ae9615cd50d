/* SPDX-License-Identifier: MIT
 *
 * require "sxe.multipart": texts in chunks, and a server (lua-multipart.lua).
 */
#include "lua-net.h"

#include "lua-count.h"
#include "test-main.h"

static void
count_multipart(void)
{
    count_lines("build/coverage/lua/multipart.info");
}

START_TEST(forms_are_read)
{
    net_on_state = count_multipart;
    net_start("dofile 'test/unit/lib-sxe-lua/lua-multipart.lua'");
    for (unsigned i = 0; i < 100000 && number("done") == 0; i++)
        turn_slowly(1);
    run_script("assert(done == true, done)");
    ck_assert_int_eq(sxe_fini(), 0);
    state_stop();
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
    ck_assert_uint_eq(fake_os_open_fds(), net_open_before);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-multipart");
    TCase *t = tcase_create("forms");

    tcase_add_test(t, forms_are_read);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
