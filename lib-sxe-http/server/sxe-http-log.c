/* SPDX-License-Identifier: MIT
 *
 * Holds the level of the server's log lines.
 */
#include "sxe-http-server-private.h"

struct sxe_log_control sxe__http_log = SXE_LOG_CONTROL_INIT("sxe-http");
