/* SPDX-License-Identifier: MIT
 *
 * Static files: content types by file extension.
 */
#include "http-file-site.h"
#include "test-main.h"

static const struct {
    const char *name;
    const char *type;
} usual[] = {
    {"index.html", "text/html; charset=utf-8"},
    {"a/b.c/INDEX.HTM", "text/html; charset=utf-8"},
    {"a.css", "text/css; charset=utf-8"},
    {"a.min.js", "text/javascript; charset=utf-8"},
    {"a.mjs", "text/javascript; charset=utf-8"},
    {"a.json", "application/json"},
    {"a.svg", "image/svg+xml"},
    {"a.png", "image/png"},
    {"a.JPG", "image/jpeg"},
    {"a.webp", "image/webp"},
    {"a.avif", "image/avif"},
    {"a.wasm", "application/wasm"},
    {"a.woff2", "font/woff2"},
    {"a.mp4", "video/mp4"},
    {"a.pdf", "application/pdf"},
    {"a.tar.gz", "application/gzip"},
    {"a.7z", "application/x-7z-compressed"},
    {"a.zst", "application/zstd"},
    {"a.xml", "application/xml"},
    {"a.txt", "text/plain; charset=utf-8"},
    {"README", "application/octet-stream"},
    {"a.", "application/octet-stream"},
    {"a.html/b", "application/octet-stream"},
    {"a.unknown", "application/octet-stream"},
    {"a.an-extension-that-is-longer-than-any", "application/octet-stream"},
    {"", "application/octet-stream"},
};

static struct sxe__http_types types;

static void
make_types(const char *lines, const char *file, const char *usual_type)
{
    struct sxe_http_files_config config = {
        .types = lines, .types_file = file, .type_default = usual_type};

    sxe_log_set_level(SXE_LOG_FATAL);
    ck_assert_int_eq(sxe__http_types_new(&types, &config), 0);
}

static const char *
type_of(const char *name)
{
    return sxe__http_type_of(&types, name);
}

START_TEST(a_usual_extension_has_its_type)
{
    make_types(NULL, NULL, NULL);
    ck_assert_str_eq(type_of(usual[_i].name), usual[_i].type);
    sxe__http_types_delete(&types);
}
END_TEST

START_TEST(every_type_of_the_table_can_be_found)
{
    static const char *const extensions[] = {
        "7z",   "aac",  "apng", "atom", "avi",  "avif",        "bmp",    "br",   "bz2",   "c",
        "cc",   "conf", "cpp",  "css",  "csv",  "deb",         "diff",   "doc",  "docx",  "eot",
        "epub", "flac", "gif",  "gz",   "h",    "heic",        "htm",    "html", "ico",   "ics",
        "iso",  "jar",  "jpeg", "jpg",  "js",   "json",        "jsonld", "jxl",  "log",   "lua",
        "m3u8", "m4a",  "m4v",  "map",  "md",   "mid",         "mjs",    "mkv",  "mov",   "mp3",
        "mp4",  "mpeg", "mpg",  "odp",  "ods",  "odt",         "oga",    "ogg",  "ogv",   "opus",
        "otf",  "pdf",  "png",  "ppt",  "pptx", "py",          "rar",    "rpm",  "rss",   "rtf",
        "sh",   "svg",  "tar",  "tgz",  "tif",  "tiff",        "toml",   "ts",   "ttf",   "txt",
        "vtt",  "wasm", "wav",  "weba", "webm", "webmanifest", "webp",   "woff", "woff2", "xhtml",
        "xls",  "xlsx", "xml",  "xz",   "yaml", "yml",         "zip",    "zst",
    };
    char name[32];

    make_types(NULL, NULL, "none/none");
    for (unsigned i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++) {
        snprintf(name, sizeof(name), "a.%s", extensions[i]);
        ck_assert_str_ne(type_of(name), "none/none");
    }
    ck_assert_str_eq(type_of("a.x"), "none/none");
    sxe__http_types_delete(&types);
}
END_TEST

START_TEST(lines_of_the_program_come_first)
{
    make_types("# a comment\n"
               "text/x-lua\tlua WLua # another\r\n"
               "\n"
               "text/none\n"
               "text/html;charset=ascii html",
               NULL, NULL);
    ck_assert_str_eq(type_of("a.lua"), "text/x-lua");
    ck_assert_str_eq(type_of("a.wlua"), "text/x-lua");
    ck_assert_str_eq(type_of("a.WLUA"), "text/x-lua");
    ck_assert_str_eq(type_of("a.html"), "text/html;charset=ascii");
    ck_assert_str_eq(type_of("a.another"), "application/octet-stream");
    ck_assert_str_eq(type_of("a.css"), "text/css; charset=utf-8");
    sxe__http_types_delete(&types);
}
END_TEST

START_TEST(lines_of_a_file_come_next)
{
    begin_site();
    put_file("mime.types", "text/x-c c h\ntext/x-file lua\n");
    make_types("text/x-lua lua", path_of("mime.types"), NULL);
    ck_assert_str_eq(type_of("a.c"), "text/x-c");
    ck_assert_str_eq(type_of("a.h"), "text/x-c");
    ck_assert_str_eq(type_of("a.lua"), "text/x-lua");
    sxe__http_types_delete(&types);
    remove_site();
}
END_TEST

START_TEST(a_file_of_lines_that_cannot_be_read_is_an_error)
{
    struct sxe_http_files_config config = {0};

    begin_site();
    put_file("mime.types", "text/x-c c h\n");
    config.types_file = path_of("mime.types");
    fake_os_fail(_i == 0 ? FAKE_FSTAT : FAKE_READ, 1, 1, EIO);
    ck_assert_int_eq(sxe__http_types_new(&types, &config), -EIO);
    sxe__http_types_delete(&types);
    remove_site();
}
END_TEST

START_TEST(what_a_field_cannot_have_is_no_type)
{
    static const char *const bad[] = {"html", "text/\xc3\xa4 a", "text/\x7f a", NULL};
    char text[200] = "text/";
    struct sxe_http_files_config config = {.types = text};

    sxe_log_set_level(SXE_LOG_FATAL);
    memset(text + 5, 'x', 123);
    ck_assert_int_eq(sxe__http_types_new(&types, &config), -EINVAL);
    sxe__http_types_delete(&types);
    text[127] = '\0';
    ck_assert_int_eq(sxe__http_types_new(&types, &config), 0);
    sxe__http_types_delete(&types);
    for (unsigned i = 0; bad[i] != NULL; i++) {
        config.types = bad[i];
        ck_assert_int_eq(sxe__http_types_new(&types, &config), -EINVAL);
        sxe__http_types_delete(&types);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-file-type");
    TCase *tcase = tcase_create("http-file-type");

    tcase_add_loop_test(tcase, a_usual_extension_has_its_type, 0, sizeof(usual) / sizeof(usual[0]));
    tcase_add_test(tcase, every_type_of_the_table_can_be_found);
    tcase_add_test(tcase, lines_of_the_program_come_first);
    tcase_add_test(tcase, lines_of_a_file_come_next);
    tcase_add_loop_test(tcase, a_file_of_lines_that_cannot_be_read_is_an_error, 0, 2);
    tcase_add_test(tcase, what_a_field_cannot_have_is_no_type);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
