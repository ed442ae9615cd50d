/* SPDX-License-Identifier: MIT
 *
 * What: a reverse proxy: a handler that sends requests on to one of the addresses of an upstream,
 * and hands back the reply. Both bodies pass through in parts; none is ever kept whole.
 *
 * Place: over sxe-http.h and sxe-http-client.h. It is the handler of a server or of a route; the
 * handler's user is a struct sxe_http_proxy, which says how the route changes requests.
 *
 * Shape: an upstream has a client for each address, with connections that are kept.
 *
 *     request --> struct sxe_http_proxy --> upstream -----> address 0 --> [ connections ]
 *                 path, Host, Via           balance, health '---> address 1 --> [ connections ]
 *
 *     client ==> part ==> upstream      the next part is read when the kernel has the last one:
 *     client <== part <== upstream      a slow reader makes the sender wait, in either direction
 *
 *     | answer | when                                                                           |
 *     | 400    | the path has an escaped slash or dots with ";" (encoded_slash); the request     |
 *     |        | cannot be sent on, for example because its forwarded host is no host            |
 *     | 431    | the head is too long with the fields that are added                             |
 *     | 500    | the struct sxe_http_proxy is invalid: see sxe_http_proxy_check                  |
 *     | 501    | the method is TRACE                                                             |
 *     | 502    | no address can be connected to, the reply is not HTTP, or it is cut             |
 *     | 503    | all connections of all addresses, or all tunnels, are in use                    |
 *     | 504    | a timeout: of connecting, of the first byte, or between bytes                   |
 *
 * Rules: 1 the request is written again from what the parser understood: its path in the normal
 * form, one framing, no field that is about one connection only (RFC 9110, 7.6.1), and none of
 * those by which the proxy names its client. 2 the reply likewise. A reply that is cut resets the
 * client's connection, so it never looks whole. 3 a request is sent to another address only if not
 * a byte of it was sent; or once more, if its method is idempotent, no byte of a reply came, and
 * its body is not on its way in parts. 4 when the client is gone, the request to the upstream ends,
 * too. 5 each failure is a line in the log, with the address and the reason.
 *
 * Health: an address that fails max_fails times within fail_timeout_ms is left out for
 * fail_timeout_ms, and then gets its share little by little, for slow_start_ms. With check_path
 * each address is asked for that path, too: after check_falls failures, replies other than 2xx and
 * 3xx among them, it is left out until check_rises checks pass. If all addresses are left out, all
 * are used.
 *
 * WebSockets: a request for WebSocket (RFC 6455) is sent on as such, and if the address answers 101
 * the bytes of both sides pass, until one side ends. Other protocols are not asked for.
 *
 * FastCGI: an upstream with `fastcgi` speaks FastCGI, for example with php-fpm. Balance, health,
 * timeouts and rules are the same; there are no checks, no TLS and no WebSockets. `scripts` says
 * where the scripts are.
 *
 * Limits: SXE_HTTP_UPSTREAM_ADDRESSES addresses; interim replies (1xx) and trailers are not passed
 * on. Make the server's routes with SXE_HTTP_ROUTE_STREAM, or its config.stream true: otherwise
 * bodies come whole, up to its body_max. sxe_http_upstream_new reserves all memory: two heads for
 * each connection.
 *
 * Example:
 *     struct sxe_http_upstream_address address = {.ip = "127.0.0.1", .port = 3000};
 *     struct sxe_http_upstream_config pool = {.addresses = &address, .addresses_number = 1};
 *     struct sxe_http_proxy proxy = {.upstream = sxe_http_upstream_new(&pool)};
 *     struct sxe_http_config config = {
 *         .handler = sxe_http_proxy_handle, .user = &proxy, .stream = true};
 *     struct sxe_http *http = proxy.upstream == NULL ? NULL : sxe_http_new(&config);
 *     return http == NULL || sxe_init() < 0 || sxe_http_listen(http, "127.0.0.1", 8000) < 0 ||
 *            sxe_run() < 0;
 */
