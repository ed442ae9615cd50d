/* SPDX-License-Identifier: MIT
 *
 * What: what passes between the supervisor and the processes that serve: messages, and sockets that
 * listen. A socket is opened by the process that first wants it and kept by the supervisor; those
 * that are forked later find it open, with all who wait to be accepted in it.
 *
 * Place: supervisor.c is one end, service.c the other.
 *
 * Shape:
 *     one that serves                     supervisor                      the next one
 *     sxe_listen: none found, opens it
 *       KEEP address + descriptor ------> kept: address, descriptor
 *     READY ----------------------------> all that it uses are in use
 *                                         fork ---------------------------> has all of them
 *                                         <--------------------- USE number   sxe_listen: found
 *                                         <------------------------- READY
 *       <--------------------------- DRAIN   closes what only the last one used
 *
 * Limits: HANDOVER_SOCKETS sockets; those above are not kept. A message is one packet of a
 * SOCK_SEQPACKET pair. One that serves waits until there is room for it; the supervisor, whose end
 * does not block, waits for nobody: its messages are few, and one that finds no room is lost.
 *
 * Example: config.listeners = &handover_listeners, before sxe_init.
 */
#ifndef HANDOVER_H
#define HANDOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "sxe.h"

#define HANDOVER_SOCKETS 128
#define HANDOVER_PATH    1024

enum handover_kind {
    /* From the one that serves. */
    HANDOVER_KEEP = 1, /* address, and a descriptor */
    HANDOVER_USE,      /* number: of a socket that was kept */
    HANDOVER_FILE,     /* path: a file that the script is made of */
    HANDOVER_READY,    /* it accepts */
    HANDOVER_RENEW,    /* it wants to be replaced */
    /* To it. */
    HANDOVER_DRAIN,  /* another one accepts now */
    HANDOVER_END,    /* in good order; the second time: at once */
    HANDOVER_REOPEN, /* the access log */
    HANDOVER_STATS   /* counters to the log */
};

struct handover_message {
    uint32_t kind;
    uint32_t number;
    socklen_t length; /* of the address */
    union {
        struct sockaddr_storage address;
        char path[HANDOVER_PATH];
    } u;
};

/* fd: goes with it, stays open here; -1: none. 0 or -errno. */
int handover_send(int link, const struct handover_message *message, int fd);
int handover_say(int link, enum handover_kind kind);

/* Take one without waiting: 1, and the descriptor that came with it, or -1, in *fd; 0: there is
 * none now; -errno: the other end is gone. */
int handover_receive(int link, struct handover_message *message, int *fd);

/* ---- In the supervisor ---- */

/* A KEEP, whose descriptor is taken, or a USE, of the process that serves or the next one. */
void handover_note(const struct handover_message *message, int fd, bool is_next);

/* The next one is ready: what it does not use is closed. Or it failed: what it alone had is. */
void handover_settle(bool is_ready);

/* At the end: the files of unix sockets that are kept. */
void handover_remove_files(void);

/* ---- In a process that serves ---- */

/* Its end of the pair; once. */
void handover_begin(int link);
extern const struct sxe_listeners handover_listeners;

/* What was kept and nobody asked for. */
void handover_close_others(void);

#endif
