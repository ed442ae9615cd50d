/* SPDX-License-Identifier: MIT
 *
 * Echo whole lines. The library keeps the beginning of a line until the rest comes.
 * A line that fills the library's buffer (16 KiB) is echoed in parts.
 */
#include <sxe.h>

#include <stdlib.h>

static void
on_read(SXE *self, int length)
{
    const char *end = sxe_buffer_find(&self->in, "\n", 1);

    SXE_UNUSED_PARAMETER(length);
    length = (int)(end == NULL ? SXE_BUF_USED(self) : end - SXE_BUF(self) + 1);
    if (end == NULL && (unsigned)length < sxe_get_config()->chunk_size)
        return;
    if (sxe_write(self, SXE_BUF(self), (unsigned)length) < 0)
        sxe_close(self);
    sxe_consume(self, (unsigned)length);
    sxe_resume(self, SXE_RESUME_IMMEDIATE); /* another line may follow */
}

int
main(int argc, char **argv)
{
    unsigned short port = (unsigned short)(argc > 1 ? strtoul(argv[1], NULL, 10) : 9091);

    sxe_register(1000, 0);
    return sxe_init() < 0 ||
           sxe_listen(sxe_new_tcp(NULL, "127.0.0.1", port, NULL, on_read, NULL)) < 0 ||
           sxe_run() < 0;
}