#ifndef SXE_HTTP_PROXY_H
#define SXE_HTTP_PROXY_H

#include "sxe-http-client.h"
#include "sxe-http.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_HTTP_UPSTREAM_ADDRESSES 32
#define SXE_HTTP_PROXY_PATH_MAX     1024 /* the most bytes of `path` in struct sxe_http_proxy */

struct sxe_http_upstream;

enum sxe_http_balance {
    SXE_HTTP_BALANCE_ROUND_ROBIN,
    /* requests go to the address with the fewest requests under way, in proportion to the
     * weights */
    SXE_HTTP_BALANCE_LEAST,
    SXE_HTTP_BALANCE_CLIENT, /* requests of one client address always go to the same address */
    SXE_HTTP_BALANCE_PATH,   /* requests with the same path always go to the same address */
    /* requests with the same value of hash_field always go to the same address */
    SXE_HTTP_BALANCE_FIELD
};

struct sxe_http_upstream_address {
    const char *ip;   /* IPv4 or IPv6 text */
    uint16_t port;    /* 1 to 65535 */
    const char *path; /* of a unix socket, instead of ip and port */
    /* the address's share, relative to the other weights; 1; hashes ignore it */
    uint16_t weight;
    /* the name in the address's certificate; NULL: tls_name of the upstream */
    const char *tls_name;
};

/* A number that is 0 means the default, given in its comment. A timeout of UINT32_MAX: none.
 * hash_field and tls are borrowed until delete; everything else is copied. */
struct sxe_http_upstream_config {
    const char *name; /* the name in log lines; "upstream" */
    const struct sxe_http_upstream_address *addresses;
    unsigned addresses_number;
    enum sxe_http_balance balance;
    /* for SXE_HTTP_BALANCE_FIELD: a token; all requests without this field go to one address */
    const char *hash_field;
    /* after how many failures an address is left out; 3; UINT32_MAX: no address is left out */
    uint32_t max_fails;
    /* in how many milliseconds these failures count, and how long the address is left out; 10000 */
    uint32_t fail_timeout_ms;
    /* how long an address that comes back takes to get its share again; default: none, it gets its
     * whole share at once */
    uint32_t slow_start_ms;
    /* how many connections each address may have, 65536 at most; 256 */
    uint32_t connections_max;
    /* how many connections without a request are kept, for each address; 32 */
    uint32_t idle_max;
    /* how long connecting may take, with the handshake of TLS; 3000 */
    uint32_t connect_timeout_ms;
    /* how long the wait from the request's end to the reply's whole head may take; 60000 */
    uint32_t first_byte_timeout_ms;
    /* how long a body may make no progress; bytes that the upstream's kernel acknowledges are
     * progress; 60000 */
    uint32_t stall_timeout_ms;
    uint32_t idle_timeout_ms; /* how long a connection without a request is kept; 15000 */
    uint32_t unsafe_idle_ms;  /* a request that is not idempotent, or whose body comes in
                                 parts, takes no connection that has been idle for longer; 500 */
    uint32_t request_max;     /* the most bytes of a request's head as it is sent on; 24576 */
    /* how many WebSockets may be open, with all addresses together, 65536 at most; 256; UINT32_MAX:
     * none, and requests for WebSocket are sent on as plain requests */
    uint32_t tunnels_max;
    /* how long no byte may pass in either direction of a WebSocket; 3600000 */
    uint32_t tunnel_timeout_ms;
    /* the path that is requested from each address once in check_interval_ms, in the form of `path`
     * in struct sxe_http_proxy; NULL: there are no checks */
    const char *check_path;
    /* the time between two checks, and the longest time of a check; 5000 */
    uint32_t check_interval_ms;
    /* how many checks in a row must pass to bring an address back; 2 */
    uint32_t check_rises;
    /* how many checks in a row must fail to have an address left out; 3 */
    uint32_t check_falls;
    bool fastcgi; /* the addresses speak FastCGI; not with check_path or tls */
    /* with fastcgi: ask the addresses to keep connections. A process of php-fpm serves nobody else
     * while such a connection is open */
    bool fastcgi_keep;
    struct sxe_http_limits limits; /* for a reply's head. head_max 0: SXE_HTTP_LIMITS; otherwise
                                      line_max is 1 to head_max, fields_max 1 to 255 */
    struct sxe_tls *tls;           /* as in struct sxe_http_client_config; NULL: no TLS */
    int (*use_tls)(struct sxe_tls *tls, SXE *socket, const char *name);
    const char *tls_name;
    /* sxe_tls_failure, so that the log says why a handshake failed; NULL: the log does not */
    const char *(*tls_failure)(const SXE *socket);
};

