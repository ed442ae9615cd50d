/* SPDX-License-Identifier: MIT
 *
 * What: the option --check, which checks that the files and directories that the options name can
 * be read, so that a server with these options would start.
 *
 * Place: main calls it instead of starting a server. The command line itself was checked before.
 */
#ifndef CONFIG_CHECK_H
#define CONFIG_CHECK_H

#include "options.h"

/* Returns the exit status: 0 after "good" was printed on standard output; COMMAND_LINE_WRONG after
 * a message that says where the error is. Nothing is opened for writing, and no script is run. */
int config_check(const struct httpd_options *options);

#endif
