/* SPDX-License-Identifier: MIT
 *
 * Measures a dict, and in the same run LMDB and Redis, if they are installed: the ns of a get and
 * of a put with a value of 100 bytes, by one client, with keys in random order; the time that
 * snapshots take; whether readers in other processes ever see half a value; and how many calls
 * return -EAGAIN when processes need the same lock, with and without sxe_dict_set_wait.
 *
 *     gcc -O2 -Ilib-sxe-log -Ilib-sxe-pool -Ilib-sxe-dict bench/micro-dict.c build/release/libsxe.a
 *
 *     micro-dict [peers | snapshot | readers | waits]...     all of them without a word
 *
 * LMDB: each put is a transaction. "no sync" uses MDB_NOSYNC and MDB_WRITEMAP; like a dict, it is
 * then safe from kill -9, but not from a power cut. "sync" writes to the disk. Redis: this program
 * starts a server that saves nothing, and sends it one command at a time over a unix socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "parts.h"
#include "sxe-dict.h"
#include "sxe-time.h"

#if __has_include(<lmdb.h>) && defined(MICRO_DICT_LMDB)
#    include <lmdb.h>
#    define HAVE_LMDB 1
#else
#    define HAVE_LMDB 0
#endif

#define ENTRIES    1000000u
#define VALUE_SIZE 100u
#define KEY_SIZE   16u
#define SLICES     1000u

static char directory[64];
static char value[VALUE_SIZE];
static char found[VALUE_SIZE];

static uint32_t
random_below(uint32_t limit)
{
    static uint64_t seed = 88172645463325252u;

    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)((seed >> 32) * limit >> 32);
}

static const char *
key_of(uint32_t number)
{
    static const char digits[] = "0123456789abcdef";
    static char key[KEY_SIZE + 1] = "session-";

    for (unsigned i = 0; i < 8; i++)
        key[8 + i] = digits[number * 2654435761u >> (28 - 4 * i) & 15];
    return key;
}

static void
stop(const char *what)
{
    fprintf(stderr, "micro-dict: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static int
compare_times(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

/* The ns of one of `number` operations in random order. It is the median of SLICES slices, so that
 * moments in which the machine does something else do not count. */
static double
measure(bool (*operate)(void *, uint32_t), void *subject, uint32_t number)
{
    static uint64_t time[SLICES];

    for (unsigned slice = 0; slice < SLICES; slice++) {
        const uint64_t start = sxe_time_ns();

        for (uint32_t i = 0; i < number / SLICES; i++) {
            if (!operate(subject, random_below(ENTRIES)))
                stop("operation failed");
        }
        time[slice] = sxe_time_ns() - start;
    }
    qsort(time, SLICES, sizeof(time[0]), compare_times);
    return (double)time[SLICES / 2] * SLICES / number;
}

static void
load(bool (*put)(void *, uint32_t), void *subject)
{
    for (uint32_t i = 0; i < ENTRIES; i++) {
        if (!put(subject, i))
            stop("loading failed");
    }
}

static double reference_get;
static double reference_put;

static void
row(const char *name, double get, double put)
{
    if (reference_get <= 0) {
        reference_get = get;
        reference_put = put;
    }
    printf("%-28s %9.0f %9.0f   %7.1f %7.1f\n", name, get, put, get / reference_get,
           put / reference_put);
    fflush(stdout);
}

/* ---- A dict ---- */

static SXE_DICT *
open_dict(unsigned cells, unsigned shards, const char *file)
{
    char why[SXE_POOL_WHY_SIZE];
    const SXE_DICT_SPEC spec = {
        .name = "bench", .cells = cells, .cell_size = 192, .shards = shards, .file = file};
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    if (dict == NULL) {
        fprintf(stderr, "%s\n", why);
        exit(EXIT_FAILURE);
    }
    return dict;
}

static bool
dict_get(void *dict, uint32_t number)
{
    return sxe_dict_get(dict, key_of(number), KEY_SIZE, found, VALUE_SIZE) == VALUE_SIZE;
}

