/* SPDX-License-Identifier: MIT
 *
 * The supervisor: starts, replaces, watches and ends serving processes.
 */
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "changes.h"
#include "handover.h"
#include "heartbeat.h"
#include "program.h"
#include "sxe-log.h"

#define NEVER        UINT64_MAX
#define LOOK_NS      (250 * SXE_NS_PER_MS) /* between two looks at the script's files */
#define LONG_LIFE_NS (10 * SXE_NS_PER_SECOND)
#define DELAY_MIN_NS (100 * SXE_NS_PER_MS)
#define DELAY_MAX_NS (10 * SXE_NS_PER_SECOND)
#define OVERTIME_NS  (5 * SXE_NS_PER_SECOND) /* beyond stop_timeout_ms */
#define ANSWER_NS    (250 * SXE_NS_PER_MS)   /* how long a hanging child has to say where */

/* How long a child may go on loading after another load was asked for; PATIENCE doubles up to the
 * maximum. */
#define PATIENCE_NS     (10 * SXE_NS_PER_SECOND)
#define PATIENCE_DEV_NS SXE_NS_PER_SECOND
#define PATIENCE_MAX_NS (3600 * SXE_NS_PER_SECOND)

/* A child hangs if this many looks in a row find its loop in the same turn. After a suspend of the
 * machine only one look is late, so no child is killed for it. */
enum { LOOKS = 4 };

enum role { STARTING, SERVING, LEAVING };

struct child {
    pid_t pid;
    int link;
    enum role role;
    uint64_t since_ns;
    uint64_t kill_ns;
    struct heartbeat *heartbeat;
    uint64_t turns; /* of the heartbeat, at the last look */
    unsigned looks; /* looks that found the same number of turns */
    bool is_killed; /* by the supervisor, which has logged why */
};

static const int signal_numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
#define SIGNALS (sizeof(signal_numbers) / sizeof(signal_numbers[0]))

static struct {
    const struct supervisor_config *config;
    struct child children[SUPERVISOR_CHILDREN]; /* in the order of their forks */
    unsigned number;
    unsigned loads;
    int signals;
    sigset_t mask_before;
    uint64_t start_ns; /* when to start a child */
    uint64_t delay_ns;
    uint64_t look_ns;
    uint64_t look_at_hearts_ns;
    uint64_t give_up_ns;  /* when to give up the present load for the one asked for */
    uint64_t patience_ns; /* how long the present load may take after that request */
    bool has_served;      /* a child has been ready once */
    bool is_waiting;      /* start a child as soon as another has ended */
    bool is_ending;
    int status;
} supervisor;

static struct child *
child_in(enum role role)
{
    for (unsigned i = 0; i < supervisor.number; i++) {
        if (supervisor.children[i].role == role)
            return &supervisor.children[i];
    }
    return NULL;
}

/* ---- Starting ---- */

static _Noreturn void
be_child(int link, struct heartbeat *heartbeat, pid_t parent)
{
    for (unsigned i = 0; i < supervisor.number; i++)
        close(supervisor.children[i].link);
    close(supervisor.signals);
    for (size_t i = 0; i < SIGNALS; i++)
        program_disarm(signal_numbers[i]);
    sigprocmask(SIG_SETMASK, &supervisor.mask_before, NULL);
    heartbeat_begin(heartbeat, parent);
    handover_begin(link);
    exit(supervisor.config->serve(supervisor.config->user, link, supervisor.loads));
}

/* Fork; parent and child each keep their end of the link. 0 or -errno. */
static int
fork_with(int ends[2], struct heartbeat *heartbeat)
{
    const pid_t parent = getpid();
    int error;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    error = -errno;
    if (pid == 0) {
        close(ends[0]);
        be_child(ends[1], heartbeat, parent);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return error;
    }
    supervisor.children[supervisor.number++] = (struct child){.pid = pid,
                                                              .link = ends[0],
                                                              .since_ns = sxe_time_ns(),
                                                              .kill_ns = NEVER,
                                                              .heartbeat = heartbeat};
    supervisor.loads++;
    return 0;
}

/* 0 or -errno. */
static int
fork_child(void)
{
    struct heartbeat *heartbeat = heartbeat_new();
    int ends[2];
    int result;

    if (heartbeat == NULL)
        return -errno;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        result = -errno;
    } else {
        (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
        result = fork_with(ends, heartbeat);
    }
    if (result < 0)
        heartbeat_delete(heartbeat);
    return result;
}

