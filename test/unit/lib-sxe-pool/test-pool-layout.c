/* SPDX-License-Identifier: MIT
 *
 * Layouts of fields: which ones are accepted, and the message for each other one.
 */
#include <check.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sxe-pool-layout.h"
#include "test-main.h"

#define NUMBER_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

static struct sxe_pool_layout layout;
static char why[SXE_POOL_WHY_SIZE];

static void
check_field(const char *name, char kind, size_t size, size_t offset)
{
    const struct sxe_pool_field *field = sxe_pool_layout_find(&layout, name);

    ck_assert_ptr_nonnull(field);
    ck_assert_int_eq(field->kind, kind);
    ck_assert_uint_eq(field->size, size);
    ck_assert_uint_eq(field->offset, offset);
}

START_TEST(fields_stand_where_c_has_the_members_of_a_struct)
{
    struct all {
        bool on;
        uint16_t port;
        uint8_t kind;
        uint64_t hits;
        char name[5];
        int32_t low;
        int8_t tiny;
        double rate;
        float part;
        int16_t small;
        uint32_t wide;
        int64_t far;
        char last[3];
    };

    ck_assert_int_eq(
        0, sxe_pool_layout_parse(&layout,
                                 "bool on, u16 port, u8 kind, u64 hits, char[5] name, i32 low, "
                                 "i8 tiny, f64 rate, f32 part, i16 small, u32 wide, i64 far, "
                                 "char[3] last",
                                 why));
    ck_assert_uint_eq(layout.number, 13);
    ck_assert_uint_eq(layout.size, sizeof(struct all));
    ck_assert_uint_eq(layout.alignment, _Alignof(struct all));
    check_field("on", 'b', 1, offsetof(struct all, on));
    check_field("port", 'u', 2, offsetof(struct all, port));
    check_field("kind", 'u', 1, offsetof(struct all, kind));
    check_field("hits", 'u', 8, offsetof(struct all, hits));
    check_field("name", 'c', 5, offsetof(struct all, name));
    check_field("low", 'i', 4, offsetof(struct all, low));
    check_field("tiny", 'i', 1, offsetof(struct all, tiny));
    check_field("rate", 'f', 8, offsetof(struct all, rate));
    check_field("part", 'f', 4, offsetof(struct all, part));
    check_field("small", 'i', 2, offsetof(struct all, small));
    check_field("wide", 'u', 4, offsetof(struct all, wide));
    check_field("far", 'i', 8, offsetof(struct all, far));
    check_field("last", 'c', 3, offsetof(struct all, last));
    ck_assert_ptr_null(sxe_pool_layout_find(&layout, "first"));
}
END_TEST

START_TEST(a_text_without_a_field_is_good)
{
    ck_assert_int_eq(0, sxe_pool_layout_parse(&layout, _i == 0 ? "" : " \t\r\n", NULL));
    ck_assert_uint_eq(layout.number, 0);
    ck_assert_uint_eq(layout.size, 0);
}
END_TEST

START_TEST(blanks_may_stand_where_c_allows_them)
{
    ck_assert_int_eq(0, sxe_pool_layout_parse(&layout, "\n char [ 24 ] name ,\n\tu8\r\nx\n", NULL));
    check_field("name", 'c', 24, 0);
    check_field("x", 'u', 1, 24);
    ck_assert_int_eq(0, sxe_pool_layout_parse(&layout, "char[65535]a,u8 b", NULL));
    ck_assert_uint_eq(layout.size, 65536);
}
END_TEST

#define TYPES "a type expected (u8 to u64, i8 to i64, f32, f64, bool or char[1] to char[65535]), "

static const struct {
    const char *text;
    const char *why;
} wrong[] = {
    {"u65 x", TYPES "not 'u65 x'"},
    {"u64x", TYPES "not 'u64x'"},
    {",", TYPES "not ','"},
    {"u8 a,", TYPES "not the end"},
    {"u8 a,,u8 b", TYPES "not ',u8 b'"},
    {"int counter_of_something_long", TYPES "not 'int counter_of_somet'"},
    {"char name", "a length expected after char, as in char[24], not 'name'"},
    {"char", "a length expected after char, as in char[24], not the end"},
    {"char[] name", "the length of char[] is 1 to 65535, not '] name'"},
    {"char[0] name", "the length of char[] is 1 to 65535, not '0] name'"},
    {"char[-1] name", "the length of char[] is 1 to 65535, not '-1] name'"},
    {"char[65536] name", "the length of char[] is 1 to 65535, not '65536] name'"},
    {"char[99999999999999999999999] n",
     "the length of char[] is 1 to 65535, not '99999999999999999999'"},
    {"char[24 name", "']' expected after the length of char, not 'name'"},
    {"u64", "a name expected after the type, not the end"},
    {"u64 7up", "a name expected after the type, not '7up'"},
    {"u64 *p", "a name expected after the type, not '*p'"},
    {"u64 hits misses", "',' expected after field hits, not 'misses'"},
    {"u64 hits; u64 misses", "',' expected after field hits, not '; u64 misses'"},
    {"u64 hits, u8 hits", "there are two fields of the name hits"},
    {"u8 name_of_more_than_31_bytes_0123456",
     "the name of a field has at most 31 bytes, not 34 as name_of_more_than_31_bytes_0123456"},
};

START_TEST(what_is_wrong_is_said)
{
    why[0] = '\0';
    ck_assert_int_eq(-EINVAL, sxe_pool_layout_parse(&layout, wrong[_i].text, why));
    ck_assert_str_eq(why, wrong[_i].why);
    ck_assert_int_eq(-EINVAL, sxe_pool_layout_parse(&layout, wrong[_i].text, NULL));
}
END_TEST

START_TEST(as_many_fields_as_the_text_can_have_find_room)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    char text[SXE_POOL_FIELDS_MAX + 2] = "u8 first";
    size_t length = strlen(text);
    unsigned fields = 1;

    for (; length + strlen(",u8 xx") <= SXE_POOL_FIELDS_MAX; fields++) {
        const char *second = fields < strlen(letters) ? "" : "x";

        length += (size_t)snprintf(text + length, sizeof(text) - length, ",u8 %c%s",
                                   letters[fields % strlen(letters)], second);
    }
    ck_assert_int_eq(0, sxe_pool_layout_parse(&layout, text, why));
    ck_assert_uint_eq(layout.number, fields);
    ck_assert_uint_eq(layout.size, fields);
    memset(text, ' ', sizeof(text) - 1);
    ck_assert_int_eq(-EINVAL, sxe_pool_layout_parse(&layout, text, why));
    ck_assert_str_eq(why, "the text of the fields has at most 511 bytes");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-layout");
    TCase *fields = tcase_create("fields");

    tcase_add_test(fields, fields_stand_where_c_has_the_members_of_a_struct);
    tcase_add_loop_test(fields, a_text_without_a_field_is_good, 0, 2);
    tcase_add_test(fields, blanks_may_stand_where_c_allows_them);
    tcase_add_loop_test(fields, what_is_wrong_is_said, 0, NUMBER_OF(wrong));
    tcase_add_test(fields, as_many_fields_as_the_text_can_have_find_room);
    suite_add_tcase(suite, fields);
    return sxe_test_main(suite);
}
