/* SPDX-License-Identifier: MIT
 *
 * What: what the files of the reverse proxy share.
 *
 *     sxe-http-proxy-check.c    what a program hands in                 pure
 *     sxe-http-upstream.c       new, delete; the addresses, their counts and their health
 *     sxe-http-proxy-health.c   checks of addresses
 *     sxe-http-proxy-balance.c  which address gets a request
 *     sxe-http-proxy-head.c     a request -> the one that is sent on; a reply's fields
 *     sxe-http-proxy-tunnel.c   WebSockets
 *     sxe-http-proxy-answer.c   requests that are not sent on; what is logged of a script
 *     sxe-http-proxy-script.c   which script of FastCGI answers a request
 *     sxe-http-proxy-fastcgi.c  a request -> the parameters of FastCGI
 *     sxe-http-proxy.c          a request's way to the upstream and back
 *
 * Shape: a passage is a request that is being passed on. It exists from the handler until the
 * request's on_done, and has a call of the client most of that time:
 *
 *     FREE -> BUSY: call -> (fails) -> call to another address -> reply ended -> on_done -> FREE
 */
#ifndef SXE_HTTP_PROXY_PRIVATE_H
#define SXE_HTTP_PROXY_PRIVATE_H

#define SXE_LOG_CONTROL sxe__http_log

#include "sxe-http-client-private.h"
#include "sxe-http-private.h"
#include "sxe-http-proxy.h"
#include "sxe-http-server-private.h"

struct sxe__http_address {
    struct sxe_http_client *client;
    char name[256];
    /* the name in the log: the upstream's name and the address's, or one of them if they are
     * equal */
    char label[520];
    unsigned weight;
    int64_t current; /* the address's number in the round robin, see sxe-http-proxy-balance.c */
    uint64_t hash;   /* the hash of the address's name */
    uint64_t requests;
    uint64_t failures;
    uint64_t retries;   /* how many requests were sent to another address because this one failed */
    unsigned under_way; /* how many requests and tunnels are under way */
    unsigned tunnels;
    /* how many checks failed in a row; the next member: how many passed in a row */
    unsigned checks_failed;
    unsigned checks_passed;
    bool is_sick;   /* the address's checks failed, so it gets no requests */
    unsigned fails; /* how many failures since fails_since */
    SXE_TIME fails_since;
    SXE_TIME down_until; /* until this time the address gets no requests; 0: the address is up */
    SXE_TIME slow_until; /* until this time the address gets fewer requests than its weight says */
};

enum sxe__http_check_state {
    SXE__HTTP_CHECK_WAITING,
    SXE__HTTP_CHECK_CALLING,
    SXE__HTTP_CHECK_STATES
};

/* The beginning of a line that a script wrote to STDERR, until the rest comes. Only one script has
 * one: that of the passage that wrote last. */
struct sxe__http_error_line {
    struct sxe__http_passage *passage; /* NULL: there is none */
    size_t used;
    char text[512];
};

/* The check of the address with the same index. */
struct sxe__http_check {
    struct sxe_http_upstream *upstream;
    struct sxe_http_client *client;
};

enum sxe__http_tunnel_state {
    SXE__HTTP_TUNNEL_FREE,
    SXE__HTTP_TUNNEL_OPEN,
    SXE__HTTP_TUNNEL_STATES
};

/* A WebSocket between a client and an address. */
struct sxe__http_tunnel {
    struct sxe_http_upstream *upstream;
    struct sxe__http_address *address;
    SXE *client; /* NULL: the client's end has closed; likewise `server` */
    SXE *server;
};

enum sxe__http_passage_state {
    SXE__HTTP_PASSAGE_FREE,
    SXE__HTTP_PASSAGE_BUSY,
    SXE__HTTP_PASSAGE_STATES
};

struct sxe__http_passage {
    const struct sxe_http_proxy *proxy;
    struct sxe_http_request *request;
    struct sxe_http_response *response;
    uint64_t call;        /* the handle of the call to the upstream, if is_calling */
    uint32_t tried;       /* a bit for each address that was tried */
    unsigned address;     /* index of the address that is called */
    unsigned status;      /* the status that answers the client if no other address can be tried */
    unsigned error_lines; /* how many lines of STDERR were logged */
    size_t body_sent;     /* how much of a whole body was sent to FastCGI */
    bool is_calling;
    bool is_resent;   /* the request was sent to a second address; it will not be sent to a third */
    bool is_in_parts; /* the client's body is being read */
    bool is_tunnel;   /* the request became a tunnel, and the response is gone */
};

/* A head that the proxy makes: the head of the request that it sends on. The memory also serves for
 * the fields of a reply. */
