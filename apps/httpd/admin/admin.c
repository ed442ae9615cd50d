/* SPDX-License-Identifier: MIT
 *
 * Starts, replaces and ends the admin process, and parses --admin.
 */
#include "admin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "admin-metrics.h"
#include "admin-serve.h"
#include "options-check.h"
#include "options.h"
#include "sxe-log.h"
#include "sxe-process-internal.h"
#include "sxe-workers-handover-internal.h"
#include "sxe-workers-upgrade-internal.h"

/* The signal that ends the admin process. The parent sends it, or the kernel when the parent
 * ends. */
#define ENDED (SIGRTMIN + 3)

#define LONG_LIFE_NS (10 * SXE_NS_PER_SECOND)
#define LOOK_NS      (250 * SXE_NS_PER_MS)
#define DELAY_MIN_NS (100 * SXE_NS_PER_MS)
#define DELAY_MAX_NS (10 * SXE_NS_PER_SECOND)
#define END_LOOKS    1000 /* how many ms the admin process has to end before it is killed */

/* The only message that the admin process sends to its parent. */
struct report {
    int result; /* 0, or -errno: the admin process cannot listen */
    int port;
};

static struct {
    const struct httpd_options *options; /* NULL: --admin was not given */
    pid_t pid;                           /* the admin process; 0: there is none now */
    int port;
    uint64_t since_ns;
    uint64_t start_ns; /* when to start the next admin process, if pid is 0 */
    uint64_t delay_ns;
} admin;

/* ---- Options ---- */

bool
admin_take_place(struct httpd_options *options, const char *text)
{
    static char ip[INET6_ADDRSTRLEN];

    options->admin_is_on = true;
    if (strchr(text, '/') != NULL) {
        options->admin_path = text;
        return strlen(text) < sizeof(((struct sockaddr_un *)0)->sun_path);
    }
    if (!httpd_read_place(text, ip, &options->admin_port))
        return false;
    if (*ip != '\0')
        options->admin_ip = ip;
    return true;
}

/* ---- In the admin process ---- */

/* Write the address of the admin process for messages, as in "on 127.0.0.1 port 9180". */
static const char *
admin_place_text(const struct httpd_options *options)
{
    static char text[sizeof(((struct sockaddr_un *)0)->sun_path) + 8];

    if (options->admin_path != NULL)
        snprintf(text, sizeof(text), "at %s", options->admin_path);
    else
        snprintf(text, sizeof(text), "on %s port %d", options->admin_ip, admin.port);
    return text;
}

/* Report whether this process listens. The parent waits for the report of the first admin process.
 * *user is the descriptor of the pipe to it; -1: the parent does not wait, so log an error here. */
static void
report_start(void *user, int result, int port)
{
    struct report said = {.result = result, .port = port};
    int *fd = user;

    if (*fd >= 0) {
        /* ignore an error: if the parent has ended, this process ends, too */
        (void)!write(*fd, &said, sizeof(said));
        close(*fd);
    } else if (result < 0) {
        SXE_ERROR("cannot show the status %s: %s", admin_place_text(admin.options),
                  strerror(-result));
    }
}

/* Ignore signals that a terminal or a service manager sends to all processes of the group. The
 * parent handles them, and this process goes on, to show how the server drains. */
static void
leave_signals_to_the_parent(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        signal(numbers[i], SIG_IGN);
}

