/* SPDX-License-Identifier: MIT
 *
 * What: --check: whether the files and directories that the options name can be read, so that a
 * server with these options would start.
 *
 * Place: main calls it in place of a server. The command line itself has been checked by then.
 */
#ifndef CONFIG_CHECK_H
#define CONFIG_CHECK_H

#include "options.h"

/* Returns the exit status: 0 after "good" on standard output; COMMAND_LINE_WRONG after a message
 * with the place of the error. Nothing is opened for writing and no script is run. */
int config_check(const struct httpd_options *options);

#endif
