/* SPDX-License-Identifier: MIT
 *
 * A server in as few lines as it takes: telnet 127.0.0.1 9090, type anything.
 */
#include <sxe.h>

static void
hello(SXE *self, int length)
{
    SXE_UNUSED_PARAMETER(length);
    SXE_BUF_CLEAR(self);
    SXE_WRITE_LITERAL(self, "hello\n");
}

int
main(void)
{
    sxe_register(1000, 0);
    return sxe_init() < 0 ||
           sxe_listen(sxe_new_tcp(NULL, "127.0.0.1", 9090, NULL, hello, NULL)) < 0 || sxe_run() < 0;
}
