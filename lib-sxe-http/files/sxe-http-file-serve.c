/* SPDX-License-Identifier: MIT
 *
 * What: from a name to a fresh entry, and to the reply. A thread opens a file once for all requests
 * that want it; these wait in a list of its entry. A wish is a request that is not answered yet,
 * and the file that it wants.
 *
 *     wish: a.js -> [ entry of a.js ] -> its reply
 *                        '-> wish: its sibling a.js.br -> [ entry of a.js.br ] -> the reply of both
 */
#include "sxe-http-file-private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sxe-http-conditional.h"

enum { NOT_WAITING, WAITING };

/* ---- Waiting ---- */

static void
leave_line(struct sxe__http_waiter *waiter)
{
    struct sxe__http_file *file = waiter->file;
    struct sxe__http_waiter *pool = file->files->waiters;
    struct sxe_http_response *response = sxe_http_response_of(waiter->wish.request);

    *(waiter->prev == NULL ? &file->first : &waiter->prev->next) = waiter->next;
    *(waiter->next == NULL ? &file->last : &waiter->next->prev) = waiter->prev;
    response->user = NULL;
    response->on_done = NULL;
    sxe_pool_move(pool, (unsigned)(waiter - pool), WAITING, NOT_WAITING);
}

/* The on_done of a waiting request, whose client has gone. */
static void
give_wish_up(struct sxe_http_request *request, struct sxe_http_response *response, int result)
{
    struct sxe__http_waiter *waiter = response->user;
    struct sxe__http_file *base = waiter->wish.base;

    SXE_UNUSED_PARAMETER(request);
    SXE_UNUSED_PARAMETER(result);
    leave_line(waiter);
    sxe__http_cache_release(base);
}

/* Have a request wait for an entry. False: too many requests wait already. */
static bool
join_line(struct sxe__http_file *file, const struct sxe__http_wish *wish)
{
    struct sxe__http_waiter *waiters = file->files->waiters;
    struct sxe_http_response *response = sxe_http_response_of(wish->request);
    unsigned id = sxe_pool_take(waiters, NOT_WAITING, WAITING);

    if (id == SXE_POOL_NO_INDEX)
        return false;
    waiters[id] = (struct sxe__http_waiter){.wish = *wish, .file = file, .prev = file->last};
    *(file->last == NULL ? &file->first : &file->last->next) = &waiters[id];
    file->last = &waiters[id];
    response->user = &waiters[id];
    response->on_done = give_wish_up;
    /* a client that half-closes meanwhile still gets its reply, because opening a file takes only a
     * short time */
    sxe_http_allow_half_close(response);
    return true;
}

/* ---- Answering ---- */

/* Choose the coding in which this request gets the file; -1: none. */
static int
choose_coding(const struct sxe_http_request *request, const struct sxe__http_file *file)
{
    struct sxe_http_list accepted;
    const char *names[SXE__HTTP_CODINGS];
    int codings[SXE__HTTP_CODINGS];
    unsigned number = 0;
    int chosen;

    if (file->siblings == 0)
        return -1;
    accepted = sxe_http_list_of(&request->head, request->data, SXE_HTTP_FIELD_ACCEPT_ENCODING);
    if (!sxe_http_list_is_there(&accepted))
        return -1;
    for (int i = 0; i < SXE__HTTP_CODINGS; i++) {
        if (!(file->siblings >> i & 1))
            continue;
        names[number] = sxe__http_codings[i].name;
        codings[number++] = i;
    }
    chosen = sxe_http_select_coding(&accepted, names, number);
    return chosen < 0 ? -1 : codings[chosen];
}

/* Whether the request wants a sibling of the file. If so, the wish becomes one for that sibling. */
static bool
wants_sibling(struct sxe__http_wish *wish, struct sxe__http_file *file)
{
    int coding = choose_coding(wish->request, file);

    if (coding < 0)
        return false;
    sxe__http_cache_hold(file);
    wish->base = file;
    wish->coding = (unsigned)coding;
    return true;
}

/* Answer with an opened entry; file NULL: none could be opened. False: a sibling must be opened
 * first. */
static bool
answer_wish(struct sxe__http_wish *wish, struct sxe__http_file *file)
{
    struct sxe__http_file *base = wish->base;

    if (base == NULL) {
        if (file == NULL)
            sxe__http_file_refuse(wish->request, 503);
        else if (file->status == 0 && wants_sibling(wish, file))
            return false;
        else
            sxe__http_file_reply(wish, file, file);
        return true;
    }
    /* The sibling may have been removed since it was seen, or may be in the middle of a rewrite:
     * then send the file itself. */
    if (file == NULL || file->status != 0 || !sxe__http_is_as_new(&file->found, &base->found))
        file = base;
    sxe__http_file_reply(wish, base, file);
    sxe__http_cache_release(base);
    return true;
}

