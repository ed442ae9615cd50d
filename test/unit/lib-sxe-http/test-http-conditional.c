/* SPDX-License-Identifier: MIT
 *
 * Lists, conditions and content codings: tables by section of RFC 9110. Most inputs are field lines
 * as clients may send them.
 */
#include "conditional-request.h"

/* ---- Lists ---- */

static const struct {
    const char *title;
    const char *list;
    const char *elements;
} lists[] = {
    {"no field", NULL, ""},
    {"an empty one", "", ""},
    {"one element", "a", "[a]"},
    {"two", "a,b", "[a][b]"},
    {"blanks around them", " a\t, b c \t,d ", "[a][b c][d]"},
    {"empty elements are left out", ",a,, ,\t,b,", "[a][b]"},
    {"nothing but commas", ", ,,", ""},
    {"a comma in a quoted-string", "\"a,b\",c", "[\"a,b\"][c]"},
    {"a comma in the quotes of a parameter", "a;b=\"c,d\", e", "[a;b=\"c,d\"][e]"},
    {"a quoted quote", "\"a\\\",b\",c", "[\"a\\\",b\"][c]"},
    {"a quoted backslash", "\"a\\\\\",b", "[\"a\\\\\"][b]"},
    {"a backslash outside quotes quotes nothing", "a\\,b", "[a\\][b]"},
    {"quotes without an end", "a,\"b,c", "[a][\"b,c]"},
    {"a backslash at the end", "\"a\\", "[\"a\\]"},
};

static void
say_elements(char said[ROOM], struct sxe_http_list list)
{
    size_t length = 0;
    struct sxe_span element;

    said[0] = '\0';
    while (sxe_http_list_next(&list, &element))
        length += (size_t)snprintf(said + length, ROOM - length, "[%.*s]", (int)element.length,
                                   element.base);
    ck_assert(!sxe_http_list_next(&list, &element));
}

START_TEST(rfc_9110_5_6_1_a_list_has_elements)
{
    struct sxe_http_list list = sxe_http_list_in(page_edge(lists[_i].list));
    char said[ROOM];

    ck_assert_int_eq(sxe_http_list_is_there(&list), lists[_i].list != NULL);
    say_elements(said, list);
    ck_assert_msg(strcmp(said, lists[_i].elements) == 0, "%s: %s", lists[_i].title, said);
}
END_TEST

START_TEST(rfc_9110_8_8_3_a_backslash_in_an_entity_tag_quotes_nothing)
{
    struct sxe_http_list list = sxe_http_list_in(page_edge("\"a\\\",\"b\""));
    char said[ROOM];

    list.backslash_is_plain = true;
    say_elements(said, list);
    ck_assert_str_eq(said, "[\"a\\\"][\"b\"]");
}
END_TEST

static const struct {
    const char *lines;
    const char *elements;
} field_lists[] = {
    {"Accept: x\r\n", ""},
    {"Cache-Control: a, b\r\nAccept: x\r\n", "[a][b]"},
    {"Cache-Control: a\r\nAccept: x\r\ncache-control: b\r\nCACHE-CONTROL: ,c\r\n", "[a][b][c]"},
    {"Cache-Control:\r\nCache-Control: ,\r\nCache-Control: c\r\nCache-Control:\r\n", "[c]"},
    {"Cache-Control: \"a\r\nCache-Control: b\"\r\n", "[\"a][b\"]"},
};

START_TEST(rfc_9110_5_3_a_list_is_in_all_lines_of_its_name)
{
    struct sxe_http_list list;
    char said[ROOM];

    parse("GET", field_lists[_i].lines);
    list = sxe_http_list_of(&request.parser, request.data, SXE_HTTP_FIELD_CACHE_CONTROL);
    say_elements(said, list);
    ck_assert_str_eq(said, field_lists[_i].elements);
}
END_TEST

