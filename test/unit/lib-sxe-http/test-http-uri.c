/* SPDX-License-Identifier: MIT
 *
 * Targets, paths, queries and escapes: tables of inputs and results, by section of RFC 3986 and RFC
 * 9112, and by the form encoding of the URL standard.
 */
#include "sxe-http-uri.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include "page-edge.h"
#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

enum { ROOM = 256 };

static void
check_span(const char *title, struct sxe_span is, const char *wanted)
{
    if (wanted == NULL) {
        ck_assert_msg(is.base == NULL, "%s: there is one", title);
        return;
    }
    ck_assert_msg(is.base != NULL && is.length == strlen(wanted) &&
                      memcmp(is.base, wanted, is.length) == 0,
                  "%s: is %.*s, wanted %s", title, (int)is.length, is.base, wanted);
}

/* ---- Targets ---- */

static const struct {
    const char *title;
    const char *target;
    const char *authority;
    const char *path; /* NULL: the target is refused */
    const char *query;
} targets[] = {
    {"9112 3.2.1 a path", "/a/b", NULL, "/a/b", NULL},
    {"9112 3.2.1 the root", "/", NULL, "/", NULL},
    {"9112 3.2.1 a query", "/a?b=c", NULL, "/a", "b=c"},
    {"9112 3.2.1 an empty query is one", "/a?", NULL, "/a", ""},
    {"3986 3.4 a query has ? and /", "/a?b?/c", NULL, "/a", "b?/c"},
    {"9112 3.2.1 two slashes begin a path, no authority", "//h/a", NULL, "//h/a", NULL},
    {"9112 3.2.1 a URI in a path is a path", "/http://h/a", NULL, "/http://h/a", NULL},
    {"9112 3.2.1 a URI in a query is a query", "/?http://h/a", NULL, "/", "http://h/a"},
    {"9112 3.2.2 an absolute URI", "http://h/a?b", "h", "/a", "b"},
    {"9112 3.2.2 with a port", "https://h:8443/a/b", "h:8443", "/a/b", NULL},
    {"9112 3.2.2 an address", "http://[::1]:80/", "[::1]:80", "/", NULL},
    {"9112 3.2.2 without a path it is /", "http://h", "h", "/", NULL},
    {"9112 3.2.2 without a path but a query", "http://h?a/b", "h", "/", "a/b"},
    {"9112 3.2.2 slashes of the path stay", "http://h//a//", "h", "//a//", NULL},
    {"9112 3.2.3 an authority has no path", "h:443", NULL, NULL, NULL},
    {"9112 3.2.4 the asterisk", "*", NULL, "*", NULL},
    {"9112 3.2.4 the asterisk is alone", "*a", NULL, NULL, NULL},
    {"9112 3.2.4 the asterisk has no query", "*?a", NULL, NULL, NULL},
    {"9112 3.2 nothing is no target", "", NULL, NULL, NULL},
    {"9112 3.2 a query alone is no target", "?a", NULL, NULL, NULL},
    {"9112 3.2 a query with a URI is no target", "?http://h/", NULL, NULL, NULL},
    {"9112 3.2 a relative path is no target", "a/b", NULL, NULL, NULL},
};

START_TEST(targets_are_taken_apart)
{
    const char *title = targets[_i].title;
    struct sxe_http_target parts;
    int result = sxe_http_split_target(page_edge(targets[_i].target), &parts);

    ck_assert_msg(result == (targets[_i].path == NULL ? -EINVAL : 0), "%s", title);
    if (result < 0)
        return;
    check_span(title, parts.authority, targets[_i].authority);
    check_span(title, parts.path, targets[_i].path);
    check_span(title, parts.query, targets[_i].query);
}
END_TEST

/* ---- Paths ---- */

struct path_case {
    const char *title;
    const char *path;
    const char *normal; /* NULL: the path is refused */
    int error;
};