/* A child that lived shortly is replaced after a delay that doubles each time. */
static void
start_later(uint64_t since_ns)
{
    uint64_t now_ns = sxe_time_ns();

    if (now_ns - since_ns >= LONG_LIFE_NS)
        supervisor.delay_ns = 0;
    else if (supervisor.delay_ns == 0)
        supervisor.delay_ns = DELAY_MIN_NS;
    else if (supervisor.delay_ns < DELAY_MAX_NS)
        supervisor.delay_ns *= 2;
    supervisor.start_ns = now_ns + supervisor.delay_ns;
}

/* Wait until a draining child has ended: killing it would fail its requests. Several requests for a
 * load start one child. */
static void
wait_for_a_place(void)
{
    if (!supervisor.is_waiting)
        SXE_WARN("%s is loaded again later: %u earlier processes still answer requests, and one of "
                 "them has to end first; --stop-timeout limits how long they take",
                 supervisor.config->script, SUPERVISOR_CHILDREN - 1);
    supervisor.is_waiting = true;
}

static void
start_child(void)
{
    int result;

    supervisor.start_ns = NEVER;
    if (supervisor.number == SUPERVISOR_CHILDREN) {
        wait_for_a_place();
        return;
    }
    changes_clear();
    changes_add(supervisor.config->script);
    result = fork_child();
    if (result == 0)
        return;
    SXE_ERROR("cannot start a process: %s", strerror(-result));
    if (supervisor.has_served)
        start_later(sxe_time_ns());
    else
        supervisor.status = EXIT_FAILURE;
}

/* ---- Ending ---- */

static void
leave(struct child *child, enum handover_kind how)
{
    if (child->role != LEAVING)
        child->kill_ns = sxe_time_ns() + OVERTIME_NS +
                         supervisor.config->stop_timeout_ms * (uint64_t)SXE_NS_PER_MS;
    child->role = LEAVING;
    (void)handover_say(child->link, how);
}

static void
say_to_all(enum handover_kind kind)
{
    for (unsigned i = 0; i < supervisor.number; i++)
        (void)handover_say(supervisor.children[i].link, kind);
}

static void
end_all(void)
{
    supervisor.is_ending = true;
    supervisor.is_waiting = false;
    supervisor.give_up_ns = NEVER;
    supervisor.start_ns = NEVER;
    handover_remove_files();
    handover_close_others();
    for (unsigned i = 0; i < supervisor.number; i++)
        leave(&supervisor.children[i], HANDOVER_END);
}

/* The caller logs why. */
static void
kill_child(struct child *child)
{
    child->is_killed = true;
    kill(child->pid, SIGKILL);
}

static void
describe_end(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "exit status %d", WEXITSTATUS(status));
}

/* A load has ended: start the one that was asked for meanwhile. */
static void
load_again_if_asked(void)
{
    if (supervisor.give_up_ns == NEVER)
        return;
    supervisor.give_up_ns = NEVER;
    supervisor.start_ns = sxe_time_ns();
}

static void
starting_ended(const struct child *child, int status)
{
    handover_settle(false);
    if (!supervisor.has_served)
        supervisor.status = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
    else if (child_in(SERVING) != NULL)
        SXE_ERROR("%s could not be loaded again; the script as loaded before goes on serving",
                  supervisor.config->script);
    else
        start_later(child->since_ns);
    load_again_if_asked();
}

/* The child closed its link, so it has ended or will at once: reap it. */
static void
bury(unsigned index)
{
    static const char *const doings[] = {"was starting", "served", "was leaving"};
    struct child child = supervisor.children[index];
    char how[64];
    int status = 0;

    waitpid(child.pid, &status, 0);
    close(child.link);
    heartbeat_delete(child.heartbeat);
    supervisor.number--;
    memmove(&supervisor.children[index], &supervisor.children[index + 1],
            (supervisor.number - index) * sizeof(child));
    describe_end(status, how, sizeof(how));
    if ((WIFSIGNALED(status) || child.role == SERVING) && !child.is_killed)
        SXE_ERROR("process %d, which %s, ended with %s", child.pid, doings[child.role], how);
    if (child.role == STARTING)
        starting_ended(&child, status);
    else if (child.role == SERVING && child_in(STARTING) == NULL && supervisor.start_ns == NEVER)
        start_later(child.since_ns);
    if (supervisor.is_waiting && supervisor.start_ns == NEVER)
        supervisor.start_ns = sxe_time_ns();
    supervisor.is_waiting = false;
}

/* ---- What children say ---- */

