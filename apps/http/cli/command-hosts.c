/* SPDX-License-Identifier: MIT
 *
 * What: collects the hosts of several URLs, and refuses options that cannot be combined with more
 * than one host.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "command-line.h"
#include "command.h"

/* Whether there is only one host, because there is only one URL, or because -i or --unix give one
 * address for all URLs. */
static bool
is_one(const struct load_command *command)
{
    bool is_unix =
        command->plan.unix_path != NULL && command->plan.unix_path != command->typed.url.path;

    return command->typed.words_number < 2 || command->typed.has_ip || is_unix;
}

static bool
is_host(const struct load_host *host, const struct load_url *url)
{
    return strcmp(host->authority, url->authority) == 0 && strcmp(host->path, url->path) == 0;
}

unsigned
load_command_host_of(const struct load_plan *plan, const struct load_url *url)
{
    unsigned host = 0;

    while (host < plan->hosts_number && !is_host(&plan->hosts[host], url))
        host++;
    return host;
}

const char *
load_command_look_up(const struct load_command *command, const struct load_url *url, uint16_t port,
                     char ip[LOAD_IP_SIZE], struct load_addresses *addresses)
{
    const char *problem = load_url_resolve(url->host, port, addresses);

    if (problem != NULL)
        return problem;
    if (command->plan.local_addresses != NULL)
        load_url_use_family(addresses, command->local_addresses.family);
    /* The server of --server-cmd does not run yet, so nobody can tell at which of the name's
     * addresses it will listen: use the first address. */
    if (command->plan.server_cmd != NULL)
        addresses->number = addresses->used = 1;
    memcpy(ip, addresses->ip[0], LOAD_IP_SIZE);
    return NULL;
}

/* Add the host of a URL, unless the plan has it already. The addresses of the first host are in the
 * plan already. */
static const char *
add_url_host(struct load_command *command, const struct load_url *url)
{
    struct load_plan *plan = &command->plan;
    struct load_host *host = &plan->hosts[plan->hosts_number];

    if (load_command_host_of(plan, url) < plan->hosts_number)
        return NULL;
    if (plan->hosts_number == LOAD_HOSTS_MAX)
        return "there are more than 16 hosts";
    *host = (struct load_host){.port = url->port};
    snprintf(host->authority, sizeof(host->authority), "%s", url->authority);
    snprintf(host->path, sizeof(host->path), "%s", url->path);
    plan->hosts_number++;
    if (plan->hosts_number == 1) {
        memcpy(host->ip, plan->ip, sizeof(host->ip));
        host->addresses = plan->addresses;
    } else if (*host->path == '\0') {
        return load_command_look_up(command, url, url->port, host->ip, &host->addresses);
    }
    return NULL;
}

static int
check_local_addresses(const struct load_command *command)
{
    const struct load_plan *plan = &command->plan;

    for (unsigned i = 0; i < plan->hosts_number && plan->local_addresses != NULL; i++) {
        const struct load_host *host = &plan->hosts[i];
        int family = strchr(host->ip, ':') != NULL ? AF_INET6 : AF_INET;

        if (*host->path != '\0' || family != command->local_addresses.family)
            return load_command_refuse("%s cannot be connected to from the addresses of --source, "
                                       "which are of another family",
                                       *host->path != '\0' ? host->path : host->authority);
    }
    return COMMAND_LINE_GO_ON;
}

/* Each worker loads one host: check that the workers can be divided among the hosts. */
static int
share_workers(struct load_command *command)
{
    struct load_plan *plan = &command->plan;
    unsigned hosts = plan->hosts_number, shards = plan->shards > 0 ? plan->shards : 1;

    if (!command->typed.has_workers)
        plan->workers = hosts;
    if (plan->workers % hosts != 0)
        return load_command_refuse("there are %u hosts and %u workers (-t); each worker serves one "
                                   "host, so give a multiple of %u",
                                   hosts, plan->workers, hosts);
    if (plan->workers > load_plan_share(plan, plan->sockets) ||
        plan->workers * shards > LOAD_WORKERS_MAX)
        return load_command_refuse(
            "there are %u workers, one for each host, for %u connections (-c); "
            "each needs one, and %u may be in all shards together",
            plan->workers, (unsigned)load_plan_share(plan, plan->sockets), LOAD_WORKERS_MAX);
    return check_local_addresses(command);
}

int
load_command_hosts(struct load_command *command)
{
    struct load_plan *plan = &command->plan;
    const char *alone;

    for (unsigned i = 0; i < command->typed.words_number && !is_one(command); i++) {
        const char *text = command->typed.words[i];
        struct load_url url;
        const char *problem = load_url_parse(&url, text);

        if (problem == NULL)
            problem = add_url_host(command, &url);
        if (problem != NULL)
            return load_command_refuse("the URL is '%s': %s", text, problem);
    }
    if (plan->hosts_number < 2) {
        plan->hosts_number = 0;
        return COMMAND_LINE_GO_ON;
    }
    alone = command->typed.has_port    ? "-p, which is the port of one; write the ports in the URLs"
            : plan->server_cmd != NULL ? "--server-cmd, which starts one server"
            : command->typed.probe != NULL ? "--probe, which would ask one of them alone"
                                           : NULL;
    if (alone != NULL)
        return load_command_refuse("the URLs have %u hosts: they cannot be combined with %s",
                                   plan->hosts_number, alone);
    return share_workers(command);
}
