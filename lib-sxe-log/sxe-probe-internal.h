/* SPDX-License-Identifier: MIT
 *
 * What: the static probes (USDT) of libsxe, by which bpftrace, perf and gdb watch a running
 * program. All probes of the provider sxe are listed here; docs/observability.md has the same list
 * for users.
 * Place: not installed. Its name ends in -internal, as several libraries include it.
 *
 * A probe is one nop in the code, and a note in the program's file that says where the nop and its
 * values are. So a probe costs nothing to speak of until somebody attaches to it. Values must be
 * what is at hand: a member, a local. A function that is called for a probe's value is called
 * whether anybody watches or not.
 *
 * Without <sys/sdt.h> (Debian: systemtap-sdt-dev) when libsxe is built, or with SXE_PROBES=0, the
 * probes are nothing. An id is the socket's, as in log lines; it is used again after the socket has
 * closed.
 */
#ifndef SXE_PROBE_INTERNAL_H
#define SXE_PROBE_INTERNAL_H

#ifndef SXE_PROBES
#    if __has_include(<sys/sdt.h>)
#        define SXE_PROBES 1
#    else
#        define SXE_PROBES 0
#    endif
#endif

#if SXE_PROBES
#    ifdef __clang__ /* the macros of sys/sdt.h would cause this warning */
#        pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#    endif
#    include <sys/sdt.h>
#    define SXE__PROBE_1(name, a)          DTRACE_PROBE1(sxe, name, a)
#    define SXE__PROBE_2(name, a, b)       DTRACE_PROBE2(sxe, name, a, b)
#    define SXE__PROBE_3(name, a, b, c)    DTRACE_PROBE3(sxe, name, a, b, c)
#    define SXE__PROBE_4(name, a, b, c, d) DTRACE_PROBE4(sxe, name, a, b, c, d)
#else
#    define SXE__PROBE_1(name, a)          ((void)(a))
#    define SXE__PROBE_2(name, a, b)       ((void)(a), (void)(b))
#    define SXE__PROBE_3(name, a, b, c)    ((void)(a), (void)(b), (void)(c))
#    define SXE__PROBE_4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif

/* ---- Sockets: lib-sxe ---- */

/* A listener has accepted a connection; on_connected runs next, unless no memory is left for it. */
#define SXE_PROBE_ACCEPT(id, fd, listener_id) SXE__PROBE_3(accept, id, fd, listener_id)
/* on_read runs next. bytes: the length that it gets; 0: the peer has sent its end. */
#define SXE_PROBE_READABLE(id, bytes) SXE__PROBE_2(readable, id, bytes)
/* The kernel has taken all output of the socket. */
#define SXE_PROBE_FLUSHED(id) SXE__PROBE_1(flushed, id)
/* The socket is closed. error: an errno, 0 for none. */
#define SXE_PROBE_CLOSED(id, error) SXE__PROBE_2(closed, id, error)
/* A socket or a connection of the HTTP server was too long in a state. state: the state's name, a
 * text that ends with '\0'. */
#define SXE_PROBE_TIMEOUT(id, state) SXE__PROBE_2(timeout, id, state)

/* ---- Requests: lib-sxe-http, the server ---- */

/* A request's head is whole. path: not terminated; status: the status with which the server refuses
 * the request before any handler sees it, or 0. */
#define SXE_PROBE_PARSED(id, path, length, status) SXE__PROBE_4(parsed, id, path, length, status)
/* HANDLER_BEGIN: a handler runs next. HANDLER_END: it has returned; verdict: 0 SXE_HTTP_DONE, 1
 * SXE_HTTP_LATER. */
#define SXE_PROBE_HANDLER_BEGIN(id, path, length) SXE__PROBE_3(handler__begin, id, path, length)
#define SXE_PROBE_HANDLER_END(id, verdict)        SXE__PROBE_2(handler__end, id, verdict)
/* The last byte of a reply is written. status: 0 if the reply was broken before its head; bytes:
 * the length of its body. */
#define SXE_PROBE_REPLY(id, status, bytes) SXE__PROBE_3(reply, id, status, bytes)

#endif
