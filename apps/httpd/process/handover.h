/* SPDX-License-Identifier: MIT
 *
 * What: the protocol between the supervisor and serving processes: messages and listening sockets.
 * From the start the supervisor has the sockets of the command line, and those that it inherited.
 * If a script listens at another address, its process opens a socket, and sends it to the
 * supervisor, which keeps it. Processes that are forked later inherit all these sockets, with the
 * connections in their queues.
 *
 * Place: supervisor.c is one end of the protocol, service.c the other. listening.c and inherit.c
 * fill the table of sockets before a process serves, also if there is no supervisor.
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
 * Limits: the supervisor keeps at most HANDOVER_SOCKETS sockets. A message is one packet of a
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
    /* Messages that a serving process sends. */
    HANDOVER_KEEP = 1, /* a socket was opened: its address and descriptor */
    HANDOVER_USE,      /* value: the index of a kept socket that the process took */
    HANDOVER_FILE,     /* path: a file that the process loads; watch it for changes */
    HANDOVER_READY,    /* the process accepts connections */
    HANDOVER_RENEW,    /* the process asks to be replaced */
    HANDOVER_REASON,   /* value: a digest of the message with which the process fails to load */
    /* Messages that a serving process gets. */
    HANDOVER_DRAIN,  /* the next process accepts: finish the requests in progress and exit */
    HANDOVER_END,    /* finish the requests in progress and exit; if it comes again: exit now */
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

/* handover_send sends a message, with a copy of descriptor fd unless fd is -1. handover_say sends a
 * message that has only a kind. Both return 0 or -errno. handover_name_file sends a FILE. */
int handover_send(int link, const struct handover_message *message, int fd);
int handover_say(int link, enum handover_kind kind);
void handover_name_file(int link, const char *path);

/* Receive a message without waiting. 1: a message came; *fd is the descriptor that came with it, or
 * -1. If the packet had another size, the message's kind is 0. 0: no message has come; -errno: the
 * other end has closed. */
int handover_receive(int link, struct handover_message *message, int *fd);

/* ---- Before a process serves: in the supervisor, or in a process without one ---- */

/* Open a socket and bind it to this address, unless the table has one for it. A serving process
 * calls it, too, for an address that is new in the configuration. 0 or -errno. */
int handover_open(const struct sockaddr *address, socklen_t length);

/* Add the inherited socket fd to the table. If an earlier sxe-httpd passed it with handover_export,
 * its name contains its address; otherwise getsockname(2) tells the address. 0 or -errno;
 * -ENOTSOCK: fd is no stream socket that listens. */
int handover_adopt(int fd, const char *name, size_t length);

/* Copy the addresses of the inherited sockets that sxe_listen has not taken yet. Returns how many
 * there are. */
unsigned handover_inherited(struct sockaddr_storage addresses[HANDOVER_SOCKETS]);

/* ---- In the supervisor ---- */

/* Handle a message KEEP, with its descriptor fd, or a message USE. is_next: the process that sent
 * it is starting; false: it serves. */
void handover_note(const struct handover_message *message, int fd, bool is_next);

/* The program before this one gives its sockets up, so this program removes their files from now
 * on. It must not do so before, because the other program may go on serving at them. */
void handover_own_files(void);

/* The load has ended. If it is ready, close the sockets that its processes do not use. If it
 * failed, close the sockets that only its processes used. */
void handover_settle(bool is_ready);

/* A process that was starting now serves beside the other processes: its sockets count as used,
 * too. */
void handover_join(void);

/* Called in a child that is about to exec: copy all sockets, and then link, to the descriptors from
 * `first` on, and let them stay open after exec. names becomes their names, for LISTEN_FDNAMES.
 * Returns how many descriptors these are. */
int handover_export(int first, int link, const char *link_name, char names[HANDOVER_NAMES]);

/* Call it if the serving processes have another root directory, or fewer rights, than this process.
 * After that, only the files of sockets that this process itself passed to handover_open are
 * removed, and no file that a serving process names. */
void handover_leave_files(void);

/* Remove the files of unix sockets that this program opened or owns. Call it before the supervisor,
 * or a serving process without a supervisor, exits. */
void handover_remove_files(void);

/* ---- In a process that serves ---- */

/* Set the end of the socket pair that belongs to this process. Call it once, after the fork. */
void handover_begin(int link);
extern const struct sxe_listeners handover_listeners;

/* Empty the table, and close the sockets at which this process does not listen. */
void handover_close_others(void);

#endif