static bool
dict_peek(void *dict, uint32_t number)
{
    return sxe_dict_peek(dict, key_of(number), KEY_SIZE, found, VALUE_SIZE) == VALUE_SIZE;
}

static bool
dict_put(void *dict, uint32_t number)
{
    return sxe_dict_put(dict, key_of(number), KEY_SIZE, value, VALUE_SIZE, 0) == 0;
}

static void
measure_dict(void)
{
    char file[128];
    double get;

    snprintf(file, sizeof(file), "%s/dict", directory);
    SXE_DICT *dict = open_dict(ENTRIES + ENTRIES / 4, 1, NULL);
    load(dict_put, dict);
    get = measure(dict_get, dict, ENTRIES);
    row("dict, in memory", get, measure(dict_put, dict, ENTRIES));
    sxe_time_set_turn_ns(sxe_time_ns());
    get = measure(dict_get, dict, ENTRIES);
    row("dict, in a loop's turn", get, measure(dict_put, dict, ENTRIES));
    sxe_time_set_turn_ns(0);
    get = measure(dict_peek, dict, ENTRIES);
    row("dict, peek", get, measure(dict_put, dict, ENTRIES));
    sxe_dict_close(dict);
    dict = open_dict(ENTRIES + ENTRIES / 4, 1, file);
    load(dict_put, dict);
    get = measure(dict_get, dict, ENTRIES);
    row("dict, in a file", get, measure(dict_put, dict, ENTRIES));
    sxe_dict_close(dict);
    unlink(file);
}

/* ---- LMDB ---- */

#if HAVE_LMDB
struct lmdb {
    MDB_env *env;
    MDB_txn *reader;
    MDB_dbi dbi;
};

static bool
lmdb_get(void *subject, uint32_t number)
{
    struct lmdb *lmdb = subject;
    MDB_val key = {KEY_SIZE, (void *)(uintptr_t)key_of(number)};
    MDB_val data;

    if (mdb_txn_renew(lmdb->reader) != 0 || mdb_get(lmdb->reader, lmdb->dbi, &key, &data) != 0)
        return false;
    memcpy(found, data.mv_data, data.mv_size);
    mdb_txn_reset(lmdb->reader);
    return data.mv_size == VALUE_SIZE;
}

static bool
lmdb_put(void *subject, uint32_t number)
{
    struct lmdb *lmdb = subject;
    MDB_val key = {KEY_SIZE, (void *)(uintptr_t)key_of(number)};
    MDB_val data = {VALUE_SIZE, value};
    MDB_txn *writer;

    return mdb_txn_begin(lmdb->env, NULL, 0, &writer) == 0 &&
           mdb_put(writer, lmdb->dbi, &key, &data, 0) == 0 && mdb_txn_commit(writer) == 0;
}

static void
lmdb_load(struct lmdb *lmdb)
{
    MDB_txn *writer;

    if (mdb_txn_begin(lmdb->env, NULL, 0, &writer) != 0 ||
        mdb_dbi_open(writer, NULL, 0, &lmdb->dbi) != 0)
        stop("LMDB");
    for (uint32_t i = 0; i < ENTRIES; i++) {
        MDB_val key = {KEY_SIZE, (void *)(uintptr_t)key_of(i)};
        MDB_val data = {VALUE_SIZE, value};

        if (mdb_put(writer, lmdb->dbi, &key, &data, 0) != 0)
            stop("LMDB put");
    }
    if (mdb_txn_commit(writer) != 0)
        stop("LMDB commit");
}

static void
measure_lmdb(const char *name, unsigned flags, uint32_t puts)
{
    struct lmdb lmdb = {0};
    char file[128];

    snprintf(file, sizeof(file), "%s/lmdb", directory);
    if (mdb_env_create(&lmdb.env) != 0 || mdb_env_set_mapsize(lmdb.env, (size_t)2 << 30) != 0 ||
        mdb_env_open(lmdb.env, file, flags | MDB_NOSUBDIR, 0600) != 0)
        stop("LMDB open");
    lmdb_load(&lmdb);
    if (mdb_txn_begin(lmdb.env, NULL, MDB_RDONLY, &lmdb.reader) != 0)
        stop("LMDB reader");
    mdb_txn_reset(lmdb.reader);
    const double get = measure(lmdb_get, &lmdb, ENTRIES);
    row(name, get, measure(lmdb_put, &lmdb, puts));
    mdb_txn_abort(lmdb.reader);
    mdb_env_close(lmdb.env);
    unlink(file);
    strncat(file, "-lock", sizeof(file) - strlen(file) - 1);
    unlink(file);
}
#endif

