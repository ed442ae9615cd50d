/* SPDX-License-Identifier: MIT
 *
 * The command watch looks at the pool again and again, and prints what changed since the last look.
 * CHANGE is the difference of a state's counts at two looks, for each second. CAME is the number of
 * elements that came into the state since the last look, for each second. It is counted by the
 * elements' stamps: an element that came and left between two looks is missed, and one that came
 * twice counts once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pool-text.h"
#include "pool-tool.h"
#include "sxe-time.h"

struct state {
    unsigned elements;
    unsigned before; /* how many elements the state had at the last look but one */
    unsigned came;   /* how many elements came into the state between these two looks */
};

struct watch {
    void *array;
    struct state *states;
    uint64_t last; /* the pool's time at the last look but one; 0: this is the first look */
    uint64_t now;
    bool is_terminal;
    unsigned drawn; /* how many lines the table on the terminal has */
};

static void
look_at_pool(struct watch *watch)
{
    const unsigned states = sxe_pool_get_states(watch->array);

    watch->last = watch->now;
    watch->now = sxe_pool_get_now(watch->array);
    for (unsigned state = 0; state < states; state++) {
        watch->states[state].before = watch->states[state].elements;
        watch->states[state].elements = sxe_pool_get_count(watch->array, state);
        watch->states[state].came = 0;
    }
    for (unsigned id = 0; id < sxe_pool_get_number(watch->array) && watch->last != 0; id++) {
        const unsigned state = sxe_pool_get_state(watch->array, id);

        if (state < states && sxe_pool_get_time(watch->array, id) > watch->last)
            watch->states[state].came++;
    }
}

/* Write a change since the look before as a rate: "12.0/s", or "+12.0/s"; "" at the first look. */
static const char *
rate_text(const struct watch *watch, char text[32], bool is_signed, double change)
{
    const double seconds = (double)(watch->now - watch->last) / 1e9;

    text[0] = '\0';
    if (watch->last != 0 && watch->now > watch->last)
        snprintf(text, 32, is_signed ? "%+.1f/s" : "%.1f/s", change / seconds);
    return text;
}

static const char *
oldest_text(const struct watch *watch, unsigned state)
{
    return pool_age_text(watch->now, sxe_pool_get_oldest_time(watch->array, state));
}

/* Draw a table on the terminal, over the table that was drawn before. */
static void
draw_screen(struct watch *watch)
{
    if (watch->drawn > 0)
        printf("\033[%uA\033[J", watch->drawn);
    printf("%-20s %10s %12s %12s %10s\n", "STATE", "ELEMENTS", "CHANGE", "CAME", "OLDEST");
    watch->drawn = 1;
    for (unsigned state = 0; state < sxe_pool_get_states(watch->array); state++) {
        const struct state *seen = &watch->states[state];
        const double change = (double)seen->elements - (double)seen->before;
        char changed[32];
        char came[32];

        printf("%-20s %10u %12s %12s %10s\n",
               pool_plain_text(sxe_pool_state_to_string(watch->array, state)), seen->elements,
               rate_text(watch, changed, true, change), rate_text(watch, came, false, seen->came),
               oldest_text(watch, state));
        watch->drawn++;
    }
}

/* Print a line for each look: for standard output that is no terminal. */
static void
print_watch_line(const struct watch *watch)
{
    const time_t wall = time(NULL);
    struct tm local;
    char clock[16];
    char came[32];

    strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&wall, &local));
    printf("%s", clock);
    for (unsigned state = 0; state < sxe_pool_get_states(watch->array); state++) {
        const char *rate = rate_text(watch, came, false, watch->states[state].came);

        printf("  %s %u", pool_plain_text(sxe_pool_state_to_string(watch->array, state)),
               watch->states[state].elements);
        if (*rate != '\0')
            printf(" (%s came)", rate);
    }
    printf("\n");
}

static void
look_and_show(struct watch *watch)
{
    look_at_pool(watch);
    if (watch->is_terminal)
        draw_screen(watch);
    else
        print_watch_line(watch);
    fflush(stdout);
}

static int
watch_pool(struct watch *watch, const struct pool_options *options)
{
    const char *terminal = getenv("TERM");

    watch->states = calloc(sxe_pool_get_states(watch->array), sizeof(*watch->states));
    if (watch->states == NULL)
        return pool_fail("no memory for %u states", sxe_pool_get_states(watch->array));
    watch->is_terminal = isatty(STDOUT_FILENO) && terminal != NULL && strcmp(terminal, "dumb") != 0;
    look_and_show(watch);
    for (unsigned long looks = 1; looks != options->looks && !ferror(stdout); looks++) {
        if (pool_wait(options->interval_ns))
            break;
        look_and_show(watch);
    }
    free(watch->states);
    return EXIT_SUCCESS;
}

int
pool_watch(const struct pool_options *options)
{
    struct pool_opened opened;

    if (!pool_open(options, 0, &opened))
        return EXIT_FAILURE;
    struct watch watch = {.array = opened.array};
    const int result = watch_pool(&watch, options);
    pool_close(&opened);
    return result;
}
