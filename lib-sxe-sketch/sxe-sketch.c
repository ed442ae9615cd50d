/* SPDX-License-Identifier: MIT
 *
 * The pool of a sketch: opening it, and telling it from other pools.
 */
#include "sxe-sketch-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
sxe__sketch_refuse(char *why, int error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (why != NULL)
        vsnprintf(why, SXE_POOL_WHY_SIZE, format, arguments);
    va_end(arguments);
    return -error;
}

void *
sxe__sketch_open(const struct sxe__sketch_plan *plan, char *why)
{
    const SXE_POOL_SPEC spec = {.name = plan->name,
                                .number = plan->size > 0,
                                .element_size = plan->size,
                                .states = 1,
                                .state_names = plan->state,
                                .options = plan->options,
                                .file = plan->file};

    return plan->fd == NULL ? sxe_pool_open(&spec, why) : sxe_pool_open_fd(*plan->fd, &spec, why);
}

unsigned
sxe__sketch_number(const void *array, const char *kind)
{
    const char *name = sxe_pool_state_to_string(array, 0);
    const size_t length = strlen(kind);

    if (sxe_pool_get_number(array) != 1 || sxe_pool_get_states(array) != 1 ||
        strncmp(name, kind, length) != 0)
        return 0;
    return (unsigned)strtoul(name + length, NULL, 10);
}
