/* SPDX-License-Identifier: MIT
 *
 * What: Lua 5.4 inside a program on libsxe: scripts that look as if they blocked and do not, C
 * functions and variables that scripts see, scripts' functions that C calls.
 *
 * Place: apps/httpd and sxe-lua are two users, any C program may be another. Uses lib-sxe-http,
 * liblua5.4. A library of its own, libsxe-lua: the core never includes lua.h.
 *
 * Shape: one state a loop, one loop a thread. All Lua runs in tasks, which are coroutines from a
 * pool; a call that has to wait parks its task, and an event of the loop makes it ready again:
 *
 *     script ---- sxe_lua_load: a task of its own; it may wait, too
 *       handler -- an HTTP request: a task from the pool, back to it at the end
 *       task.start -- as many as config.tasks
 *
 *     FREE -> READY -> RUNNING -> PARKED -> READY ...        pool states, in time order: the oldest
 *               ^_________|                                  ready one runs next, so many a turn
 *
 * Rules: 1 an error in a script is a line in the log with its traceback and, where there is
 * somebody to tell, a reply of 500; it never ends the process. 2 memory and time are bounded:
 * beyond memory_max an allocation fails inside Lua (503), beyond cpu_ms a task is ended, beyond
 * slice_ms it makes way. 3 what a script sees of the world, time, randomness and I/O, comes through
 * one table of functions (sxe-lua-clock.h), so that a request can be recorded and replayed. 4
 * objects of C are handles in Lua, index and generation in a light userdata: nothing to collect,
 * and a handle that is kept too long is refused: it never names another object.
 *
 * Sandbox: scripts see a list of functions: of the standard library without files, processes,
 * debug, bytecode and modules of C; of ours sxe.task, timer, json, encoding, log, stats, and their
 * request and its reply, without res:file. Not http.serve, tcp, udp, file, spawn, pool: nothing
 * that opens something or has memory of C. Nothing they call keeps the loop for more than 100 ms of
 * CPU. See docs/lua.md.
 *
 * Limits: LUA_VERSION_NUM 504. Not yet here: realms; their module name is refused with a message
 * that says so.
 *
 * Example:
 *     static int port = 8000;
 *
 *     int main(int argc, char **argv)
 *     {
 *         struct sxe_lua_config config = {.argc = argc - 1, .argv = argv + 1};
 *         struct sxe_lua *lua = sxe_lua_new(&config);
 *
 *         sxe_lua_bind_field(lua, "config", "port", SXE_LUA_INT, &port);
 *         if (lua == NULL || sxe_lua_load(lua, argv[1]) < 0 || sxe_init() < 0 ||
 *             sxe_lua_init(lua) < 0)
 *             return 1;
 *         return sxe_run() < 0;
 *     }
 */
#ifndef SXE_LUA_H
#define SXE_LUA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sxe;
struct sxe_lua;
struct sxe_tls;
struct luaL_Reg;
struct lua_State;

/* Options of a TLS client. authorities NULL: the authorities of the system. certificate NULL: no
 * certificate. */
struct sxe_lua_tls_options {
    const char *authorities; /* file in PEM: the authorities that sign servers' certificates */
    /* file in PEM: the client's own certificate; `key` is its key's file */
    const char *certificate;
    const char *key;
    const char *protocols; /* names of ALPN, with commas between them */
    bool is_insecure;      /* accept any certificate */
};

/* Facts about a server's connection that speaks TLS. A text that does not exist is "". */
struct sxe_lua_tls_facts {
    char version[16];
    char cipher[64];
    char name[256];     /* the name that the client asked for: SNI */
    char protocol[256]; /* the protocol that was agreed on: ALPN */
    bool is_resumed;
    /* the client sent a certificate, and it was verified; false: the next members are 0 and "" */
    bool has_client;
    int64_t not_before;
    int64_t not_after;
    char subject[1024];
    char issuer[1024];
    char names[4096]; /* names in the certificate, with a blank between them */
    char fingerprint[65];
};

/* TLS for scripts that connect, by functions of the program, so that this library needs no OpenSSL:
 * see sxe-tls.h for what use, start, on_ready and failure do, and apps/common/script-tls.c for a
 * table of lib-sxe-tls. */
struct sxe_lua_tls {
    /* Make a client; NULL: *problem is the reason, valid until the next call. */
    struct sxe_tls *(*new_client)(const struct sxe_lua_tls_options *options, const char **problem);
    void (*delete_client)(struct sxe_tls *tls); /* called when no socket uses the client any more */
    int (*use)(struct sxe_tls *tls, struct sxe *socket, const char *host);
    int (*start)(struct sxe_tls *tls, struct sxe *socket, const char *host);
    void (*on_ready)(struct sxe *socket, void (*call)(struct sxe *socket));
    const char *(*failure)(const struct sxe *socket);

