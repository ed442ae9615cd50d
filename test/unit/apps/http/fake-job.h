/* SPDX-License-Identifier: MIT
 *
 * What: a job of sxe-http-mpi without MPI: each rank is a process with a relay and an engine, and
 * messages go through socket pairs. Workers are fakes (fake-worker.h). Place: test-http-mpi-*.c.
 *
 *     RUN_JOB(3, "--requests", "300", "-q");
 *     ck_assert_int_eq(ran.status, 0);         `ran` is that of run-program.h
 */
#ifndef FAKE_JOB_H
#define FAKE_JOB_H

#include <sys/prctl.h>
#include <sys/signalfd.h>

#include "agent.h"
#include "engine.h"
#include "envoy.h"
#include "fake-worker.h"
#include "relay.h"
#include "run-program.h"

#define JOB_RANKS 4

static struct {
    unsigned ranks;
    int ends[JOB_RANKS][2];      /* channels between rank 0 and each other rank */
    const char *more[JOB_RANKS]; /* an extra last word of that rank's command line; NULL: none */
    unsigned lost;               /* how many PINGs are lost */
    unsigned busy;               /* how many sends of END or BYE fail at first */
    unsigned full;               /* how often rank 0's relay finds a channel full */
    unsigned silent;             /* the rank that does not send BYE; 0: none */
    bool was_clean;
    pid_t relay; /* the relay of rank 0 */
    int channel; /* private */
} job;

static inline bool
job_send(struct load_link *link, unsigned to, const void *bytes, size_t length)
{
    uint32_t type;

    memcpy(&type, bytes, sizeof(type));
    if (type == LOAD_FRAME_PING && job.lost > 0) {
        job.lost--;
        return false;
    }
    if ((type == LOAD_FRAME_END || type == LOAD_FRAME_BYE) && job.busy > 0) {
        job.busy--;
        return false;
    }
    if (type == LOAD_FRAME_BYE && link->rank == job.silent)
        return true;
    return write(job.ends[link->rank == 0 ? to : link->rank][link->rank > 0], bytes, length) > 0 ||
           errno != EAGAIN;
}

static inline size_t
job_receive(struct load_link *link, unsigned from, void *bytes, size_t size)
{
    ssize_t got = recv(job.ends[link->rank == 0 ? from : link->rank][link->rank > 0], bytes, size,
                       MSG_DONTWAIT);

    return got > 0 ? (size_t)got : 0;
}

/* Rank 0 keeps the ends 0; each other rank keeps its own end 1. */
static inline void
job_keep_ends(unsigned rank)
{
    for (unsigned i = 1; i < job.ranks; i++)
        for (unsigned k = 0; k < 2; k++)
            if (k != (rank > 0) || (rank > 0 && i != rank))
                close(job.ends[i][k]);
}

static inline int
job_engine(int argc, char **argv)
{
    return load_engine_run(job.channel, argc, argv);
}

/* The command line of this rank. */
static inline const char **
job_words(const char **argv, unsigned rank, int channel)
{
    unsigned last = 0;

    job.channel = channel;
    while (argv[last + 1] != NULL)
        last++;
    if (job.more[rank] != NULL)
        argv[last] = job.more[rank];
    return argv;
}

static inline _Noreturn void
job_rank(unsigned rank, const char **argv, int clean)
{
    struct load_link link = {rank, job.ranks, job_send, job_receive};
    struct load_relay_end end;
    sigset_t mask;
    int ends[2];
    pid_t engine;

    job.relay = getpid();
    job_keep_ends(rank);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    engine = fork();
    if (engine == 0) {
        close(ends[0]);
        close(clean);
        for (unsigned i = 1; i < job.ranks; i++)
            if (rank == 0 || i == rank)
                close(job.ends[i][rank > 0]);
        exit(main_of(job_engine, job_words(argv, rank, ends[1])));
    }
    close(ends[1]);
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    /* A write to a rank that has ended must not end the writer. */
    signal(SIGPIPE, SIG_IGN);
    load_engine_tell(ends[0], rank, job.ranks);
    if (rank == 0 && job.full > 0)
        fake_os_fail(FAKE_SEND, 1, job.full, EAGAIN);
    end = load_relay_run(&link, ends[0], engine, signalfd(-1, &mask, SFD_NONBLOCK));
    if (rank == 0)
        (void)!write(clean, &end.is_clean, sizeof(end.is_clean));
    exit(rank > 0 ? 0 : WEXITSTATUS(end.status));
}

/* Rank 0 has ended: end the other ranks as mpirun does. */
static inline void
job_end(const pid_t *pids)
{
    for (unsigned i = 1; i < job.ranks; i++) {
        close(job.ends[i][0]);
        close(job.ends[i][1]);
        if (!job.was_clean)
            kill(pids[i], SIGKILL);
        ck_assert_int_eq(waitpid(pids[i], NULL, 0), pids[i]);
    }
}

static inline void
run_job(unsigned ranks, const char **argv)
{
    FILE *output = tmpfile();
    FILE *errors = tmpfile();
    pid_t pids[JOB_RANKS];
    int clean[2];
    int status;

    job.ranks = ranks;
    job.was_clean = false;
    ck_assert_int_eq(pipe(clean), 0);
    for (unsigned i = 1; i < ranks; i++)
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, job.ends[i]), 0);
    fflush(NULL);
    for (unsigned i = 0; i < ranks; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            dup2(fileno(output), STDOUT_FILENO);
            dup2(fileno(errors), STDERR_FILENO);
            job_rank(i, argv, clean[1]);
        }
    }
    ck_assert_int_eq(waitpid(pids[0], &status, 0), pids[0]);
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    ck_assert_int_eq(read(clean[0], &job.was_clean, sizeof(job.was_clean)), sizeof(bool));
    close(clean[0]);
    close(clean[1]);
    job_end(pids);
    read_back(output, ran.output, sizeof(ran.output));
    read_back(errors, ran.errors, sizeof(ran.errors));
}
#define RUN_JOB(ranks, ...) \
    run_job(ranks, (const char *[]){"sxe-http-mpi", __VA_ARGS__, "http://127.0.0.1:8000/", NULL})

#endif
