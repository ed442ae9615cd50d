/* SPDX-License-Identifier: MIT
 *
 * What: the program sxe-http-mpi, which is sxe-http with workers on many cores, of one machine or
 * of several. Place: this file has main() and all calls of MPI. mpirun starts the program once for
 * each rank.
 *
 * Shape: main() forks the engine (engine.h), and then only carries frames between the ranks
 * (relay.h).
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine.h"
#include "program.h"
#include "relay.h"
#include "run.h"
#include "sxe-process-internal.h"

#define TAG   1
#define SLOTS 8  /* the most messages to one rank that are being sent at a time */
#define END_S 20 /* how many seconds MPI_Finalize may take */

/* ---- The link ---- */

struct mail {
    MPI_Request sending[SLOTS];
    MPI_Request receiving;
    struct load_frame sent[SLOTS];
    struct load_frame received;
};

static struct mail *mails; /* one element for each rank */

static bool
is_request_free(MPI_Request *request)
{
    int is_done = 1;

    /* Also treat a request that failed as sent: if the rank is lost, it does not answer, and its
     * envoy notices that. */
    if (*request != MPI_REQUEST_NULL && MPI_Test(request, &is_done, MPI_STATUS_IGNORE) != 0)
        *request = MPI_REQUEST_NULL;
    return is_done || *request == MPI_REQUEST_NULL;
}

static bool
send_message(struct load_link *link, unsigned to, const void *bytes, size_t length)
{
    struct mail *mail = &mails[to];

    (void)link;
    for (unsigned i = 0; i < SLOTS; i++) {
        if (!is_request_free(&mail->sending[i]))
            continue;
        memcpy(&mail->sent[i], bytes, length);
        MPI_Request *request = &mail->sending[i];
        MPI_Isend(&mail->sent[i], (int)length, MPI_BYTE, (int)to, TAG, MPI_COMM_WORLD, request);
        return true;
    }
    return false;
}

static void
await_message(unsigned from)
{
    MPI_Irecv(&mails[from].received, (int)sizeof(mails[from].received), MPI_BYTE, (int)from, TAG,
              MPI_COMM_WORLD, &mails[from].receiving);
}

static size_t
receive_message(struct load_link *link, unsigned from, void *bytes, size_t size)
{
    struct mail *mail = &mails[from];
    MPI_Status status;
    int is_there = 0;
    int length = 0;

    (void)link;
    MPI_Test(&mail->receiving, &is_there, &status);
    if (!is_there)
        return 0;
    MPI_Get_count(&status, MPI_BYTE, &length);
    memcpy(bytes, &mail->received, (size_t)length < size ? (size_t)length : size);
    await_message(from);
    return (size_t)length;
}

/* Allocate the mails, one for each rank. False: no memory, or too many ranks. */
static bool
open_rank_link(struct load_link *link)
{
    int rank = 0;
    int ranks = 0;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    *link = (struct load_link){.rank = (unsigned)rank,
                               .ranks = (unsigned)ranks,
                               .send = send_message,
                               .receive = receive_message};
    mails = calloc(link->ranks, sizeof(*mails));
    for (unsigned i = 0; mails != NULL && i < link->ranks; i++) {
        for (unsigned k = 0; k < SLOTS; k++)
            mails[i].sending[k] = MPI_REQUEST_NULL;
        await_message(i);
    }
    return mails != NULL && link->ranks <= LOAD_RANKS_MAX;
}

static void
close_link(const struct load_link *link)
{
    for (unsigned i = 0; i < link->ranks; i++) {
        MPI_Cancel(&mails[i].receiving);
        MPI_Request_free(&mails[i].receiving);
    }
    /* MPI_Finalize waits for all ranks. One of them may have been stopped (SIGSTOP) at the last
     * moment, so SIGALRM ends this process after END_S seconds. */
    alarm(END_S);
    MPI_Finalize();
    free(mails);
}

/* ---- The program ---- */

static int
signals_of_mpirun(void)
{
    sigset_t mask;

    sigemptyset(&mask);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGHUP);
    /* Block these signals before MPI starts threads, because threads inherit the signal mask. */
    sigprocmask(SIG_BLOCK, &mask, NULL);
    return signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
}

static int
carry_messages(int channel, pid_t engine)
{
    int signals = signals_of_mpirun();
    struct load_link link;
    struct load_relay_end end;
    int status;

    MPI_Init(NULL, NULL);
    if (!open_rank_link(&link)) {
        fprintf(stderr,
                "sxe-http: the ranks cannot be linked: there are more than %u, or no memory\n",
                LOAD_RANKS_MAX);
        MPI_Abort(MPI_COMM_WORLD, LOAD_EXIT_USAGE);
    }
    load_engine_tell(channel, link.rank, link.ranks);
    end = load_relay_run(&link, channel, engine, signals);
    status = sxe__wait_status_exit(end.status);
    if (link.rank == 0 && !end.is_clean)
        MPI_Abort(MPI_COMM_WORLD, status);
    close_link(&link);
    return link.rank == 0 ? status : EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
    int ends[2];
    pid_t engine;

    program_begin(NULL);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 || (engine = fork()) < 0) {
        perror("sxe-http: cannot start");
        return LOAD_EXIT_ERRORS;
    }
    if (engine == 0) {
        close(ends[0]);
        setpgid(0, 0);
        return load_engine_run(ends[1], argc, argv);
    }
    close(ends[1]);
    return carry_messages(ends[0], engine);
}
