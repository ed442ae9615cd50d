/* SPDX-License-Identifier: MIT
 *
 * Hashes of passwords in threads: the loop goes on meanwhile; tasks that are cancelled, states that
 * end, threads and memory that are missing.
 */
#include "lua-net.h"

#include <openssl/crypto.h>
#include <pthread.h>

#include "sxe-crypto.h"
#include "sxe-lua-offload-internal.h"
#include "test-main.h"

#define CHEAP "{n = 2, r = 1, p = 1}"

/* ---- OpenSSL's memory: a thread waits at its first allocation, while the gate is closed ---- */

static struct {
    int pipe[2];
    pthread_t loop;
    _Atomic bool is_closed;
    _Atomic unsigned arrived;
    _Atomic bool refuses; /* threads get no memory */
} gate;

static bool
is_in_thread(void)
{
    return !pthread_equal(pthread_self(), gate.loop);
}

static void *
gate_malloc(size_t size, const char *file, int line)
{
    char byte;

    SXE_UNUSED_PARAMETER(file);
    SXE_UNUSED_PARAMETER(line);
    if (is_in_thread() && gate.is_closed) {
        gate.arrived++;
        ck_assert_int_eq(read(gate.pipe[0], &byte, 1), 0); /* returns when the gate is opened */
    }
    return is_in_thread() && gate.refuses ? NULL : malloc(size);
}

static void *
gate_realloc(void *old, size_t size, const char *file, int line)
{
    SXE_UNUSED_PARAMETER(file);
    SXE_UNUSED_PARAMETER(line);
    return realloc(old, size);
}

static void
gate_free(void *memory, const char *file, int line)
{
    SXE_UNUSED_PARAMETER(file);
    SXE_UNUSED_PARAMETER(line);
    free(memory);
}

static void
close_gate(void)
{
    ck_assert_int_eq(pipe(gate.pipe), 0);
    gate.arrived = 0;
    gate.is_closed = true;
}

static void
until_arrived(unsigned number)
{
    while (gate.arrived < number)
        turn_slowly(1);
}

static void
open_gate(void)
{
    gate.is_closed = false;
    close(gate.pipe[1]);
}

static void
forget_gate(void)
{
    close(gate.pipe[0]);
}

/* ---- The state ---- */

static void
begin_with(const char *text)
{
    gate.loop = pthread_self();
    ck_assert_int_eq(CRYPTO_set_mem_functions(gate_malloc, gate_realloc, gate_free), 1);
    net_crypto = sxe_crypto_open;
    net_start(text);
}

/* OpenSSL sets itself up in the first call, which must not happen while the gate is closed. */
static void
begin(void)
{
    begin_with("task, crypto = require 'sxe.task', require 'sxe.crypto'\n"
               "crypto.hash_password('a', " CHEAP ") crypto.pbkdf2('sha1', '', '', {rounds = 1})\n"
               "log, number, tasks, kept = '', 0, {}, ''");
}

/* How many threads may compute at once. */
static unsigned
most_threads(void)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    return cpus < SXE_WORK_THREADS ? (unsigned)cpus : SXE_WORK_THREADS;
}

START_TEST(each_long_call_waits_for_a_thread)
{
    begin();
    close_gate();
    run_script("task.start(function() kept = crypto.hash_password('a', " CHEAP ")\n"
               "    log = crypto.verify_password('a', kept) and not crypto.verify_password('b', "
               "kept) and 'right' end)\n"
               "task.start(function() number = #crypto.scrypt('a', 'b', {n = 2}) end)");
    until_arrived(1);
    run_script("assert(log == '' and number == 0)");
    open_gate();
    until("log == 'right' and number == 32");
    run_script("task.start(function() log = crypto.pbkdf2('sha1', 'password', 'salt',\n"
               "    {rounds = 2, length = 2}) end)");
    until("log == '\\xea\\x6c'");
    forget_gate();
    net_stop();
}
END_TEST

START_TEST(a_call_that_cannot_wait_computes_at_once)
{
    begin_with("crypto = require 'sxe.crypto' assert(#crypto.hash_password('a', " CHEAP ") > 50)");
    run_script("coroutine.wrap(function() table.sort({1, 2}, function()\n"
               "    return #crypto.hash_password('a', " CHEAP ") > 1000 end) end)()\n"
               "setmetatable({}, {__gc = function() log = #crypto.scrypt('a', 'b', {n = 2}) end})\n"
               "log = 0 collectgarbage() assert(log == 32)");
    net_stop();
}
END_TEST

/* In a coroutine of the script, in pcall. */
START_TEST(a_call_waits_wherever_a_task_can_wait)
{
    begin();
    run_script("task.start(function()\n"
               "    local hash = coroutine.wrap(function()\n"
               "        local _, hash = pcall(crypto.hash_password, 'a', " CHEAP ")\n"
               "        return hash end)()\n"
               "    log = crypto.verify_password('a', hash) and 'right' end)");
    until("log == 'right'");
    net_stop();
}
END_TEST

/* ---- Tasks that stop waiting ---- */

