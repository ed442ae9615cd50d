/* SPDX-License-Identifier: MIT
 *
 * What: the level that is in force for each library.
 *
 * Shape: the level in a control is a cache of the settings. A new control is not in the list; the
 * first line that is logged through it reads its environment variable, puts it into the list and
 * fills its cache. A thread that changes a setting then increments the version and fills all caches
 * again. Filling is repeated until the version does not change meanwhile: if two threads fill a
 * cache at once, the one that read old settings writes again. Controls are never removed.
 *
 *     controls -> sxe-pool -> sxe-log -> program -> end
 */
#include "sxe-log-private.h"

#include <ctype.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SETTINGS_MAX = 16, NAME_SIZE = 32, DEFAULT_LEVEL = SXE_LOG_INFORMATION, UNREAD = -1 };

/* The level that sxe_log_set_library_level() set for one library. */
struct setting {
    atomic_int state;
    atomic_int level;
    char library[NAME_SIZE];
};
enum { FREE, NAMING, NAMED };

static struct setting settings[SETTINGS_MAX];
static atomic_int general_set = SXE_LOG_UNSET;
static atomic_int general_environment = UNREAD;
static atomic_uint version;

static struct sxe_log_control end;
static struct sxe_log_control *_Atomic controls = &end;

struct sxe_log_control sxe_log_program = SXE_LOG_CONTROL_INIT("");
struct sxe_log_control sxe__log_control = SXE_LOG_CONTROL_INIT("sxe-log");

int
sxe_log_level_from_text(const char *text)
{
    static const char *const names[] = {"none",        "fatal", "error", "warning",
                                        "information", "debug", "trace", "dump"};

    if (text == NULL)
        return -EINVAL;
    if (isdigit((unsigned char)text[0]) && text[1] == '\0')
        return text[0] - '0' > SXE_LOG_DUMP ? SXE_LOG_DUMP : text[0] - '0';
    if (strcasecmp(text, "warn") == 0)
        return SXE_LOG_WARNING;
    if (strcasecmp(text, "info") == 0)
        return SXE_LOG_INFORMATION;
    for (int level = SXE_LOG_NONE; level <= SXE_LOG_DUMP; level++) {
        if (strcasecmp(text, names[level]) == 0)
            return level;
    }
    return -EINVAL;
}

/* Convert text to a level, SXE_LOG_UNSET or -EINVAL. */
static int
read_variable(const char *variable)
{
    const char *value = getenv(variable);

    return value == NULL || *value == '\0' ? SXE_LOG_UNSET : sxe_log_level_from_text(value);
}

static void
complain_of(const char *variable)
{
    SXE_WARN("%s=%s is ignored: a level is one of 0-7, none, fatal, error, warning (warn), "
             "information (info), debug, trace, dump",
             variable, getenv(variable));
}

static int
general_level(void)
{
    int set = atomic_load(&general_set);
    int environment = atomic_load(&general_environment);

    if (environment == UNREAD) {
        int value = read_variable("SXE_LOG_LEVEL");
        int unread = UNREAD;

        environment = value < 0 ? SXE_LOG_UNSET : value;
        if (atomic_compare_exchange_strong(&general_environment, &unread, environment) && value < 0)
            complain_of("SXE_LOG_LEVEL");
    }
    if (set != SXE_LOG_UNSET)
        return set;
    return environment != SXE_LOG_UNSET ? environment : DEFAULT_LEVEL;
}

static int
level_of(const struct sxe_log_control *control)
{
    for (unsigned i = 0; i < SETTINGS_MAX && atomic_load(&settings[i].state) == NAMED; i++) {
        int level = atomic_load(&settings[i].level);

        if (level != SXE_LOG_UNSET && strcmp(settings[i].library, control->library) == 0)
            return level;
    }
    int environment = __atomic_load_n(&control->environment, __ATOMIC_SEQ_CST);

    return environment != SXE_LOG_UNSET ? environment : general_level();
}

static int
refresh_control(struct sxe_log_control *control)
{
    unsigned seen;
    int level;

    do {
        seen = atomic_load(&version);
        level = level_of(control);
        __atomic_store_n(&control->level, level, __ATOMIC_SEQ_CST);
    } while (atomic_load(&version) != seen);
    return level;
}

static void
refresh_all_controls(void)
{
    atomic_fetch_add(&version, 1);
    for (struct sxe_log_control *control = atomic_load(&controls); control != &end;
         control = __atomic_load_n(&control->next, __ATOMIC_SEQ_CST))
        refresh_control(control);
}

static void
put_in_list(struct sxe_log_control *control)
{
    char variable[sizeof("SXE_LOG_LEVEL_") + NAME_SIZE];

    snprintf(variable, sizeof(variable), "SXE_LOG_LEVEL_%s", control->library);
    for (char *p = variable; *p != '\0'; p++)
        *p = (char)(isalnum((unsigned char)*p) ? toupper((unsigned char)*p) : '_');

    int level = control->library[0] == '\0' ? SXE_LOG_UNSET : read_variable(variable);
    __atomic_store_n(&control->environment, level < 0 ? SXE_LOG_UNSET : level, __ATOMIC_SEQ_CST);

    struct sxe_log_control *first = atomic_load(&controls);
    do {
        __atomic_store_n(&control->next, first, __ATOMIC_SEQ_CST);
    } while (!atomic_compare_exchange_weak(&controls, &first, control));
    atomic_fetch_add(&version, 1);
    if (level < 0)
        complain_of(variable);
}

int
sxe_log_resolve(struct sxe_log_control *control)
{
    struct sxe_log_control *none = NULL;

    if (__atomic_compare_exchange_n(&control->next, &none, &end, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST))
        put_in_list(control);
    return refresh_control(control);
}

int
sxe_log_get_level(void)
{
    return general_level();
}

int
sxe_log_set_level(int level)
{
    int old = general_level();

    if (level != SXE_LOG_UNSET && level > SXE_LOG_DUMP)
        level = SXE_LOG_DUMP;
    atomic_store(&general_set, level < SXE_LOG_NONE ? SXE_LOG_NONE : level);
    refresh_all_controls();
    return old;
}

/* Find the setting of a library, or make one. NULL: the table of settings is full. */
static struct setting *
setting_of(const char *library)
{
    for (struct setting *s = settings; s < settings + SETTINGS_MAX; s++) {
        int state = FREE;

        if (atomic_compare_exchange_strong(&s->state, &state, NAMING)) {
            snprintf(s->library, sizeof(s->library), "%s", library);
            atomic_store(&s->level, SXE_LOG_UNSET);
            atomic_store(&s->state, NAMED);
        }
        while (atomic_load(&s->state) != NAMED)
            ; /* another thread is about to finish copying the name */
        if (strcmp(s->library, library) == 0)
            return s;
    }
    return NULL;
}

int
sxe_log_set_library_level(const char *library, int level)
{
    if (library == NULL || strnlen(library, NAME_SIZE) == NAME_SIZE)
        return -EINVAL;
    if (level != SXE_LOG_UNSET && (level < SXE_LOG_NONE || level > SXE_LOG_DUMP))
        return -EINVAL;

    struct setting *setting = setting_of(library);
    if (setting == NULL)
        return -ENOSPC;
    atomic_store(&setting->level, level);
    refresh_all_controls();
    return 0;
}