START_TEST(rfc_9110_5_3_a_value_that_comes_twice_is_empty)
{
    struct sxe_span value;

    parse("GET", "Range: a\r\nIf-Range: b\r\nIf-Range: c\r\n");
    value = sxe_http_value_of(&request.parser, request.data, SXE_HTTP_FIELD_RANGE);
    ck_assert_uint_eq(value.length, 1);
    ck_assert_int_eq(*value.base, 'a');
    value = sxe_http_value_of(&request.parser, request.data, SXE_HTTP_FIELD_IF_RANGE);
    ck_assert_ptr_nonnull(value.base);
    ck_assert_uint_eq(value.length, 0);
    value = sxe_http_value_of(&request.parser, request.data, SXE_HTTP_FIELD_DATE);
    ck_assert_ptr_null(value.base);
}
END_TEST

/* ---- Entity tags ---- */

static const struct {
    const char *etag;
    bool is_valid;
} etags[] = {
    {"\"a\"", true},     {"\"\"", true},         {"W/\"a\"", true},   {"W/\"\"", true},
    {"\"!#~\"", true},   {"\"\x80\xff\"", true}, {"\"a\\\"", true},   {"\"W/\"", true},
    {"", false},         {"\"", false},          {"a", false},        {"\"a", false},
    {"a\"", false},      {"W/", false},          {"W/\"", false},     {"W/a", false},
    {"w/\"a\"", false},  {"W/W/\"a\"", false},   {"W/ \"a\"", false}, {"W", false},
    {"\"a\"b\"", false}, {"\"a b\"", false},     {"\"a\tb\"", false}, {"\"a\x7f\"", false},
    {"'a'", false},      {"*", false},           {NULL, false},       {"\"\"\"", false},
};

START_TEST(rfc_9110_8_8_3_what_is_an_entity_tag)
{
    ck_assert_msg(sxe_http_etag_is_valid(page_edge(etags[_i].etag)) == etags[_i].is_valid, "%s",
                  etags[_i].etag);
}
END_TEST

static const struct {
    const char *a;
    const char *b;
    bool strong;
    bool weak;
} etag_pairs[] = {
    /* The table of RFC 9110, 8.8.3.2. */
    {"W/\"1\"", "W/\"1\"", false, true},
    {"W/\"1\"", "W/\"2\"", false, false},
    {"W/\"1\"", "\"1\"", false, true},
    {"\"1\"", "\"1\"", true, true},
    {"\"1\"", "W/\"1\"", false, true},
    {"\"1\"", "\"12\"", false, false},
    {"\"a\"", "\"A\"", false, false},
    {"\"\"", "\"\"", true, true},
    {"1", "1", false, false},
    {"\"1\"", "1", false, false},
    {"\"1\"", NULL, false, false},
    {NULL, NULL, false, false},
};

START_TEST(rfc_9110_8_8_3_2_comparison)
{
    struct sxe_span a = page_edge(etag_pairs[_i].a);
    struct sxe_span b = page_edge(etag_pairs[_i].b);

    ck_assert(sxe_http_etag_matches(a, b, SXE_HTTP_STRONG_COMPARISON) == etag_pairs[_i].strong);
    ck_assert(sxe_http_etag_matches(a, b, SXE_HTTP_WEAK_COMPARISON) == etag_pairs[_i].weak);
}
END_TEST

/* ---- Conditions ---- */

