/* SPDX-License-Identifier: MIT
 *
 * What: the protocol between the supervisor and serving processes: messages and listening sockets.
 * The supervisor has those of the command line and those that it inherited from the start. The
 * process that first listens at another address, a script's, opens the socket, and the supervisor
 * keeps it. Processes that are forked later inherit it, with the connections that wait.
 *
 * Place: supervisor.c is one end, service.c the other. listening.c and inherit.c fill the table
 * before a process serves, also where there is no supervisor.
 *
 * Shape:
 *     serving process                     supervisor                      next process
 *     sxe_listen: none found, opens it
 *       KEEP address + descriptor ------> kept: address, descriptor
 *     READY ----------------------------> marks its sockets as used
 *                                         fork ---------------------------> has all of them
 *                                         <--------------------- USE number   sxe_listen: found
 *                                         <------------------------- READY
 *       <--------------------------- DRAIN   closes sockets that the next process did not take
 *
 * Limits: HANDOVER_SOCKETS sockets; further ones are not kept. A message is one packet of a
 * SOCK_SEQPACKET pair. A serving process blocks until the packet fits. The supervisor's end does
 * not block: its messages are few, and one that does not fit is lost.
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
#define HANDOVER_NAMES   (HANDOVER_SOCKETS * (2 * sizeof(struct sockaddr_storage) + 8))

enum handover_kind {
    /* From a serving process. */
    HANDOVER_KEEP = 1, /* a socket was opened: its address and descriptor */
    HANDOVER_USE,      /* number: the index of a kept socket that it took */
    HANDOVER_FILE,     /* path: a file that the script loads */
    HANDOVER_READY,    /* it accepts connections */
    HANDOVER_RENEW,    /* it asks to be replaced */
    /* To a serving process. */
    HANDOVER_DRAIN,  /* the next process accepts; finish the requests in progress and exit */
    HANDOVER_END,    /* finish and exit; the second time: exit now */
    HANDOVER_REOPEN, /* open the access log again */
    HANDOVER_STATS,  /* write the counters to the log */
    HANDOVER_SAY     /* all workers of the first load are ready: print where they listen */
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

/* Send a message, with a copy of descriptor fd unless that is -1. 0 or -errno. */
int handover_send(int link, const struct handover_message *message, int fd);
int handover_say(int link, enum handover_kind kind);

/* Receive a message without waiting. 1: *fd is the descriptor that came with it, or -1, and a
 * packet of another size has kind 0; 0: no message is waiting; -errno: the other end has closed. */
int handover_receive(int link, struct handover_message *message, int *fd);

/* ---- Before a process serves: in the supervisor, or where there is none ---- */

/* Open a socket that is bound to this address, unless one is kept already. A process that serves
 * calls it, too, for an address that came with a new configuration. 0 or -errno. */
int handover_open(const struct sockaddr *address, socklen_t length);

/* Keep a socket that this program inherited: at the address that was asked for, if handover_export
 * of an earlier program gave it this name, otherwise at its own. It is owned from now on. 0, or
 * -errno: -ENOTSOCK if it is no stream socket that listens. */
int handover_adopt(int fd, const char *name, size_t length);

/* The addresses of inherited sockets at which nobody listens yet. How many. */
unsigned handover_inherited(struct sockaddr_storage addresses[HANDOVER_SOCKETS]);

/* ---- In the supervisor ---- */

/* Handle a KEEP, whose descriptor it owns from now on, or a USE. is_next: it came from the process
 * that is starting. */
void handover_note(const struct handover_message *message, int fd, bool is_next);

/* The starting process is ready: close sockets that it does not use. Or it failed (is_ready is
 * false): close sockets that only it had. */
void handover_settle(bool is_ready);

/* One more process serves beside the others: what it uses is in use, too. */
void handover_join(void);

/* In a child that is about to exec: all sockets, and then link with its name, become descriptors
 * from `first` on, open after exec; names lists theirs with colons. How many descriptors. */
int handover_export(int first, int link, const char *link_name, char names[HANDOVER_NAMES]);

/* Serving processes have another root directory or fewer rights than this process: their word is
 * not enough to remove a file. Note and remove only files of sockets that handover_open names. */
void handover_leave_files(void);

/* Before the supervisor exits, or the only process that serves, remove the files of unix sockets
 * that were opened here. */
void handover_remove_files(void);

/* ---- In a process that serves ---- */

/* Set this process's end of the pair. Call once, after the fork. */
void handover_begin(int link);
extern const struct sxe_listeners handover_listeners;

/* Close inherited sockets at which this process does not listen. */
void handover_close_others(void);

#endif
