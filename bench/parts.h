/* SPDX-License-Identifier: MIT
 *
 * What: runs the parts of a benchmark that its command line names, or all parts if it names none.
 *
 *     static const struct part parts[] = {{"lists", lists}, {"queues", queues}};
 *     run_parts(parts, SXE_COUNT(parts), argc, argv);
 */
#ifndef PARTS_H
#define PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct part {
    const char *name;
    void (*run)(void);
};

static inline void
run_parts(const struct part *parts, size_t number, int argc, char **argv)
{
    for (size_t i = 0; i < number; i++) {
        bool wanted = argc == 1;

        for (int j = 1; j < argc; j++)
            wanted = wanted || strcmp(argv[j], parts[i].name) == 0;
        if (wanted)
            parts[i].run();
    }
}

#endif
