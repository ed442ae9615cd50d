/* SPDX-License-Identifier: MIT
 *
 * Numbers, times and untrusted bytes as texts for people and for JSON.
 */
#include "pool-text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sxe-json.h"
#include "sxe-time.h"
#include "sxe-utf8.h"

enum { TEXTS = 8, TEXT_SIZE = 4096, COMMAND_SIZE = 61 };

static char *
next_pool_text(void)
{
    static char texts[TEXTS][TEXT_SIZE];
    static unsigned turn;

    return texts[turn++ % TEXTS];
}

const char *
pool_age_text(uint64_t now_ns, uint64_t stamp_ns)
{
    const uint64_t ns = now_ns > stamp_ns ? now_ns - stamp_ns : 0;
    const unsigned long seconds = ns / SXE_NS_PER_SECOND;
    char *text = next_pool_text();

    if (stamp_ns == 0)
        return "-";
    if (ns < SXE_NS_PER_SECOND)
        snprintf(text, TEXT_SIZE, "%lu ms", (unsigned long)(ns / SXE_NS_PER_MS));
    else if (seconds < 60)
        snprintf(text, TEXT_SIZE, "%.1f s", (double)ns / (double)SXE_NS_PER_SECOND);
    else if (seconds < 3600)
        snprintf(text, TEXT_SIZE, "%lum %02lus", seconds / 60, seconds % 60);
    else if (seconds < 86400)
        snprintf(text, TEXT_SIZE, "%luh %02lum", seconds / 3600, seconds / 60 % 60);
    else
        snprintf(text, TEXT_SIZE, "%lud %02luh", seconds / 86400, seconds / 3600 % 24);
    return text;
}

/* The length of the UTF-8 character at text; 0: the byte must not be printed, because it is not
 * UTF-8, or begins a control character. */
static size_t
shown_bytes(const char *text, size_t left)
{
    uint32_t character;
    const size_t length = sxe_utf8_decode(&character, (const unsigned char *)text, left);

    return character < ' ' || (character >= 0x7f && character < 0xa0) ? 0 : length;
}

const char *
pool_plain_text(const char *text)
{
    char *plain = next_pool_text();
    size_t used = 0;

    while (*text != '\0' && used + 4 < TEXT_SIZE) {
        const size_t length = shown_bytes(text, 4);

        if (length == 0)
            plain[used++] = '?';
        memcpy(plain + used, text, length);
        used += length;
        text += length == 0 ? 1 : length;
    }
    plain[used] = '\0';
    return plain;
}

const char *
pool_count_text(unsigned long number, const char *what)
{
    const int stem = (int)strlen(what) - 1;
    char *text = next_pool_text();

    if (number != 1 && what[stem] == 'y')
        snprintf(text, TEXT_SIZE, "%lu %.*sies", number, stem, what);
    else
        snprintf(text, TEXT_SIZE, "%lu %s%s", number, what, number == 1 ? "" : "s");
    return text;
}

void
pool_print_json(const char *text, size_t length)
{
    sxe_json_print(stdout, text, length, SXE_JSON_UTF8);
}

const char *
pool_command_text(int process)
{
    char path[32];
    char command[COMMAND_SIZE];

    snprintf(path, sizeof(path), "/proc/%d/cmdline", process);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? 0 : read(fd, command, sizeof(command) - 1);

    if (fd >= 0)
        close(fd);
    if (length <= 0)
        return "?";
    for (ssize_t i = 0; i < length - 1; i++) {
        if (command[i] == '\0')
            command[i] = ' ';
    }
    command[length] = '\0';
    return pool_plain_text(command);
}
