/* SPDX-License-Identifier: MIT
 *
 * The options of TLS, and the check which options can be combined with https.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command-line.h"
#include "command-options.h"
#include "command.h"

static int
take_resume(struct load_tls *tls)
{
    char *end;
    unsigned long percent = strtoul(optarg, &end, 10);

    if (*optarg < '0' || *optarg > '9' || percent > 100 || (*end != '\0' && strcmp(end, "%") != 0))
        return load_command_refuse(
            "the part of resumed connections (--tls-resume) is '%s'; it must "
            "be a whole number from 0 to 100%%",
            optarg);
    tls->resume = (unsigned)percent;
    return COMMAND_LINE_GO_ON;
}

int
load_command_tls(struct load_tls *tls, int val)
{
    switch (val) {
    case TLS_CA:
        tls->authorities = optarg;
        break;
    case TLS_CERT:
        tls->certificate = optarg;
        break;
    case TLS_KEY:
        tls->key = optarg;
        break;
    case TLS_NAME:
        tls->name = optarg;
        break;
    case TLS_RESUME:
        return take_resume(tls);
    default:
        tls->is_insecure = true;
        break;
    }
    return COMMAND_LINE_GO_ON;
}

int
load_command_check_tls(struct load_command *command)
{
    const struct load_plan *plan = &command->plan;
    const struct load_tls *tls = &plan->tls;
    const char *alone = plan->proxy != 0 ? "--proxy" : plan->unix_path != NULL ? "--unix" : NULL;

    if (!tls->is_used &&
        (tls->authorities != NULL || tls->certificate != NULL || tls->key != NULL ||
         tls->name != NULL || tls->resume > 0 || tls->is_insecure))
        return load_command_refuse("--tls-ca, --tls-cert, --tls-key, --tls-name, --tls-resume and "
                                   "--insecure are for TLS: give a URL that begins with https://");
    if (!tls->is_used)
        return COMMAND_LINE_GO_ON;
    if (alone != NULL)
        return load_command_refuse("https cannot be combined with %s", alone);
    if ((tls->certificate == NULL) != (tls->key == NULL))
        return load_command_refuse("a client certificate needs both --tls-cert and --tls-key");
    if (tls->name != NULL && (*tls->name == '\0' || strlen(tls->name) >= LOAD_TEXT_MAX))
        return load_command_refuse("the name (--tls-name) has from 1 to %d bytes",
                                   LOAD_TEXT_MAX - 1);
    if (tls->is_insecure && tls->authorities != NULL)
        return load_command_refuse("--insecure verifies nothing: it cannot be combined with "
                                   "--tls-ca");
    if (tls->is_insecure)
        fprintf(stderr, "sxe-http: warning: --insecure: the server's certificate is not verified, "
                        "so it may be anybody's\n");
    return COMMAND_LINE_GO_ON;
}
