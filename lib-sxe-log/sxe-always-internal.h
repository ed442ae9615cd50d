/* SPDX-License-Identifier: MIT
 *
 * What: conditions of branches that cannot be taken, for the sources of libsxe and its programs.
 * Place: not installed. Its name ends in -internal, as other libraries include it; what is private
 * to one library ends in -private.
 */
#ifndef SXE_ALWAYS_INTERNAL_H
#define SXE_ALWAYS_INTERNAL_H

#include "sxe-util.h"

/* Stop the program, because a condition that must always be true was false. */
SXE_NORETURN void sxe__not_always(const char *expression, const char *file, int line);

/* SXE_ALWAYS(x) is never false, SXE_NEVER(x) never true. Checked builds assert it, coverage builds
 * assert it and drop the dead branch, other builds keep the branch as a safety net. All builds
 * evaluate x. */
#if defined(SXE_COVERAGE)
#    define SXE_ALWAYS_(x, text) ((x) ? (void)0 : sxe__not_always(text, __FILE__, __LINE__), 1)
#    define SXE_NEVER_(x, text)  ((x) ? sxe__not_always(text, __FILE__, __LINE__) : (void)0, 0)
#elif SXE_CHECKED
#    define SXE_ALWAYS_(x, text) ((x) ? 1 : (sxe__not_always(text, __FILE__, __LINE__), 0))
#    define SXE_NEVER_(x, text)  ((x) ? (sxe__not_always(text, __FILE__, __LINE__), 1) : 0)
#else
#    define SXE_ALWAYS_(x, text) SXE_LIKELY(x)
#    define SXE_NEVER_(x, text)  SXE_UNLIKELY(x)
#endif
#define SXE_ALWAYS(x) SXE_ALWAYS_(x, #x)
#define SXE_NEVER(x)  SXE_NEVER_(x, "!(" #x ")")

#endif
