/* SPDX-License-Identifier: MIT
 *
 * What: a state with sxe.crypto, in which each allocation of OpenSSL is counted, and can fail.
 */
#ifndef CRYPTO_HEAP_H
#define CRYPTO_HEAP_H

#include "lua-state.h"

#include <openssl/crypto.h>

#include "sxe-crypto.h"

void *__real_malloc(size_t size);
void *__real_realloc(void *old, size_t size);

static struct {
    unsigned number, nth; /* how many allocations were made, and which one fails; 0: none */
    bool is_lasting;      /* all allocations after that one fail, too */
    bool has_struck;
    long live;
} heap;

static bool
heap_strikes(void)
{
    heap.number++;
    if (heap.nth == 0 || heap.number < heap.nth || (heap.number > heap.nth && !heap.is_lasting))
        return false;
    heap.has_struck = true;
    return true;
}

static void *
heap_malloc(size_t size, const char *file, int line)
{
    SXE_UNUSED_PARAMETER(file);
    SXE_UNUSED_PARAMETER(line);
    if (heap_strikes())
        return NULL;
    heap.live++;
    return __real_malloc(size);
}

static void
heap_free(void *memory, const char *file, int line)
{
    SXE_UNUSED_PARAMETER(file);
    SXE_UNUSED_PARAMETER(line);
    heap.live -= memory != NULL;
    free(memory);
}

static void *
heap_realloc(void *old, size_t size, const char *file, int line)
{
    if (old == NULL)
        return heap_malloc(size, file, line);
    return heap_strikes() ? NULL : __real_realloc(old, size);
}

/* A long text makes Lua's class of boxes, which Lua 5.4 leaves half made for ever if memory ends
 * meanwhile: "variable '(C temporary)' got a non-closable value". */
static inline void
crypto_start(void)
{
    ck_assert_int_eq(CRYPTO_set_mem_functions(heap_malloc, heap_realloc, heap_free), 1);
    state_start_with(&(struct sxe_lua_config){.tasks = 64, .crypto = sxe_crypto_open});
    run_script("crypto = require 'sxe.crypto', ('x'):rep(10000)");
}

/* OpenSSL keeps the errors of a thread; give them back, so that they are not counted. */
static inline long
live_after_garbage(void)
{
    run_script("collectgarbage()");
    OPENSSL_thread_stop();
    return heap.live;
}

/* Run a script once for each allocation of OpenSSL in it, which fails: alone, or with all after it.
 * A script that fails must say so, and nothing may be left. The first run fetches what OpenSSL
 * keeps. */
static inline void
starve(const char *script)
{
    long live;

    run_script(script);
    live = live_after_garbage();
    for (unsigned lasting = 0; lasting < 2; lasting++) {
        heap.nth = 0;
        do {
            heap.nth++;
            heap.number = heap.has_struck = 0;
            heap.is_lasting = lasting != 0;
            captured.number = 0;
            if (load_text(script) < 0)
                ck_assert_msg(logged("OpenSSL failed: "), "%s", log_line(0));
        } while (heap.has_struck);
    }
    heap.nth = 0;
    run_script(script);
    ck_assert_int_le(live_after_garbage(), live);
}

/* Run a script once for each allocation of Lua in it, which fails with all after it. */
static inline void
starve_lua(const char *script)
{
    run_without_memory(script);
    run_script(script);
}

#endif