/* Before sxe_init: make the clients of an upstream and allocate their memory. NULL with errno:
 * ENOMEM; EINVAL: no or too many addresses, an invalid address, an address with port 0, a balance
 * that is not in the enum, a hash_field that is missing or is no token, limits out of their bounds,
 * a connections_max or tunnels_max that is too large, or fastcgi with check_path or tls. */
SXE_PUBLIC SXE_MUST_USE struct sxe_http_upstream *
sxe_http_upstream_new_sized(const struct sxe_http_upstream_config *config, size_t size);
static inline SXE_MUST_USE struct sxe_http_upstream *
sxe_http_upstream_new(const struct sxe_http_upstream_config *config_)
{
    return sxe_http_upstream_new_sized(config_, sizeof(*config_));
}

/* Call this after sxe_fini. NULL is allowed. */
SXE_PUBLIC void sxe_http_upstream_delete(struct sxe_http_upstream *upstream);

/* Return the bytes of address space that the upstream has, and print them like sxe_plan_print; out
 * may be NULL. */
SXE_PUBLIC size_t sxe_http_upstream_plan_print(const struct sxe_http_upstream *upstream, FILE *out);

/* The state of an address, for counters and tests. */
struct sxe_http_upstream_state {
    const char *name;  /* "127.0.0.1:3000", or the path of a unix socket */
    uint64_t requests; /* how many requests were sent to this address, those sent again included */
    uint64_t failures;
    /* requests that were sent again, to this or another address, because this one failed */
    uint64_t retries;
    unsigned under_way;
    unsigned connections; /* how many connections are open, or are being opened */
    bool is_down;         /* the address is left out */
    /* how many WebSockets there are; they also count in under_way and connections */
    unsigned tunnels;
};

/* Get the state of address `index`. 0; -EINVAL: there is no such address. */
SXE_PUBLIC int sxe_http_upstream_look_sized(const struct sxe_http_upstream *upstream,
                                            unsigned index, struct sxe_http_upstream_state *state,
                                            size_t size);
static inline int
sxe_http_upstream_look(const struct sxe_http_upstream *upstream_, unsigned index_,
                       struct sxe_http_upstream_state *state_)
{
    return sxe_http_upstream_look_sized(upstream_, index_, state_, sizeof(*state_));
}

/* The fields by which a proxy names its client. Such fields in the request itself are never passed
 * on: the server has read the fields of proxies that it trusts, see sxe_http_peer. */
enum sxe_http_proxy_fields {
    SXE_HTTP_PROXY_X_FORWARDED, /* X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host */
    SXE_HTTP_PROXY_FORWARDED,   /* Forwarded (RFC 7239) */
    SXE_HTTP_PROXY_NO_FIELDS
};

/* ---- Scripts of FastCGI ---- */

struct sxe_http_scripts;

/* Texts are copied, each has 1 to 1023 bytes. */
struct sxe_http_scripts_config {
    const char *root;   /* the directory below which the scripts are */
    const char *suffix; /* how the names of scripts end; NULL: ".php" */
    const char *index;  /* the script of a path that ends with a slash; NULL: "index.php" */
    /* the script of paths that lead to no script, "/index.php"; NULL: they are answered 404 */
    const char *fallback;
    /* the directory is on another machine or in a container, so that scripts are not looked for:
     * the first segment of the path that has the suffix is the script */
    bool is_remote;
};