/* ---- Redis ---- */

struct redis {
    int fd;
    char answer[256]; /* the answer to at most BATCH puts */
};

/* Send a command, and read `wanted` bytes of answers. False: an error, or more bytes came. */
static bool
ask(struct redis *redis, const char *command, size_t size, size_t wanted)
{
    size_t got = 0;

    if (write(redis->fd, command, size) != (ssize_t)size)
        return false;
    while (got < wanted) {
        const ssize_t part = read(redis->fd, redis->answer + got, sizeof(redis->answer) - got);

        if (part <= 0)
            return false;
        got += (size_t)part;
    }
    return got == wanted;
}

static bool
redis_get(void *subject, uint32_t number)
{
    char command[128];
    const int size = snprintf(command, sizeof(command), "*2\r\n$3\r\nGET\r\n$%u\r\n%s\r\n",
                              KEY_SIZE, key_of(number));

    if (!ask(subject, command, (size_t)size, sizeof("$100\r\n") - 1 + VALUE_SIZE + 2))
        return false;
    memcpy(found, ((struct redis *)subject)->answer + 6, VALUE_SIZE);
    return true;
}

enum { COMMAND_MAX = 256, BATCH = 40, OK_SIZE = sizeof("+OK\r\n") - 1 };

/* Write the text of a put. Returns its length. */
static size_t
put_command(char command[COMMAND_MAX], uint32_t number)
{
    const int size = snprintf(command, COMMAND_MAX, "*3\r\n$3\r\nSET\r\n$%u\r\n%s\r\n$%u\r\n",
                              KEY_SIZE, key_of(number), VALUE_SIZE);

    memcpy(command + size, value, VALUE_SIZE);
    memcpy(command + size + VALUE_SIZE, "\r\n", 2);
    return (size_t)size + VALUE_SIZE + 2;
}

static bool
redis_put(void *subject, uint32_t number)
{
    char command[COMMAND_MAX];

    return ask(subject, command, put_command(command, number), OK_SIZE);
}

/* Store many keys with each command, because a million commands would take 20 seconds. */
static void
redis_load(struct redis *redis)
{
    static char commands[BATCH * COMMAND_MAX];

    for (uint32_t i = 0; i < ENTRIES; i += BATCH) {
        size_t size = 0;

        for (uint32_t j = 0; j < BATCH; j++)
            size += put_command(commands + size, i + j);
        if (!ask(redis, commands, size, (size_t)BATCH * OK_SIZE))
            stop("loading failed");
    }
}

static pid_t
start_redis(const char *path)
{
    const pid_t child = fork();

    if (child != 0)
        return child;
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDOUT_FILENO);
    execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path, "--save", "",
           "--appendonly", "no", "--dir", directory, (char *)NULL);
    _exit(127);
}

/* Connect to the server. -1: it did not start. */
static int
connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, path, strlen(path) + 1);
    for (unsigned tries = 0; tries < 200; tries++) {
        if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
            return fd;
        usleep(10000);
    }
    close(fd);
    return -1;
}

static void
measure_redis(void)
{
    char path[128];
    struct redis redis;
    pid_t child;

    snprintf(path, sizeof(path), "%s/redis", directory);
    child = start_redis(path);
    redis.fd = child <= 0 ? -1 : connect_to(path);
    if (redis.fd == -1) {
        printf("%-28s not installed\n", "Redis");
    } else {
        redis_load(&redis);
        const double get = measure(redis_get, &redis, ENTRIES / 20);
        row("Redis, unix socket", get, measure(redis_put, &redis, ENTRIES / 20));
        close(redis.fd);
    }
    if (child > 0) {
        kill(child, SIGTERM);
        waitpid(child, NULL, 0);
    }
    unlink(path);
}

