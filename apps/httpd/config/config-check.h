/* SPDX-License-Identifier: MIT
 *
 * What: --check: whether what the options name is there, so that a server which is started with
 * them would serve.
 *
 * Place: main calls it in place of a server. The command line itself has been checked by then.
 */
#ifndef CONFIG_CHECK_H
#define CONFIG_CHECK_H

#include "options.h"

/* The exit status: 0, and "good" is on standard output; COMMAND_LINE_WRONG, and standard error says
 * what is wrong and where it is written. Nothing is opened for writing and no script is run. */
int config_check(const struct httpd_options *options);

#endif
