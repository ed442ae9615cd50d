/* SPDX-License-Identifier: MIT
 *
 * Comparing the files that a run writes with other files. Comparing their paths is not enough: a
 * and ./a are one file, and so are a link and its target.
 */
#include "outputs.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool
is_same_inode(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Find the folder of a file that does not exist. Returns the file's name in the folder; NULL: the
 * folder does not exist either. */
static const char *
find_folder(const char *path, struct stat *folder)
{
    const char *slash = strrchr(path, '/');
    char text[4096];

    snprintf(text, sizeof(text), "%.*s", slash == NULL ? 1 : (int)(slash + 1 - path),
             slash == NULL ? "." : path);
    if (stat(text, folder) < 0)
        return NULL;
    return slash == NULL ? path : slash + 1;
}

bool
load_outputs_are_same(const char *path, const char *other)
{
    struct stat a, b;
    const char *name, *other_name;
    bool has_a = stat(path, &a) == 0;
    bool has_b = stat(other, &b) == 0;

    if (strcmp(path, other) == 0)
        return true;
    if (has_a && has_b)
        return S_ISREG(a.st_mode) && is_same_inode(&a, &b);
    if (has_a || has_b)
        return false;
    name = find_folder(path, &a);
    other_name = find_folder(other, &b);
    return name != NULL && other_name != NULL && strcmp(name, other_name) == 0 &&
           is_same_inode(&a, &b);
}

void
load_outputs_list(const char *paths[LOAD_OUTPUTS], const struct load_plan *plan)
{
    const char *const all[LOAD_OUTPUTS] = {plan->json,  plan->csv,      plan->candles,
                                           plan->hgrm,  plan->hdr,      plan->html,
                                           plan->junit, plan->markdown, plan->jsonl};

    memcpy(paths, all, sizeof(all));
}

const char *
load_outputs_find(const struct load_plan *plan, const char *path)
{
    const char *paths[LOAD_OUTPUTS];
    struct stat status;

    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return NULL;
    load_outputs_list(paths, plan);
    for (unsigned i = 0; i < LOAD_OUTPUTS; i++)
        if (paths[i] != NULL && strcmp(paths[i], "-") != 0 && load_outputs_are_same(path, paths[i]))
            return paths[i];
    return NULL;
}
