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
    net_run("dofile 'test/unit/lib-sxe-lua/lua-multipart.lua'");
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