static const struct path_case normal_paths[] = {
    {"3986 6.2.2 the root is normal", "/", "/", 0},
    {"3986 6.2.2 a path is normal", "/a/b.c/d-e_f~g", "/a/b.c/d-e_f~g", 0},
    {"3986 6.2.2 a slash at the end stays", "/a/", "/a/", 0},
    {"empty segments go", "//a///b//", "/a/b/", 0},
    {"nothing but slashes", "////", "/", 0},
    {"empty segments after eight bytes go", "/abcdefgh//i", "/abcdefgh/i", 0},
    {"across a word's end", "/abcdef//i", "/abcdef/i", 0},
    {"dots across a word's end", "/abcdef/./i", "/abcdef/i", 0},
    {"an escape at a word's end", "/abcdef%41", "/abcdefA", 0},
    {"3986 2.2 reserved bytes stay", "/!$&'()*+,;=:@", "/!$&'()*+,;=:@", 0},
    {"3986 6.2.2 dots in a name stay", "/a../..b/.../.c/d.", "/a../..b/.../.c/d.", 0},
    {"3986 6.2.2.1 escapes get capitals", "/%c3%a9%2f", "/%C3%A9%2F", 0},
    {"3986 6.2.2.1 capitals stay", "/%C3%A9", "/%C3%A9", 0},
    {"3986 6.2.2.2 letters are decoded", "/%41%5a%61%7A", "/AZaz", 0},
    {"3986 6.2.2.2 digits are decoded", "/%30%39", "/09", 0},
    {"3986 6.2.2.2 -._~ are decoded", "/a%2D%2e%5F%7e", "/a-._~", 0},
    {"3986 3.3 bytes that need no escape are decoded", "/%21%24%26%27%28%29%2A%2B%2C%3b%3D%3A%40",
     "/!$&'()*+,;=:@", 0},
    {"so are []|", "/%5B%5d%7C", "/[]|", 0},
    {"others are not", "/%2F%3F%25%5C%5E%60%7B%7D%20%22%23%3C%3E%7F%00",
     "/%2F%3F%25%5C%5E%60%7B%7D%20%22%23%3C%3E%7F%00", 0},
    {"3986 2.4 nothing is decoded twice", "/%2541%25%34%31", "/%2541%2541", 0},
    {"3986 2.2 an escaped slash separates nothing", "/a%2f..%2fb", "/a%2F..%2Fb", 0},
    {"3986 2.1 a NUL stays escaped", "/a%00b", "/a%00b", 0},
    {"3986 2.1 a percent sign stays escaped", "/%25", "/%25", 0},
    {"3986 5.2.4 one dot goes", "/a/./b", "/a/b", 0},
    {"3986 5.2.4 one dot at the end leaves a slash", "/a/.", "/a/", 0},
    {"3986 5.2.4 one dot alone", "/.", "/", 0},
    {"3986 5.2.4 one dot and a slash", "/./", "/", 0},
    {"3986 5.2.4 two dots take a segment", "/a/../b", "/b", 0},
    {"3986 5.2.4 two dots at the end leave a slash", "/a/b/..", "/a/", 0},
    {"3986 5.2.4 as many dots as segments", "/a/b/../../c", "/c", 0},
    {"3986 5.2.4 the same at the end", "/a/b/../..", "/", 0},
    {"3986 5.4.2 two dots alone", "/..", NULL, -EINVAL},
    {"3986 5.4.2 more dots than segments", "/../../../a", NULL, -EINVAL},
    {"3986 5.4.2 the same after segments", "/a/../../b", NULL, -EINVAL},
    {"3986 5.4.2 the same at the end", "/a/../..", NULL, -EINVAL},
    {"3986 5.4.2 the same, escaped", "/a/.%2e/%2E./b", NULL, -EINVAL},
    {"3986 5.2.4 the RFC's example", "/a/b/c/./../../g", "/a/g", 0},
    {"3986 5.2.4 the RFC's other example, rooted", "/mid/content=5/../6", "/mid/6", 0},
    {"empty segments go before dots", "/a//../b", "/b", 0},
    {"two slashes are the root", "//../a", NULL, -EINVAL},
    {"dots, then slashes", "/x/..//admin/x", "/admin/x", 0},
    {"dots and slashes at the end", "/a/b/..//.//", "/a/", 0},
    {"3986 6.2.2.3 escaped dots count", "/a/%2e%2e/b/%2E", "/b/", 0},
    {"3986 6.2.2.3 half escaped dots count", "/a/b/.%2e/%2e./c", "/c", 0},
    {"3986 6.2.2.3 dots that are escaped twice do not", "/a/%252e%252e/b", "/a/%252e%252e/b", 0},
    {"3986 6.2.2.3 three dots are a name", "/a/%2e%2e%2e/b", "/a/.../b", 0},
    {"3986 2.1 an escape is not whole", "/%4", NULL, -EILSEQ},
    {"3986 2.1 a percent sign alone", "/%", NULL, -EILSEQ},
    {"3986 2.1 an escape is not hexadecimal", "/%4g", NULL, -EILSEQ},
    {"3986 2.1 nor in its first digit", "/%/1", NULL, -EILSEQ},
    {"3986 2.1 nor with these neighbours of digits", "/%:0", NULL, -EILSEQ},
    {"3986 2.1 nor with these neighbours of letters", "/%0`", NULL, -EILSEQ},
    {"3986 2.1 nor with these signs", "/%@0", NULL, -EILSEQ},
    {"3986 3.3 nothing is no path", "", NULL, -EINVAL},
    {"3986 3.3 a relative path", "a/b", NULL, -EINVAL},
    {"9112 3.2.4 the asterisk is no path", "*", NULL, -EINVAL},
};

