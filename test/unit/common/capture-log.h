/* SPDX-License-Identifier: MIT
 *
 * What: keeps the lines that are logged, so that a test can compare them. capture_log() starts
 * this, at level 5 whatever the environment says; log_line(n) is the nth line since then, counted
 * from 0. Limits: 300 lines; with more the test fails.
 */
#ifndef CAPTURE_LOG_H
#define CAPTURE_LOG_H

#include <check.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-log.h"

#define LOG_HEAD "20101002 181142.250 P00006a5f "

static struct {
    unsigned number;
    int levels[300];
    char lines[300][SXE_LOG_LINE_MAX + 1];
} captured;

static void
keep_line(void *user, int level, const char *line, size_t length)
{
    (void)user;
    ck_assert_msg(captured.number < 300, "more than 300 lines; the last: %s", captured.lines[299]);
    ck_assert_uint_le(length, SXE_LOG_LINE_MAX);
    ck_assert_int_eq(line[length - 1], '\n');
    ck_assert_ptr_null(memchr(line, '\n', length - 1));
    captured.levels[captured.number] = level;
    memcpy(captured.lines[captured.number], line, length);
    captured.lines[captured.number++][length] = '\0';
}

static inline void
capture_log(void)
{
    unsetenv("SXE_LOG_LEVEL");
    captured.number = 0;
    sxe_log_set_level(SXE_LOG_DEBUG);
    sxe_log_to_function(keep_line, NULL);
}

/* Whether a line begins like LOG_HEAD, in which each digit stands for any digit. */
static inline bool
has_head(const char *line)
{
    for (const char *head = LOG_HEAD; *head != '\0'; head++, line++) {
        if (isxdigit((unsigned char)*head) ? !isxdigit((unsigned char)*line) : *line != *head)
            return false;
    }
    return true;
}

/* The nth line with its newline but without date and process ID; "" if there are fewer lines. */
static inline const char *
log_line(unsigned nth)
{
    if (nth >= captured.number)
        return "";
    ck_assert_msg(has_head(captured.lines[nth]), "%s", captured.lines[nth]);
    return captured.lines[nth] + strlen(LOG_HEAD);
}

/* Whether a line that contains this text was logged. */
static inline bool
logged(const char *text)
{
    for (unsigned nth = 0; nth < captured.number; nth++) {
        if (strstr(captured.lines[nth], text) != NULL)
            return true;
    }
    return false;
}

/* The nth line without date and process ID, and with # in place of the line number after ".c:". */
static inline const char *
line_without_numbers(unsigned nth)
{
    static char line[SXE_LOG_LINE_MAX + 1];
    const char *colon = strstr(log_line(nth), ".c:");

    if (colon == NULL)
        return log_line(nth);
    snprintf(line, sizeof(line), "%.*s.c:#%s", (int)(colon - log_line(nth)), log_line(nth),
             colon + 3 + strspn(colon + 3, "0123456789"));
    return line;
}

static inline void
check_lines(const char *const *lines)
{
    unsigned nth = 0;

    for (; lines[nth] != NULL; nth++)
        ck_assert_str_eq(line_without_numbers(nth), lines[nth]);
    ck_assert_str_eq(line_without_numbers(nth), "");
}
#define CHECK_LINES(...) check_lines((const char *const[]){__VA_ARGS__, NULL})

#endif