static const struct {
    const char *title;
    const char *method;
    const char *lines;
    int kind;
    unsigned status;
} conditions[] = {
    {"13 no condition", "GET", "", STRONG, 0},
    {"13 no condition, nothing there", "PUT", "", MISSING, 0},

    {"13.1.1 If-Match, the tag", "PUT", "If-Match: \"x\"\r\n", STRONG, 0},
    {"13.1.1 If-Match, the tag in a list", "PUT", "If-Match: \"a\", \"x\",\"b\"\r\n", STRONG, 0},
    {"13.1.1 If-Match, another tag", "PUT", "If-Match: \"y\"\r\n", STRONG, 412},
    {"13.1.1 If-Match, another tag, read", "GET", "If-Match: \"y\"\r\n", STRONG, 412},
    {"13.1.1 If-Match, in a second line", "PUT", "If-Match: \"a\"\r\nIf-Match: \"x\"\r\n", STRONG,
     0},
    {"13.1.1 If-Match, in no line", "PUT", "If-Match: \"a\"\r\nIf-Match: \"b\"\r\n", STRONG, 412},
    {"13.1.1 If-Match, theirs is weak", "PUT", "If-Match: W/\"x\"\r\n", STRONG, 412},
    {"13.1.1 If-Match, ours is weak", "PUT", "If-Match: \"x\"\r\n", WEAK, 412},
    {"13.1.1 If-Match, both are weak", "PUT", "If-Match: W/\"x\"\r\n", WEAK, 412},
    {"13.1.1 If-Match, we have none", "PUT", "If-Match: \"x\"\r\n", NO_ETAG, 412},
    {"13.1.1 If-Match *", "PUT", "If-Match: *\r\n", STRONG, 0},
    {"13.1.1 If-Match *, no tag is needed", "PUT", "If-Match: *\r\n", NO_ETAG, 0},
    {"13.1.1 If-Match *, nothing there", "PUT", "If-Match: *\r\n", MISSING, 412},
    {"13.1.1 If-Match, nothing there", "PUT", "If-Match: \"x\"\r\n", MISSING, 412},
    {"13.1.1 If-Match, empty", "PUT", "If-Match:\r\n", STRONG, 412},
    {"13.1.1 If-Match, empty elements", "PUT", "If-Match: ,\"x\",,\r\n", STRONG, 0},
    {"13.1.1 If-Match, without quotes", "PUT", "If-Match: x\r\n", STRONG, 412},
    {"13.1.1 If-Match, one element is no tag", "PUT", "If-Match: \"x\", y\r\n", STRONG, 412},
    {"13.1.1 If-Match, * in a list", "PUT", "If-Match: *, \"y\"\r\n", STRONG, 412},
    {"13.1.1 If-Match, * beside the tag", "PUT", "If-Match: \"x\", *\r\n", STRONG, 412},
    {"13.1.1 If-Match, * is another tag quoted", "PUT", "If-Match: \"*\"\r\n", STRONG, 412},
    {"13.1.1 If-Match, a comma in a tag", "PUT", "If-Match: \"a,\", \"x\"\r\n", STRONG, 0},
    {"13.1.1 If-Match, the tag inside a tag", "PUT", "If-Match: \"a,x\"\r\n", STRONG, 412},
    {"13.1.1 If-Match, a backslash in a tag", "PUT", "If-Match: \"a\\\", \"x\"\r\n", STRONG, 0},
    {"13.1.1 If-Match, no comma", "PUT", "If-Match: \"a\" \"x\"\r\n", STRONG, 412},

    {"13.1.2 If-None-Match, the tag, GET", "GET", "If-None-Match: \"x\"\r\n", STRONG, 304},
    {"13.1.2 If-None-Match, the tag, HEAD", "HEAD", "If-None-Match: \"x\"\r\n", STRONG, 304},
    {"13.1.2 If-None-Match, the tag, PUT", "PUT", "If-None-Match: \"x\"\r\n", STRONG, 412},
    {"13.1.2 If-None-Match, the tag, POST", "POST", "If-None-Match: \"x\"\r\n", STRONG, 412},
    {"13.1.2 If-None-Match, a method of others", "LOCK", "If-None-Match: \"x\"\r\n", STRONG, 412},
    {"13.1.2 If-None-Match, another", "GET", "If-None-Match: \"y\"\r\n", STRONG, 0},
    {"13.1.2 If-None-Match, a list", "GET", "If-None-Match: \"a\",W/\"x\"\r\n", STRONG, 304},
    {"13.1.2 If-None-Match, theirs is weak", "GET", "If-None-Match: W/\"x\"\r\n", STRONG, 304},
    {"13.1.2 If-None-Match, ours is weak", "GET", "If-None-Match: \"x\"\r\n", WEAK, 304},
    {"13.1.2 If-None-Match, a second line", "GET",
     "If-None-Match: \"a\"\r\nAccept: b\r\nIf-None-Match: \"x\"\r\n", STRONG, 304},
    {"13.1.2 If-None-Match *", "GET", "If-None-Match: *\r\n", STRONG, 304},
    {"13.1.2 If-None-Match *, PUT", "PUT", "If-None-Match: *\r\n", STRONG, 412},
    {"13.1.2 If-None-Match *, no tag", "PUT", "If-None-Match: *\r\n", NO_ETAG, 412},
    {"13.1.2 If-None-Match *, nothing there", "PUT", "If-None-Match: *\r\n", MISSING, 0},
    {"13.1.2 If-None-Match, nothing there", "PUT", "If-None-Match: \"x\"\r\n", MISSING, 0},
    {"13.1.2 If-None-Match, we have none", "GET", "If-None-Match: \"x\"\r\n", NO_ETAG, 0},
    {"13.1.2 If-None-Match, empty", "GET", "If-None-Match:\r\n", STRONG, 0},
    {"13.1.2 If-None-Match, no tag", "GET", "If-None-Match: x\r\n", STRONG, 0},
    {"13.1.2 If-None-Match, a tag and junk", "PUT", "If-None-Match: y, \"x\"\r\n", STRONG, 412},
    {"13.1.2 If-None-Match, * in a list", "PUT", "If-None-Match: \"y\", *\r\n", STRONG, 412},
    {"13.1.2 If-None-Match, * twice", "PUT", "If-None-Match: *\r\nIf-None-Match: *\r\n", STRONG,
     412},

    {"13.1.3 If-Modified-Since, as then", "GET", "If-Modified-Since: " SAME "\r\n", STRONG, 304},
    {"13.1.3 If-Modified-Since, HEAD", "HEAD", "If-Modified-Since: " SAME "\r\n", STRONG, 304},
    {"13.1.3 If-Modified-Since, later", "GET", "If-Modified-Since: " LATER "\r\n", STRONG, 304},
    {"13.1.3 If-Modified-Since, earlier", "GET", "If-Modified-Since: " EARLIER "\r\n", STRONG, 0},
    {"13.1.3 If-Modified-Since, PUT", "PUT", "If-Modified-Since: " SAME "\r\n", STRONG, 0},
    {"13.1.3 If-Modified-Since, no date", "GET", "If-Modified-Since: yesterday\r\n", STRONG, 0},
    {"13.1.3 If-Modified-Since, empty", "GET", "If-Modified-Since:\r\n", STRONG, 0},
    {"13.1.3 If-Modified-Since, RFC 850", "GET",
     "If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n", STRONG, 304},
    {"13.1.3 If-Modified-Since, asctime", "GET", "If-Modified-Since: Sun Nov  6 08:49:37 1994\r\n",
     STRONG, 304},
    {"13.1.3 If-Modified-Since, we have none", "GET", "If-Modified-Since: " LATER "\r\n", NO_DATE,
     0},
    {"13.1.3 If-Modified-Since, nothing there", "GET", "If-Modified-Since: " LATER "\r\n", MISSING,
     0},
    {"13.1.3 If-Modified-Since twice", "GET",
     "If-Modified-Since: " LATER "\r\nIf-Modified-Since: " LATER "\r\n", STRONG, 0},

    {"13.1.4 If-Unmodified-Since, as then", "PUT", "If-Unmodified-Since: " SAME "\r\n", STRONG, 0},
    {"13.1.4 If-Unmodified-Since, later", "PUT", "If-Unmodified-Since: " LATER "\r\n", STRONG, 0},
    {"13.1.4 If-Unmodified-Since, earlier", "PUT", "If-Unmodified-Since: " EARLIER "\r\n", STRONG,
     412},
    {"13.1.4 If-Unmodified-Since, GET", "GET", "If-Unmodified-Since: " EARLIER "\r\n", STRONG, 412},
    {"13.1.4 If-Unmodified-Since, no date", "PUT", "If-Unmodified-Since: 0\r\n", STRONG, 0},
    {"13.1.4 If-Unmodified-Since, we have none", "PUT", "If-Unmodified-Since: " EARLIER "\r\n",
     NO_DATE, 0},

    {"13.2.2 1. If-Match holds: If-Unmodified-Since is ignored", "PUT",
     "If-Match: \"x\"\r\nIf-Unmodified-Since: " EARLIER "\r\n", STRONG, 0},
    {"13.2.2 1. If-Match fails before If-Unmodified-Since", "PUT",
     "If-Match: \"y\"\r\nIf-Unmodified-Since: " LATER "\r\n", STRONG, 412},
    {"13.2.2 1. If-Match fails before If-None-Match", "GET",
     "If-Match: \"y\"\r\nIf-None-Match: \"x\"\r\n", STRONG, 412},
    {"13.2.2 1. If-Match holds, If-None-Match fails", "GET",
     "If-Match: \"x\"\r\nIf-None-Match: \"x\"\r\n", STRONG, 304},
    {"13.2.2 1. If-Match and If-None-Match, PUT", "PUT",
     "If-Match: \"x\"\r\nIf-None-Match: \"x\"\r\n", STRONG, 412},
    {"13.2.2 1. If-Match holds, If-Modified-Since fails", "GET",
     "If-Match: \"x\"\r\nIf-Modified-Since: " SAME "\r\n", STRONG, 304},
    {"13.2.2 2. If-Unmodified-Since fails before If-None-Match", "GET",
     "If-Unmodified-Since: " EARLIER "\r\nIf-None-Match: \"x\"\r\n", STRONG, 412},
    {"13.2.2 2. If-Unmodified-Since holds, If-None-Match fails", "GET",
     "If-Unmodified-Since: " SAME "\r\nIf-None-Match: \"x\"\r\n", STRONG, 304},
    {"13.2.2 2. If-Unmodified-Since holds, If-Modified-Since fails", "GET",
     "If-Unmodified-Since: " SAME "\r\nIf-Modified-Since: " SAME "\r\n", STRONG, 304},
    {"13.2.2 3. If-None-Match holds: If-Modified-Since is ignored", "GET",
     "If-None-Match: \"y\"\r\nIf-Modified-Since: " LATER "\r\n", STRONG, 0},
    {"13.2.2 3. an empty If-None-Match: If-Modified-Since is ignored", "GET",
     "If-None-Match:\r\nIf-Modified-Since: " LATER "\r\n", STRONG, 0},
    {"13.2.2 3. If-None-Match fails, If-Modified-Since would not", "GET",
     "If-None-Match: \"x\"\r\nIf-Modified-Since: " EARLIER "\r\n", STRONG, 304},
    {"13.2.2 5. Range makes no difference", "GET", "If-None-Match: \"x\"\r\nRange: bytes=0-1\r\n",
     STRONG, 304},
};