struct sxe__http_proxy_head {
    struct sxe_http_request_head head;
    unsigned number; /* how many fields there are */
    size_t used;     /* how many bytes of `room` are used */
    /* 253 fields, because the client adds Host and a field of framing: 255 in all */
    struct sxe_http_pair fields[253];
    /* The target and the values that the proxy makes; or all fields of a reply. */
    char room[UINT16_MAX + 1024];
};

/* A field that a route sets, as the line in `request_header` of struct sxe_http_proxy says. */
struct sxe__http_rule {
    struct sxe_span name;
    struct sxe_span value; /* with variables */
};

/* False: the line is not valid. */
bool sxe__http_rule_read(const char *line, struct sxe__http_rule *rule);

/* Write the value with its variables replaced. Returns its length, or -EMSGSIZE. */
ssize_t sxe__http_rule_expand(const struct sxe__http_rule *rule,
                              const struct sxe_http_request *request, char *to, size_t room);

/* The byte of a field's name as CGI programs see it: letters are equal in both cases, and so are
 * all signs. nginx and PHP fold some of the signs, lighttpd all of them. */
char sxe__http_fold_cgi_byte(char byte);

/* Whether CGI programs take two names of fields for the same. */
bool sxe__http_is_cgi_same(struct sxe_span a, struct sxe_span b);

struct sxe_http_upstream {
    struct sxe_http_upstream_config config; /* the configuration, with all defaults filled in */
    char name[256];
    unsigned number; /* how many addresses there are */
    unsigned turn;   /* the address at which BALANCE_LEAST begins its search */
    struct sxe__http_address addresses[SXE_HTTP_UPSTREAM_ADDRESSES];
    struct sxe__http_passage *passages; /* the array of a pool */
    struct sxe__http_tunnel *tunnels;   /* the array of a pool; NULL: there are no tunnels */
    struct sxe__http_check *checks;     /* the array of a pool; NULL: there are no checks */
    char check_path[SXE_HTTP_PROXY_PATH_MAX + 1];
    /* the script of the request that is being passed on now; NULL: config.fastcgi is false */
    struct sxe__http_script *script;
    struct sxe__http_error_line error_line;
    /* the head of the request or reply that is being passed on now */
    struct sxe__http_proxy_head made;
};

/* ---- sxe-http-proxy-check.c ---- */

/* Returns 0, or -EINVAL: a number or name of the configuration is out of its bounds. */
SXE_MUST_USE int sxe__http_upstream_check(const struct sxe_http_upstream_config *config);

/* ---- sxe-http-upstream.c ---- */

/* Count a failure of the address. After too many failures the address gets no requests for a
 * time. */
void sxe__http_address_failed(struct sxe_http_upstream *upstream,
                              struct sxe__http_address *address);

/* Hash bytes. `hash` is 0, or the result for the bytes before these bytes. All processes compute
 * the same hash for the same bytes. */
uint64_t sxe__http_hash(uint64_t hash, const void *data, size_t length);

/* ---- sxe-http-proxy-health.c ---- */

/* Make the clients of the checks, if check_path is set. 0 or -errno. */
SXE_MUST_USE int sxe__http_checks_new(struct sxe_http_upstream *upstream);
void sxe__http_checks_delete(struct sxe_http_upstream *upstream);

/* ---- sxe-http-proxy-tunnel.c ---- */

/* Whether the request asks for WebSocket, and for nothing else. */
bool sxe__http_is_websocket(const struct sxe_http_request *request);

/* Whether a tunnel is free. */
bool sxe__http_has_tunnel(const struct sxe_http_upstream *upstream);

/* The address answered 101: answer the client with 101 and the fields that were added to
 * `response`, and let bytes pass. False: there is no tunnel, and the caller still owns `response`
 * and `server`. */
SXE_MUST_USE bool sxe__http_tunnel_open(struct sxe_http_upstream *upstream,
                                        struct sxe__http_address *address,
                                        struct sxe_http_response *response, SXE *server);

/* The pool calls this when no byte has passed for tunnel_timeout_ms. */
void sxe__http_tunnel_on_timeout(void *array, unsigned id, void *user);

/* ---- sxe-http-proxy-answer.c ---- */

/* Answer with an error of the proxy; the handler's fields do not describe its body. */
enum sxe_http_verdict sxe__http_proxy_answer_error(struct sxe_http_response *response,
                                                   unsigned status);

/* Answer a request that is not sent on. False: it can be sent on. With FastCGI, *upstream->script
 * becomes its script. */
SXE_MUST_USE bool sxe__http_proxy_answers(const struct sxe_http_proxy *proxy,
                                          struct sxe_http_request *request,
                                          struct sxe_http_response *response,
                                          enum sxe_http_verdict *verdict);

