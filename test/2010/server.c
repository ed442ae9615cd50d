/* SPDX-License-Identifier: MIT
 *
 * A server in the manner of 2010: only the old names, no care taken. It must compile and run unchanged.
 */
#include <stdlib.h>
#include <string.h>
#include "ev.h"
#include "sxe.h"
#include "sxe-log.h"
#include "sxe-util.h"

static char canned_reply_keep_alive[] =
    "HTTP/1.0 200 OK\r\n" "Connection: keep-alive\r\n" "Content-Type: text/html\r\n"
    "Content-Length: 14\r\n" "\r\n" "Hello World\n\r\n";
static char canned_reply_close[] =
    "HTTP/1.0 200 OK\r\n" "Connection: close\r\n" "Content-Type: text/html\r\n"
    "Content-Length: 14\r\n" "\r\n" "Hello World\n\r\n";

static void
event_connect(SXE * this)
{
    SXE_UNUSED_ARGUMENT(this);
    SXEE60I("server::event_connect()");
    SXER60I("return");
}

static void
event_read(SXE * this, int length)
{
    SXE_UNUSED_ARGUMENT(length);
    SXEE61I("server::event_read(length=%d)", length);

    /* With one byte buffered this looks at the bytes in front of the buffer. */
    if (SXE_BUF(this)[SXE_BUF_USED(this)-4] != '\r' || SXE_BUF(this)[SXE_BUF_USED(this)-1] != '\n') {
        SXEL60I("Not end of headers yet");
        goto SXE_EARLY_OUT;
    }

    if (SXE_BUF_STRNSTR(this, "Connection: keep-alive") || SXE_BUF_STRNCASESTR(this, "connection: KEEP-ALIVE")) {
        sxe_write(this, canned_reply_keep_alive, sizeof(canned_reply_keep_alive) - 1);
    }
    else {
        sxe_write(this, canned_reply_close, sizeof(canned_reply_close) - 1);
        sxe_close(this);
    }

    SXE_BUF_CLEAR(this);

SXE_EARLY_OR_ERROR_OUT:
    SXER60I("return");
}

static void
event_close(SXE * this)
{
    SXE_UNUSED_ARGUMENT(this);
    SXEE60I("server::event_close()");
SXE_EARLY_OR_ERROR_OUT:
    SXER60I("return");
}

int
main(int argc, char *argv[])
{
    SXE * listener;

    sxe_register(1000, 0);
    SXEA10(sxe_init() == SXE_RETURN_OK, "failed to initialize sxe");
    listener = sxe_new_tcp(NULL, "INADDR_ANY", (unsigned short)(argc > 1 ? atoi(argv[1]) : 9090),
                           event_connect, event_read, event_close);
    sxe_listen(listener);
    SXEL11("listening on port %d", SXE_LOCAL_PORT(listener));
    ev_loop(ev_default_loop(EVFLAG_AUTO), 0);
    return 0;
}
