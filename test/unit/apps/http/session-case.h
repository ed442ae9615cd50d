/* SPDX-License-Identifier: MIT
 *
 * What: script-case.h for scenarios with steps: users in one worker, whose queries and replies a
 * case makes. Files that a scenario names are in the case's folder.
 */
#ifndef SESSION_CASE_H
#define SESSION_CASE_H

#include "../../../../apps/http/input/session-private.h"

#include "script-case.h"

#define HOST "Host: 127.0.0.1:8000\r\n"

static char folder[64];

static inline void
a_session(void)
{
    options.is_scenario = true;
    options.workers = 1;
    request_options = (struct load_template_options){.method = "GET"};
    snprintf(folder, sizeof(folder), "/tmp/sxe-http-session-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline const char *
in_folder(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static inline void
put_file(const char *name, const char *bytes, size_t length)
{
    FILE *file = fopen(in_folder(name), "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

static inline void
put_text_file(const char *name, const char *text)
{
    put_file(name, text, strlen(text));
}

static inline void
end_session(void)
{
    static const char *const names[] = {"s.lua", "users.csv", "users.jsonl", "photo.bin"};

    free_script();
    for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
        unlink(in_folder(names[i]));
    rmdir(folder);
}

/* Load a scenario whose files are in the folder. */
static inline struct load_requests *
load_steps(const char *text)
{
    static char path[128];

    if (err == NULL)
        err = open_memstream(&err_text, &err_length);
    put_text_file("s.lua", text);
    snprintf(path, sizeof(path), "%s", in_folder("s.lua"));
    options.path = path;
    requests = load_script_new(&options, err);
    return requests;
}

static inline void
must_load_steps(const char *text)
{
    ck_assert_msg(load_steps(text) != NULL, "%s", said());
    ck_assert_str_eq(said(), "");
}

static inline void
begin_users(uint32_t users, unsigned shard, unsigned shards)
{
    requests->clients = users;
    ck_assert_int_eq(requests->begin(requests, shard, shards, 1), 0);
}

static inline void
must_begin_steps(const char *text)
{
    must_load_steps(text);
    begin_users(4, 0, 1);
}

static inline const char *
ask(uint32_t client)
{
    query = (struct load_query){.client = client};
    return next_text();
}

static inline enum load_reading
reads(uint32_t client, unsigned status, const char *fields, const char *body)
{
    char head[4096];
    int length = snprintf(head, sizeof(head), "HTTP/1.1 %u X\r\n%s", status, fields);
    struct load_exchange exchange = {.client = client,
                                     .status = (uint16_t)status,
                                     .head = head,
                                     .head_length = (size_t)length,
                                     .body = body,
                                     .body_length = strlen(body)};

    return requests->read(requests, &exchange);
}

/* Make the client's next query, and give it this reply. Returns how the query ended. */
static inline unsigned
goes(uint32_t client, const char *fields, const char *body)
{
    ask(client);
    ck_assert_int_eq(reads(client, 200, fields, body), LOAD_READ_JUDGE);
    return requests->ended(requests, client, LOAD_END_OK);
}

#endif
