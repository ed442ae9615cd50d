/* SPDX-License-Identifier: MIT
 *
 * What: the protocol between the supervisor and serving processes: messages and listening sockets.
 * The supervisor has the sockets of the command line and inherited ones from the start. If a script
 * listens at another address, its process opens the socket and sends it to the supervisor, which
 * keeps it. Processes that are forked later inherit all sockets, with the connections in their
 * queues.
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
 *                                         <--------------------- USE index    sxe_listen: found
 *                                         <------------------------- READY
 *       <--------------------------- DRAIN   closes sockets that the next process did not take
 *
 * Limits: HANDOVER_SOCKETS sockets; further ones are not kept. A message is one packet of a
 * SOCK_SEQPACKET pair. A serving process blocks until the packet fits into the queue. The
 * supervisor's end does not block: its messages are few, and one that does not fit is lost.
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
    HANDOVER_USE,      /* value: the index of a kept socket that the process took */
    HANDOVER_FILE,     /* path: a file that the process loads; watch it for changes */
    HANDOVER_READY,    /* the process accepts connections */
    HANDOVER_RENEW,    /* the process asks to be replaced */
    HANDOVER_REASON,   /* value: a digest of the message with which the process fails to load */
    /* To a serving process. */
    HANDOVER_DRAIN,  /* the next process accepts; finish the requests in progress and exit */
    HANDOVER_END,    /* finish and exit; the second time: exit now */
    HANDOVER_REOPEN, /* open the access log again */
    HANDOVER_STATS,  /* write the counters to the log */
    HANDOVER_SAY     /* all workers of the first load are ready: print where they listen */
};

struct handover_message {
    uint32_t kind;
    uint32_t value;
    socklen_t length; /* the length of the address */
    union {
        struct sockaddr_storage address;
        char path[HANDOVER_PATH];
    } u;
};

/* Send a message, with a copy of descriptor fd unless that is -1. 0 or -errno. handover_say sends a
 * message that has only a kind, handover_name_file a FILE. */
int handover_send(int link, const struct handover_message *message, int fd);
int handover_say(int link, enum handover_kind kind);
void handover_name_file(int link, const char *path);

/* Receive a message without waiting. 1: *fd is the descriptor that came with it, or -1, and a
 * packet of another size has kind 0; 0: no message is waiting; -errno: the other end has closed. */
int handover_receive(int link, struct handover_message *message, int *fd);

/* ---- Before a process serves: in the supervisor, or where there is none ---- */

/* Open a socket that is bound to this address, unless the table has one. A serving process calls it
 * too, for an address that a new configuration brought. 0 or -errno. */
int handover_open(const struct sockaddr *address, socklen_t length);

/* Take over fd, a socket that this program inherited. If handover_export of an earlier program made
 * its name, the name has its address; otherwise getsockname(2) does. 0, or -errno: -ENOTSOCK if it
 * is no stream socket that listens. */
int handover_adopt(int fd, const char *name, size_t length);

/* Copy the addresses of inherited sockets that sxe_listen has not taken yet. Returns how many. */
unsigned handover_inherited(struct sockaddr_storage addresses[HANDOVER_SOCKETS]);

/* ---- In the supervisor ---- */

/* Handle KEEP, and take over its descriptor fd, or USE. is_next: a process that is starting sent
 * it, not one that serves. */
void handover_note(const struct handover_message *message, int fd, bool is_next);

/* The program before this one gives its sockets up: so from now on this program removes their
 * files. Until then that program may go on serving at them, so this one leaves the files. */
void handover_own_files(void);

/* The processes that were starting are ready: close sockets that they do not use. Or they failed
 * (is_ready is false): close sockets that only they used. */
void handover_settle(bool is_ready);

/* A process that was starting now serves beside the others: mark its sockets as used, too. */
void handover_join(void);

/* In a child that is about to exec: make all sockets, and then link, the descriptors from `first`
 * on, which stay open after exec. names becomes the list of their names for LISTEN_FDNAMES. Returns
 * how many descriptors. */
int handover_export(int first, int link, const char *link_name, char names[HANDOVER_NAMES]);

/* Call it if serving processes have another root directory or fewer rights than this process. Then
 * only the files of sockets that this process itself passed to handover_open are removed, and no
 * file that a message names. */
void handover_leave_files(void);

/* Remove the files of unix sockets that this program opened or owns. Called before the supervisor,
 * or a serving process without supervisor, exits. */
void handover_remove_files(void);

/* ---- In a process that serves ---- */

/* Set this process's end of the pair. Call once, after the fork. */
void handover_begin(int link);
extern const struct sxe_listeners handover_listeners;

/* Empty the table, and close the sockets at which this process does not listen. */
void handover_close_others(void);

#endif
