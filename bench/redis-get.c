/* SPDX-License-Identifier: MIT
 *
 * What: pipelined GETs by hiredis, the C client of Redis: the peer of bench/lua/redis-get.lua in
 * the row redis-pipeline, which does the same with sxe.redis.
 *
 *     redis-get SOCKET COUNT
 *
 * It sets KEYS keys, and then sends COUNT GETs, DEPTH at a time, and takes their replies. Before
 * and after that it prints a line; the second one has the CPU seconds in between.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { KEYS = 1000, DEPTH = 100, VALUE_SIZE = 100, KEY_SIZE = 16 };

static char keys[KEYS][KEY_SIZE];

static void
stop(const char *why)
{
    fprintf(stderr, "redis-get: %s\n", why);
    exit(EXIT_FAILURE);
}

static void
say(const char *what, double seconds)
{
    printf("%s %.6f\n", what, seconds);
    fflush(stdout);
}

static void
set_keys(redisContext *redis)
{
    char value[VALUE_SIZE + 1];

    snprintf(value, sizeof(value), "%0*d", VALUE_SIZE, 0);
    for (int i = 0; i < KEYS; i++) {
        redisReply *reply;

        snprintf(keys[i], sizeof(keys[i]), "key:%d", i);
        reply = redisCommand(redis, "SET %s %s", keys[i], value);
        if (reply == NULL)
            stop(redis->errstr);
        freeReplyObject(reply);
    }
}

/* Send DEPTH commands, and take their replies. */
static void
get_some(redisContext *redis, int first)
{
    for (int i = 0; i < DEPTH; i++) {
        if (redisAppendCommand(redis, "GET %s", keys[(first + i) % KEYS]) != REDIS_OK)
            stop(redis->errstr);
    }
    for (int i = 0; i < DEPTH; i++) {
        void *got;
        const redisReply *reply;

        if (redisGetReply(redis, &got) != REDIS_OK)
            stop(redis->errstr);
        reply = got;
        if (reply->type != REDIS_REPLY_STRING || reply->len != VALUE_SIZE)
            stop("a wrong reply");
        freeReplyObject(got);
    }
}

int
main(int argc, char **argv)
{
    redisContext *redis = argc == 3 ? redisConnectUnix(argv[1]) : NULL;
    const long count = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    clock_t start;

    if (redis == NULL || redis->err != 0)
        stop(redis == NULL ? "usage: redis-get SOCKET COUNT" : redis->errstr);
    set_keys(redis);
    for (int i = 0; i < KEYS; i += DEPTH)
        get_some(redis, i);
    start = clock();
    say("begin", 0);
    for (long i = 0; i < count; i += DEPTH)
        get_some(redis, (int)(i % KEYS));
    say("end", (double)(clock() - start) / CLOCKS_PER_SEC);
    redisFree(redis);
    return EXIT_SUCCESS;
}
