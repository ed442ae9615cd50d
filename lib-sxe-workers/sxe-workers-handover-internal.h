/* SPDX-License-Identifier: MIT
 *
 * What: the protocol between the supervisor and serving processes: messages and listening sockets.
 * From the start the supervisor has the sockets of the command line, and those that it inherited.
 * If a script listens at another address, its process opens a socket, and sends it to the
 * supervisor, which keeps it. Processes that are forked later inherit all these sockets, with the
 * connections in their queues.
 *
 * Place: sxe-workers.c is one end, sxe-workers-worker.c the other. sxe_workers_listen_tcp,
 * sxe-workers-inherit.c and sxe-httpd fill the table before a process serves, also where there is
 * no supervisor.
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
 * Limits: the supervisor keeps at most SXE__HANDOVER_SOCKETS sockets. A message is one packet of a
 * SOCK_SEQPACKET pair. A serving process blocks until the packet fits into the queue. The
 * supervisor's end does not block: its messages are few, and one that does not fit is lost.
 *
 * Example: config.listeners = &sxe__handover_listeners, before sxe_init.
 */
#ifndef SXE_WORKERS_HANDOVER_INTERNAL_H
#define SXE_WORKERS_HANDOVER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "sxe.h"

#define SXE__HANDOVER_SOCKETS 128
#define SXE__HANDOVER_PATH    1024
#define SXE__HANDOVER_NAMES   (SXE__HANDOVER_SOCKETS * (2 * sizeof(struct sockaddr_storage) + 8))

enum sxe__handover_kind {
    /* Messages that a serving process sends. */
    SXE__HANDOVER_KEEP = 1, /* a socket was opened: its address and descriptor */
    SXE__HANDOVER_USE,      /* value: the index of a kept socket that the process took */
    SXE__HANDOVER_FILE,     /* path: a file that the process loads next; watch it for changes */
    SXE__HANDOVER_READY,    /* the process accepts connections */
    SXE__HANDOVER_RENEW,    /* the process asks to be replaced */
    SXE__HANDOVER_REASON, /* value: a digest of the message with which the process fails to load */
    /* Messages that a serving process gets. */
    SXE__HANDOVER_DRAIN, /* the next process accepts: finish the requests in progress and exit */
    SXE__HANDOVER_END,   /* finish the requests in progress and exit; if it comes again: exit now */
    SXE__HANDOVER_REOPEN, /* open the access log again */
    SXE__HANDOVER_STATS,  /* write the counters to the log */
    SXE__HANDOVER_SAY     /* all workers of the first load are ready: print where they listen */
};

/* The parts of the result of stat(2) that change with the file. If there is no file, all members
 * are 0. */
struct sxe__stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
    /* the time of the last change of the inode; it shows a change even if the writer sets the
     * file's own time back */
    struct timespec touched;
};

struct sxe__handover_message {
    uint32_t kind;
    uint32_t value;
    socklen_t length; /* the length of the address */
    union {
        struct sockaddr_storage address;
        struct {
            char path[SXE__HANDOVER_PATH];
            struct sxe__stamp stamp; /* the file as the process saw it, */
            struct timespec seen;    /* and when that was; 0: it did not look */
        };
    } u;
};

/* sxe__handover_send sends a message, with a copy of descriptor fd unless fd is -1.
 * sxe__handover_say sends a message that has only a kind. Both return 0 or -errno.
 * sxe__handover_name_file sends a FILE, with its stamp. */
int sxe__handover_send(int link, const struct sxe__handover_message *message, int fd);
int sxe__handover_say(int link, enum sxe__handover_kind kind);
void sxe__handover_name_file(int link, const char *path);

/* Receive a message without waiting. 1: a message came; *fd is the descriptor that came with it, or
 * -1. If the packet had another size, the message's kind is 0. 0: no message has come; -errno: the
 * other end has closed. */
int sxe__handover_receive(int link, struct sxe__handover_message *message, int *fd);

/* ---- Before a process serves: in the supervisor, or in a process without one ---- */

/* Open a socket and bind it to this address, unless the table has one for it. A serving process
 * calls it, too, for an address that is new in the configuration. 0 or -errno. */
int sxe__handover_open(const struct sockaddr *address, socklen_t length);

/* Add the inherited socket fd to the table. If an earlier sxe-httpd passed it with
 * sxe__handover_export, its name contains its address; otherwise getsockname(2) tells the address.
 * 0 or -errno; -ENOTSOCK: fd is no stream socket that listens. */
int sxe__handover_adopt(int fd, const char *name, size_t length);

/* Copy the addresses of the inherited sockets that sxe_listen has not taken yet. Returns how many
 * there are. */
unsigned sxe__handover_inherited(struct sockaddr_storage addresses[SXE__HANDOVER_SOCKETS]);

/* ---- In the supervisor ---- */

/* Handle a message KEEP, with its descriptor fd, or a message USE. is_next: the process that sent
 * it is starting; false: it serves. */
void sxe__handover_note(const struct sxe__handover_message *message, int fd, bool is_next);

/* The program before this one gives its sockets up, so this program removes their files from now
 * on. It must not do so before, because the other program may go on serving at them. */
void sxe__handover_own_files(void);

/* The load has ended. If it is ready, close the sockets that its processes do not use. If it
 * failed, close the sockets that only its processes used. */
void sxe__handover_settle(bool is_ready);

/* A process that was starting now serves beside the other processes: its sockets count as used,
 * too. */
void sxe__handover_join(void);

/* Called in a child that is about to exec: copy all sockets, and then link, to the descriptors from
 * `first` on, and let them stay open after exec. names becomes their names, for LISTEN_FDNAMES.
 * Returns how many descriptors these are, or -errno. */
int sxe__handover_export(int first, int link, const char *link_name,
                         char names[SXE__HANDOVER_NAMES]);

/* Call it if the serving processes have another root directory, or fewer rights, than this process.
 * After that, only the files of sockets that this process itself passed to sxe__handover_open are
 * removed, and no file that a serving process names. */
void sxe__handover_leave_files(void);

/* Remove the files of unix sockets that this program opened or owns. Call it before the supervisor,
 * or a serving process without a supervisor, exits. */
void sxe__handover_remove_files(void);

/* ---- In a process that serves ---- */

/* Set the end of the socket pair that belongs to this process. Call it once, after the fork. */
void sxe__handover_begin(int link);
extern const struct sxe_listeners sxe__handover_listeners;

/* Empty the table, and close the sockets at which this process does not listen. */
void sxe__handover_close_others(void);

#endif