START_TEST(paths_become_normal)
{
    const struct path_case *test = &normal_paths[_i];
    struct sxe_span path = page_edge(test->path);
    struct sxe_span normal = {NULL, 0};
    struct sxe_span again;
    char room[ROOM];
    int result = sxe_http_normalise_path(path, room, path.length, &normal);

    ck_assert_msg(result == test->error, "%s: is %d", test->title, result);
    if (result < 0)
        return;
    check_span(test->title, normal, test->normal);
    ck_assert_int_eq(sxe_http_normalise_path(normal, room, sizeof(room), &again), 0);
    check_span(test->title, again, test->normal);
}
END_TEST

START_TEST(paths_become_normal_in_place)
{
    const struct path_case *test = &normal_paths[_i];
    size_t length = strlen(test->path);
    char *bytes = page_edge_bytes(test->path, length);
    struct sxe_span normal;

    if (sxe_http_normalise_path((struct sxe_span){bytes, length}, bytes, length, &normal) == 0)
        check_span(test->title, normal, test->normal);
}
END_TEST

START_TEST(a_normal_path_is_not_copied)
{
    struct sxe_span path = page_edge("/users/17/posts/a.b-c");
    struct sxe_span normal;

    ck_assert_int_eq(sxe_http_normalise_path(path, NULL, 0, &normal), 0);
    ck_assert_ptr_eq(normal.base, path.base);
    ck_assert_uint_eq(normal.length, path.length);
}
END_TEST

START_TEST(a_path_needs_room_for_its_own_length)
{
    struct sxe_span path = page_edge("/a/../%41");
    struct sxe_span normal;
    char room[ROOM];

    ck_assert_int_eq(sxe_http_normalise_path(path, room, path.length - 1, &normal), -ENOBUFS);
    ck_assert_int_eq(sxe_http_normalise_path(path, room, path.length, &normal), 0);
    ck_assert_int_eq(sxe_http_path_to_file(path, room, path.length), -ENOBUFS);
    ck_assert_int_eq(sxe_http_path_to_file(path, room, path.length + 1), 1);
}
END_TEST

START_TEST(every_byte_that_is_escaped_is_decoded_only_if_it_needs_no_escape)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@[]|";
    char path[8];
    char room[8];

    for (unsigned byte = 0; byte < 256; byte++) {
        struct sxe_span normal;
        bool is_plain = byte > 0 && strchr(plain, (int)byte) != NULL;

        snprintf(path, sizeof(path), "/x%%%02x", byte);
        ck_assert_int_eq(sxe_http_normalise_path(page_edge(path), room, sizeof(room), &normal), 0);
        ck_assert_uint_eq(normal.length, is_plain ? 3 : 5);
        if (is_plain)
            ck_assert_int_eq(normal.base[2], (char)byte);
        snprintf(path, sizeof(path), "/x%%%02X", byte);
        if (!is_plain)
            check_span("capitals", normal, path);
    }
}
END_TEST

static const struct path_case files[] = {
    {"the root", "/", ".", 0},
    {"a file", "/a/b.c", "a/b.c", 0},
    {"a slash at the end stays", "/a/", "a/", 0},
    {"a name is decoded", "/c%20d/%C3%a9", "c d/\xc3\xa9", 0},
    {"a percent sign is decoded once", "/%2541", "%41", 0},
    {"empty segments go", "//a///b//", "a/b/", 0},
    {"nothing but slashes is the root", "///", ".", 0},
    {"two dots", "/a/../b", "b", 0},
    {"escaped dots", "/a/b/%2e%2e/%2E%2e/etc/passwd", "etc/passwd", 0},
    {"dots that are escaped twice are a name", "/%252e%252e/b", "%2e%2e/b", 0},
    {"more dots than segments", "/../../etc/passwd", NULL, -EINVAL},
    {"more escaped dots than segments", "/a/%2e%2e/%2E%2e/etc/passwd", NULL, -EINVAL},
    {"back to the root", "/a/..", ".", 0},
    {"empty segments go before dots", "/a//../b", "b", 0},
    {"dots after two slashes", "//../a", NULL, -EINVAL},
    {"dots, then slashes", "/x/..//admin/x", "admin/x", 0},
    {"a name of dots", "/.../..a", ".../..a", 0},
    {"a hidden name", "/.well-known/x", ".well-known/x", 0},
    {"an escaped slash", "/a%2fb", NULL, -EINVAL},
    {"an escaped slash after dots", "/..%2Fetc", NULL, -EINVAL},
    {"a NUL", "/a%00.html", NULL, -EINVAL},
    {"an escaped backslash", "/..%5cetc", NULL, -EINVAL},
    {"a backslash", "/..\\etc", NULL, -EINVAL},
    {"a bad escape", "/a%2", NULL, -EILSEQ},
    {"no path", "*", NULL, -EINVAL},
};

