/* SPDX-License-Identifier: MIT
 *
 * Values taken from JSON by their path: the same ones that jansson finds, for any input.
 */
#include "../../../../apps/http/input/take-json.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page-edge.h"
#include "test-main.h"

static struct load_json_path path;
static char text[100];
static struct load_json_value value;

static enum load_json_found
find(const char *where, const char *json)
{
    const char *wrong = load_json_path_compile(&path, where, strlen(where));

    ck_assert_msg(wrong == NULL, "%s: %s", where, wrong == NULL ? "" : wrong);
    value = (struct load_json_value){text, sizeof(text), 0};
    return load_json_find(&path, page_edge_bytes(json, strlen(json)), strlen(json), &value);
}

#define BODY                                                                                      \
    " {\"user\" : {\"id\": 17, \"name\": \"A\\u00e9\\ud83d\\ude00\\n\\\"\\\\\\/\\b\\f\\r\\t\", "  \
    "\"a b\": true, \"x.y\": -0.5e+3},\r\n\t\"list\": [1, [2, 3], {\"k\": \"v\"}, false, null], " \
    "\"empty\": \"\", \"none\": {}, \"no\": [], \"\\u006bey\": 1, \"same\": 1, \"same\": 2}"

static const struct {
    const char *path;
    enum load_json_found found;
    const char *value;
} finds[] = {
    {"$.user.id", LOAD_JSON_FOUND, "17"},
    {"$.user.name", LOAD_JSON_FOUND, "A\xC3\xA9\xF0\x9F\x98\x80\n\"\\/\b\f\r\t"},
    {"$.user[\"a b\"]", LOAD_JSON_FOUND, "true"},
    {"$['user']['x.y']", LOAD_JSON_FOUND, "-0.5e+3"},
    {"$.list", LOAD_JSON_FOUND, "[1, [2, 3], {\"k\": \"v\"}, false, null]"},
    {"$.list[1][1]", LOAD_JSON_FOUND, "3"},
    {"$.list[2].k", LOAD_JSON_FOUND, "v"},
    {"$.list[3]", LOAD_JSON_FOUND, "false"},
    {"$.list[4]", LOAD_JSON_NULL, NULL},
    {"$.list[5]", LOAD_JSON_MISSING, NULL},
    {"$.list.k", LOAD_JSON_MISSING, NULL},
    {"$.user[0]", LOAD_JSON_MISSING, NULL},
    {"$.user.i", LOAD_JSON_MISSING, NULL},
    {"$.user.idx", LOAD_JSON_MISSING, NULL},
    {"$.empty", LOAD_JSON_FOUND, ""},
    {"$.none", LOAD_JSON_FOUND, "{}"},
    {"$.none.a", LOAD_JSON_MISSING, NULL},
    {"$.no[0]", LOAD_JSON_MISSING, NULL},
    {"$.key", LOAD_JSON_FOUND, "1"},
    {"$.same", LOAD_JSON_FOUND, "1"},
    {"$", LOAD_JSON_TOO_LONG, NULL},
};

START_TEST(a_value_is_found_by_its_path)
{
    ck_assert_int_eq(find(finds[_i].path, BODY), finds[_i].found);
    if (finds[_i].value != NULL) {
        ck_assert_uint_eq(value.length, strlen(finds[_i].value));
        ck_assert_mem_eq(text, finds[_i].value, value.length);
    }
}
END_TEST

static const char *const not_paths[] = {
    "",      "user",  "$user", "$.",    "$..a",   "$.a.",          "$[",      "$[]", "$[1", "$[x]",
    "$[-1]", "$[1x]", "$['a]", "$['a'", "$['a'x", "$[1234567890]", "$.a[0]b",
};

START_TEST(what_is_no_path_is_refused)
{
    const char *where = not_paths[_i];

    ck_assert_pstr_eq(load_json_path_compile(&path, where, strlen(where)),
                      "it is no path such as $.user.emails[0]");
}
END_TEST