static void
measure_peers(void)
{
    printf("ns, %u entries of %u + %u bytes       get       put       ratios\n", ENTRIES, KEY_SIZE,
           VALUE_SIZE);
    measure_dict();
#if HAVE_LMDB
    measure_lmdb("LMDB, no sync", MDB_NOSYNC | MDB_WRITEMAP, ENTRIES);
    measure_lmdb("LMDB, sync", 0, SLICES);
#else
    printf("%-28s not installed\n", "LMDB");
#endif
    measure_redis();
}

/* ---- Snapshots ---- */

static void
measure_snapshot(void)
{
    static const unsigned sizes[] = {1000, 100000, 1000000};
    const unsigned changes = 1000;

    printf("\nsnapshots, ns          entries      take  put seen   put new   release a version\n");
    for (size_t i = 0; i < SXE_COUNT(sizes); i++) {
        SXE_DICT *dict = open_dict(2 * sizes[i], 1, NULL);
        uint64_t time[5];

        for (uint32_t j = 0; j < sizes[i]; j++)
            dict_put(dict, j);
        time[0] = sxe_time_ns();
        SXE_DICT_SNAPSHOT *snapshot = sxe_dict_snapshot_take(dict);
        time[1] = sxe_time_ns();
        for (uint32_t j = 0; j < changes; j++)
            dict_put(dict, j);
        time[2] = sxe_time_ns();
        for (uint32_t j = 0; j < changes; j++)
            dict_put(dict, j);
        time[3] = sxe_time_ns();
        sxe_dict_snapshot_release(snapshot);
        time[4] = sxe_time_ns();
        printf("%30u %9.0f %9.0f %9.0f %10.0f\n", sizes[i], (double)(time[1] - time[0]),
               (double)(time[2] - time[1]) / changes, (double)(time[3] - time[2]) / changes,
               (double)(time[4] - time[3]) / changes);
        sxe_dict_close(dict);
    }
}

/* ---- Two processes that read, and one that writes ---- */

#define READ_KEYS 1000u

struct tally {
    uint64_t reads;
    uint64_t torn;
    uint64_t again; /* how many calls had to be made again */
    uint64_t writes;
};

static void
read_for(SXE_DICT *dict, struct tally *tally, uint64_t reads)
{
    for (; tally->reads < reads; tally->reads++) {
        const uint32_t number = random_below(READ_KEYS);
        ssize_t size;

        while ((size = sxe_dict_peek(dict, key_of(number), KEY_SIZE, found, VALUE_SIZE)) == -EAGAIN)
            tally->again++;
        tally->torn += size != VALUE_SIZE || memcmp(found, found + 1, VALUE_SIZE - 1) != 0;
    }
}

static void
write_until(SXE_DICT *dict, struct tally *tally, const bool *done)
{
    while (!__atomic_load_n(done, __ATOMIC_RELAXED)) {
        memset(value, (int)tally->writes, VALUE_SIZE);
        while (sxe_dict_put(dict, key_of(random_below(READ_KEYS)), KEY_SIZE, value, VALUE_SIZE,
                            0) == -EAGAIN)
            tally->again++;
        tally->writes++;
    }
}

static void
measure_readers(void)
{
    struct shared {
        struct tally tally[3];
        bool done;
    } *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    SXE_DICT *dict = open_dict(2 * READ_KEYS, 8, NULL);
    pid_t child[3];

    for (uint32_t i = 0; i < READ_KEYS; i++)
        dict_put(dict, i);
    const uint64_t start = sxe_time_ns();
    for (unsigned i = 0; i < 3; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            if (i < 2)
                read_for(dict, &shared->tally[i], 10000000);
            else
                write_until(dict, &shared->tally[i], &shared->done);
            _exit(0);
        }
    }
    waitpid(child[0], NULL, 0);
    waitpid(child[1], NULL, 0);
    const double seconds = (double)(sxe_time_ns() - start) / 1e9;
    __atomic_store_n(&shared->done, true, __ATOMIC_RELAXED);
    waitpid(child[2], NULL, 0);
    printf("\n2 processes read, 1 writes, %u keys, 8 shards, %.1f s: %.1f M reads/s, %.1f M "
           "writes/s, %llu torn, %llu calls made again\n",
           READ_KEYS, seconds, 20 / seconds, (double)shared->tally[2].writes / 1e6 / seconds,
           (unsigned long long)(shared->tally[0].torn + shared->tally[1].torn),
           (unsigned long long)(shared->tally[0].again + shared->tally[1].again +
                                shared->tally[2].again));
    munmap(shared, sizeof(*shared));
    sxe_dict_close(dict);
}