START_TEST(paths_become_names_of_files)
{
    const struct path_case *test = &files[_i];
    struct sxe_span path = page_edge(test->path);
    char room[ROOM];
    ssize_t length = sxe_http_path_to_file(path, room, path.length + 1);

    if (test->normal == NULL) {
        ck_assert_msg(length == test->error, "%s: is %zd", test->title, length);
        return;
    }
    ck_assert_msg(length == (ssize_t)strlen(test->normal), "%s: is %zd", test->title, length);
    ck_assert_str_eq(room, test->normal);
}
END_TEST

START_TEST(a_raw_nul_is_in_no_name_of_a_file)
{
    char room[ROOM];

    ck_assert_int_eq(sxe_http_path_to_file((struct sxe_span){"/a\0b", 4}, room, ROOM), -EINVAL);
}
END_TEST

/* ---- Parts of a path ---- */

static const struct {
    const char *part;
    ssize_t length; /* the length of the decoded part, or an error */
    const char *decoded;
} parts[] = {
    {"", 0, ""},
    {"a", 1, "a"},
    {"a%20b", 3, "a b"},
    {"%C3%A9", 2, "\xc3\xa9"},
    {"%252F", 3, "%2F"},
    {"a/b/", 4, "a/b/"},
    {"...", 3, "..."},
    {".a", 2, ".a"},
    {"a/..b/c..", 9, "a/..b/c.."},
    {"a%2Fb", -EINVAL, NULL},
    {"a%5Cb", -EINVAL, NULL},
    {"a%00", -EINVAL, NULL},
    {"a\\b", -EINVAL, NULL},
    {".", -EINVAL, NULL},
    {"..", -EINVAL, NULL},
    {"../a", -EINVAL, NULL},
    {"a/.", -EINVAL, NULL},
    {"a/../b", -EINVAL, NULL},
    {"%2E", -EINVAL, NULL},
    {"%2", -EILSEQ, NULL},
    {"123456789abcdefgh", -ENOBUFS, NULL},
};

START_TEST(a_part_of_a_path_decodes_to_nothing_that_leads_elsewhere)
{
    char room[16];
    ssize_t length = sxe_http_decode_path(page_edge(parts[_i].part), room, sizeof(room));

    ck_assert_msg(length == parts[_i].length, "%s: is %zd", parts[_i].part, length);
    if (length > 0)
        ck_assert_mem_eq(room, parts[_i].decoded, (size_t)length);
}
END_TEST

/* ---- Escapes ---- */

static const struct {
    const char *text;
    const char *decoded; /* NULL: the text is refused */
    const char *of_form;
} escapes[] = {
    {"", "", ""},
    {"abc", "abc", "abc"},
    {"a%20b", "a b", "a b"},
    {"a+b%2B", "a+b+", "a b+"},
    {"%2f%2F", "//", "//"},
    {"%c3%A9", "\xc3\xa9", "\xc3\xa9"},
    {"%2525", "%25", "%25"},
    {"\xff", "\xff", "\xff"},
    {"%", NULL, "%"},
    {"a%2", NULL, "a%2"},
    {"%%20", NULL, "% "},
    {"%2+", NULL, "%2 "},
    {"% 20", NULL, "% 20"},
    {"100%25%", NULL, "100%%"},
};