static _Noreturn void
be_admin(pid_t parent, int fd)
{
    struct admin_service service = {.options = admin.options,
                                    .port = (unsigned short)admin.port,
                                    .parent = parent,
                                    .end_signal = ENDED,
                                    .report = report_start,
                                    .user = &fd};

    sxe__handover_close_others();
    sxe__upgrade_forget();
    leave_signals_to_the_parent();
    metrics_stop();
    prctl(PR_SET_PDEATHSIG, ENDED);
    prctl(PR_SET_NAME, "sxe-httpd-admin");
    /* If the parent ended before this process asked the kernel for a signal, no signal will come.
     * So compare parents. */
    exit(getppid() == parent && admin_serve(&service) >= 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* ---- In the parent ---- */

/* Wait for the report of the first process: 0 or -errno. */
static int
hear_report(int fd)
{
    struct report said = {.result = -ECHILD};
    ssize_t length;

    do
        length = read(fd, &said, sizeof(said));
    while (length < 0 && errno == EINTR);
    close(fd);
    if (said.result == 0)
        admin.port = said.port;
    return said.result;
}

/* Fork the admin process. The child calls prepare first, unless it is NULL. child_end and
 * parent_end are the ends of a pipe; -1: there is no pipe. 0 or -errno. */
static int
fork_admin(void (*prepare)(void), int child_end, int parent_end)
{
    const pid_t parent = getpid();
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        if (prepare != NULL)
            prepare();
        if (parent_end >= 0)
            close(parent_end);
        be_admin(parent, child_end);
    }
    admin.pid = pid;
    return 0;
}

/* Start the first admin process, and wait until it listens. 0 or -errno. */
static int
start_first_admin(void)
{
    int ends[2];
    int result;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    admin.since_ns = sxe_time_ns();
    result = fork_admin(NULL, ends[1], ends[0]);
    close(ends[1]);
    if (result < 0) {
        close(ends[0]);
        return result;
    }
    result = hear_report(ends[0]);
    if (result < 0) {
        (void)!waitpid(admin.pid, NULL, 0);
        admin.pid = 0;
    }
    return result;
}

int
admin_begin(const struct httpd_options *options, unsigned slots)
{
    int result;

    if (!options->admin_is_on)
        return 0;
    admin.options = options;
    admin.port = options->admin_port;
    result = metrics_map(slots);
    if (result == 0)
        result = start_first_admin();
    if (result == 0)
        return 0;
    fprintf(stderr, "sxe-httpd: cannot show its status %s: %s; choose another place with --admin\n",
            admin_place_text(options), strerror(-result));
    admin_end();
    return result;
}

/* Plan the start of the next admin process: at once, or, if the last one did not live long, after a
 * delay that doubles each time. */
static void
plan_next_admin(uint64_t now_ns)
{
    if (now_ns >= admin.since_ns + LONG_LIFE_NS)
        admin.delay_ns = 0;
    else if (admin.delay_ns == 0)
        admin.delay_ns = DELAY_MIN_NS;
    else
        admin.delay_ns = admin.delay_ns < DELAY_MAX_NS / 2 ? 2 * admin.delay_ns : DELAY_MAX_NS;
    admin.start_ns = now_ns + admin.delay_ns;
}

static void
look_whether_it_lives(uint64_t now_ns)
{
    char how[SXE__WAIT_STATUS_MAX];
    int status;

    if (waitpid(admin.pid, &status, WNOHANG) != admin.pid)
        return;
    plan_next_admin(now_ns);
    SXE_ERROR("process %d, which showed the status, %s: another one is started in %u ms", admin.pid,
              sxe__wait_status_text(status, how), (unsigned)(admin.delay_ns / SXE_NS_PER_MS));
    admin.pid = 0;
}

static void
start_next_admin(uint64_t now_ns, void (*prepare)(void))
{
    int result = fork_admin(prepare, -1, -1);

    admin.since_ns = now_ns;
    if (result == 0)
        return;
    plan_next_admin(now_ns);
    SXE_ERROR("cannot start a process that shows the status: %s: it is tried again in %u ms",
              strerror(-result), (unsigned)(admin.delay_ns / SXE_NS_PER_MS));
}

pid_t
admin_pid(void)
{
    return admin.pid;
}

uint64_t
admin_look(uint64_t now_ns, void (*prepare)(void))
{
    if (admin.options == NULL)
        return UINT64_MAX;
    if (admin.pid > 0)
        look_whether_it_lives(now_ns);
    if (admin.pid == 0 && admin.start_ns <= now_ns)
        start_next_admin(now_ns, prepare);
    return now_ns + LOOK_NS;
}

void
admin_say(const struct httpd_options *options)
{
    bool is_log = options->access_log != NULL && strcmp(options->access_log, "-") == 0;
    bool is_ipv6 = strchr(options->admin_ip, ':') != NULL;
    FILE *out = is_log ? stderr : stdout;

    if (admin.options == NULL)
        return;
    if (options->admin_path != NULL)
        fprintf(out, "status at unix:%s\n", options->admin_path);
    else
        fprintf(out, "status at http://%s%s%s:%d/\n", is_ipv6 ? "[" : "", options->admin_ip,
                is_ipv6 ? "]" : "", admin.port);
    fflush(out);
}

/* The admin process ends at once, unless it is stopped or hangs. If it does not end, kill it. */
static void
end_admin_process(void)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    int looks = 0;

    if (kill(admin.pid, ENDED) < 0)
        /* After --user this process may not send the signal. The kernel sends ENDED when this
         * process ends. */
        return;
    while (waitpid(admin.pid, NULL, WNOHANG) == 0) {
        if (++looks == END_LOOKS)
            kill(admin.pid, SIGKILL);
        nanosleep(&pause, NULL);
    }
}

void
admin_end(void)
{
    if (admin.pid > 0)
        end_admin_process();
    memset(&admin, 0, sizeof(admin));
    metrics_unmap();
}
