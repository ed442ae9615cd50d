/* SPDX-License-Identifier: MIT
 *
 * The process of a rank that does the work: the coordinator and envoys at rank 0, an agent at other
 * ranks.
 */
#include "engine.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"
#include "command-line.h"
#include "envoy.h"
#include "frame.h"
#include "perform.h"
#include "sxe-log.h"
#include "warmup.h"

/* How long after GO a run starts. A message to a rank takes up to two turns of a relay, and the
 * network's time. */
#define START_IN_NS (100 * SXE_NS_PER_MS)
/* the window of --warmup auto; it must be longer than the time between two RESULTs */
#define WINDOW_NS (500 * SXE_NS_PER_MS)

/* State that only rank 0 has. */
static struct coordinator {
    int relay;       /* the channel to the relay */
    unsigned number; /* how many ranks */
    struct load_ranks *ranks;
    pid_t agent;
} coordinator;

bool
load_engine_tell(int channel, unsigned rank, unsigned ranks)
{
    struct load_frame frame = {.type = LOAD_FRAME_START,
                               .u.start = {.shard = rank, .shards = ranks}};

    return load_frame_send(channel, &frame, 0);
}

/* ---- Rank 0 ---- */

static _Noreturn void
be_agent(const struct load_command *command, int channel)
{
    close(coordinator.relay);
    load_agent_run(&(struct load_agent){
        .channel = channel, .plan = &command->plan, .script = command->script});
    exit(EXIT_SUCCESS);
}

/* Open the channel of a rank. Its other end goes to the relay, or, for rank 0 itself, to an agent
 * that is forked here. */
static bool
open_channel(const struct load_command *command, unsigned rank)
{
    int ends[2];
    bool is_open = true;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    coordinator.ranks->ranks[rank].channel = ends[0];
    if (rank > 0) {
        is_open = load_frame_send_descriptor(coordinator.relay, ends[1]);
    } else {
        fflush(NULL);
        coordinator.agent = fork();
        if (coordinator.agent == 0) {
            close(ends[0]);
            be_agent(command, ends[1]);
        }
        is_open = coordinator.agent > 0;
    }
    close(ends[1]);
    return is_open;
}

static int
prepare_run(struct load_command *command)
{
    bool is_open = true;

    if (command->what != LOAD_COMMAND_RUN)
        return COMMAND_LINE_GO_ON;
    if (command->plan.workers != coordinator.number)
        return load_command_refuse("each rank is one worker, and there are %u: leave out -t, and "
                                   "say how many ranks there are to mpirun (-np)",
                                   coordinator.number);
    coordinator.ranks = load_ranks_new(coordinator.number);
    for (unsigned i = 0; i < coordinator.number && is_open; i++)
        is_open = coordinator.ranks != NULL && open_channel(command, i);
    if (!is_open) {
        fprintf(stderr, "sxe-http: cannot start %u ranks: see what is limited (ulimit -a)\n",
                coordinator.number);
        return LOAD_EXIT_ERRORS;
    }
    coordinator.ranks->script = command->script;
    load_envoy_use(coordinator.ranks);
    load_ranks_judge(coordinator.ranks);
    load_trial_start_in_ns = START_IN_NS;
    load_warmup_window_ns = WINDOW_NS;
    return COMMAND_LINE_GO_ON;
}

static int
coordinate_ranks(int relay, unsigned number, int argc, char **argv)
{
    int status;

    coordinator = (struct coordinator){.relay = relay, .number = number};
    load_command_workers = number;
    /* Without colours: stdout is a pipe to mpirun, whose output need not be a terminal. */
    setenv("NO_COLOR", "1", 0);
    status = load_perform(argc, argv, prepare_run);
    if (coordinator.ranks != NULL) {
        for (unsigned i = 0; i < number; i++)
            close(coordinator.ranks->ranks[i].channel);
        load_ranks_free(coordinator.ranks);
    }
    if (coordinator.agent > 0)
        waitpid(coordinator.agent, NULL, 0);
    return status;
}

/* ---- Another rank ---- */

/* Parse the command line, but print nothing, because rank 0 prints the same errors. An error that
 * only this machine has, such as a missing file, is written to `said`, and then sent to rank 0. */
static int
parse_quietly(struct load_command *command, int argc, char **argv, char *said, size_t size)
{
    int file = memfd_create("said", MFD_CLOEXEC);
    int out = dup(STDOUT_FILENO);
    int err = dup(STDERR_FILENO);
    ssize_t length;
    int status;

    fflush(NULL);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    status = load_command_parse(command, argc, argv);
    fflush(NULL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    length = pread(file, said, size - 1, 0);
    said[length > 0 ? length : 0] = '\0';
    said[strcspn(said, "\n")] = '\0';
    close(file);
    close(out);
    close(err);
    return status;
}

static int
serve_channel(int channel, unsigned number, int argc, char **argv)
{
    static const char refuses[] = "refuses the command: ";
    struct load_command command;
    struct load_agent agent = {.channel = channel};
    char said[1024];
    size_t used = sizeof(refuses) - 1;

    /* End when the relay ends. Rank 0's engine must not, because it has results to write. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    load_command_workers = number;
    memcpy(said, refuses, used);
    if (parse_quietly(&command, argc, argv, said + used, sizeof(said) - used) < 0) {
        agent.plan = &command.plan;
        agent.script = command.script;
    }
    agent.refusal = said;
    load_agent_run(&agent);
    load_command_free(&command);
    return EXIT_SUCCESS;
}

/* ---- The whole engine ---- */

int
load_engine_run(int channel, int argc, char **argv)
{
    struct pollfd fd = {channel, POLLIN, 0};
    static struct load_frame frame;
    int bytes;

    if (getenv("SXE_LOG_LEVEL") == NULL)
        sxe_log_set_level(SXE_LOG_FATAL);
    while ((bytes = load_frame_receive(channel, &frame)) == -1)
        poll(&fd, 1, -1);
    /* The relay closed the channel before it sent the rank: MPI has failed, and has printed why. */
    if (bytes < 0)
        return LOAD_EXIT_ERRORS;
    if (frame.u.start.shard > 0)
        return serve_channel(channel, frame.u.start.shards, argc, argv);
    return coordinate_ranks(channel, frame.u.start.shards, argc, argv);
}
