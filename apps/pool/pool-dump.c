/* SPDX-License-Identifier: MIT
 *
 * The command dump prints elements while other processes use the pool. Each element is consistent,
 * but the elements are not from the same moment. Printing in the order of ids takes no lock;
 * printing in the order of time (--state) locks a shard for each step.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool-text.h"
#include "pool-tool.h"
#include "sxe-pool-layout.h"
#include "sxe-time.h"

enum { TRIES = 1000, SIGNALS_EACH = 256 };

struct dump {
    void *array;
    char *element; /* a copy of the element that is printed */
    bool is_json;
    unsigned long shown;
    /* the fields of an element; if their number is 0, no fields are known, and bytes are printed */
    struct sxe_pool_layout layout;
};

/* An element as it was at one moment. */
struct seen {
    unsigned id;
    unsigned state;
    uint64_t stamp;
    uint64_t handle;
    bool is_torn;
};

/* ---- Values ---- */

static int64_t
signed_value(const struct sxe_pool_field *field, const void *at)
{
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;

    switch (field->size) {
    case 1:
        memcpy(&i8, at, sizeof(i8));
        return i8;
    case 2:
        memcpy(&i16, at, sizeof(i16));
        return i16;
    case 4:
        memcpy(&i32, at, sizeof(i32));
        return i32;
    default:
        memcpy(&i64, at, sizeof(i64));
        return i64;
    }
}

static uint64_t
unsigned_value(const struct sxe_pool_field *field, const void *at)
{
    const uint64_t value = (uint64_t)signed_value(field, at);

    return field->size == 8 ? value : value & ((UINT64_C(1) << 8 * field->size) - 1);
}

static void
print_float(const struct sxe_pool_field *field, const void *at, bool is_json)
{
    float f32;
    double value;

    if (field->size == sizeof(f32)) {
        memcpy(&f32, at, sizeof(f32));
        value = (double)f32;
    } else {
        memcpy(&value, at, sizeof(value));
    }
    if (is_json && !isfinite(value))
        printf("null");
    else
        printf("%.*g", field->size == sizeof(f32) ? 9 : 17, value);
}

static void
print_field_value(const struct sxe_pool_field *field, const char *at, bool is_json)
{
    switch (field->kind) {
    case 'u':
        printf("%llu", (unsigned long long)unsigned_value(field, at));
        break;
    case 'i':
        printf("%lld", (long long)signed_value(field, at));
        break;
    case 'f':
        print_float(field, at, is_json);
        break;
    case 'b':
        fputs(*at ? "true" : "false", stdout);
        break;
    default:
        pool_print_json(at, strnlen(at, field->size));
    }
}

static void
print_dump_bytes(const struct dump *dump)
{
    const size_t size = sxe_pool_get_element_size(dump->array);

    for (size_t i = 0; i < size; i++)
        printf("%02x", (unsigned char)dump->element[i]);
}

/* ---- Lines ---- */

static void
print_element_text(const struct dump *dump, const struct seen *seen, uint64_t now)
{
    printf("%u %s %s", seen->id,
           pool_plain_text(sxe_pool_state_to_string(dump->array, seen->state)),
           pool_age_text(now, seen->stamp));
    if (seen->is_torn) {
        printf(" half written");
    } else if (dump->layout.number == 0) {
        printf(" ");
        print_dump_bytes(dump);
    }
    for (unsigned i = 0; i < dump->layout.number && !seen->is_torn; i++) {
        const struct sxe_pool_field *field = &dump->layout.field[i];

        printf(" %s=", field->name);
        print_field_value(field, dump->element + field->offset, false);
    }
    printf("\n");
}

static void
print_element_json(const struct dump *dump, const struct seen *seen, uint64_t now)
{
    const char *state = sxe_pool_state_to_string(dump->array, seen->state);

    printf("{\"id\": %u, \"state\": ", seen->id);
    pool_print_json(state, strlen(state));
    printf(", \"age_s\": %.9f, \"generation\": %u",
           now > seen->stamp ? (double)(now - seen->stamp) / 1e9 : 0.0,
           (unsigned)(seen->handle >> 32));
    if (seen->is_torn) {
        printf(", \"torn\": true}\n");
        return;
    }
    if (dump->layout.number == 0) {
        printf(", \"bytes\": \"");
        print_dump_bytes(dump);
        printf("\"}\n");
        return;
    }
    for (unsigned i = 0; i < dump->layout.number; i++) {
        const struct sxe_pool_field *field = &dump->layout.field[i];

        printf("%s\"%s\": ", i == 0 ? ", \"fields\": {" : ", ", field->name);
        print_field_value(field, dump->element + field->offset, true);
    }
    printf("}}\n");
}

