/* SPDX-License-Identifier: MIT
 *
 * The commands backup, restore and resize: see sxe_dict_backup. Their argument FILE is always a
 * path, even without a slash; their argument POOL has the forms that it has in all other commands.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool-text.h"
#include "pool-tool.h"

/* The path of the argument FILE. A name without a slash gets "./" in front, because otherwise it
 * would be a name in /dev/shm. */
static const char *
path_of_file(const char *file, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s%s", strchr(file, '/') == NULL ? "./" : "", file);
    return path;
}

/* Open the pool `which`, which must be the pool of a dict. False after a message. */
static bool
open_dict(const char *which, struct pool_opened *opened)
{
    const struct pool_options options = {.words = {NULL, which}};

    if (!pool_open(&options, 0, opened))
        return false;
    if (opened->dict != NULL)
        return true;
    pool_fail("pool %s is no dict, and only dicts have snapshots: close it in every program, then "
              "copy its file with cp",
              pool_plain_text(sxe_pool_get_name(opened->array)));
    pool_close(opened);
    return false;
}

/* Copy a dict to a file, and close the dict. done: the verb for the message, such as "copied". */
static int
copy_pool(const struct pool_opened *opened, const char *path, const char *done)
{
    char why[SXE_POOL_WHY_SIZE] = "";
    const int result = sxe_dict_backup(opened->dict, path, pool_is_over, why);

    if (result == 0)
        printf("dict %s is %s %s\n", pool_plain_text(sxe_pool_get_name(opened->array)), done,
               pool_plain_text(path));
    pool_close(opened);
    return result == 0 ? EXIT_SUCCESS : pool_fail("%s", pool_plain_text(why));
}

int
pool_backup(const struct pool_options *options)
{
    struct pool_opened opened;
    char path[PATH_MAX];

    if (!open_dict(options->words[1], &opened))
        return EXIT_FAILURE;
    return copy_pool(&opened, path_of_file(options->words[2], path), "backed up in");
}

int
pool_restore(const struct pool_options *options)
{
    struct pool_opened opened;
    char from[PATH_MAX];
    char path[PATH_MAX];

    if (!pool_find_file(options->words[2], path) ||
        !open_dict(path_of_file(options->words[1], from), &opened))
        return EXIT_FAILURE;
    return copy_pool(&opened, path, "restored to");
}

/* Open and close the dict before the work begins. This completes changes of killed processes, and
 * prints a message about damage. A signal can end it. */
int
pool_resize(const struct pool_options *options)
{
    const unsigned cells = (unsigned)options->cells;
    struct pool_opened opened;
    char why[SXE_POOL_WHY_SIZE] = "";
    char path[PATH_MAX];

    if (!pool_find_file(options->words[1], path) || !open_dict(path, &opened))
        return EXIT_FAILURE;
    pool_close(&opened);
    if (sxe_dict_resize(path, cells, pool_is_over, why) < 0)
        return pool_fail("%s", pool_plain_text(why));
    printf("dict %s has %s\n", pool_plain_text(path), pool_count_text(cells, "cell"));
    return EXIT_SUCCESS;
}