/* ---- Processes that need the same lock ---- */

#define CROWD 6u

struct crowd {
    uint64_t calls;
    uint64_t again;
};

static int
commit_some(SXE_DICT *dict)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);

    for (unsigned i = 0; i < 16; i++)
        (void)!sxe_dict_batch_put(batch, key_of(random_below(READ_KEYS)), KEY_SIZE, value,
                                  VALUE_SIZE, 0);
    const int result = sxe_dict_batch_commit(batch);
    sxe_dict_batch_delete(batch);
    return result;
}

static void
call_for_long(SXE_DICT *dict, struct crowd *tally, bool batches)
{
    const uint64_t end = sxe_time_ns() + SXE_NS_PER_SECOND;

    while (sxe_time_ns() < end) {
        const char *key = key_of(random_below(READ_KEYS));
        const ssize_t result = batches ? commit_some(dict)
                               : tally->calls % 2 == 0
                                   ? sxe_dict_get(dict, key, KEY_SIZE, found, VALUE_SIZE)
                                   : sxe_dict_put(dict, key, KEY_SIZE, value, VALUE_SIZE, 0);
        tally->again += result == -EAGAIN;
        tally->calls++;
    }
}

static void
measure_crowd(bool batches, double wait)
{
    struct crowd *tally = mmap(NULL, CROWD * sizeof(*tally), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    SXE_DICT *dict = open_dict(4 * READ_KEYS, 1, NULL);
    uint64_t calls = 0, again = 0;

    for (uint32_t i = 0; i < READ_KEYS; i++)
        dict_put(dict, i);
    if (sxe_dict_set_wait(dict, wait) < 0)
        stop("sxe_dict_set_wait");
    for (unsigned i = 0; i < CROWD; i++) {
        if (fork() == 0) {
            call_for_long(dict, &tally[i], batches);
            _exit(0);
        }
    }
    for (unsigned i = 0; i < CROWD; i++)
        (void)!waitpid(-1, NULL, 0);
    for (unsigned i = 0; i < CROWD; i++) {
        calls += tally[i].calls;
        again += tally[i].again;
    }
    printf("%-20s %9.3f %14llu %12.4f %%\n", batches ? "batches of 16" : "puts and gets", wait,
           (unsigned long long)calls, 100.0 * (double)again / (double)calls);
    munmap(tally, CROWD * sizeof(*tally));
    sxe_dict_close(dict);
}

static void
measure_waits(void)
{
    static const double waits[] = {0, 0.01, 0.1, 1};

    printf("\n%u processes, 1 shard   wait, s   calls a second      -EAGAIN\n", CROWD);
    for (unsigned i = 0; i < 2 * SXE_COUNT(waits); i++)
        measure_crowd(i >= SXE_COUNT(waits), waits[i % SXE_COUNT(waits)]);
}

int
main(int argc, char **argv)
{
    static const struct part parts[] = {
        {"peers", measure_peers},
        {"snapshot", measure_snapshot},
        {"readers", measure_readers},
        {"waits", measure_waits},
    };

    snprintf(directory, sizeof(directory), "/tmp/micro-dict-XXXXXX");
    if (mkdtemp(directory) == NULL)
        stop("mkdtemp");
    memset(value, 'v', sizeof(value));
    run_parts(parts, SXE_COUNT(parts), argc, argv);
    return rmdir(directory) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
