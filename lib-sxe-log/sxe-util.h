/* SPDX-License-Identifier: MIT
 *
 * What: definitions that every sxe header and source shares: the version, attributes, spans.
 * Place: included by sxe-log.h, and so by everything. Calls nothing.
 * Limits: macros and one struct; nothing here exists at run time.
 */
#ifndef SXE_UTIL_H
#define SXE_UTIL_H

#include <stddef.h>
#include <stdint.h>

#define SXE_VERSION       "0.1.0"
#define SXE_VERSION_MAJOR 0
#define SXE_VERSION_MINOR 1
#define SXE_VERSION_PATCH 0

/* stands for "none" wherever an index (of an element, a chunk, a connection) is expected */
#define SXE_NONE UINT32_MAX

/* SXE_CHECKED is 1 in builds that trace and check everything. The build flag of 2010,
 * -DSXE_DEBUG=1, means the same; its name is a macro with arguments today (see sxe-log.h), so it is
 * translated here. */
#ifndef SXE_CHECKED
#    ifdef SXE_DEBUG
#        if SXE_DEBUG
#            define SXE_CHECKED 1
#        else
#            define SXE_CHECKED 0
#        endif
#        undef SXE_DEBUG
#    else
#        define SXE_CHECKED 0
#    endif
#endif
/* Attributes of declarations, and what the compiler should expect of a condition. */
#define SXE_PUBLIC             __attribute__((visibility("default")))
#define SXE_MUST_USE           __attribute__((warn_unused_result))
#define SXE_NORETURN           __attribute__((noreturn))
#define SXE_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define SXE_LIKELY(x)          __builtin_expect(!!(x), 1)
#define SXE_UNLIKELY(x)        __builtin_expect(!!(x), 0)

/* The sanitizer builds poison memory that is free, so that touching it is reported. */
#if defined(__SANITIZE_ADDRESS__)
#    define SXE_HAVE_ASAN 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define SXE_HAVE_ASAN 1
#    endif
#endif
#ifndef SXE_HAVE_ASAN
#    define SXE_HAVE_ASAN 0
#endif

/* Marks a parameter that the signature requires but the function does not use. Both names are of
 * 2010. */
#define SXE_UNUSED_PARAMETER(x) ((void)(x))
#define SXE_UNUSED_ARGUMENT(x)  ((void)(x))

/* The 2010 single-exit idiom: "SXE_EARLY_OR_ERROR_OUT: return result;". It defines the labels
 * SXE_EARLY_OUT and SXE_ERROR_OUT, whether or not any goto names them. */
#define SXE_EARLY_OR_ERROR_OUT \
    goto SXE_EARLY_OUT;        \
SXE_EARLY_OUT:                 \
    goto SXE_ERROR_OUT;        \
    SXE_ERROR_OUT
/* The length of a string literal. */
#define SXE_LITERAL_LENGTH(s) (sizeof("" s) - 1)

/* The number of elements of an array. */
#define SXE_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Bytes that are owned elsewhere. */
struct sxe_span {
    const char *base;
    size_t length;
};

#endif
