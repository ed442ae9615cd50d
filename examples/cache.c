/* SPDX-License-Identifier: MIT
 *
 * cache FILE SECONDS COMMAND: print what the command prints; a program that asks again within the
 * seconds gets it from the cache. docs/tutorial-cache.md explains it.
 */
#include <sxe-dict.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ssize_t
output_of(const char *command, char *text, size_t size)
{
    FILE *pipe = popen(command, "r");
    size_t length = pipe == NULL ? 0 : fread(text, 1, size, pipe);

    return pipe != NULL && pclose(pipe) == 0 ? (ssize_t)length : -1;
}

int
main(int argc, char **argv)
{
    SXE_DICT_SPEC spec = {.name = "cache", .cells = 1000, .evicts = true};
    char text[65536], why[SXE_POOL_WHY_SIZE] = "usage: cache FILE SECONDS COMMAND";
    SXE_DICT *cache = argc == 4 ? (spec.file = argv[1], sxe_dict_open(&spec, why)) : NULL;
    ssize_t length = -1;

    if (cache == NULL)
        return fprintf(stderr, "%s\n", why) > 0;
    length = sxe_dict_get(cache, argv[3], strlen(argv[3]), text, sizeof(text));
    if (length < 0 || length > (ssize_t)sizeof(text))
        if ((length = output_of(argv[3], text, sizeof(text))) >= 0)
            (void)sxe_dict_put(cache, argv[3], strlen(argv[3]), text, (size_t)length,
                               atof(argv[2]));
    if (length > 0)
        fwrite(text, 1, (size_t)length, stdout);
    sxe_dict_close(cache);
    return length < 0;
}
