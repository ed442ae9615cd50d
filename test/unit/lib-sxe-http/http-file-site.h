/* SPDX-License-Identifier: MIT
 *
 * What: a directory with files, a server for it, and clients, in one process.
 *
 * Place: tests of static files. The clock is virtual, and its wall clock is an hour ahead, so that
 * every file is old. Real threads of sxe-http-file.c open the files.
 *
 * Shape: each case begins with an empty directory, site.root, which is removed when the case ends.
 *
 *     put_file("a.txt", "hello");
 *     serve(NULL);
 *     get("/a.txt", "Range: bytes=0-1\r\n");      reply.status, reply.body, field("ETag")
 *     end_site();                                 checks that no descriptor is left open
 */
#ifndef HTTP_FILE_SITE_H
#define HTTP_FILE_SITE_H

#include "sxe-http-file-private.h"

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fake-os.h"
#include "fake-time.h"
#include "sxe-fixture.h"

#define REPLY_SIZE (9u * 1024 * 1024)
#define FRESH_MS   20000     /* longer than a case waits, and shorter than the stall timeout */
#define OLD        784111777 /* Sun, 06 Nov 1994 08:49:37 GMT: modification time of all files */
#define OLD_TEXT   "Sun, 06 Nov 1994 08:49:37 GMT"

static struct {
    char root[32];
    struct sxe_http_files *files;
    struct sxe_http_files *others; /* files of a route; deleted with the site */
    struct sxe_http *http;
    unsigned open_before;
    unsigned done; /* how many replies have ended */
    int result;    /* the result of the last reply */
} site;

static struct {
    unsigned status;
    size_t head_length;
    size_t length; /* bytes of the body */
    char *body;
    char text[REPLY_SIZE];
} reply;

/* ---- Files ---- */

static const char *
path_of(const char *name)
{
    static char path[2][8192];
    static unsigned turn_of;
    char *room = path[turn_of++ % 2];

    snprintf(room, sizeof(path[0]), "%s/%s", site.root, name);
    return room;
}

static void
set_time(const char *name, time_t seconds, long ns)
{
    const struct timespec times[2] = {{seconds, ns}, {seconds, ns}};

    ck_assert_int_eq(utimensat(AT_FDCWD, path_of(name), times, AT_SYMLINK_NOFOLLOW), 0);
}

