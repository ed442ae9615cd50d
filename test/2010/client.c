/* SPDX-License-Identifier: MIT
 *
 * A load generator in the manner of 2010: connects all sockets by a ramp, then writes on all of them, and
 * ends by exit() inside a callback. Only the old names; results of calls are ignored.
 */
#include <stdlib.h>
#include <string.h>
#include "ev.h"
#include "sxe.h"
#include "sxe-log.h"
#include "sxe-util.h"

#define CONCURRENCY_MAX 10000
#define CONNECTION_RAMP 16

unsigned       sxe_concurrency           = 1000;
unsigned       sxe_writes_per_connection = 1;
const char   * peer_ip                   = "127.0.0.1";
unsigned short peer_port                 = 9090;

static SXE    * sender[CONCURRENCY_MAX];
static unsigned per_connection_writes[CONCURRENCY_MAX];
static double   per_connection_begin[CONCURRENCY_MAX];
static unsigned connect_count, response_count;
static double   time_begin, time_connected;

static const char query[] = "GET /123456789/123456789 HTTP/1.1\r\nConnection: keep-alive\r\nHost: 127.0.0.1\r\n\r\n";

static void connect_ramp(SXE * this);

static void
write_one(SXE * this)
{
    per_connection_writes[SXE_ID(this)]++;
    sxe_write(this, query, strlen(query));
}

static void
event_connect(SXE * this)
{
    unsigned i;

    SXEE60I("client::event_connect()");
    if (sxe_get_time_in_seconds() - per_connection_begin[SXE_ID(this)] > 1.0) {
        SXEL11I("finished connection to peer in %f seconds (suspiciously long time)",
                sxe_get_time_in_seconds() - per_connection_begin[SXE_ID(this)]);
    }
    connect_count++;
    if (connect_count % 1000 == 0) {
        SXEL11I("connected: %d", connect_count);
    }
    if (connect_count == sxe_concurrency) {
        time_connected = sxe_get_time_in_seconds();
        SXEL13("starting writes: %d (= %d sockets * %d queries/socket) queries",
               sxe_concurrency * sxe_writes_per_connection, sxe_concurrency, sxe_writes_per_connection);
        SXEL11("using query of %d bytes:", strlen(query));
        SXED10(query, strlen(query));
        for (i = 0; i < sxe_concurrency; i++) {
            write_one(sender[i]);
        }
    }
    else if (connect_count % CONNECTION_RAMP == 0) {
        connect_ramp(this);
    }
SXE_EARLY_OR_ERROR_OUT:
    SXER60I("return");
}

static void
event_read(SXE * this, int length)
{
    SXEE61I("client::event_read(length=%d)", length);
    SXE_UNUSED_ARGUMENT(length);
    if (SXE_BUF_STRNSTR(this, "\r\n\r\n") == NULL) {
        SXEL60I("not the end of the headers yet");
        goto SXE_EARLY_OUT;
    }
    SXE_BUF_CLEAR(this);
    response_count++;
    if (response_count == sxe_concurrency * sxe_writes_per_connection) {
        double now = sxe_get_time_in_seconds();

        SXEL10I("read all expected http responses");
        SXEL12I("time for all connections: %f seconds or %f per second", time_connected - time_begin,
                sxe_concurrency / (time_connected - time_begin));
        SXEL12I("time for all queries    : %f seconds or %f per second", now - time_connected,
                response_count / (now - time_connected));
        exit(0);
    }
    if (per_connection_writes[SXE_ID(this)] < sxe_writes_per_connection) {
        write_one(this);
    }
SXE_EARLY_OR_ERROR_OUT:
    SXER60I("return");
}

static void
event_close(SXE * this)
{
    SXEE60I("client::event_close()");
    SXE_UNUSED_ARGUMENT(this);
    SXER60I("return");
}

static void
connect_ramp(SXE * this)
{
    unsigned first = connect_count;
    unsigned i;

    SXEE60I("client::connect_ramp()");
    for (i = first; i < first + CONNECTION_RAMP && i < sxe_concurrency; i++) {
        sender[i] = sxe_new_tcp(NULL, "127.0.0.1", 0, event_connect, event_read, event_close);
        SXEA12(SXE_ID(sender[i]) == i, "id is %u, not %u", SXE_ID(sender[i]), i);
        per_connection_begin[i] = sxe_get_time_in_seconds();
        sxe_connect(sender[i], peer_ip, peer_port);
    }
    SXER60I("return");
}

int
main(int argc, char *argv[])
{
    if (argc != 4) {
        fprintf(stderr, "Usage   : client port queries-per-socket sockets\n");
        exit(2);
    }
    peer_port                 = (unsigned short)atoi(argv[1]);
    sxe_writes_per_connection = (unsigned)atoi(argv[2]);
    sxe_concurrency           = (unsigned)atoi(argv[3]);
    sxe_register(CONCURRENCY_MAX + 1, 0);
    sxe_init();
    SXEL13("connecting via ramp %d sockets to peer %s:%d", sxe_concurrency, peer_ip, peer_port);
    time_begin = sxe_get_time_in_seconds();
    connect_ramp(NULL);
    ev_loop(ev_default_loop(EVFLAG_AUTO), 0);
    return 0;
}