    /* Set *facts about a connection of a server. False: the connection does not speak TLS. describe
     * NULL: req.tls is always nil. */
    bool (*describe)(const struct sxe *socket, struct sxe_lua_tls_facts *facts);
};

/* Decompression for scripts that call servers, by functions of the program, so that this library
 * needs no zlib: see apps/common/script-inflate.c for a table of zlib. A stream is one body, in
 * gzip or in deflate. */
struct sxe_lua_inflate {
    void *(*create)(bool is_gzip); /* make a stream; NULL: there is no memory */
    void (*destroy)(void *stream);

    /* Decode the bytes that follow. Returns the number of bytes put into room, at most size, and
     * sets *used to the number of input bytes that were read. If it returns size, more bytes may
     * come without more input. -EBADMSG: the stream is damaged, or goes on after its end;
     * -ENOMEM. */
    ssize_t (*decode)(void *stream, const char *bytes, size_t length, size_t *used, char *room,
                      size_t size);
    bool (*is_whole)(const void *stream); /* whether the stream may end here */
};

/* A configuration of zeros is valid. */
struct sxe_lua_config {
    size_t memory_max;  /* bytes that the state may hold; 0: 256 MiB or, in a sandbox, 32 MiB */
    uint32_t tasks;     /* how many tasks may exist at once; 0: 16384 */
    uint32_t sockets;   /* how many sockets of tcp.connect may be open at once; 0: 64 */
    uint32_t ready_max; /* how many tasks may be resumed in one turn of the loop; 0: 256 */
    /* CPU time without a wait after which a task is ended; 0: 1000 or, in a sandbox, 50 */
    uint32_t cpu_ms;
    uint32_t slice_ms; /* CPU time after which a task makes way for others; 0: 10 */
    bool is_dev;       /* replies to errors have tracebacks */
    bool is_bare;      /* the state has no globals of 2010 and 2011, only require "sxe..." */
    bool is_loose;     /* globals that the script's top level did not make may be used */
    bool is_sandbox;   /* scripts are not trusted, see above; the defaults are smaller */
    int argc;          /* the number of the script's arguments; arg[0] is the script's path */
    char **argv;
    const struct sxe_lua_tls *tls; /* borrowed; NULL: scripts cannot use TLS */
    /* borrowed; NULL: scripts ask for no compressed replies */
    const struct sxe_lua_inflate *inflate;
    int (*crypto)(struct lua_State *L);   /* sxe_crypto_open; NULL: scripts have no sxe.crypto */
    int (*store)(struct lua_State *L);    /* sxe_store_open; NULL: scripts have no sxe.store */
    int (*postgres)(struct lua_State *L); /* sxe_postgres_open; NULL: no sxe.postgres */
    int (*regex)(struct lua_State *L);    /* sxe_regex_open; NULL: scripts have no sxe.regex */
    int (*zlib)(struct lua_State *L);     /* sxe_zlib_open; NULL: scripts have no sxe.zlib */

    /* Gets each error before the log gets it; the text has the traceback. Returns true: do not log
     * the error. May be NULL. */
    bool (*on_error)(const char *where, const char *text);
};

/* Make a Lua state; call this before sxe_init, because it plans its tasks. NULL with errno, after
 * logging why: EINVAL this thread has a state already; ENOMEM; EAGAIN there is no thread for the
 * watchdog. */
SXE_PUBLIC SXE_MUST_USE struct sxe_lua *sxe_lua_new_sized(const struct sxe_lua_config *config,
                                                          size_t size);
static inline SXE_MUST_USE struct sxe_lua *
sxe_lua_new(const struct sxe_lua_config *config_)
{
    return sxe_lua_new_sized(config_, sizeof(*config_));
}

/* Compile a script, and start it as a task. Returns 0 when its top level has ended or waits;
 * -EINVAL after logging why it failed; or -errno of reading the file. Before sxe_init the script
 * may register (sxe_register), but not wait. */
SXE_PUBLIC int sxe_lua_load(struct sxe_lua *lua, const char *path);
SXE_PUBLIC int sxe_lua_load_text(struct sxe_lua *lua, const char *name, const char *text,
                                 size_t length);

/* How far the scripts are: 0: the top level of each script has ended; -EINPROGRESS: a top level
 * waits; -EINVAL: a top level failed, perhaps after sxe_lua_load had returned, and the error was
 * logged. */
