/* SPDX-License-Identifier: MIT
 *
 * Starting and stopping the server of --server-cmd.
 */
#include "run-private.h"

#include <fcntl.h>
#include <netdb.h>
#include <spawn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port-holder.h"
#include "sxe-process-internal.h"
#include "sxe-time.h"
#include "url.h"

#define TRY_NS (10 * SXE_NS_PER_MS)

uint64_t load_server_start_ns = 10 * SXE_NS_PER_SECOND;
uint64_t load_server_stop_ns = 5 * SXE_NS_PER_SECOND;

/* ---- Whether a server accepts connections at the plan's address ---- */

static socklen_t
unix_address(const char *path, struct sockaddr_storage *address)
{
    struct sockaddr_un *un = (struct sockaddr_un *)address;
    size_t length = strlen(path); /* at most 107 bytes, as plan.h says */

    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, length);
    if (path[0] != '@')
        length++;
    else
        un->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

/* Fill in *address. Returns its length; 0: the plan's IP is not valid. */
static socklen_t
plan_address(const struct load_plan *plan, struct sockaddr_storage *address)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    socklen_t length;
    char port[8];

    memset(address, 0, sizeof(*address));
    if (plan->unix_path != NULL)
        return unix_address(plan->unix_path, address);
    snprintf(port, sizeof(port), "%u", plan->port);
    if (getaddrinfo(plan->ip, port, &hints, &found) != 0)
        return 0;
    length = found->ai_addrlen;
    memcpy(address, found->ai_addr, length);
    freeaddrinfo(found);
    return length;
}

static bool
does_accept(const struct load_plan *plan)
{
    struct sockaddr_storage address;
    socklen_t length = plan_address(plan, &address);

    return load_url_accepts((const struct sockaddr *)&address, length);
}

/* ---- The process ---- */

/* Start the command in its own process group, so that all processes that it starts can be killed
 * together, and Ctrl-C does not reach them. Signals that sxe-http ignores are reset to their
 * defaults. The command's output goes to stderr, because stdout is for data. 0 or an errno. */
static int
spawn_server(struct load_parent *parent)
{
    char shell[] = "sh";
    char option[] = "-c";
    char *arguments[] = {shell, option, (char *)(uintptr_t)parent->plan->server_cmd, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t ours;
    int error;

    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGXFSZ);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &parent->mask_before);
    posix_spawnattr_setsigdefault(&attributes, &ours);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    error = posix_spawn(&parent->server, "/bin/sh", &actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error != 0)
        parent->server = 0;
    return error;
}

const char *
load_server_where(const struct load_plan *plan)
{
    static char text[160];
    bool is_ipv6 = strchr(plan->ip, ':') != NULL;

    if (plan->unix_path != NULL)
        snprintf(text, sizeof(text), "%s", plan->unix_path);
    else
        snprintf(text, sizeof(text), is_ipv6 ? "[%s]:%u" : "%s:%u", plan->ip, plan->port);
    return text;
}

static int
fail_if_in_use(struct load_parent *parent)
{
    const struct load_plan *plan = parent->plan;
    char holder[PORT_HOLDER_MAX];

    if (!does_accept(plan))
        return 0;
    if (plan->unix_path != NULL)
        port_holder_of_path("/proc", plan->unix_path, holder, sizeof(holder));
    else
        port_holder_of_port("/proc", plan->ip, plan->port, holder, sizeof(holder));
    load_parent_fail(parent,
                     "--server-cmd would not be what is measured: %s; stop it, or choose another "
                     "port",
                     holder);
    return -1;
}

/* Wait until the server accepts connections. 0; -1: it ended, the run was interrupted, or it took
 * too long. */
static int
await_accept(struct load_parent *parent)
{
    uint64_t end_ns = sxe_time_ns() + load_server_start_ns;

    while (parent->interrupts == 0 && parent->server > 0) {
        uint64_t now_ns = sxe_time_ns();

        if (does_accept(parent->plan))
            return 0;
        if (now_ns >= end_ns) {
            load_parent_fail(parent,
                             "the server of --server-cmd does not accept at %s after %.3g s",
                             load_server_where(parent->plan), (double)load_server_start_ns / 1e9);
            return -1;
        }
        load_parent_turn(parent, now_ns + TRY_NS);
    }
    return -1;
}

int
load_server_start(struct load_parent *parent)
{
    int error;

    if (parent->plan->server_cmd == NULL)
        return 0;
    if (fail_if_in_use(parent) < 0)
        return -1;
    /* Become the parent of server processes that outlive their shell, so that they can be waited
     * for, too. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    fflush(NULL);
    error = spawn_server(parent);
    if (error == 0)
        return await_accept(parent);
    load_parent_fail(parent, "cannot start --server-cmd: %s", strerror(error));
    return -1;
}

/* Reap processes of the server's group that have ended. *status becomes the status of the group's
 * leader. True: no process is left. Until then a process may still use the port. */
static bool
bury_group(pid_t server, int options, int *status)
{
    int one_status;
    pid_t pid;

    while ((pid = waitpid(-server, &one_status, options)) > 0) {
        if (pid == server)
            *status = one_status;
    }
    return pid < 0;
}

void
load_server_reap(struct load_parent *parent)
{
    pid_t server = parent->server;
    siginfo_t info = {0};
    char how[SXE__WAIT_STATUS_MAX];
    int status = 0;

    /* WNOWAIT leaves the leader a zombie. So its number, which is that of the group, cannot be used
     * by others before kill(2). */
    if (server == 0 ||
        (waitid(P_PID, (id_t)server, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0))
        return;
    parent->server = 0;
    kill(-server, SIGKILL);
    bury_group(server, 0, &status);
    load_parent_fail(parent, "the server of --server-cmd (process %d) %s", (int)server,
                     sxe__wait_status_text(status, how));
}

void
load_server_stop(struct load_parent *parent)
{
    uint64_t end_ns = sxe_time_ns() + load_server_stop_ns;
    pid_t server = parent->server;
    int status;

    if (server == 0)
        return;
    /* if server is 0, load_server_reap ignores the end of the server */
    parent->server = 0;
    kill(-server, SIGTERM);
    while (!bury_group(server, WNOHANG, &status)) {
        if (sxe_time_ns() >= end_ns)
            kill(-server, SIGKILL);
        load_parent_turn(parent, sxe_time_ns() + TRY_NS);
    }
}
