/* SPDX-License-Identifier: MIT
 *
 * A search in bounded steps. PCRE2's match limit bounds the steps of each place where a match may
 * start, not those of all places together. So a search looks at a window of places at a time:
 *
 *     places a window   limit of steps a place
 *     1                 steps_max of the pattern
 *     8                 WINDOW_STEPS / 8
 *     64, 512, ...      WINDOW_STEPS / 64, ..., but at least PLACE_STEPS
 *
 * If a place reaches its limit, the search begins again there with a smaller window; after a window
 * without a match comes a larger one. The steps are counted by what they must have been at least: a
 * limit that was reached, and, for a window that the next larger limit did not suffice for, that
 * limit for each place. After steps_max of them the search fails. Between windows the watchdog may
 * end the script.
 *
 * A step may read the rest of the text: a* in an assertion, a back reference. So the CPU time of a
 * search is limited as well: between windows, which become smaller if one takes long; and, for
 * patterns that have such constructs, in each step, by callouts.
 */
#include "sxe-regex-private.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

#include "sxe-lua-internal.h"
#include "sxe-time.h"

enum {
    WINDOW_STEPS = 1 << 20, /* of all places of a window */
    PLACE_STEPS = 32,
    WINDOW_FIRST = 4096,
    UNTIMED_MAX = 4096, /* bytes that no window takes long for */
    WINDOW_TIMED = 64,
    WINDOW_NS = 1000 * 1000,         /* CPU time, after which windows become smaller */
    TIME_MAX_NS = 100 * 1000 * 1000, /* CPU time of a search */
    BYTE_NS = 20,                    /* more of it, for each byte of the text */
    CALLS = 64,                      /* how many of them ask for the time once */
    GROUP_LARGE = 1024,              /* bytes */
    WINDOWS = 16,      /* some, in a large subject: PCRE2 may read the rest of it in each */
    DATA_KEPT = 32768, /* bytes of memory of a search that the next one may use again */
    FACTOR = 8
};

struct search {
    size_t start;
    size_t window;     /* places */
    size_t window_max; /* windows of at least this size do not grow */
    size_t spent;      /* steps */
    bool is_narrowed;
    uint64_t window_ns; /* CPU time when the window began */
    uint64_t end_ns;    /* CPU time at which the search is given up */
    unsigned calls;
    bool is_late;
};

/* ---- Time ---- */

static uint64_t
cpu_time_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * SXE_NS_PER_SECOND + (uint64_t)used.tv_nsec;
}

/* Whether a back reference may compare much in the next step. */
static bool
has_large_group(const pcre2_callout_block *block)
{
    const size_t *offsets = block->offset_vector;

    for (uint32_t i = 1; i < block->capture_top; i++) {
        if (offsets[2 * i + 1] - offsets[2 * i] > GROUP_LARGE)
            return true;
    }
    return false;
}

/* PCRE2 calls this function in each step. Asking for the time takes as long as some ten steps. */
static int
stop_late_search(pcre2_callout_block *block, void *user)
{
    struct search *search = user;

    if (++search->calls % CALLS != 0 && !has_large_group(block))
        return 0;
    search->is_late = cpu_time_ns() > search->end_ns;
    return search->is_late ? PCRE2_ERROR_MATCHLIMIT : 0;
}

/* A window took its time: some steps read the rest of the text. Take smaller windows if it was
 * long; the caller has made the window larger by now. Returns whether the search is late. */
static bool
pace_search(struct search *search)
{
    const uint64_t now_ns = cpu_time_ns();

    if (now_ns - search->window_ns > WINDOW_NS)
        search->window = search->window > FACTOR * FACTOR ? search->window / (FACTOR * FACTOR) : 1;
    search->window_ns = now_ns;
    return now_ns > search->end_ns;
}

/* ---- Windows ---- */

static uint32_t
limit_of(const struct sxe__regex *regex, size_t window)
{
    if (window == 1)
        return regex->steps_max;
    return window < WINDOW_STEPS / PLACE_STEPS ? (uint32_t)(WINDOW_STEPS / window) : PLACE_STEPS;
}

/* There are too many steps for this window. Returns whether a smaller one may be tried. */
static bool
narrow_search(struct search *search, const struct sxe__regex *regex)
{
    search->spent += limit_of(regex, search->window);
    if (search->window == 1 || search->spent > regex->steps_max)
        return false;
    search->window /= FACTOR;
    search->is_narrowed = true;
    return true;
}