/* ---- Opening ---- */

static void on_opened(struct sxe_work *work);

static void
open_in_thread(struct sxe_work *work)
{
    sxe__http_file_open((struct sxe__http_file *)work);
}

/* Have a thread open a name; known: the name's old entry, or NULL. Returns the new entry; NULL: no
 * entry or thread is free. */
static struct sxe__http_file *
begin_opening(struct sxe_http_files *files, struct sxe_span name, struct sxe__http_file *known)
{
    struct sxe__http_file *file;

    if (known != NULL)
        sxe__http_cache_hold(known);
    file = sxe__http_cache_add(files, name);
    if (file == NULL) {
        sxe__http_cache_release(known);
        return NULL;
    }
    file->known = known;
    file->work.run = open_in_thread;
    file->work.done = on_opened;
    file->work.group = files->group;
    if (sxe_work_submit(&file->work) == 0)
        return file;
    sxe__http_cache_remove(file);
    sxe__http_cache_release(known);
    return NULL;
}

/* Get the entry of that name, opened or OPENING. NULL: there is no such entry, and none can be
 * opened now. */
static struct sxe__http_file *
look_up_file(struct sxe_http_files *files, struct sxe_span name)
{
    struct sxe__http_file *file = sxe__http_cache_find(files, name);
    uint64_t fresh_ns = files->config.revalidate_ms * (uint64_t)1000000;

    if (file == NULL)
        return begin_opening(files, name, NULL);
    if (file->state == SXE__HTTP_FILE_OPENING || sxe_time_turn_ns() - file->checked < fresh_ns)
        return file;
    return begin_opening(files, name, file);
}

/* Make the name of the sibling that the wish asks for. */
static struct sxe_span
sibling_name(struct sxe_http_files *files, const struct sxe__http_wish *wish)
{
    const struct sxe__http_file *base = wish->base;
    int length = snprintf(files->room, sizeof(files->room), "%s%s%s",
                          strcmp(base->name, ".") == 0 ? "" : base->name, base->index,
                          sxe__http_codings[wish->coding].suffix);

    return (struct sxe_span){files->room, (size_t)length};
}

/* Look up files until the request is answered, or waits. */
static enum sxe_http_verdict
pursue_wish(struct sxe_http_files *files, struct sxe__http_wish *wish, struct sxe_span name)
{
    for (;;) {
        struct sxe__http_file *file = look_up_file(files, name);

        if (file != NULL && file->state == SXE__HTTP_FILE_OPENING) {
            if (join_line(file, wish))
                return SXE_HTTP_LATER;
            file = NULL;
        }
        if (answer_wish(wish, file))
            return SXE_HTTP_DONE;
        name = sibling_name(files, wish);
    }
}

static bool
is_out_of_descriptors(const struct sxe__http_file *file)
{
    return file->error == EMFILE || file->error == ENFILE;
}

/* The entry that the name leads to now: `file`, or the name's old entry if the file has not
 * changed. */
static struct sxe__http_file *
settle_file(struct sxe__http_file *file)
{
    struct sxe__http_file *known = file->known;

    sxe__http_cache_opened(file);
    if (file->is_same) {
        known->siblings = file->siblings;
        known->checked = file->checked;
        return known;
    }
    /* A file that cannot be read just now (5xx) may be unchanged: keep its old entry. */
    if (known != NULL && file->status < 500)
        sxe__http_cache_remove(known);
    return file;
}

static void
on_opened(struct sxe_work *work)
{
    struct sxe__http_file *file = (struct sxe__http_file *)work;
    struct sxe_http_files *files = file->files;
    struct sxe__http_file *known = file->known;
    struct sxe__http_file *found;

    if (is_out_of_descriptors(file) && sxe__http_cache_close_one(files) &&
        sxe_work_submit(work) == 0)
        return;
    if (file->status >= 500)
        SXE_WARN("cannot read %s: %s", file->name, strerror(file->error));
    found = settle_file(file);
    while (file->first != NULL) {
        struct sxe__http_waiter *waiter = file->first;
        struct sxe__http_wish wish = waiter->wish;

        leave_line(waiter);
        if (!answer_wish(&wish, found))
            (void)!pursue_wish(files, &wish, sibling_name(files, &wish));
    }
    sxe__http_cache_release(file);
    sxe__http_cache_release(known);
}

enum sxe_http_verdict
sxe__http_file_serve(struct sxe_http_files *files, struct sxe_http_request *request,
                     struct sxe_span name)
{
    struct sxe__http_wish wish = {.request = request};

    return pursue_wish(files, &wish, name);
}