START_TEST(rfc_9110_13_conditions)
{
    struct sxe_http_conditions asked = conditions_of(conditions[_i].method, conditions[_i].lines);
    struct sxe_http_representation selected = representation(conditions[_i].kind);
    unsigned status = sxe_http_precondition(&asked, &selected);

    ck_assert_msg(status == conditions[_i].status, "%s: is %u", conditions[_i].title, status);
}
END_TEST

/* ---- Content codings ---- */

static const struct {
    const char *title;
    const char *lines;
    const char *coding;
} codings[] = {
    {"12.5.3 no field", "", "identity"},
    {"12.5.3 an empty field", "Accept-Encoding:\r\n", "identity"},
    {"12.5.3 one", "Accept-Encoding: gzip\r\n", "gzip"},
    {"12.5.3 a browser's", "Accept-Encoding: gzip, deflate, br, zstd\r\n", "br"},
    {"12.5.3 ours in our order", "Accept-Encoding: gzip, zstd\r\n", "zstd"},
    {"12.5.3 in several lines", "Accept-Encoding: gzip\r\nAccept-Encoding: br\r\n", "br"},
    {"12.5.3 one that we have not", "Accept-Encoding: deflate\r\n", "identity"},
    {"8.4.1 names have no case", "Accept-Encoding: GZip\r\n", "gzip"},
    {"8.4.1.3 x-gzip is gzip", "Accept-Encoding: x-gzip\r\n", "gzip"},
    {"8.4.1.3 x-gzip is not br", "Accept-Encoding: x-gzip, x-br\r\n", "gzip"},
    {"12.4.2 weights decide", "Accept-Encoding: br;q=0.5, gzip;q=0.8\r\n", "gzip"},
    {"12.4.2 no weight is 1", "Accept-Encoding: br;q=0.999, gzip\r\n", "gzip"},
    {"12.4.2 a thousandth decides", "Accept-Encoding: br;q=0.001, gzip;q=0.002\r\n", "gzip"},
    {"12.4.2 equal weights", "Accept-Encoding: gzip;q=0.5, br;q=0.50\r\n", "br"},
    {"12.4.2 q has no case", "Accept-Encoding: br;Q=0, gzip;Q=0.1\r\n", "gzip"},
    {"12.4.2 blanks around the semicolon", "Accept-Encoding: br ;\tq=0.1 , gzip ; q=0.2\r\n",
     "gzip"},
    {"12.4.2 0 is not acceptable", "Accept-Encoding: br;q=0, gzip;q=0.000\r\n", "identity"},
    {"12.4.2 0. and 1. are numbers", "Accept-Encoding: br;q=0., gzip;q=1.\r\n", "gzip"},
    {"12.4.2 1.000 is 1", "Accept-Encoding: zstd;q=1.000, gzip;q=0.9\r\n", "zstd"},
    {"12.4.2 more than 1 is none", "Accept-Encoding: br;q=1.001, gzip;q=0.1\r\n", "gzip"},
    {"12.4.2 2 is none", "Accept-Encoding: br;q=2, gzip;q=0.1\r\n", "gzip"},
    {"12.4.2 four digits are too many", "Accept-Encoding: br;q=0.1234, gzip;q=0.1\r\n", "gzip"},
    {"12.4.2 a weight without a number", "Accept-Encoding: br;q=, gzip;q=0.1\r\n", "gzip"},
    {"12.4.2 a weight without a value", "Accept-Encoding: br;q, gzip;q=0.1\r\n", "gzip"},
    {"12.4.2 a number that is none", "Accept-Encoding: br;q=0.x, gzip;q=0.1\r\n", "gzip"},
    {"12.4.2 a number that begins as none", "Accept-Encoding: br;q=.9, gzip;q=0.1\r\n", "gzip"},
    {"12.4.2 a comma for a dot", "Accept-Encoding: br;q=0,5, gzip;q=0.1\r\n", "gzip"},
    {"12.4.2 a minus", "Accept-Encoding: br;q=-1, gzip;q=0.1\r\n", "gzip"},
    {"12.4.2 a blank before the number", "Accept-Encoding: br;q= 1, gzip;q=0.1\r\n", "gzip"},
    {"12.4.2 another parameter", "Accept-Encoding: br;level=9, gzip;q=0.1\r\n", "gzip"},
    {"12.4.2 an empty parameter", "Accept-Encoding: br;, gzip;q=0.1\r\n", "gzip"},
    {"12.5.3 the first mention counts", "Accept-Encoding: br;q=0, gzip;q=0.1, br\r\n", "gzip"},
    {"12.5.3 * is any", "Accept-Encoding: *\r\n", "br"},
    {"12.5.3 * is any other", "Accept-Encoding: br;q=0, *;q=0.5\r\n", "zstd"},
    {"12.5.3 * before the others", "Accept-Encoding: *;q=0.5, gzip\r\n", "gzip"},
    {"12.5.3 the first * counts", "Accept-Encoding: *;q=0, *, gzip;q=0.1\r\n", "gzip"},
    {"12.5.3 *;q=0 leaves what is listed", "Accept-Encoding: gzip;q=0.1, *;q=0\r\n", "gzip"},
    {"12.5.3 *;q=0 alone", "Accept-Encoding: *;q=0\r\n", "identity"},
    {"12.5.3 identity is preferred", "Accept-Encoding: identity, gzip;q=0.5\r\n", "identity"},
    {"12.5.3 identity is less preferred", "Accept-Encoding: identity;q=0.5, gzip\r\n", "gzip"},
    {"12.5.3 identity is as good", "Accept-Encoding: identity;q=0.5, gzip;q=0.5\r\n", "gzip"},
    {"12.5.3 identity is not acceptable", "Accept-Encoding: identity;q=0, zstd;q=0.1\r\n", "zstd"},
    {"12.5.3 nothing is acceptable", "Accept-Encoding: identity;q=0, deflate\r\n", "identity"},
    {"12.5.3 identity is in *", "Accept-Encoding: gzip;q=0.1, *;q=0.5, br;q=0, zstd;q=0\r\n",
     "identity"},
    {"12.5.3 empty elements", "Accept-Encoding: ,gzip,,\r\n", "gzip"},
    {"12.5.3 junk", "Accept-Encoding: ;;q=, =\"\r\n", "identity"},
};

