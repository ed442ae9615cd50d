/* SPDX-License-Identifier: MIT
 *
 * Line editing of the shell with libedit.
 */
#include "sxe-lua-repl-private.h"

#include <errno.h>
#include <histedit.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

enum { HISTORY_MAX = 1000, LINE_MAX_BYTES = 4096, CTRL_D = 4 };

static struct {
    EditLine *el; /* NULL: the editor is not open */
    History *history;
    char path[PATH_MAX]; /* the file of the history; "": none */
    sxe__lua_complete complete;
    const char *prompt;
    bool is_editing;
} editor;

static char *
prompt_of(EditLine *el)
{
    static char prompt[16];

    (void)el;
    snprintf(prompt, sizeof(prompt), "%s", editor.prompt);
    return prompt;
}

/* ---- Output above the line ---- */

/* Clear the line that is edited, and move the cursor to its beginning. */
static void
hide_line(void)
{
    const LineInfoW *line = el_wline(editor.el);
    int width = (int)strlen(editor.prompt);
    int columns = 0;

    for (const wchar_t *character = line->buffer; character < line->cursor; character++)
        width += wcwidth(*character) < 0 ? 2 : wcwidth(*character);
    el_get(editor.el, EL_GETTC, "co", &columns, NULL);
    if (columns > 0 && width >= columns)
        printf("\033[%dA", width / columns);
    fputs("\r\033[J", stdout);
    fflush(stdout);
}

static void
write_terminal_text(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, text, length);

        if (written < 0 && errno != EINTR)
            return;
        if (written > 0) {
            text += written;
            length -= (size_t)written;
        }
    }
}

void
sxe__lua_editor_say(int fd, const char *text, size_t length)
{
    fflush(stdout);
    if (editor.is_editing)
        hide_line();
    write_terminal_text(fd, text, length);
    if (editor.is_editing)
        el_set(editor.el, EL_REFRESH);
}

/* ---- Completion ---- */

static unsigned char
on_tab(EditLine *el, int character)
{
    const LineInfo *line = el_line(el);
    struct sxe__lua_completion completion = {NULL, NULL};

    (void)character;
    editor.complete((struct sxe_span){line->buffer, (size_t)(line->cursor - line->buffer)},
                    &completion);
    if (completion.insert != NULL)
        return el_insertstr(el, completion.insert) == 0 ? CC_REFRESH : CC_ERROR;
    if (completion.list == NULL)
        return CC_ERROR;
    printf("\n%s", completion.list);
    fflush(stdout);
    return CC_REDISPLAY;
}

/* ---- Lines ---- */

void
sxe__lua_editor_ask(const char *prompt)
{
    editor.prompt = prompt;
    editor.is_editing = true;
    el_set(editor.el, EL_UNBUFFERED, 1);
}

void
sxe__lua_editor_rest(void)
{
    editor.is_editing = false;
    el_set(editor.el, EL_UNBUFFERED, 0);
}

/* Whether the terminal has hung up. Without this check, bytes that are no character would look like
 * the end of the input. */
static bool
is_terminal_hung_up(void)
{
    struct pollfd terminal = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&terminal, 1, 0) > 0 && (terminal.revents & (POLLHUP | POLLERR)) != 0;
}

static void
remember_line(struct sxe_span line)
{
    char text[LINE_MAX_BYTES];
    HistEvent event;

    if (line.length == 0 || line.length >= sizeof(text))
        return;
    memcpy(text, line.base, line.length);
    text[line.length] = '\0';
    if (text[strspn(text, " \t")] != '\0')
        history(editor.history, &event, H_ENTER, text);
}

enum sxe__lua_typed
sxe__lua_editor_read(struct sxe_span *line)
{
    int length = 0;
    const char *text = el_gets(editor.el, &length);

    if (text == NULL || length <= 0)
        return is_terminal_hung_up() ? SXE__LUA_TYPED_END : SXE__LUA_TYPING;
    if (length == 1 && *text == CTRL_D)
        return SXE__LUA_TYPED_END;
    if (text[length - 1] != '\n' && text[length - 1] != '\r')
        return SXE__LUA_TYPING;
    sxe__lua_editor_rest();
    *line = (struct sxe_span){text, (size_t)length - 1};
    remember_line(*line);
    return SXE__LUA_TYPED_LINE;
}

void
sxe__lua_editor_resized(void)
{
    el_resize(editor.el);
}

void
sxe__lua_editor_again(void)
{
    if (!editor.is_editing)
        return;
    sxe__lua_editor_rest();
    sxe__lua_editor_ask(editor.prompt);
}

/* ---- Opening and closing ---- */

static void
open_history(const char *path)
{
    HistEvent event;

    history(editor.history, &event, H_SETSIZE, HISTORY_MAX);
    history(editor.history, &event, H_SETUNIQUE, 1);
    snprintf(editor.path, sizeof(editor.path), "%s", path);
    if (*path != '\0')
        history(editor.history, &event, H_LOAD, path);
}

int
sxe__lua_editor_open(const char *path, sxe__lua_complete complete)
{
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return -ENOTTY;
    setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX == 1)
        setlocale(LC_CTYPE, "C.UTF-8");
    editor.el = el_init("sxe-lua", stdin, stdout, stderr);
    editor.history = history_init();
    if (editor.el == NULL || editor.history == NULL) {
        sxe__lua_editor_close();
        return -ENOMEM;
    }
    editor.complete = complete;
    editor.prompt = "";
    open_history(path);
    el_set(editor.el, EL_PROMPT, prompt_of);
    el_set(editor.el, EL_EDITOR, "emacs");
    el_set(editor.el, EL_SIGNAL, 0);
    el_set(editor.el, EL_HIST, history, editor.history);
    /* not el_set, which leaks memory here */
    el_wset(editor.el, EL_ADDFN, L"sxe-complete", L"Complete a name", on_tab);
    el_set(editor.el, EL_BIND, "^I", "sxe-complete", NULL);
    el_set(editor.el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(editor.el, NULL);
    return 0;
}

void
sxe__lua_editor_close(void)
{
    HistEvent event;

    if (editor.is_editing)
        sxe__lua_editor_rest();
    if (editor.path[0] != '\0' && history(editor.history, &event, H_SAVE, editor.path) < 0)
        fprintf(stderr, "the history cannot be saved in %s\n", editor.path);
    if (editor.history != NULL)
        history_end(editor.history);
    if (editor.el != NULL)
        el_end(editor.el);
    memset(&editor, 0, sizeof(editor));
}
