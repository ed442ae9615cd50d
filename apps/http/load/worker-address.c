/* SPDX-License-Identifier: MIT
 *
 * The addresses of the host's name: choosing one for each connection, and counting which
 * connections opened or failed.
 */
#include <string.h>

#include "worker-private.h"

/* The result's entry for the socket's address; NULL: the host has only one address. */
static struct load_address_result *
address_of(const struct load__socket *socket)
{
    struct load_result *result = socket->worker->result;

    return result->addresses == 0 ? NULL : &result->by_address[socket->address];
}

void
load__list_addresses(const struct load__worker *worker)
{
    const struct load_plan *plan = worker->plan;
    const struct load_addresses *addresses = &plan->addresses;
    struct load_address_result address = {.port = plan->port};

    if (addresses->number < 2 || plan->unix_path != NULL || worker->requests->ip != NULL)
        return;
    for (unsigned i = 0; i < addresses->number; i++) {
        memcpy(address.ip, addresses->ip[i], LOAD_IP_SIZE);
        address.is_unused = i >= addresses->used;
        load_result_add_address(worker->result, &address);
    }
}

const char *
load__take_address(struct load__socket *socket)
{
    struct load__worker *worker = socket->worker;
    const struct load_plan *plan = worker->plan;

    if (worker->result->addresses == 0)
        return plan->ip;
    socket->address = (uint8_t)((worker->shard + worker->turn++) % plan->addresses.used);
    return plan->addresses.ip[socket->address];
}

void
load__address_opened(const struct load__socket *socket)
{
    struct load_address_result *address = address_of(socket);

    if (address != NULL)
        address->opened++;
}

void
load__address_failed(const struct load__socket *socket, int error)
{
    struct load_address_result *address = address_of(socket);

    if (address == NULL)
        return;
    address->failed++;
    if (address->first_error == 0)
        address->first_error = error;
}
