/* SPDX-License-Identifier: MIT
 *
 * Any lines as Set-Cookie fields: the jar stays within its limits, the cookies that it sends have
 * no line ends that the input did not have, and a cookie that is set again does not become two.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cookie-date.h"
#include "cookie-jar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
expect(bool is_so, const char *what)
{
    if (!is_so) {
        fprintf(stderr, "http-cookie: %s\n", what);
        abort();
    }
}

static size_t
check_jar(const struct load_jar *jar, const char *path, int64_t now_s)
{
    static char text[LOAD_JAR_TEXT_MAX];
    size_t length = load_jar_write(jar, (struct sxe_span){path, strlen(path)}, now_s, text);

    expect(jar->number <= LOAD_JAR_COOKIES && jar->used <= LOAD_JAR_BYTES, "the jar is too full");
    expect(length <= sizeof(text), "too much is sent");
    expect(length == 0 || memchr(text, '=', length) != NULL, "a cookie has no =");
    expect(memchr(text, '\n', length) == NULL, "a line ends inside");
    return length;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct load_jar_origin origin = {{"www.example.com", 15}, {"/x/y?z", 6}};
    const char *at = (const char *)data, *end = at + size;
    static struct load_jar jar;
    int64_t seconds;

    load_jar_clear(&jar);
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((line == NULL ? end : line) - at);
        unsigned number;

        load_jar_take(&jar, &origin, at, length, 784111770);
        number = jar.number;
        load_jar_take(&jar, &origin, at, length, 784111770);
        expect(jar.number == number, "a cookie is there twice");
        (void)check_jar(&jar, "/x/y", 784111770);
        (void)check_jar(&jar, "/", INT64_MAX - 1);
        if (load_cookie_date((struct sxe_span){at, length}, &seconds))
            expect(seconds > -12000000000 && seconds < 260000000000, "a date is in no year");
        at += length + (line != NULL);
    }
    return 0;
}
