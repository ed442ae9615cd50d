/* SPDX-License-Identifier: MIT
 *
 * What: why a line of request_header is no rule for a field. The friend interface of lib-sxe-http,
 * for lib-sxe-lua and sxe-httpd; not installed.
 */
#ifndef SXE_HTTP_RULE_INTERNAL_H
#define SXE_HTTP_RULE_INTERNAL_H

/* Visible in libsxe.so.0, because lib-sxe-lua calls this function; a program cannot rely on it. */
#pragma GCC visibility push(default)

/* How a line "Name: value" must be, but is not: a text that goes on after "must be". NULL: the line
 * is good. */
const char *sxe__http_rule_fault(const char *line);

#pragma GCC visibility pop

#endif
