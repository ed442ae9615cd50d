/* SPDX-License-Identifier: MIT
 *
 * What: the command line of sxe-lua. Parsing and --help use one table of options. Arguments after
 * the script's name belong to the script.
 */
#ifndef LUA_OPTIONS_H
#define LUA_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRAM_CHUNKS_MAX 16

struct program_options {
    const char *chunks[PROGRAM_CHUNKS_MAX]; /* the texts of -e */
    unsigned chunks_number;
    const char *script; /* the script's file; NULL: none; "-": standard input */
    /* argv begins with the script's name, or with the program's name if there is no script */
    int argc;
    char **argv;
    const char *project;  /* the directory of --new; NULL: no project is made */
    const char *coverage; /* the file for the counts of lines; NULL: count no lines */
    size_t memory_max;
    uint32_t cpu_ms;
    uint32_t tasks;   /* the largest number of tasks; 0: the library's default */
    uint32_t sockets; /* the largest number of sockets; 0: the library's default */
    /* whether to start a shell: -i was given, or there is nothing else to do on a terminal */
    bool is_shell;
    bool is_check;
    bool is_rocks;
    bool is_loose;
};

/* -1: go on with *options. Otherwise, after a message or help, the exit status (0 or 2). */
int program_options_parse(struct program_options *options, int argc, char **argv);

#endif