/* Open the directory of scripts. NULL with errno: EINVAL: a text is missing or too long, index or
 * fallback does not end with the suffix, or fallback does not begin with a slash; otherwise why the
 * directory cannot be opened. */
SXE_PUBLIC SXE_MUST_USE struct sxe_http_scripts *
sxe_http_scripts_new_sized(const struct sxe_http_scripts_config *config, size_t size);
static inline SXE_MUST_USE struct sxe_http_scripts *
sxe_http_scripts_new(const struct sxe_http_scripts_config *config_)
{
    return sxe_http_scripts_new_sized(config_, sizeof(*config_));
}

/* Call this after sxe_fini. NULL is allowed. */
SXE_PUBLIC void sxe_http_scripts_delete(struct sxe_http_scripts *scripts);

/* How a route sends requests on. The server borrows the struct as long as the server runs. */
struct sxe_http_proxy {
    struct sxe_http_upstream *upstream;
    const char *path; /* takes the place of the start of the request's path, up to the {rest...} of
                         the route's pattern: a path in the normal form of sxe-http-uri.h, other
                         bytes escaped, without a query; NULL: the path stays as it is */
    /* Host of the request, 1 to 255 bytes; NULL: the Host of the client's request */
    const char *host;
    const char *via; /* the name of this proxy in Via (RFC 9110, 7.6.3), a token or a host, 1
                        to 255 bytes; NULL: "sxe" */
    enum sxe_http_proxy_fields fields;
    /* send paths with %2F, %5C or %00 on, and those with a segment that begins with ".;" or "..;";
     * if false, answer them with 400, because an upstream that decodes such escapes, or takes
     * ";..." off segments, reads another path than the router did: a client could send
     * /a%2f..%2fadmin, which the upstream reads as /admin, and so evade the checks of the route
     * /admin */
    bool encoded_slash;
    /* Fields that the request gets, each "Name: value", in which {user} is the name of
     * sxe_http_user, {request_id} the request's id, and {client} the client's address. Such a field
     * replaces all fields of its name, also those of names that differ by other signs than -
     * only. If its value is empty, the field is not sent. Not allowed are Connection,
     * Content-Length, Expect, Host, Keep-Alive, Proxy-Connection, TE, Trailer, Transfer-Encoding,
     * Upgrade, Via, and other braces. */
    const char *const *request_header;
    unsigned request_header_number;
    /* for an upstream with fastcgi: the scripts; the part of the path from the {rest...} of the
     * route's pattern on leads to them. NULL: the application has no scripts, and gets the path as
     * PATH_INFO */
    const struct sxe_http_scripts *scripts;
    /* with scripts: the handler of GET and HEAD requests whose path leads to no script, and has no
     * segment with the suffix; for example, one that sends files. NULL: none */
    sxe_http_handler without_script;
    const void *reserved[8]; /* NULL: room for members of later versions */
};

/* 0; -EINVAL: the path, host, via, fields or request_header are not as the comments above say. For
 * programs whose users choose these values: a request to an invalid struct is answered 500, after a
 * line in the log. -E2BIG, after a line in the log: reserved is set, by a program that was built
 * for a newer libsxe. */
SXE_PUBLIC SXE_MUST_USE int sxe_http_proxy_check(const struct sxe_http_proxy *proxy);

/* The handler; request->user is the struct sxe_http_proxy. The handler sets the response's user and
 * on_done. */
SXE_PUBLIC enum sxe_http_verdict sxe_http_proxy_handle(struct sxe_http_request *request,
                                                       struct sxe_http_response *response);

/* Like sxe_http_proxy_handle, for a handler that decides itself whether to pass a request on.
 * Fields that the handler added to the response replace the upstream's of the same names, except
 * for Set-Cookie and Vary, of which both are sent. An error of the proxy is sent without the added
 * fields that describe a body, such as Content-Type and ETag. */
SXE_PUBLIC enum sxe_http_verdict sxe_http_proxy_send(const struct sxe_http_proxy *proxy,
                                                     struct sxe_http_request *request,
                                                     struct sxe_http_response *response);

#ifdef __cplusplus
}
#endif

#endif
