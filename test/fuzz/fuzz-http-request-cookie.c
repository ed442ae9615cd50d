/* SPDX-License-Identifier: MIT
 *
 * Any lines as the Cookie fields of a request: a second parser, which splits a copy of the lines,
 * must find the same cookies, and decoding makes no value longer.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-http-cookie.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 2000 };

static void
expect(bool is_so, const char *what)
{
    if (!is_so) {
        fprintf(stderr, "http-request-cookie: %s\n", what);
        abort();
    }
}

/* Cut blanks off both ends. */
static char *
trim(char *text)
{
    text += strspn(text, " \t");
    for (size_t length = strlen(text); length > 0 && strchr(" \t", text[length - 1]) != NULL;)
        text[--length] = '\0';
    return text;
}

/* Find the next cookie of the lines that strtok_r splits at semicolons and line ends. */
static bool
find_next(char **rest, char **name, char **value)
{
    for (char *pair; (pair = strtok_r(NULL, ";\n", rest)) != NULL;) {
        char *equals = strchr(pair, '=');
        size_t length;

        if (equals == NULL)
            continue;
        *equals = '\0';
        *name = trim(pair);
        *value = trim(equals + 1);
        length = strlen(*value);
        if (length >= 2 && (*value)[0] == '"' && (*value)[length - 1] == '"') {
            (*value)[length - 1] = '\0';
            ++*value;
        }
        return true;
    }
    return false;
}

static bool
is_same(struct sxe_span got, const char *wanted)
{
    return got.length == strlen(wanted) && memcmp(got.base, wanted, got.length) == 0;
}

static void
check_cookies(const struct sxe_http_request *request, char *lines)
{
    struct sxe_http_cookies cookies;
    char room[TEXT_MAX];
    char *rest = lines, *name, *value;

    sxe_http_cookies_start(&cookies, request);
    while (find_next(&rest, &name, &value)) {
        expect(sxe_http_cookies_next(&cookies), "a cookie is missing");
        expect(is_same(cookies.name, name) && is_same(cookies.value, value), "a cookie differs");
        expect(sxe_http_decode_lenient(cookies.value, room, cookies.value.length) >= 0,
               "a decoded value is longer");
    }
    expect(!sxe_http_cookies_next(&cookies), "there is a cookie too many");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sxe_http_field fields[100];
    struct sxe_http_request request = {0};
    char head[TEXT_MAX * 10], lines[TEXT_MAX + 1];
    char *to = stpcpy(head, "GET / HTTP/1.1\r\nHost: h\r\nCookie: ");

    if (size > TEXT_MAX || memchr(data, '\0', size) != NULL)
        return 0;
    memcpy(lines, data, size);
    lines[size] = '\0';
    for (size_t i = 0; i < size; i++) {
        if (lines[i] == '\n')
            to = stpcpy(to, "\r\nCookie: ");
        else
            *to++ = lines[i];
    }
    to = stpcpy(to, "\r\n\r\n");
    sxe_http_parser_init(&request.head, SXE_HTTP_REQUEST, fields, 100, NULL);
    if (sxe_http_parse(&request.head, head, (size_t)(to - head)) != (int)(to - head))
        return 0;
    request.data = head;
    check_cookies(&request, lines);
    return 0;
}
