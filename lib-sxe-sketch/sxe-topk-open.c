/* SPDX-License-Identifier: MIT
 *
 * Opening a top-k sketch, and its properties.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sxe-topk-private.h"

#define KIND             "TOPK"
#define ERROR_DEFAULT    0.001
#define KEY_SIZE_DEFAULT 64u

enum { NUMBER, WIDTH, KEY_SIZE, NUMBERS };

static size_t
size_of_topk(const unsigned *numbers)
{
    return sizeof(struct sxe__topk_head) +
           (size_t)numbers[WIDTH] * SXE__TOPK_ROWS * sizeof(uint64_t) +
           sxe__topk_slots(numbers[NUMBER]) * sxe__topk_slot_size(numbers[KEY_SIZE]);
}

static unsigned
width_for(double error)
{
    unsigned width = 1;

    while (width < M_E / error)
        width *= 2;
    return width;
}

/* Fill in the numbers that the spec leaves to us. 0 or -EINVAL. */
static int
plan_sketch(const SXE_TOPK_SPEC *spec, unsigned *numbers, char *why)
{
    const double error = spec->error == 0 ? ERROR_DEFAULT : spec->error;
    const unsigned key_size = spec->key_size == 0 ? KEY_SIZE_DEFAULT : spec->key_size;
    const char *name = spec->name == NULL ? "without a name" : spec->name;

    if (spec->number > SXE_TOPK_NUMBER_MAX)
        return sxe__sketch_refuse(why, EINVAL,
                                  "top-k sketch %s: lists of %u keys, but at most %u are possible",
                                  name, spec->number, SXE_TOPK_NUMBER_MAX);
    if (!(error >= SXE_TOPK_ERROR_MIN && error <= SXE_TOPK_ERROR_MAX))
        return sxe__sketch_refuse(why, EINVAL,
                                  "top-k sketch %s: the error is %g, but must be from %g to %g",
                                  name, error, SXE_TOPK_ERROR_MIN, SXE_TOPK_ERROR_MAX);
    if (key_size % 8 != 0 || key_size > SXE_TOPK_KEY_MAX)
        return sxe__sketch_refuse(
            why, EINVAL, "top-k sketch %s: key_size is %u, but must be a multiple of 8 up to %u",
            name, key_size, SXE_TOPK_KEY_MAX);
    numbers[NUMBER] = spec->number;
    numbers[WIDTH] = width_for(error);
    numbers[KEY_SIZE] = key_size;
    return 0;
}

static bool
is_possible_shape(const void *array, const unsigned *numbers)
{
    return numbers[NUMBER] > 0 && numbers[NUMBER] <= SXE_TOPK_NUMBER_MAX && numbers[KEY_SIZE] > 0 &&
           numbers[KEY_SIZE] % 8 == 0 && numbers[KEY_SIZE] <= SXE_TOPK_KEY_MAX &&
           numbers[WIDTH] > 0 && (numbers[WIDTH] & (numbers[WIDTH] - 1)) == 0 &&
           sxe_pool_get_element_size(array) == size_of_topk(numbers);
}

static SXE_TOPK *
open_topk_in_pool(void *array, char *why)
{
    unsigned numbers[NUMBERS] = {0};
    SXE_TOPK *topk;

    if (array != NULL)
        sxe__sketch_numbers(array, KIND, numbers, NUMBERS);
    const bool is_right = array != NULL && is_possible_shape(array, numbers);

    topk = sxe__sketch_new(array, sizeof(*topk), is_right, "top-k sketch", why);
    if (topk == NULL)
        return NULL;
    topk->head = array;
    topk->number = numbers[NUMBER];
    topk->width = numbers[WIDTH];
    topk->key_size = numbers[KEY_SIZE];
    topk->counters = (uint64_t *)(topk->head + 1);
    topk->slots = (char *)(topk->counters + (size_t)topk->width * SXE__TOPK_ROWS);
    return topk;
}

/* Open the pool: from a descriptor, from its file, or in memory. */
static SXE_TOPK *
open_topk_pool(const SXE_TOPK_SPEC *spec, const int *fd, char *why)
{
    char state[64];
    unsigned numbers[NUMBERS] = {0};
    const int result = plan_sketch(spec, numbers, why);

    if (result < 0) {
        errno = -result;
        return NULL;
    }
    snprintf(state, sizeof(state), KIND "_%u_%u_%u", numbers[NUMBER], numbers[WIDTH],
             numbers[KEY_SIZE]);
    const struct sxe__sketch_plan plan = {.what = "top-k sketch",
                                          .name = spec->name,
                                          .state = state,
                                          .size = spec->number == 0 ? 0 : size_of_topk(numbers),
                                          .options = spec->options,
                                          .file = spec->file,
                                          .fd = fd};

    return open_topk_in_pool(sxe__sketch_open(&plan, why), why);
}

SXE_TOPK *
sxe_topk_open_sized(const SXE_TOPK_SPEC *given, size_t size, char *why)
{
    SXE_TOPK_SPEC spec;

    return sxe__sketch_take(&spec, sizeof(spec), given, size, why) < 0
               ? NULL
               : open_topk_pool(&spec, NULL, why);
}

SXE_TOPK *
sxe_topk_open_fd_sized(int fd, const SXE_TOPK_SPEC *given, size_t size, char *why)
{
    SXE_TOPK_SPEC spec;

    return sxe__sketch_take(&spec, sizeof(spec), given, size, why) < 0
               ? NULL
               : open_topk_pool(&spec, &fd, why);
}

void
sxe_topk_close(SXE_TOPK *topk)
{
    if (topk == NULL)
        return;
    sxe_pool_delete(topk->head);
    free(topk);
}

void *
sxe_topk_get_pool(const SXE_TOPK *topk)
{
    return topk->head;
}

unsigned
sxe_topk_get_number(const SXE_TOPK *topk)
{
    return topk->number;
}

unsigned
sxe_topk_get_key_size(const SXE_TOPK *topk)
{
    return topk->key_size;
}
