/* SPDX-License-Identifier: MIT
 *
 * A server with a worker process on every core: workers [PORT], then telnet 127.0.0.1 9090. It says
 * which process answers; kill that process, and another one takes its place. SIGHUP replaces all
 * workers, SIGUSR2 the program, SIGTERM ends it; no connection is refused meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sxe-workers.h>
#include <unistd.h>

static unsigned short port = 9090;

static void
hello(SXE *self, int length)
{
    char text[64];
    int size = snprintf(text, sizeof(text), "hello from process %d\n", getpid());

    SXE_UNUSED_PARAMETER(length);
    SXE_BUF_CLEAR(self);
    sxe_write(self, text, (unsigned)size);
}

static int
serve(void *user, const struct sxe_worker *worker)
{
    SXE_UNUSED_PARAMETER(user);
    SXE_UNUSED_PARAMETER(worker);
    sxe_register(1000, 0);
    return sxe_init() < 0 ||
           sxe_listen(sxe_new_tcp(NULL, "127.0.0.1", port, NULL, hello, NULL)) < 0 ||
           sxe_workers_ready() < 0 || sxe_run() < 0;
}

int
main(int argc, char **argv)
{
    const struct sxe_workers_config config = {.serve = serve, .argv = argv};

    if (argc > 1)
        port = (unsigned short)strtol(argv[1], NULL, 10);
    return sxe_workers_run(&config);
}