START_TEST(escapes_are_decoded)
{
    struct sxe_span text = page_edge(escapes[_i].text);
    const char *decoded = escapes[_i].decoded;
    char room[ROOM];
    ssize_t wanted = decoded == NULL ? -EILSEQ : (ssize_t)strlen(decoded);

    ck_assert_int_eq(sxe_http_decode(text, room, sizeof(room)), wanted);
    if (decoded != NULL)
        ck_assert_mem_eq(room, decoded, (size_t)wanted);
    wanted = (ssize_t)strlen(escapes[_i].of_form);
    ck_assert_int_eq(sxe_http_decode_form(text, room, sizeof(room)), wanted);
    ck_assert_mem_eq(room, escapes[_i].of_form, (size_t)wanted);
}
END_TEST

START_TEST(decoding_takes_no_more_room_than_the_result)
{
    struct sxe_span text = page_edge("%41%42c");
    char room[] = "....";

    ck_assert_int_eq(sxe_http_decode(text, room, 2), -ENOBUFS);
    ck_assert_int_eq(sxe_http_decode(text, room, 3), 3);
    ck_assert_str_eq(room, "ABc.");
}
END_TEST

START_TEST(decoding_in_place)
{
    char *bytes = page_edge_bytes("a%20b%00+", 9);

    ck_assert_int_eq(sxe_http_decode_form((struct sxe_span){bytes, 9}, bytes, 9), 5);
    ck_assert_mem_eq(bytes, "a b\0 ", 5);
}
END_TEST

/* ---- Queries ---- */

static const struct {
    const char *title;
    const char *query;
    const char *pairs; /* name=value|name| ... */
} queries[] = {
    {"no query", NULL, ""},
    {"an empty query", "", ""},
    {"one parameter", "a=1", "[a=1]"},
    {"a parameter without a value", "a=1&b&c=%20", "[a=1][b][c=%20]"},
    {"an empty value", "a=", "[a=]"},
    {"an empty name", "=1", "[=1]"},
    {"= alone", "=", "[=]"},
    {"empty parameters are left out", "&&a=1&&b&", "[a=1][b]"},
    {"a value has =", "a=b=c", "[a=b=c]"},
    {"a semicolon separates nothing", "a=1;b=2", "[a=1;b=2]"},
    {"an escaped & separates nothing", "a=1%26b=2", "[a=1%26b=2]"},
    {"an escaped = is in the name", "a%3D=1", "[a%3D=1]"},
    {"names may come again", "a=1&a=2", "[a=1][a=2]"},
};

START_TEST(a_query_has_parameters)
{
    struct sxe_http_query query;
    char said[ROOM] = "";
    size_t length = 0;

    sxe_http_query_start(&query, page_edge(queries[_i].query));
    while (sxe_http_query_next(&query)) {
        length += (size_t)snprintf(said + length, sizeof(said) - length, "[%.*s%s%.*s]",
                                   (int)query.name.length, query.name.base,
                                   query.value.base == NULL ? "" : "=", (int)query.value.length,
                                   query.value.base == NULL ? "" : query.value.base);
    }
    ck_assert_msg(strcmp(said, queries[_i].pairs) == 0, "%s: %s", queries[_i].title, said);
    ck_assert(!sxe_http_query_next(&query));
}
END_TEST

static const struct {
    const char *query;
    const char *name;
    ssize_t result;
    const char *value;
} finds[] = {
    {"a=1&b=2", "b", 1, "2"},
    {"a=1&a=2", "a", 1, "1"},
    {"a=1&b", "b", 0, ""},
    {"a=1&b=", "b", 0, ""},
    {"=1", "", 1, "1"},
    {"a=x+y%2Bz", "a", 5, "x y+z"},
    {"a%20b=1", "a b", 1, "1"},
    {"a+b=1", "a b", 1, "1"},
    {"a+b=1", "a+b", -ENOENT, NULL},
    {"a%2Bb=1", "a+b", 1, "1"},
    {"%61=1", "a", 1, "1"},
    {"\xc3\xa9=1", "\xc3\xa9", 1, "1"},
    {"%c3%a9=1", "\xc3\xa9", 1, "1"},
    {"A=1", "a", -ENOENT, NULL},
    {"ab=1", "a", -ENOENT, NULL},
    {"a=1", "ab", -ENOENT, NULL},
    {"a%00=1", "a", -ENOENT, NULL},
    {"a%=1&a=2", "a", 1, "2"},
    {"%a=1", "a", -ENOENT, NULL},
    {"", "a", -ENOENT, NULL},
    {NULL, "a", -ENOENT, NULL},
    {"a=%", "a", 1, "%"},
    {"q=100%&a%=2", "a%", 1, "2"},
    {"a=123456789", "a", -ENOBUFS, NULL},
};