/* Copy an element together with the state and the time that it had at that moment. If it changed
 * meanwhile, copy it again, up to TRIES times. */
static void
copy_element(const struct dump *dump, unsigned id, struct seen *seen)
{
    for (unsigned tries = 0; tries < TRIES; tries++) {
        *seen = (struct seen){
            .id = id,
            .state = sxe_pool_get_state(dump->array, id),
            .stamp = sxe_pool_get_time(dump->array, id),
            .handle = sxe_pool_get_handle(dump->array, id),
        };
        seen->is_torn = sxe_pool_read_element(dump->array, id, dump->element) != 0;
        if (sxe_pool_get_time(dump->array, id) == seen->stamp &&
            sxe_pool_get_handle(dump->array, id) == seen->handle)
            break;
    }
}

/* Print an element. False: a signal asks to end, or the output cannot be written. */
static bool
show_element(struct dump *dump, unsigned id)
{
    const uint64_t now = sxe_pool_get_now(dump->array);
    struct seen seen;

    copy_element(dump, id, &seen);
    if (dump->is_json)
        print_element_json(dump, &seen, now);
    else
        print_element_text(dump, &seen, now);
    return !ferror(stdout) && (++dump->shown % SIGNALS_EACH != 0 || !pool_is_over());
}

/* ---- Choosing elements ---- */

static int
dump_all_elements(struct dump *dump)
{
    for (unsigned id = 0; id < sxe_pool_get_number(dump->array) && show_element(dump, id); id++)
        ;
    return EXIT_SUCCESS;
}

/* Go to the walker's next element. While another process holds a lock, try again for a second. */
static unsigned
step_pool_walker(SXE_POOL_WALKER *walker)
{
    unsigned id = sxe_pool_walker_step(walker);

    for (unsigned tries = 0; id == SXE_POOL_LOCK_NOT_TAKEN && tries < TRIES; tries++) {
        if (pool_wait(SXE_NS_PER_MS))
            return SXE_POOL_NO_INDEX;
        id = sxe_pool_walker_step(walker);
    }
    return id;
}

static int
dump_state(struct dump *dump, unsigned state)
{
    SXE_POOL_WALKER walker;
    unsigned id;

    sxe_pool_walker_construct(&walker, dump->array, state);
    while ((id = step_pool_walker(&walker)) < sxe_pool_get_number(dump->array) &&
           show_element(dump, id))
        ;
    if (id == SXE_POOL_LOCK_NOT_TAKEN)
        return pool_fail("a live process has held a lock for a second: try again, or continue it "
                         "(SIGCONT) if it is stopped");
    if (id == SXE_POOL_DAMAGED)
        return pool_fail("the pool is damaged: run sxe-pool check for the reason");
    return EXIT_SUCCESS;
}

unsigned
pool_find_state(const void *array, const char *name, unsigned first, unsigned end)
{
    for (unsigned state = first; state < end; state++) {
        char number[16];

        snprintf(number, sizeof(number), "%u", state);
        if (strcmp(name, sxe_pool_state_to_string(array, state)) == 0 || strcmp(name, number) == 0)
            return state;
    }
    if (first == 0)
        pool_fail("there is no state '%s': sxe-pool show prints the states", name);
    else
        pool_fail("no entry of a dict can be in the state '%s': they are LIVE, PINNED or DIRTY",
                  name);
    return SXE_NONE;
}

static int
dump_pool(struct dump *dump, const char *name)
{
    const unsigned state =
        name == NULL ? 0 : pool_find_state(dump->array, name, 0, sxe_pool_get_states(dump->array));

    if (state == SXE_NONE)
        return EXIT_FAILURE;
    const bool has_fields =
        sxe_pool_layout_parse(&dump->layout, sxe_pool_get_fields(dump->array), NULL) == 0 &&
        dump->layout.size <= sxe_pool_get_element_size(dump->array);
    dump->layout.number = has_fields ? dump->layout.number : 0;
    dump->element = malloc(sxe_pool_get_element_size(dump->array));
    if (dump->element == NULL)
        return pool_fail("no memory for an element: %s", strerror(errno));
    const int result = name == NULL ? dump_all_elements(dump) : dump_state(dump, state);
    free(dump->element);
    return result;
}

int
pool_dump(const struct pool_options *options)
{
    struct pool_opened opened;
    int result;

    if (!pool_open(options, 0, &opened))
        return EXIT_FAILURE;
    if (opened.dict != NULL) {
        result = pool_dump_dict(opened.dict, options);
    } else {
        struct dump dump = {.array = opened.array, .is_json = options->is_json};

        result = dump_pool(&dump, options->state);
    }
    pool_close(&opened);
    return result;
}