SXE_PUBLIC int sxe_lua_loaded(const struct sxe_lua *lua);

/* The number of errors that were only logged. The error of a task no longer counts when a join has
 * raised it in another task. */
SXE_PUBLIC uint64_t sxe_lua_errors(const struct sxe_lua *lua);

/* Format an error's text for a person: the error, its place with the lines around it, a hint if
 * there is one, and the traceback. Reads the source file that the text names. Returns the number of
 * bytes written, without the NUL; text that does not fit is cut. */
SXE_PUBLIC size_t sxe_lua_explain(const char *text, char *room, size_t size);

/* Write where this thread's script is now, "app.lua:3, app.lua:10", innermost call first: for the
 * last message of a process that has to end because its loop does not turn. Allocates nothing, and
 * a signal handler may call it. Returns the number of bytes, without the NUL; 0: no script runs. */
SXE_PUBLIC size_t sxe_lua_describe_running(char *room, size_t size);

/* Have take(calls, length) called once, in this thread, with the calls that this thread's script is
 * in now: a line "name\tapp.lua:3\n" or "name\t[C]\n" for each, innermost call first. This is for
 * the signal handler of a profiler: take is called when the handler has returned, before the script
 * goes on. Returns false if no script runs. */
SXE_PUBLIC bool sxe_lua_ask_for_calls(void (*take)(const char *calls, size_t length));

/* Call after sxe_init, once: runs what scripts queued with sxe_register, in order. Returns 0;
 * -EINVAL after logging what failed; or -EAGAIN if, in a child of fork(2), there is no thread for
 * the watchdog. */
SXE_PUBLIC int sxe_lua_init(struct sxe_lua *lua);

/* Call a global function ("name" or "table.name"). signature is arguments ">" results, of i int, l
 * int64_t, d double, b bool as int, s const char *, z const char * and size_t: pointers for
 * results; a string that is returned is valid until the next call. Returns 0; -ENOENT: there is no
 * such function; -EINVAL: the function failed, or its results have other types; -ENOMEM: no memory
 * or no task is free (these failures are logged); -ECANCELED: the function was cancelled;
 * -EINPROGRESS: the function waits, and its results will be dropped. */
SXE_PUBLIC int sxe_lua_call(struct sxe_lua *lua, const char *function, const char *signature, ...);

/* Let require "name" return a table of these functions of C. Returns 0, or -ENOMEM after
 * logging. */
SXE_PUBLIC int sxe_lua_module(struct sxe_lua *lua, const char *name,
                              const struct luaL_Reg *functions);

/* From now on table.field in Lua reads and writes *variable, which is borrowed; a table that does
 * not exist is made. A string's variable is a char array of size bytes: a longer string is cut, and
 * a string with a zero byte cannot be assigned. Returns 0; -EINVAL: the type or the state is not
 * valid, or `table` is no table or has a metatable of its own; -ENOMEM. BOOL is a bool, INT an
 * int. */
enum sxe_lua_type {
    SXE_LUA_BOOL = 'b',
    SXE_LUA_INT = 'i',
    SXE_LUA_INT64 = 'l',
    SXE_LUA_DOUBLE = 'd',
    SXE_LUA_STRING = 's'
};
SXE_PUBLIC int sxe_lua_bind_field(struct sxe_lua *lua, const char *table, const char *field,
                                  enum sxe_lua_type type, void *variable);
SXE_PUBLIC int sxe_lua_bind_string(struct sxe_lua *lua, const char *table, const char *field,
                                   char *text, size_t size);

/* How many bytes the state holds now, in slabs of 16 KiB and larger blocks; *most (most may be
 * NULL) becomes the most that it ever held. */
SXE_PUBLIC size_t sxe_lua_memory(const struct sxe_lua *lua, size_t *most);

/* The number of tasks, of all states, that wait for an event from outside, such as bytes at a
 * socket or the end of a child. A task that was just woken is not counted until it waits again. */
SXE_PUBLIC unsigned sxe_lua_waiting(void);

/* After sxe_run returned because nothing is left that could run: close what the script left open.
 * The program then runs the loop again: the loop sends what was written, and waits for children
 * that still run, whose pipes are closed now. */
SXE_PUBLIC void sxe_lua_finish(struct sxe_lua *lua);

/* End all tasks (their <close> variables run) and free the state. Call this in the state's thread,
 * after sxe_fini, and not inside of a script. NULL is allowed. */
SXE_PUBLIC void sxe_lua_delete(struct sxe_lua *lua);

#ifdef __cplusplus
}
#endif

#endif
