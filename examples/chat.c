/* SPDX-License-Identifier: MIT
 *
 * A chat: each line goes to all others. docs/tutorial-chat.md explains it.
 */
#include <sxe.h>

#include <stdlib.h>

enum { MEMBERS = 1000 };
static SXE *members[MEMBERS + 1]; /* indexed by the socket's id; the listener has an id, too */

static void
on_connect(SXE *self)
{
    members[SXE_ID(self)] = self;
}

static void
on_close(SXE *self)
{
    members[SXE_ID(self)] = NULL;
}

static void
on_read(SXE *self, int length)
{
    const char *end = sxe_buffer_find(&self->in, "\n", 1);

    length = end == NULL ? 0 : (int)(end + 1 - SXE_BUF(self));
    for (unsigned i = 0; i <= MEMBERS && length > 0; i++)
        if (members[i] != NULL && members[i] != self &&
            sxe_write(members[i], SXE_BUF(self), (unsigned)length) < 0)
            sxe_abort(members[i]); /* close a member that does not read what others say */
    sxe_consume(self, (unsigned)length);
    if (length > 0)
        sxe_resume(self, SXE_RESUME_IMMEDIATE); /* another line may follow */
    else if (SXE_BUF_ROOM(self) == 0)
        sxe_close(self); /* 16 KiB without an end of a line */
}

int
main(int argc, char **argv)
{
    unsigned short port = (unsigned short)(argc > 1 ? strtoul(argv[1], NULL, 10) : 7000);

    sxe_register(MEMBERS + 1, 0);
    return sxe_init() < 0 ||
           sxe_listen(sxe_new_tcp(NULL, "127.0.0.1", port, on_connect, on_read, on_close)) < 0 ||
           sxe_run() < 0;
}