/* Log what a script wrote to STDERR. */
void sxe__http_proxy_log_errors(const struct sxe_http_exchange *exchange, struct sxe_span text);

/* Log the beginning of a line, because its end will not come. */
void sxe__http_proxy_flush_errors(struct sxe_http_upstream *upstream);

/* ---- sxe-http-proxy-balance.c ---- */

/* Choose an address that is not in the set `tried`; SXE_NONE: there is none. */
unsigned sxe__http_choose_address(struct sxe_http_upstream *upstream,
                                  const struct sxe_http_request *request, uint32_t tried);

/* ---- sxe-http-proxy-head.c ---- */

/* Make the head for a request, without its framing. is_tunnel: the request asks for WebSocket. 0;
 * -EMSGSIZE: there is no room; -EINVAL: Connection names too many fields. */
SXE_MUST_USE int sxe__http_proxy_make_head(const struct sxe_http_proxy *proxy,
                                           const struct sxe_http_request *request, bool is_tunnel,
                                           struct sxe__http_proxy_head *made);

/* The parts of sxe__http_proxy_make_head. pass: add the client's fields that may be sent on. id:
 * add the request's id and its trace. host: the host and port that the client asked for; length 0:
 * none, or invalid ones. tail: the path from the {rest...} of the route's pattern on, with the
 * slash in front of it; length 0: the pattern has none. */
SXE_MUST_USE int sxe__http_proxy_pass_fields(const struct sxe_http_request *request,
                                             struct sxe__http_proxy_head *made);
SXE_MUST_USE int sxe__http_proxy_add_id(const struct sxe_http_request *request,
                                        struct sxe__http_proxy_head *made);
struct sxe_span sxe__http_proxy_asked_host(const struct sxe_http_request *request);
const char *sxe__http_proxy_asked_scheme(const struct sxe_http_request *request);
struct sxe_span sxe__http_proxy_tail(const struct sxe_http_request *request);

/* Add a field. print: print into the room; *text becomes the printed text. 0 or -EMSGSIZE. */
SXE_MUST_USE int sxe__http_proxy_add(struct sxe__http_proxy_head *made, struct sxe_span name,
                                     struct sxe_span value);
SXE_MUST_USE int SXE_PRINTF(3, 4)
    sxe__http_proxy_print(struct sxe__http_proxy_head *made, struct sxe_span *text,
                          const char *format, ...);

/* Remove the handler's fields that describe a body, because an error of the proxy follows. */
void sxe__http_proxy_remove_body_fields(struct sxe_http_response *response);

/* Add the fields of an upstream's reply to our reply, except for those that the handler has set. 0;
 * -ENOBUFS: there is no room; -EINVAL: Connection names too many fields. */
SXE_MUST_USE int sxe__http_proxy_add_fields(struct sxe_http_response *response,
                                            const struct sxe_http_parser *reply, const char *data,
                                            struct sxe__http_proxy_head *made);

/* The length of the body of the upstream's reply, or SXE_HTTP_LENGTH_UNKNOWN. For HEAD it is the
 * length that a GET would have. */
uint64_t sxe__http_proxy_length(const struct sxe_http_parser *reply, const char *data);

/* ---- sxe-http-proxy-script.c ---- */

/* A script and the rest of the request's path. All are decoded. */
struct sxe__http_script {
    struct sxe_span prefix;                 /* the path up to the route's {rest...} */
    struct sxe_span name;                   /* from the prefix on, with a slash at its beginning */
    struct sxe_span info;                   /* the path after the script; may be empty */
    bool has_suffix;                        /* a segment of the path has the suffix */
    const struct sxe_http_request *request; /* the last one for which a script was looked for */
    char room[UINT16_MAX + 1024];
};

/* Find the script that answers the request. 0; -ENOENT: there is none; -EINVAL: the path cannot be
 * decoded. The fallback is not used. */
SXE_MUST_USE int sxe__http_script_find(const struct sxe_http_scripts *scripts,
                                       const struct sxe_http_request *request,
                                       struct sxe__http_script *script);

/* Make *script the fallback. False: there is none. */
SXE_MUST_USE bool sxe__http_script_fall_back(const struct sxe_http_scripts *scripts,
                                             struct sxe__http_script *script);

/* The directory of the scripts, without a slash at its end. */
const char *sxe__http_script_root(const struct sxe_http_scripts *scripts);

/* ---- sxe-http-proxy-fastcgi.c ---- */

/* Make the parameters for a request. script: NULL: there are no scripts. Results are those of
 * sxe__http_proxy_make_head. */
SXE_MUST_USE int sxe__http_proxy_make_params(const struct sxe_http_proxy *proxy,
                                             const struct sxe_http_request *request,
                                             const struct sxe__http_script *script,
                                             struct sxe__http_proxy_head *made);

#endif
