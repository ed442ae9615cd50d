#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Prints sxe-log-2010.h, the names of 2010 as aliases of those of sxe-log.h.

cat <<'END'
/* SPDX-License-Identifier: MIT
 *
 * What: the logging macros of 2010, so that old sources compile. Printed by sxe-log-2010.sh.
 *
 * Shape: SXE<type><level>[<arguments>][I](...)
 *
 *     type       L line, E entry, R return (in checked builds), D dump(data, length),
 *                A assert(condition, format, ...), V verify(expression, test, format, ...)
 *     level      1-7; 8 and 9 are 6 and 7. A and V of 6 and 7 are checked in checked builds only;
 *                V evaluates its expression once in every build: SXEV60(sxe_init(), == 0, "..")
 *     arguments  how many follow the format; not looked at
 *     I          about the id of the variable `this`, which may be NULL
 */
#ifndef SXE_LOG_2010_H
#define SXE_LOG_2010_H

#define SXE_LOG_THIS_ID ((this) != NULL ? (uint32_t)(this)->id : SXE_NO_ID)
#define SXE_LOG_VERIFY_AT(checked, id, text, condition, ...) \
    SXE_LOG_ASSERT_AT(1, id, text, (condition) || !(checked), __VA_ARGS__)
END

for level in 1 2 3 4 5 6 7 8 9; do
    for I in '' I; do
        l=$level checked=1 id=SXE_NO_ID
        [ $l -gt 7 ] && l=$((l - 2))
        [ $l -gt 5 ] && checked=SXE_CHECKED
        [ "$I" ] && id=SXE_LOG_THIS_ID
        cat <<END

#define SXEL$level$I(...) SXE_LOG_LINE($l, $id, __VA_ARGS__)
#define SXEE$level$I(...) SXE_LOG_ENTER_AT($l, $id, __VA_ARGS__)
#define SXER$level$I(...) SXE_LOG_LEAVE_AT($l, $id, __VA_ARGS__)
#define SXED$level$I(data, length) SXE_LOG_DUMP_AT($l, $id, data, length)
#define SXEA$level$I(condition, ...) \\
    SXE_LOG_ASSERT_AT($checked, $id, #condition, condition, __VA_ARGS__)
#define SXEV$level$I(expression, test, ...) \\
    SXE_LOG_VERIFY_AT($checked, $id, #expression " " #test, (expression) test, __VA_ARGS__)
END
        for type in L E R D A V; do
            for arguments in 0 1 2 3 4 5 6 7 8 9; do
                echo "#define SXE$type$level$arguments$I SXE$type$level$I"
            done
        done
    done
done

echo
echo '#endif'
