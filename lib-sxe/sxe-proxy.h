/* SPDX-License-Identifier: MIT
 *
 * What: reads and writes the header of the PROXY protocol, versions 1 and 2, by which a proxy tells
 * a server at the start of a connection for which client it speaks.
 *
 * Place: a server calls it with the first bytes of a connection from a proxy that it trusts (see
 * sxe-cidr.h), and with those of nobody else: whoever may send this header may claim any address.
 * Pure: bytes in, addresses out; no I/O, no allocation, no state between calls. The specification
 * is doc/proxy-protocol.txt of HAProxy.
 *
 * Shape:
 *     1    PROXY TCP4 192.0.2.1 192.0.2.2 56324 443 CR LF
 *          PROXY TCP6 2001:db8::1 2001:db8::2 56324 443 CR LF
 *          PROXY UNKNOWN anything but CR and LF CR LF
 *
 *     2    signature 12 | 2, command 1 | family, transport 1 | length 2 | addresses | TLVs
 *                                                                       '---- length ----'
 *
 * Exactly this is accepted: one space between words, no leading zeros, nothing after the last port.
 * An IPv6 address may end in dotted IPv4, because senders write mapped addresses so. The transport,
 * stream or datagram, makes no difference. The TLVs have to fill the length exactly; a CRC32C among
 * them is verified, a second one refused, all others are skipped. The data of LOCAL and of an
 * unspecified family or transport is skipped unread.
 *
 * Limits: a line of 107 bytes; SXE_PROXY_MAX bytes of version 2, of which the specification says
 * that they are less than a segment. A header is taken when it is whole; until then the caller
 * keeps the bytes, and gives it a few seconds.
 *
 * Example:
 *     struct sxe_proxy proxy;
 *     int length = sxe_proxy_parse(SXE_BUF(this), SXE_BUF_USED(this), &proxy);
 *
 *     if (length < 0) {
 *         sxe_abort(this);
 *     } else if (length > 0) {
 *         if (proxy.source.ss_family != AF_UNSPEC)
 *             client = proxy.source;
 *         sxe_consume(this, (unsigned)length);
 *     }
 */
#ifndef SXE_PROXY_H
#define SXE_PROXY_H

#include <sys/socket.h>
#include <sys/types.h>

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_PROXY_MAX       4096 /* the most bytes of a header that is accepted */
#define SXE_PROXY_WRITE_MAX 232  /* the most bytes of a header that is written */

enum sxe_proxy_command {
    SXE_PROXY_LOCAL, /* the proxy speaks for itself: a health check */
    SXE_PROXY_PROXY  /* the proxy speaks for a client */
};

/* The family is that of source and destination: AF_INET, AF_INET6 or AF_UNIX; AF_UNSPEC (for
 * LOCAL, or when the proxy does not know the client's address) means: use the addresses of the
 * connection itself. A path fills sun_path, padded with NUL bytes; an abstract one begins with a
 * NUL byte. */
struct sxe_proxy {
    unsigned version; /* 1 or 2 */
    enum sxe_proxy_command command;
    struct sockaddr_storage source;      /* the client */
    struct sockaddr_storage destination; /* the address to which the client connected */
};

/* Parse the header at the front of data. n > 0: the header has n bytes, and *proxy is filled; 0: it
 * is not complete yet; -1: this is no header, and the caller must drop the connection. */
SXE_PUBLIC SXE_MUST_USE int sxe_proxy_parse(const char *data, size_t length,
                                            struct sxe_proxy *proxy);

/* Write the header for *proxy. Returns its length, at most SXE_PROXY_WRITE_MAX. Version 1 writes
 * UNKNOWN for LOCAL and for unix paths. -EINVAL: no such version or family, or source and
 * destination differ in family; -ENOSPC: size is too small. */
SXE_PUBLIC ssize_t sxe_proxy_write(const struct sxe_proxy *proxy, char *to, size_t size);

#ifdef __cplusplus
}
#endif

#endif
