/* SPDX-License-Identifier: MIT
 *
 * Taking over the sockets of LISTEN_FDS.
 */
#include "sxe-workers-inherit-internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sxe-workers-handover-internal.h"
#include "sxe-workers-upgrade-internal.h"

#define FIRST_FD 3 /* systemd's SD_LISTEN_FDS_START */

static const char *inheritor; /* the name of this program, for messages */

/* Parse the number in a variable of the environment. -1: its text is no number, or the number is
 * more than `most`. */
static long
number_of_variable(const char *text, long most)
{
    char *end;
    long value;

    if (*text < '0' || *text > '9')
        return -1;
    errno = 0;
    value = strtol(text, &end, 10);
    return errno != 0 || *end != '\0' || value > most ? -1 : value;
}

static int
refuse_variable(const char *name, const char *value, const char *must)
{
    fprintf(stderr,
            "%s: %s is '%s'; it must be %s. systemd or systemd-socket-activate should set "
            "it; unset LISTEN_FDS to let %s open its sockets\n",
            inheritor, name, value, must, inheritor);
    return -EINVAL;
}

static int
refuse_socket(int fd, int error)
{
    fprintf(stderr,
            "%s: cannot listen at descriptor %d of LISTEN_FDS: %s; pass TCP or unix sockets "
            "that listen (ListenStream=, with Accept=no)\n",
            inheritor, fd,
            error == ENOTSOCK ? "it is no stream socket that listens" : strerror(error));
    return -error;
}

static long
count_names(const char *names)
{
    long number = 1;

    while ((names = strchr(names, ':')) != NULL) {
        names++;
        number++;
    }
    return number;
}

/* Take over the sockets of LISTEN_FDS. names is LISTEN_FDNAMES, or NULL. 0, or -errno after a
 * message. */
static int
take_listen_fds(const char *fds, const char *names)
{
    long number = number_of_variable(fds, SXE__HANDOVER_SOCKETS + 1);

    if (number < 0)
        return refuse_variable("LISTEN_FDS", fds, "a number of sockets, 128 at most");
    if (names != NULL && number > 0 && count_names(names) != number)
        return refuse_variable("LISTEN_FDNAMES", names, "a name for each of LISTEN_FDS");
    for (int fd = FIRST_FD; fd < FIRST_FD + number; fd++) {
        size_t length = names == NULL ? 0 : strcspn(names, ":");
        int result = 0;

        if (names != NULL && length == strlen(SXE__UPGRADE_NAME) &&
            memcmp(names, SXE__UPGRADE_NAME, length) == 0)
            sxe__upgrade_take_link(fd);
        else
            result = sxe__handover_adopt(fd, names, length);
        if (result < 0)
            return refuse_socket(fd, -result);
        if (names != NULL)
            names += length + (names[length] == ':');
    }
    return 0;
}

int
sxe__inherit_sockets(const char *program)
{
    const char *pid = getenv("LISTEN_PID");
    const char *fds = getenv("LISTEN_FDS");
    int result = 0;

    inheritor = program;
    if (pid != NULL && fds != NULL && number_of_variable(pid, INT32_MAX) < 0)
        result = refuse_variable("LISTEN_PID", pid, "the id of a process");
    else if (pid != NULL && fds != NULL && number_of_variable(pid, INT32_MAX) == getpid())
        result = take_listen_fds(fds, getenv("LISTEN_FDNAMES"));
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return result;
}
