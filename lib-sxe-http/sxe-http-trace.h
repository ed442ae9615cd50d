/* SPDX-License-Identifier: MIT
 *
 * What: the fields traceparent and tracestate of W3C Trace Context, by which the requests that
 * follow from one request are found again in all servers that had a part in them.
 *
 * Place: a server reads them from requests (see sxe_http_trace in sxe-http.h), shows the ids in its
 * logs, and sends them on with its own requests. Pure: bytes in, ids out; no I/O, no allocation.
 *
 * Shape:
 *     00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *     version  trace id, the same      span id of the       flags: 01 sampled,
 *              in all servers          sender, our parent   02 the trace id is random
 *
 * Strict, as W3C Trace Context, 3.2 says: small hexadecimal digits; no id of zeros; version 00 has
 * exactly 55 bytes. Version ff is invalid; of other versions the first 55 bytes are read as in
 * version 00, if a dash or nothing follows them. sxe_http_trace_write writes version 00, with the
 * two flags above.
 *
 * Limits: tracestate is passed on unread, unless it has more than SXE_HTTP_TRACE_STATE_MAX bytes:
 * then it is dropped.
 *
 * Example:
 *     struct sxe_http_trace trace;
 *     char text[SXE_HTTP_TRACEPARENT + 1];
 *
 *     if (sxe_http_trace_parse(value, &trace) == 0) {
 *         memcpy(trace.span_id, "b7ad6b7169203331", 17);
 *         sxe_http_trace_write(&trace, text);
 *     }
 */
#ifndef SXE_HTTP_TRACE_H
#define SXE_HTTP_TRACE_H

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_HTTP_TRACEPARENT     55 /* length of the field's value in version 00 */
#define SXE_HTTP_TRACE_STATE_MAX 512

#define SXE_HTTP_TRACE_SAMPLED 0x01 /* the sender may have recorded the trace */
#define SXE_HTTP_TRACE_RANDOM  0x02 /* the last 7 bytes of the trace id are random */

/* Ids in small hexadecimal digits. */
struct sxe_http_trace {
    char trace_id[33];
    char parent_id[17]; /* the sender's span; "": the trace begins with this request */
    char span_id[17];   /* the span of this request; "" after sxe_http_trace_parse */
    uint8_t flags;
};

/* Parse the value of traceparent. 0; -EINVAL: it is invalid, and *trace is unchanged. */
SXE_PUBLIC SXE_MUST_USE int sxe_http_trace_parse(struct sxe_span value,
                                                 struct sxe_http_trace *trace);

/* Write the traceparent for requests that are sent on; span_id becomes their parent. */
SXE_PUBLIC void sxe_http_trace_write(const struct sxe_http_trace *trace,
                                     char to[SXE_HTTP_TRACEPARENT + 1]);

#ifdef __cplusplus
}
#endif

#endif