START_TEST(a_task_that_is_cancelled_does_not_wait)
{
    begin();
    close_gate();
    for (unsigned i = 0; i < most_threads(); i++)
        run_script("tasks[#tasks + 1] = task.start(function()\n"
                   "    log = select(2, crypto.hash_password('a', " CHEAP ")) end)");
    until_arrived(most_threads());
    /* No thread is free for the next tasks. */
    run_script("for i = 1, 3 do tasks[#tasks + 1] = task.start(function()\n"
               "    local hash, why = crypto.hash_password('a', " CHEAP ")\n"
               "    number = number + 1 assert(i == 2 and #hash > 50 or why == 'cancelled') end) "
               "end");
    turn_slowly(1);
    run_script("tasks[#tasks]:cancel() tasks[#tasks - 2]:cancel()");
    until("number == 2");
    run_script("for i = 1, #tasks - 3 do tasks[i]:cancel() end");
    until("log == 'cancelled'");
    open_gate();
    until("number == 3");
    turn_slowly(2);
    run_script("task.start(function() task.self():cancel()\n"
               "    log = crypto.hash_password('a', " CHEAP ") or 'nothing'\n"
               "    crypto.hash_password('a', " CHEAP ") log = 'not reached' end)");
    until("log == 'nothing'");
    turn_slowly(2);
    run_script("assert(log == 'nothing')");
    forget_gate();
    net_stop();
}
END_TEST

START_TEST(a_state_ends_while_threads_compute)
{
    begin();
    close_gate();
    run_script("for i = 1, 9 do task.start(function() crypto.hash_password('a', " CHEAP ") end) "
               "end");
    until_arrived(most_threads());
    state_stop();
    open_gate();
    forget_gate();
    net_end();
}
END_TEST

/* The loop ends first: nobody learns that the thread is done. The next state frees the job. */
START_TEST(a_loop_ends_after_the_state_while_a_thread_computes)
{
    begin();
    close_gate();
    run_script("task.start(function() crypto.hash_password('a', " CHEAP ") end)");
    until_arrived(1);
    state_stop();
    open_gate();
    ck_assert_int_eq(sxe_fini(), 0);
    forget_gate();
    state_start_with(&(struct sxe_lua_config){.tasks = 64, .crypto = sxe_crypto_open});
    run_script("assert(#require 'sxe.crypto'.hash_password('a', " CHEAP ") > 50)");
    state_stop();
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

/* ---- Missing parts ---- */

START_TEST(a_failure_of_a_thread_is_an_error_of_the_task)
{
    begin();
    run_script("kept = crypto.hash_password('a', " CHEAP ")");
    gate.refuses = true;
    run_script("for i, f in ipairs{\n"
               "    function() crypto.hash_password('a', " CHEAP ") end,\n"
               "    function() crypto.verify_password('a', kept) end,\n"
               "    function() crypto.scrypt('a', 'b', {n = 2}) end,\n"
               "    function() crypto.pbkdf2('sha256', 'a', 'b', {rounds = 1}) end} do\n"
               "    task.start(function() local good, why = pcall(f)\n"
               "        number = number + 1\n"
               "        assert(not good and why:find('OpenSSL failed: ', 1, true), why) end) end");
    until("number == 4");
    gate.refuses = false;
    net_stop();
}
END_TEST

static void
refuse_threads(void)
{
    fake_os_fail(FAKE_PTHREAD_CREATE, 1, 0, EAGAIN);
}

START_TEST(without_a_thread_the_loop_computes)
{
    net_on_state = refuse_threads;
    begin();
    run_script("task.start(function() log = crypto.hash_password('a', " CHEAP ") end)");
    until("#log > 50");
    fake_os_reset();
    net_stop();
}
END_TEST

START_TEST(a_module_that_is_required_late_has_no_threads)
{
    begin_with("task, log = require 'sxe.task', ''");
    run_script("task.start(function()\n"
               "    log = require 'sxe.crypto'.hash_password('a', " CHEAP ") end)");
    until("#log > 50");
    net_stop();
}
END_TEST

START_TEST(the_copies_of_waiting_calls_count_as_memory)
{
    begin();
    lua->config.memory_max = 2500000;
    close_gate();
    run_script("local long = ('x'):rep(1 << 20)\n"
               "for i = 1, 3 do task.start(function()\n"
               "    local good, why = pcall(crypto.hash_password, long, " CHEAP ")\n"
               "    if not good then log = why else number = number + 1 end end) end");
    until("log:find('not enough memory: too many calls', 1, true) ~= nil");
    until_arrived(1);
    open_gate();
    until("number == 2");
    run_script("task.start(function()\n"
               "    number = #crypto.hash_password(('x'):rep(1 << 20), " CHEAP ") end)");
    until("number > 50");
    lua->config.memory_max = 1 << 20;
    fails_with("crypto.hash_password(('x'):rep(1 << 20), " CHEAP ")",
               "not enough memory: too many calls");
    forget_gate();
    net_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("crypto-job");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_test(c, each_long_call_waits_for_a_thread);
    tcase_add_test(c, a_call_that_cannot_wait_computes_at_once);
    tcase_add_test(c, a_call_waits_wherever_a_task_can_wait);
    tcase_add_test(c, a_task_that_is_cancelled_does_not_wait);
    tcase_add_test(c, a_state_ends_while_threads_compute);
    tcase_add_test(c, a_loop_ends_after_the_state_while_a_thread_computes);
    tcase_add_test(c, a_failure_of_a_thread_is_an_error_of_the_task);
    tcase_add_test(c, without_a_thread_the_loop_computes);
    tcase_add_test(c, a_module_that_is_required_late_has_no_threads);
    tcase_add_test(c, the_copies_of_waiting_calls_count_as_memory);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
