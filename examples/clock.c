/* SPDX-License-Identifier: MIT
 *
 * A UDP time server: it answers whatever is sent to 127.0.0.1 port 9092 with the seconds since
 * 1970.
 */
#include <sxe.h>

static void
answer(SXE *self, int length)
{
    socklen_t size;
    const struct sockaddr *peer = sxe_peer_address(self, &size);
    char text[32];

    length = snprintf(text, sizeof(text), "%.6f\n", sxe_get_time_in_seconds());
    sxe_write_to(self, text, (unsigned)length, peer, size);
}

int
main(void)
{
    sxe_register(1, 0);
    return sxe_init() < 0 || sxe_listen(sxe_new_udp(NULL, "127.0.0.1", 9092, answer)) < 0 ||
           sxe_run() < 0;
}
