/* SPDX-License-Identifier: MIT
 *
 * The pool of a sketch: opening it, and telling it from other pools.
 */
#include "sxe-sketch-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-sized-internal.h"

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

int
sxe__sketch_take(void *own, size_t own_size, const void *given, size_t size, char *why)
{
    if (sxe__sized_take(own, own_size, given, size, "the spec of a sketch") == 0)
        return 0;
    (void)sxe__sketch_refuse(why, E2BIG, "%s", SXE__SIZED_NEWER);
    errno = E2BIG;
    return -E2BIG;
}

/* The file holds another pool than the one that the plan describes. Say whether it is a sketch of
 * another kind, or one of the same kind that was made with other numbers. The sentence of
 * sxe_pool_open would speak of bytes and elements. */
static int
refuse_other(const struct sxe__sketch_plan *plan, char *why)
{
    const SXE_POOL_SPEC any = {.name = plan->name, .options = plan->options, .file = plan->file};
    void *array =
        plan->fd == NULL ? sxe_pool_open(&any, NULL) : sxe_pool_open_fd(*plan->fd, &any, NULL);
    const char *is;
    int result;

    if (array == NULL)
        return -EEXIST; /* `why` has the sentence of sxe_pool_open */
    is = sxe_pool_get_states(array) == 1 ? sxe_pool_state_to_string(array, 0) : "";
    if (strcmp(is, plan->state) == 0 && sxe_pool_get_element_size(array) == plan->size)
        result = sxe__sketch_refuse(
            why, EEXIST,
            "the file has a sketch with the name %s: let the names agree, or give another file",
            sxe_pool_get_name(array));
    else if (sxe_pool_get_number(array) == 1 &&
             strncmp(is, plan->state, strcspn(plan->state, "_") + 1) == 0)
        result = sxe__sketch_refuse(
            why, EEXIST,
            "the file has a sketch %s of %zu bytes, the program says %s of %zu bytes: let "
            "their numbers agree, or give another file",
            is, sxe_pool_get_element_size(array), plan->state, plan->size);
    else
        result = sxe__sketch_refuse(why, EMEDIUMTYPE, "pool %s is no %s: give another path",
                                    sxe_pool_get_name(array), plan->what);
    sxe_pool_delete(array);
    return result;
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

    void *array =
        plan->fd == NULL ? sxe_pool_open(&spec, why) : sxe_pool_open_fd(*plan->fd, &spec, why);

    if (array == NULL && errno == EEXIST && plan->size > 0)
        errno = -refuse_other(plan, why);
    return array;
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
