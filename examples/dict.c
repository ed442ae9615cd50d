/* SPDX-License-Identifier: MIT
 *
 * A rate limiter that any number of programs share: each word of the command line may come three
 * times in a minute. Run it again, or several at a time: they count together.
 */
#include <sxe-dict.h>

#include <stdio.h>
#include <string.h>

static bool
is_allowed(SXE_DICT *dict, const char *who)
{
    int64_t times = 0;

    /* Allow a client that cannot be counted. */
    return sxe_dict_add(dict, who, strlen(who), 1, 60.0, &times) < 0 || times <= 3;
}

int
main(int argc, char **argv)
{
    const SXE_DICT_SPEC spec = {
        .name = "limits", .cells = 1000, .evicts = true, .file = "sxe-example-limits"};
    char why[SXE_POOL_WHY_SIZE];
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    if (dict == NULL || sxe_dict_set_wait(dict, 1.0) < 0) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    for (int i = 1; i < argc; i++)
        printf("%s: %s\n", argv[i], is_allowed(dict, argv[i]) ? "allowed" : "too many");
    sxe_dict_close(dict);
    return 0;
}