static void
be_ready(struct child *child)
{
    struct child *last = child_in(SERVING);

    if (last != NULL)
        leave(last, HANDOVER_DRAIN);
    child->role = SERVING;
    handover_settle(true);
    if (supervisor.has_served)
        SXE_INFO("%s was loaded again, into process %d", supervisor.config->script, child->pid);
    supervisor.has_served = true;
    supervisor.status = EXIT_SUCCESS;
    supervisor.patience_ns = supervisor.config->is_dev ? PATIENCE_DEV_NS : PATIENCE_NS;
    load_again_if_asked();
}

static void
renew(const struct child *child)
{
    if (child->role == SERVING && child_in(STARTING) == NULL && supervisor.start_ns == NEVER)
        start_later(child->since_ns);
}

static void
take_message(struct child *child, const struct handover_message *message, int fd)
{
    switch (message->kind) {
    case HANDOVER_KEEP:
    case HANDOVER_USE:
        if (child->role != LEAVING)
            handover_note(message, fd, child->role == STARTING);
        else if (fd >= 0)
            close(fd);
        break;
    case HANDOVER_FILE:
        if (child->role != LEAVING)
            changes_add(message->u.path);
        break;
    case HANDOVER_READY:
        if (child->role == STARTING)
            be_ready(child);
        break;
    default:
        renew(child);
        break;
    }
}

/* Handle all messages that have arrived. 0, or -errno if the child has closed its link. */
static int
hear(struct child *child)
{
    struct handover_message message;
    int result;
    int fd;

    while ((result = handover_receive(child->link, &message, &fd)) > 0)
        take_message(child, &message, fd);
    return result;
}

static void
listen_to(unsigned index)
{
    if (hear(&supervisor.children[index]) < 0)
        bury(index);
}

/* ---- Reloading ---- */

/* Kill a child that is still loading, unless it is ready by now and may have accepted connections.
 * Stop it first, so that it cannot become ready after its messages were read. The next child gets
 * twice the time, so that a slow script is loaded in the end, however often it is asked for. */
static void
give_up(struct child *child)
{
    siginfo_t info;

    kill(child->pid, SIGSTOP);
    (void)waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WEXITED | WNOWAIT);
    (void)hear(child);
    if (child->role != STARTING) {
        kill(child->pid, SIGCONT);
        return;
    }
    SXE_WARN("%s is not loaded %u s after another load was asked for: process %d, which loads it, "
             "is killed, and another process loads it",
             supervisor.config->script, (unsigned)(supervisor.patience_ns / SXE_NS_PER_SECOND),
             child->pid);
    kill_child(child);
    child->role = LEAVING;
    handover_settle(false);
    if (supervisor.patience_ns < PATIENCE_MAX_NS)
        supervisor.patience_ns *= 2;
    load_again_if_asked();
}

/* A child that is loading may have read the script before its last change, so load it once more
 * afterwards, however often that is asked for. */
static void
reload(void)
{
    if (supervisor.is_ending)
        return;
    if (child_in(STARTING) == NULL)
        start_child();
    else if (supervisor.give_up_ns == NEVER)
        supervisor.give_up_ns = sxe_time_ns() + supervisor.patience_ns;
}

/* ---- Loops that do not turn ---- */

static void
end_hung(struct child *child)
{
    const char *place = child->heartbeat->place;

    SXE_ERROR("process %d has blocked its loop for more than %u ms, in %s: it is killed%s "
              "(--hang-timeout)",
              child->pid, supervisor.config->hang_timeout_ms,
              *place != '\0' ? place : "a function of C",
              child->role == SERVING && !supervisor.is_ending ? ", and another is started" : "");
    kill_child(child);
}

/* True: look again soon, when the child has had time to say where it hangs. */
static bool
look_at_heart(struct child *child)
{
    const uint64_t turns = __atomic_load_n(&child->heartbeat->turns, __ATOMIC_RELAXED);

    if (turns % 2 == 0 || turns != child->turns) {
        child->turns = turns;
        child->looks = 0;
        return false;
    }
    child->looks++;
    if (child->looks > LOOKS) {
        end_hung(child);
    } else if (child->looks == LOOKS && heartbeat_is_stopped(child->pid)) {
        SXE_WARN("process %d is stopped, by a signal or a debugger: it is not replaced; send it "
                 "SIGCONT to continue it, or SIGKILL to replace it",
                 child->pid);
        child->looks = 0;
    } else if (child->looks == LOOKS) {
        heartbeat_ask(child->heartbeat, child->pid);
        return true;
    }
    return false;
}