static void
put_bytes(const char *name, const void *bytes, size_t length)
{
    FILE *file = fopen(path_of(name), "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
    set_time(name, OLD, 0);
}

static inline void
put_file(const char *name, const char *text)
{
    put_bytes(name, text, strlen(text));
}

static inline char
byte_at(size_t i)
{
    return (char)('a' + i * 7 % 26);
}

/* Write a file whose bytes byte_at() gives. */
static inline void
put_large(const char *name, size_t length)
{
    char *bytes = malloc(length);

    for (size_t i = 0; i < length; i++)
        bytes[i] = byte_at(i);
    put_bytes(name, bytes, length);
    free(bytes);
}

/* How many of these bytes equal those of a large file from `first` on. */
static inline size_t
matching(const char *bytes, size_t first, size_t length)
{
    size_t i = 0;

    while (i < length && bytes[i] == byte_at(first + i))
        i++;
    return i;
}

static inline void
put_directory(const char *name)
{
    ck_assert_int_eq(mkdir(path_of(name), 0755), 0);
}

static inline void
put_link(const char *name, const char *to)
{
    ck_assert_int_eq(symlink(to, path_of(name)), 0);
}

/* ---- The server ---- */

static void
begin_site(void)
{
    struct timespec now;

    memset(&site, 0, sizeof(site));
    snprintf(site.root, sizeof(site.root), "/tmp/sxe-site-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(site.root));
    clock_gettime(CLOCK_REALTIME, &now);
    fake_time_start(UINT64_C(1000) * 1000000000, ((uint64_t)now.tv_sec + 3600) * 1000000000);
    site.open_before = fake_os_open_fds();
    event_reset();
    sxe_log_set_level(SXE_LOG_FATAL);
}

static void
count_reply(struct sxe_http_request *request, const struct sxe_http_summary *summary)
{
    SXE_UNUSED_PARAMETER(request);
    site.done++;
    site.result = summary->result;
}

/* The given configuration, with the site's root and FRESH_MS where it has none. (Waiting advances
 * the virtual clock, so entries would become old too early.) NULL: all defaults. */
static struct sxe_http_files_config
config_of(const struct sxe_http_files_config *config)
{
    struct sxe_http_files_config filled = {0};

    if (config != NULL)
        filled = *config;
    if (filled.root == NULL)
        filled.root = site.root;
    if (filled.revalidate_ms == 0)
        filled.revalidate_ms = FRESH_MS;
    return filled;
}

static void
serve_with(const struct sxe_http_files_config *config, const struct sxe_http_config *http)
{
    struct sxe_http_files_config files_config = config_of(config);
    struct sxe_http_config http_config = {.connections = 200};

    site.files = sxe_http_files_new(&files_config);
    ck_assert_ptr_nonnull(site.files);
    if (http != NULL)
        http_config = *http;
    http_config.handler = sxe_http_files_handle;
    http_config.user = site.files;
    http_config.on_reply = count_reply;
    site.http = sxe_http_new(&http_config);
    ck_assert_ptr_nonnull(site.http);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_http_listen(site.http, "127.0.0.1", 0), 0);
}

static inline void
serve(const struct sxe_http_files_config *config)
{
    serve_with(config, NULL);
}

static inline unsigned
entries_in(enum sxe__http_file_state state)
{
    return sxe_pool_get_count(site.files->entries, state);
}

/* Make all entries old, so that the next request looks at the files again. */
static inline void
grow_old(void)
{
    fake_time_advance((uint64_t)FRESH_MS * 1000000);
    turn(1);
}

/* Wait until the threads have opened their files, which takes real time. */
static inline void
wait_until_opened(void)
{
    while (entries_in(SXE__HTTP_FILE_OPENING) > 0) {
        turn(1);
        sched_yield();
    }
}

/* Check that no entry is in use and that the sum of their memory is right. */
static void
check_rest(void)
{
    size_t memory = 0;

    turn(20);
    ck_assert_uint_eq(entries_in(SXE__HTTP_FILE_OPENING), 0);
    ck_assert_uint_eq(entries_in(SXE__HTTP_FILE_BUSY), 0);
    ck_assert_uint_eq(entries_in(SXE__HTTP_FILE_LEAVING), 0);
    ck_assert_uint_eq(sxe_pool_get_count(site.files->waiters, 1), 0);
    for (unsigned i = 0; i < sxe_pool_get_number(site.files->entries); i++)
        memory += site.files->entries[i].memory;
    ck_assert_uint_eq(site.files->memory, memory);
    ck_assert_uint_le(memory, site.files->config.memory_max);
}

static int
remove_path(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static inline void
remove_site(void)
{
    fake_os_reset();
    ck_assert_int_eq(nftw(site.root, remove_path, 10, FTW_DEPTH | FTW_PHYS), 0);
}

/* Close the server while files are still in use. */
static void
close_site(void)
{
    ck_assert_int_eq(sxe_fini(), 0);
    fake_os_reset();
    sxe_http_delete(site.http);
    sxe_http_files_delete(site.files);
    sxe_http_files_delete(site.others);
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
    ck_assert_uint_eq(fake_os_open_fds(), site.open_before);
    remove_site();
}

static inline void
end_site(void)
{
    check_rest();
    close_site();
}

/* ---- Clients ---- */

static int
connect_client(void)
{
    return peer_connect(sxe_http_port(site.http));
}

static void
send_request(int peer, const char *method, const char *path, const char *fields)
{
    char text[16384];
    int length =
        snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: a\r\n%s\r\n", method, path, fields);

    ck_assert_int_lt(length, (int)sizeof(text));
    peer_send(peer, text, (size_t)length);
}

/* The value of a field of the last reply; NULL: there is none. */
static const char *
field(const char *name)
{
    static char value[4][512];
    static unsigned turn_of;
    char *room = value[turn_of++ % 4];
    char line[64];
    const char *at;

    snprintf(line, sizeof(line), "\r\n%s: ", name);
    at = memmem(reply.text, reply.head_length, line, strlen(line));
    if (at == NULL)
        return NULL;
    at += strlen(line);
    snprintf(room, sizeof(value[0]), "%.*s", (int)strcspn(at, "\r"), at);
    return room;
}

/* Read one reply; the server closes the connection after it. */
static void
receive_reply(int peer, bool has_body)
{
    size_t length = peer_receive(peer, reply.text, REPLY_SIZE - 1);
    char *end;

    reply.text[length] = '\0';
    end = strstr(reply.text, "\r\n\r\n");
    ck_assert_msg(end != NULL, "no reply: '%.100s'", reply.text);
    reply.head_length = (size_t)(end - reply.text) + 4;
    reply.status = (unsigned)strtoul(reply.text + 9, NULL, 10);
    reply.body = reply.text + reply.head_length;
    reply.length = length - reply.head_length;
    if (has_body && reply.status != 304 && reply.status != 204)
        ck_assert_uint_eq(strtoul(field("Content-Length"), NULL, 10), reply.length);
    else
        ck_assert_uint_eq(reply.length, 0);
    close(peer);
}

static void
ask(const char *method, const char *path, const char *fields)
{
    char all[8192];
    int peer = connect_client();

    snprintf(all, sizeof(all), "Connection: close\r\n%s", fields);
    send_request(peer, method, path, all);
    receive_reply(peer, strcmp(method, "HEAD") != 0);
}

static inline void
get(const char *path, const char *fields)
{
    ask("GET", path, fields);
}

#define EXPECT_STATUS(path, wanted)                                                              \
    do {                                                                                         \
        get(path, "");                                                                           \
        ck_assert_msg(reply.status == (wanted), "%s is %u, not %u", path, reply.status, wanted); \
    } while (0)

#define EXPECT_FILE(path, text)               \
    do {                                      \
        get(path, "");                        \
        ck_assert_uint_eq(reply.status, 200); \
        ck_assert_str_eq(reply.body, text);   \
    } while (0)

/* ---- Threads ---- */

static struct {
    struct sxe_work work[SXE_WORK_THREADS];
    unsigned held; /* works that wait at the gate */
    sem_t arrived;
    sem_t gate;
} held;

static void
wait_at_gate(struct sxe_work *work)
{
    SXE_UNUSED_PARAMETER(work);
    sem_post(&held.arrived);
    sem_wait(&held.gate);
}

static void
passed(struct sxe_work *work)
{
    SXE_UNUSED_PARAMETER(work);
    held.held--;
}

/* Let all threads wait until let_threads_go(). */
static inline void
hold_threads(void)
{
    while (held.held > 0)
        turn(1);
    memset(&held, 0, sizeof(held));
    held.held = SXE_WORK_THREADS;
    for (unsigned i = 0; i < SXE_WORK_THREADS; i++) {
        held.work[i] = (struct sxe_work){.run = wait_at_gate, .done = passed};
        ck_assert_int_eq(sxe_work_submit(&held.work[i]), 0);
    }
    for (unsigned i = 0; i < SXE_WORK_THREADS; i++)
        sem_wait(&held.arrived);
}

static inline void
let_threads_go(void)
{
    for (unsigned i = 0; i < SXE_WORK_THREADS; i++)
        sem_post(&held.gate);
}

#endif
