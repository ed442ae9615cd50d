/* SPDX-License-Identifier: MIT
 *
 * The number of Lua's allocations for a request, once the pooled objects exist.
 */
#include "lua-site.h"

#include "test-main.h"

enum { WARM_UP = 3, TIMES = 20 };

/* The highest number of allocations for one request, of TIMES equal requests. */
static uint64_t
allocations_each(const char *request)
{
    uint64_t most = 0;

    for (int i = 0; i < WARM_UP; i++)
        EXPECT_IN(ask(request), " 200 OK\r\n");
    for (int i = 0; i < TIMES; i++) {
        uint64_t before = lua->heap.allocations;

        EXPECT_IN(ask(request), " 200 OK\r\n");
        if (lua->heap.allocations - before > most)
            most = lua->heap.allocations - before;
    }
    return most;
}

START_TEST(hello_allocates_nothing)
{
    serve_handler("return 'Hello'");
    ck_assert_uint_eq(allocations_each(ASK("GET /", "", "")), 0);
    end_script();
}
END_TEST

START_TEST(hello_that_is_composed_allocates_one_string)
{
    serve_handler("return 'Hello ' .. req.path");
    /* The path, and the text of the reply. */
    ck_assert_uint_le(allocations_each(ASK("GET /you", "", "")), 2);
    end_script();
}
END_TEST

START_TEST(known_header_fields_and_parameters_allocate_no_tables)
{
    serve_script("local r = http.router() kept = {a = 1} "
                 "r:get('/{name}', function(req, res) "
                 "  res.headers['X-A'] = 'a' res.headers['X-B'] = req.params.name "
                 "  res.headers['X-C'] = req.headers['User-Agent'] return kept end) "
                 "http.serve{ip = '127.0.0.1', handler = r}");
    /* Two strings; a table that is encoded as JSON needs no allocation. */
    ck_assert_uint_le(allocations_each(ASK("GET /ann", "User-Agent: x\r\n", "")), 2);
    end_script();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-http-cost");
    TCase *t = tcase_create("allocations");

    tcase_add_test(t, hello_allocates_nothing);
    tcase_add_test(t, hello_that_is_composed_allocates_one_string);
    tcase_add_test(t, known_header_fields_and_parameters_allocate_no_tables);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
