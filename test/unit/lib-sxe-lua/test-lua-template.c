/* SPDX-License-Identifier: MIT
 *
 * require "sxe.template": texts, and a server whose pages are templates (lua-template.lua).
 */
#include "lua-net.h"

#include "lua-count.h"
#include "test-main.h"

static void
count_template(void)
{
    count_lines("build/coverage/lua/template.info");
}

START_TEST(templates_become_pages)
{
    net_on_state = count_template;
    net_run("dofile 'test/unit/lib-sxe-lua/lua-template.lua'");
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-template");
    TCase *t = tcase_create("templates");

    tcase_add_test(t, templates_become_pages);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