START_TEST(rfc_9110_12_5_3_accept_encoding)
{
    static const char *const offered[] = {"br", "zstd", "gzip"};
    struct sxe_http_list list;
    int index;

    parse("GET", codings[_i].lines);
    list = sxe_http_list_of(&request.parser, request.data, SXE_HTTP_FIELD_ACCEPT_ENCODING);
    index = sxe_http_select_coding(&list, offered, COUNT(offered));
    ck_assert_msg(strcmp(index < 0 ? "identity" : offered[index], codings[_i].coding) == 0,
                  "%s: is %d", codings[_i].title, index);
    ck_assert_int_eq(sxe_http_select_coding(&list, offered, 0), -1);
}
END_TEST

START_TEST(no_more_than_8_codings_are_looked_at)
{
    static const char *const offered[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    struct sxe_http_list list = sxe_http_list_in(page_edge("h;q=0.1, i"));

    ck_assert_int_eq(sxe_http_select_coding(&list, offered, COUNT(offered)), 7);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-conditional");
    TCase *tcase = tcase_create("select");

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, rfc_9110_5_6_1_a_list_has_elements, 0, COUNT(lists));
    tcase_add_test(tcase, rfc_9110_8_8_3_a_backslash_in_an_entity_tag_quotes_nothing);
    tcase_add_loop_test(tcase, rfc_9110_5_3_a_list_is_in_all_lines_of_its_name, 0,
                        COUNT(field_lists));
    tcase_add_test(tcase, rfc_9110_5_3_a_value_that_comes_twice_is_empty);
    tcase_add_loop_test(tcase, rfc_9110_8_8_3_what_is_an_entity_tag, 0, COUNT(etags));
    tcase_add_loop_test(tcase, rfc_9110_8_8_3_2_comparison, 0, COUNT(etag_pairs));
    tcase_add_loop_test(tcase, rfc_9110_13_conditions, 0, COUNT(conditions));
    tcase_add_loop_test(tcase, rfc_9110_12_5_3_accept_encoding, 0, COUNT(codings));
    tcase_add_test(tcase, no_more_than_8_codings_are_looked_at);
    return sxe_test_main(suite);
}
