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

void *
sxe__sketch_new(void *array, size_t size, bool is_right, const char *what, char *why)
{
    void *sketch;
    int error = 0;

    if (array == NULL)
        return NULL;
    sketch = is_right ? calloc(1, size) : NULL;
    if (sketch != NULL)
        return sketch;
    error = is_right ? sxe__sketch_refuse(why, ENOMEM, "no memory for a %s", what)
                     : sxe__sketch_refuse(why, EMEDIUMTYPE, "pool %s is no %s: give another path",
                                          sxe_pool_get_name(array), what);
    sxe_pool_delete(array);
    errno = -error;
    return NULL;
}

void
sxe__sketch_numbers(const void *array, const char *kind, unsigned *numbers, unsigned count)
{
    const char *at = sxe_pool_state_to_string(array, 0);
    bool is_right = sxe_pool_get_number(array) == 1 && sxe_pool_get_states(array) == 1 &&
                    strncmp(at, kind, strlen(kind)) == 0;
    char *end;

    at += is_right ? strlen(kind) : 0;
    for (unsigned i = 0; i < count; i++) {
        numbers[i] = is_right && *at == '_' ? (unsigned)strtoul(at + 1, &end, 10) : 0;
        at = numbers[i] > 0 ? end : "";
    }
    for (unsigned i = 0; i < count && *at != '\0'; i++)
        numbers[i] = 0;
}