START_TEST(a_parameter_is_found_by_its_decoded_name)
{
    char room[8];
    ssize_t result =
        sxe_http_query_find(page_edge(finds[_i].query), finds[_i].name, room, sizeof(room));

    ck_assert_int_eq(result, finds[_i].result);
    if (result > 0)
        ck_assert_mem_eq(room, finds[_i].value, (size_t)result);
}
END_TEST

/* ---- Writing escapes ---- */

static const struct {
    const char *text;
    const char *segment;
    const char *path;
    const char *html;
} written[] = {
    {"", "", "", ""},
    {"aZ09-._~", "aZ09-._~", "aZ09-._~", "aZ09-._~"},
    {"a/b", "a%2Fb", "a/b", "a/b"},
    {"a b%20", "a%20b%2520", "a%20b%2520", "a b%20"},
    {"http:x?y#z", "http%3Ax%3Fy%23z", "http%3Ax%3Fy%23z", "http:x?y#z"},
    {"<a href=\"b\">'&", "%3Ca%20href%3D%22b%22%3E%27%26", "%3Ca%20href%3D%22b%22%3E%27%26",
     "&lt;a href=&quot;b&quot;&gt;&#39;&amp;"},
    {"\xc3\xa9\n\x7f", "%C3%A9%0A%7F", "%C3%A9%0A%7F", "\xc3\xa9\n\x7f"},
};

static void
check_written(ssize_t (*write)(struct sxe_span, char *, size_t), const char *text,
              const char *wanted)
{
    size_t length = strlen(wanted);
    char room[ROOM];

    ck_assert_int_eq(write(page_edge(text), room, length), (ssize_t)length);
    ck_assert_mem_eq(room, wanted, length);
    for (size_t size = 0; size < length; size++)
        ck_assert_int_eq(write(page_edge(text), room, size), -ENOBUFS);
}

START_TEST(text_is_written_so_that_it_stays_text)
{
    check_written(sxe_http_encode_segment, written[_i].text, written[_i].segment);
    check_written(sxe_http_encode_path, written[_i].text, written[_i].path);
    check_written(sxe_http_escape_html, written[_i].text, written[_i].html);
}
END_TEST

START_TEST(every_byte_comes_back_from_its_escape)
{
    char bytes[256];
    char escaped[3 * sizeof(bytes)];
    char back[sizeof(bytes)];
    ssize_t length;

    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)i;
    length =
        sxe_http_encode_segment((struct sxe_span){bytes, sizeof(bytes)}, escaped, sizeof(escaped));
    ck_assert_int_eq(length, 66 + 3 * (256 - 66));
    length = sxe_http_decode((struct sxe_span){escaped, (size_t)length}, back, sizeof(back));
    ck_assert_int_eq(length, sizeof(bytes));
    ck_assert_mem_eq(back, bytes, sizeof(bytes));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-uri");
    TCase *tcase = tcase_create("uri");

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, targets_are_taken_apart, 0, COUNT(targets));
    tcase_add_loop_test(tcase, paths_become_normal, 0, COUNT(normal_paths));
    tcase_add_loop_test(tcase, paths_become_normal_in_place, 0, COUNT(normal_paths));
    tcase_add_test(tcase, a_normal_path_is_not_copied);
    tcase_add_test(tcase, a_path_needs_room_for_its_own_length);
    tcase_add_test(tcase, every_byte_that_is_escaped_is_decoded_only_if_it_needs_no_escape);
    tcase_add_loop_test(tcase, paths_become_names_of_files, 0, COUNT(files));
    tcase_add_test(tcase, a_raw_nul_is_in_no_name_of_a_file);
    tcase_add_loop_test(tcase, a_part_of_a_path_decodes_to_nothing_that_leads_elsewhere, 0,
                        sizeof(parts) / sizeof(parts[0]));
    tcase_add_loop_test(tcase, escapes_are_decoded, 0, COUNT(escapes));
    tcase_add_test(tcase, decoding_takes_no_more_room_than_the_result);
    tcase_add_test(tcase, decoding_in_place);
    tcase_add_loop_test(tcase, a_query_has_parameters, 0, COUNT(queries));
    tcase_add_loop_test(tcase, a_parameter_is_found_by_its_decoded_name, 0, COUNT(finds));
    tcase_add_loop_test(tcase, text_is_written_so_that_it_stays_text, 0, COUNT(written));
    tcase_add_test(tcase, every_byte_comes_back_from_its_escape);
    return sxe_test_main(suite);
}