START_TEST(a_path_has_at_most_16_parts)
{
    static const char sixteen[] = "$[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]";

    ck_assert_int_eq(find(sixteen, "[[[[[[[[[[[[[[[[7]]]]]]]]]]]]]]]]"), LOAD_JSON_FOUND);
    ck_assert_str_eq(
        load_json_path_compile(&path, "$[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0].a", 51),
        "it has more than 16 parts");
}
END_TEST

static const struct {
    const char *path;
    const char *json;
} broken[] = {
    {"$", ""},
    {"$", " "},
    {"$.a", "{\"a\""},
    {"$.a", "{\"a\":"},
    {"$.a", "{a: 1}"},
    {"$.a", "{\"b\": 1,}"},
    {"$.a", "{\"b\": 1 \"a\": 2}"},
    {"$.a", "{\"b\": tru, \"a\": 2}"},
    {"$.a", "{\"b\": [1, \"a\": 2}"},
    {"$.a", "{\"b\": {\"c\"}, \"a\": 2}"},
    {"$.a", "{\"b\": \"x, \"a\": 2}"},
    {"$.a", "{\"b\\x\": 1, \"a\": 2}"},
    {"$[1]", "[1 2]"},
    {"$[1]", "[01, 2]"},
    {"$[1]", "[1., 2]"},
    {"$[1]", "[1e, 2]"},
    {"$[1]", "[-, 2]"},
    {"$[1]", "[\"\\u12g4\", 2]"},
    {"$[1]", "[\"\\ud800\", 2]"},
    {"$[1]", "[\"\\ud800\\n\", 2]"},
    {"$[1]", "[\"\\ud800\\u0041\", 2]"},
    {"$[1]", "[\"\\udc00\", 2]"},
    {"$[1]", "[\"\n\", 2]"},
    {"$[0]", "[\"\\"},
    {"$[0]", "[\"\\u00"},
    {"$[0]", "[\"abc"},
    {"$[2]", "[1, {\"a\": [}]"},
    {"$.x[0]", "{\"x\": ?}"},
};

START_TEST(what_is_no_json_up_to_the_value_is_broken)
{
    ck_assert_int_eq(find(broken[_i].path, broken[_i].json), LOAD_JSON_BROKEN);
}
END_TEST

START_TEST(what_stands_behind_the_value_is_not_looked_at)
{
    ck_assert_int_eq(find("$.a", "{\"a\": 1, and so on"), LOAD_JSON_FOUND);
    ck_assert_int_eq(find("$[0]", "[\"\\u0041\\u07ff\\uffff\" ..."), LOAD_JSON_FOUND);
    ck_assert_uint_eq(value.length, 6);
}
END_TEST

/* 64 levels of nesting in a skipped value, and then 65. */
START_TEST(a_depth_of_64_is_the_most)
{
    char json[140];

    for (int deeper = 0; deeper < 2; deeper++) {
        int depth = 64 + deeper;

        memset(json, '[', (size_t)depth);
        memset(json + depth, ']', (size_t)depth);
        memcpy(json + 2 * depth, ", 5", 4);
        memmove(json + 1, json, (size_t)(2 * depth + 4));
        ck_assert_int_eq(find("$[1]", json), deeper == 0 ? LOAD_JSON_FOUND : LOAD_JSON_BROKEN);
    }
}
END_TEST

START_TEST(a_value_that_has_no_room_is_too_long)
{
    char json[200];

    memset(json, 'a', sizeof(json));
    json[0] = '"';
    json[102] = '"';
    json[103] = '\0';
    ck_assert_int_eq(find("$", json), LOAD_JSON_TOO_LONG);
    json[101] = '"';
    ck_assert_int_eq(find("$", json), LOAD_JSON_FOUND);
    ck_assert_uint_eq(value.length, 100);
}
END_TEST

/* ---- Comparing with jansson ---- */

static char made[5000];
static size_t made_length;

static void
put(const char *part)
{
    size_t length = strlen(part);

    memcpy(made + made_length, part, length);
    made_length += length;
}

