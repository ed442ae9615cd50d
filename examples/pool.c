/* SPDX-License-Identifier: MIT
 *
 * Keep the last three words of the command line: allocation and "forget the oldest" are one pool.
 */
#include <sxe-pool.h>

#include <stdio.h>

enum { FREE, USED, STATES };

struct word {
    char text[16];
};

static void
use(struct word *words, const char *text)
{
    unsigned id = sxe_pool_take(words, FREE, USED);
    if (id == SXE_POOL_NO_INDEX) { /* full: the oldest makes room and becomes the youngest */
        id = sxe_pool_take(words, USED, USED);
        printf("forgot %s for %s\n", words[id].text, text);
    }
    snprintf(words[id].text, sizeof(words[id].text), "%s", text);
}

int
main(int argc, char **argv)
{
    struct word *words = sxe_pool_new("words", 3, sizeof(*words), STATES, 0);

    for (int i = 1; words != NULL && i < argc; i++)
        use(words, argv[i]);
    sxe_pool_delete(words);
    return 0;
}