/* There is no match in this window. Returns PCRE2_ERROR_NOMATCH if it was the last one, and 0 if
 * the next one shall be looked at. */
static int
advance_search(struct search *search, const struct sxe__regex *regex,
               const struct sxe_span *subject)
{
    if (regex->is_anchored || search->window > subject->length - search->start)
        return PCRE2_ERROR_NOMATCH;
    search->spent +=
        search->is_narrowed ? search->window * limit_of(regex, search->window * FACTOR) : 0;
    if (search->spent > regex->steps_max)
        return PCRE2_ERROR_MATCHLIMIT;
    search->start += search->window;
    while (regex->is_utf && search->start < subject->length &&
           ((uint8_t)subject->base[search->start] & 0xc0) == 0x80)
        search->start++;
    if (search->window < search->window_max)
        search->window *= FACTOR;
    search->is_narrowed = false;
    return 0;
}

/* Look at one window; copy what was found, because a finalizer may search while the results are
 * pushed. An interpreted search keeps its memory in the data for the next one: up to 16 MiB, which
 * the script could not have. */
static int
match_in_data(const struct sxe__regex *regex, const struct sxe_span *subject, struct search *search,
              uint32_t options, size_t *offsets)
{
    struct sxe__regex_engine *engine = regex->engine;
    int result;

    if (engine->data == NULL)
        engine->data = pcre2_match_data_create(SXE__REGEX_GROUPS_MAX + 1, engine->general);
    if (engine->data == NULL)
        return PCRE2_ERROR_NOMEMORY;
    engine->largest = 0;
    (void)pcre2_set_callout(engine->match, regex->has_callouts ? stop_late_search : NULL, search);
    (void)pcre2_set_match_limit(engine->match, limit_of(regex, search->window));
    (void)pcre2_set_offset_limit(engine->match, search->start + search->window - 1);
    result = pcre2_match(regex->code, (PCRE2_SPTR)subject->base, subject->length, search->start,
                         options, engine->data, engine->match);
    if (result > 0)
        memcpy(offsets, pcre2_get_ovector_pointer(engine->data),
               2 * (regex->groups + 1) * sizeof(*offsets));
    if (engine->largest > DATA_KEPT) {
        pcre2_match_data_free(engine->data);
        engine->data = NULL;
    }
    return result;
}

static int
match_window(lua_State *L, const struct sxe__regex *regex, const struct sxe_span *subject,
             struct search *search, uint32_t options, size_t *offsets)
{
    int result = match_in_data(regex, subject, search, options, offsets);

    if (result == PCRE2_ERROR_NOMEMORY) {
        sxe__regex_free_garbage(L, regex->engine);
        result = match_in_data(regex, subject, search, options, offsets);
    }
    return result;
}

int
sxe__regex_search(lua_State *L, const struct sxe__regex *regex, const struct sxe_span *subject,
                  size_t start, uint32_t options, size_t *offsets)
{
    const size_t length = subject->length - start;
    const bool is_timed = regex->has_callouts || length > UNTIMED_MAX;
    struct search search = {.start = start,
                            .window = regex->is_anchored ? 1
                                      : is_timed         ? WINDOW_TIMED
                                                         : WINDOW_FIRST,
                            .window_max = subject->length / WINDOWS};
    int result;

    if (length > regex->text_max)
        return PCRE2_ERROR_MATCHLIMIT;
    if (is_timed) {
        search.window_ns = cpu_time_ns();
        search.end_ns = search.window_ns + TIME_MAX_NS + length * BYTE_NS;
    }
    for (;;) {
        result = match_window(L, regex, subject, &search, options, offsets);
        options |= PCRE2_NO_UTF_CHECK;
        if (result == PCRE2_ERROR_NOMATCH) {
            result = advance_search(&search, regex, subject);
            options &= ~PCRE2_NOTEMPTY_ATSTART;
            if (result != 0)
                return result;
        } else if (result != PCRE2_ERROR_MATCHLIMIT || search.is_late ||
                   !narrow_search(&search, regex)) {
            break;
        }
        if (is_timed && pace_search(&search))
            return PCRE2_ERROR_MATCHLIMIT;
        sxe__lua_watch_poll(L);
    }
    return result;
}