static void
make_value(unsigned depth)
{
    static const char *const scalars[] = {
        "true", "null", "-12.5e3", "7", "0", "\"a\\u00e9\\\"\\ud83d\\ude00 x\"", "\"plain\""};
    static const char *const names[] = {"\"a\":", "\"\\u0062\" : ", "\"c\": "};
    unsigned kind = (unsigned)rand() % 10, number = (unsigned)rand() % 4;
    bool is_object = kind == 9;

    if (kind < 7 || depth > 5 || made_length > 3000) {
        put(scalars[kind % 7]);
        return;
    }
    put(is_object ? "{" : "[ ");
    for (unsigned i = 0; i < number && i < 3; i++) {
        put(i > 0 ? "," : "");
        put(is_object ? names[i] : "");
        make_value(depth + 1);
    }
    put(is_object ? "}" : "]");
}

static const json_t *
go(const json_t *root, const char *where)
{
    for (const char *at = where + 1; *at != '\0' && root != NULL;) {
        char name[2] = {at[1], '\0'};

        root =
            *at == '.' ? json_object_get(root, name) : json_array_get(root, (size_t)(at[1] - '0'));
        at += *at == '.' ? 2 : 3;
    }
    return root;
}

static void
check_with_jansson(const char *where)
{
    static char room[5000];
    struct load_json_value found = {room, sizeof(room), 0};
    json_t *root = json_loadb(made, made_length, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    const json_t *expected = go(root, where);
    enum load_json_found result =
        load_json_find(&path, page_edge_bytes(made, made_length), made_length, &found);

    if (root == NULL)
        return;
    ck_assert_int_eq(result, expected == NULL         ? LOAD_JSON_MISSING
                             : json_is_null(expected) ? LOAD_JSON_NULL
                                                      : LOAD_JSON_FOUND);
    if (result == LOAD_JSON_FOUND && json_is_string(expected)) {
        ck_assert_uint_eq(found.length, json_string_length(expected));
        ck_assert_mem_eq(room, json_string_value(expected), found.length);
    } else if (result == LOAD_JSON_FOUND) {
        json_t *again = json_loadb(room, found.length, JSON_DECODE_ANY, NULL);

        ck_assert(json_equal(again, expected));
        json_decref(again);
    }
    json_decref(root);
}

START_TEST(random_values_are_found_as_jansson_finds_them)
{
    srand(3);
    for (unsigned i = 0; i < 20000; i++) {
        char where[20] = "$";
        unsigned parts = (unsigned)rand() % 4;

        for (unsigned part = 0; part < parts; part++) {
            size_t length = strlen(where);

            snprintf(where + length, sizeof(where) - length, rand() % 2 == 0 ? ".%c" : "[%c]",
                     rand() % 2 == 0 ? 'a' + rand() % 3 : '0' + rand() % 3);
            if (where[length] == '.' && where[length + 1] < 'a')
                where[length + 1] = 'a';
            if (where[length] == '[' && where[length + 1] > '9')
                where[length + 1] = '0';
        }
        ck_assert_ptr_null(load_json_path_compile(&path, where, strlen(where)));
        made_length = 0;
        make_value(0);
        if (rand() % 4 == 0)
            made[(size_t)rand() % made_length] = "{}[]\",:a1\\ "[rand() % 11];
        check_with_jansson(where);
    }
}
END_TEST

static Suite *
suite(void)
{
    Suite *all = suite_create("http-take-json");
    TCase *cases = tcase_create("json");

    tcase_add_loop_test(cases, a_value_is_found_by_its_path, 0, sizeof(finds) / sizeof(*finds));
    tcase_add_loop_test(cases, what_is_no_path_is_refused, 0,
                        sizeof(not_paths) / sizeof(*not_paths));
    tcase_add_test(cases, a_path_has_at_most_16_parts);
    tcase_add_loop_test(cases, what_is_no_json_up_to_the_value_is_broken, 0,
                        sizeof(broken) / sizeof(*broken));
    tcase_add_test(cases, what_stands_behind_the_value_is_not_looked_at);
    tcase_add_test(cases, a_depth_of_64_is_the_most);
    tcase_add_test(cases, a_value_that_has_no_room_is_too_long);
    tcase_add_test(cases, random_values_are_found_as_jansson_finds_them);
    suite_add_tcase(all, cases);
    return all;
}

int
main(void)
{
    return sxe_test_main(suite());
}