static void
look_at_hearts(uint64_t now_ns)
{
    uint64_t wait_ns = supervisor.config->hang_timeout_ms * SXE_NS_PER_MS / LOOKS;

    for (unsigned i = 0; i < supervisor.number; i++) {
        if (look_at_heart(&supervisor.children[i]))
            wait_ns = ANSWER_NS;
    }
    supervisor.look_at_hearts_ns = now_ns + wait_ns;
}

/* ---- The loop ---- */

static void
take_signals(void)
{
    struct signalfd_siginfo info;

    while (read(supervisor.signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        switch (info.ssi_signo) {
        case SIGHUP:
            reload();
            break;
        case SIGUSR1:
            say_to_all(HANDOVER_REOPEN);
            break;
        case SIGUSR2:
            say_to_all(HANDOVER_STATS);
            break;
        default:
            end_all();
            break;
        }
    }
}

/* Milliseconds until the next deadline, rounded up; -1: there is none. */
static int
wait_ms(void)
{
    uint64_t due_ns = supervisor.start_ns;
    uint64_t now_ns = sxe_time_ns();

    if (supervisor.look_ns < due_ns)
        due_ns = supervisor.look_ns;
    if (supervisor.look_at_hearts_ns < due_ns)
        due_ns = supervisor.look_at_hearts_ns;
    if (supervisor.give_up_ns < due_ns)
        due_ns = supervisor.give_up_ns;
    for (unsigned i = 0; i < supervisor.number; i++) {
        if (supervisor.children[i].kill_ns < due_ns)
            due_ns = supervisor.children[i].kill_ns;
    }
    if (due_ns == NEVER)
        return -1;
    return due_ns <= now_ns ? 0 : (int)((due_ns - now_ns) / SXE_NS_PER_MS) + 1;
}

/* Kill children that have not left in time. */
static void
kill_late(uint64_t now_ns)
{
    for (unsigned i = 0; i < supervisor.number; i++) {
        struct child *child = &supervisor.children[i];

        if (child->kill_ns > now_ns)
            continue;
        child->kill_ns = NEVER;
        SXE_WARN("process %d did not end within %u ms (--stop-timeout) and 5 s more: it is killed",
                 child->pid, supervisor.config->stop_timeout_ms);
        kill_child(child);
    }
}

static void
do_what_is_due(void)
{
    struct child *starting = child_in(STARTING);
    uint64_t now_ns = sxe_time_ns();

    kill_late(now_ns);
    if (starting != NULL && supervisor.give_up_ns <= now_ns)
        give_up(starting);
    if (supervisor.look_at_hearts_ns <= now_ns)
        look_at_hearts(now_ns);
    if (supervisor.look_ns <= now_ns) {
        supervisor.look_ns = now_ns + LOOK_NS;
        if (changes_look())
            reload();
    }
    if (supervisor.start_ns <= now_ns)
        start_child();
}

static void
turn(void)
{
    struct pollfd fds[SUPERVISOR_CHILDREN + 1] = {{.fd = supervisor.signals, .events = POLLIN}};
    unsigned number = supervisor.number;

    for (unsigned i = 0; i < number; i++)
        fds[i + 1] = (struct pollfd){.fd = supervisor.children[i].link, .events = POLLIN};
    if (poll(fds, number + 1, wait_ms()) > 0) {
        for (unsigned i = number; i > 0; i--) {
            if (fds[i].revents != 0)
                listen_to(i - 1);
        }
        take_signals();
    }
    do_what_is_due();
}

int
supervise(const struct supervisor_config *config)
{
    sigset_t mask;

    sigemptyset(&mask);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaddset(&mask, signal_numbers[i]);
    memset(&supervisor, 0, sizeof(supervisor));
    supervisor.config = config;
    supervisor.start_ns = NEVER;
    supervisor.give_up_ns = NEVER;
    supervisor.patience_ns = config->is_dev ? PATIENCE_DEV_NS : PATIENCE_NS;
    supervisor.look_ns = config->is_dev ? sxe_time_ns() : NEVER;
    supervisor.look_at_hearts_ns = config->hang_timeout_ms > 0 ? sxe_time_ns() : NEVER;
    supervisor.signals = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
    if (supervisor.signals < 0) {
        SXE_ERROR("cannot start the supervisor: signalfd: %s", strerror(errno));
        return EXIT_FAILURE;
    }
    /* The parent may have left SIGCHLD ignored, and then waitpid would find no child. */
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &mask, &supervisor.mask_before);
    start_child();
    while (supervisor.number > 0 || supervisor.start_ns != NEVER)
        turn();
    handover_remove_files();
    close(supervisor.signals);
    sigprocmask(SIG_SETMASK, &supervisor.mask_before, NULL);
    return supervisor.status;
}
