/* SPDX-License-Identifier: MIT
 *
 * What: addresses as text and as bytes.
 *
 * Place: the friend interface of lib-sxe, for its own sources and for lib-sxe-workers; not
 * installed.
 */
#ifndef SXE_ADDRESS_INTERNAL_H
#define SXE_ADDRESS_INTERNAL_H

#include <sys/socket.h>

#include "sxe-util.h"

/* Convert text and port to a sockaddr. Returns 0 or -EINVAL. "", "INADDR_ANY" and NULL mean any
 * IPv4 address. */
SXE_MUST_USE int sxe__address_parse(struct sockaddr_storage *address, const char *ip,
                                    unsigned short port);

/* Convert a path to a sockaddr_un. Returns 0, -EINVAL for an empty path, or -ENAMETOOLONG. "@name"
 * is abstract. */
SXE_MUST_USE int sxe__address_parse_path(struct sockaddr_storage *address, socklen_t *length,
                                         const char *path);

/* of sockaddr_in or sockaddr_in6; 0 for other families */
socklen_t sxe__address_length(const struct sockaddr_storage *address);

#endif
