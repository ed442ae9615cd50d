/* SPDX-License-Identifier: MIT
 *
 * A program outside the source tree that uses an installed libsxe, compiled as C11 and as C++17: it
 * connects to its own listener.
 */
#include <sxe.h>

#include <stdio.h>
#include <string.h>

static void
echo(SXE *self, int length)
{
    (void)length;
    sxe_write(self, SXE_BUF(self), (unsigned)SXE_BUF_USED(self));
    SXE_BUF_CLEAR(self);
}

static void
greet(SXE *self)
{
    SXE_WRITE_LITERAL(self, "hello");
}

static void
heard(SXE *self, int length)
{
    printf("%.*s from a consumer, sxe %s\n", length, SXE_BUF(self), SXE_VERSION);
    sxe_stop();
}

int
main(void)
{
    SXE *listener;

    sxe_register(3, 0);
    if (sxe_init() < 0)
        return 1;
    listener = sxe_new_tcp(NULL, "127.0.0.1", 0, NULL, echo, NULL);
    if (sxe_listen(listener) < 0)
        return 1;
    if (sxe_connect(sxe_new_tcp(NULL, "", 0, greet, heard, NULL), "127.0.0.1",
                    SXE_LOCAL_PORT(listener)) < 0)
        return 1;
    sxe_run();
    return sxe_fini();
}
