/* SPDX-License-Identifier: MIT
 *
 * What: connects to a server by its name. Its addresses race, as RFC 8305 (Happy Eyeballs)
 * describes it, so one that leads nowhere costs a quarter of a second, not a timeout.
 *
 * Place: clients that know a name instead of an address; on top of sxe-resolve.h and sxe_connect.
 *
 * Shape: a dial looks the name up, and then has an attempt for each address, in their order.
 *
 *     sxe_dial --> look-up --> first address --> open --> connecting ---.
 *                              250 ms later, or when one has failed:     +--> done(dial, 0)
 *                              next address ---> open --> connecting ---'
 *                              no address is left, and none connected ------> done(dial, error)
 *
 *     The first that connects wins: it is dial->socket, and the others are closed.
 *
 * Rules: 1 the program owns each struct sxe_dial, and lends it from sxe_dial until done is called
 * or sxe_dial_cancel returns. 2 done is called once, in the loop, and may do all that on_connected
 * may, and free its struct sxe_dial. It is not called after a cancel, or after sxe_fini. 3 open
 * makes a socket for an attempt, and may give it another sxe_io_table (sxe_tls_use), sxe_unref it,
 * or refuse the address. The callbacks that open set are not called before done; on_connected is
 * never called. 4 each attempt has the time limit of the state CONNECTING (sxe_configure). For a
 * limit of the whole dial, the program starts a timer that calls sxe_dial_cancel.
 *
 * Limits: the addresses of sxe-resolve.h, 8 at most. If several attempts of a dial are under way,
 * all but one are spare. All dials of a thread together have at most as many spare attempts as
 * sxe_dial_register registered, and no attempt begins while no socket is free. So a race takes no
 * socket that another connection needs; an address that found no socket is tried 250 ms later.
 *
 * Example:
 *     static SXE *open(struct sxe_dial *dial, const char *ip)
 *     {
 *         return sxe_new_tcp(NULL, "", 0, NULL, on_read, on_close);
 *     }
 *     static void done(struct sxe_dial *dial, int result)
 *     {
 *         if (result == 0)
 *             sxe_write(dial->socket, "hello\n", 6);
 *     }
 *     static struct sxe_dial dial = {.open = open, .done = done};
 *     int main(void)
 *     {
 *         sxe_register(1, 0);
 *         return sxe_dial_register(7) < 0 || sxe_init() < 0 ||
 *                sxe_dial(&dial, "localhost", 9090) < 0 || sxe_run() < 0;
 *     }
 */
#ifndef SXE_DIAL_H
#define SXE_DIAL_H

#include "sxe-resolve.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_DIAL_NEXT_MS 250 /* RFC 8305, 8: Connection Attempt Delay */

/* An attempt to connect to the address with the same index. */
struct sxe__attempt {
    struct sxe_dial *dial;
    SXE *socket; /* NULL: this attempt is not under way */
    /* copies of the members of the socket that open set */
    void *user_data;
    SXE_IN_EVENT_CLOSE on_close;
};

/* Set open and done, and all other fields to zero, before the first sxe_dial. */
struct sxe_dial {
    /* rw: make a socket for this address, as sxe_new_tcp; NULL with errno: do without it */
    SXE *(*open)(struct sxe_dial *dial, const char *ip);
    /* rw: 0: `socket` is connected; -EADDRNOTAVAIL with a look_up_error: there is no address; else
     * the -errno of the last attempt */
    void (*done)(struct sxe_dial *dial, int result);
    void *user;        /* rw */
    SXE *socket;       /* ro: in done */
    int look_up_error; /* ro: in done, or after sxe_dial failed: for gai_strerror; 0: none */

    struct sxe_resolve look_up;                              /* private */
    struct sxe__attempt attempts[SXE_RESOLVE_ADDRESSES_MAX]; /* private */
    unsigned tried; /* private: how many of the addresses were tried */
    /* private: how many attempts are under way */
    unsigned under_way;
    int error;             /* private: -errno of the last attempt that failed */
    unsigned short port;   /* private */
    SXE_TIME next_ns;      /* private: when the next address is tried; 0: no time is set */
    struct sxe_dial *next; /* private */
    struct sxe_dial *prev; /* private */
};

/* Before sxe_init, any number of times: register this many sockets for attempts that are spare, and
 * call sxe_resolve_register. The first attempt of each dial is the program's own to register. 0 or
 * -ENOMEM. */
SXE_PUBLIC SXE_RETURN sxe_dial_register(unsigned spares);

/* Connect to the port of a host: a name, or an address as text. 0: done will be called. Otherwise
 * it will not: -EBUSY: this dial is under way; -errno of connecting, if the addresses were known
 * and none could be tried; or as sxe_resolve. */
SXE_PUBLIC SXE_RETURN sxe_dial(struct sxe_dial *dial, const char *host, unsigned short port);

/* Close all sockets of the dial. 0: done will not be called; -EALREADY: it is not under way. */
SXE_PUBLIC SXE_RETURN sxe_dial_cancel(struct sxe_dial *dial);

#ifdef __cplusplus
}
#endif

#endif
