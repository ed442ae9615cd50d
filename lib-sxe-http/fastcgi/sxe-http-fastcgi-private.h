/* SPDX-License-Identifier: MIT
 *
 * What: what the files of the FastCGI server share, in reading order:
 *
 *     sxe-http-fastcgi.c          records and pairs: pure
 *     sxe-http-fastcgi-params.c   the parameters of a request -> the head of an HTTP request: pure
 *     sxe-http-fastcgi-request.c  one request: its body into, its reply out of its HTTP connection
 *     sxe-http-fastcgi-server.c   connections and their records, listeners, the plan
 *
 * Shape: a connection of FastCGI has a list of requests. Each request has one end of a pair of
 * sockets; the other end is a connection of the HTTP server.
 */
#ifndef SXE_HTTP_FASTCGI_PRIVATE_H
#define SXE_HTTP_FASTCGI_PRIVATE_H

#include "sxe-http-server-private.h"

#include "sxe-http-fastcgi-server.h"
#include "sxe-http-fastcgi.h"

#define SXE__FASTCGI_LISTENERS 4

/* ---- sxe-http-fastcgi-params.c ---- */

enum sxe__fastcgi_param {
    SXE__FASTCGI_METHOD,
    SXE__FASTCGI_URI,
    SXE__FASTCGI_PROTOCOL,
    SXE__FASTCGI_LENGTH,
    SXE__FASTCGI_TYPE,
    SXE__FASTCGI_REMOTE_ADDR,
    SXE__FASTCGI_REMOTE_PORT,
    SXE__FASTCGI_HTTPS,
    SXE__FASTCGI_SCHEME,
    SXE__FASTCGI_SERVER_NAME,
    SXE__FASTCGI_SERVER_PORT,
    SXE__FASTCGI_HTTP_LENGTH,
    SXE__FASTCGI_HTTP_TYPE,
    SXE__FASTCGI_PARAMS
};

struct sxe__fastcgi_params {
    struct sxe_span known[SXE__FASTCGI_PARAMS]; /* base NULL: it did not come */
    struct sockaddr_storage peer;
    uint64_t length; /* CONTENT_LENGTH, if has_length */
    bool has_length;
    bool has_host;
    bool is_https;
    bool is_line_good; /* method, target and version can be shown in a log */
    uint8_t minor;
};

/* Read the whole stream of parameters. NULL, or what is wrong with them. */
const char *sxe__fastcgi_params_read(struct sxe__fastcgi_params *params, const char *data,
                                     size_t length);

/* Room that the head of a request needs beside the bytes of its parameters. */
#define SXE__FASTCGI_HEAD_ROOM 256

/* Write the head of an HTTP request for parameters that are right. is_chunked: the length of its
 * body is not known. Returns its end. */
char *sxe__fastcgi_params_write(const struct sxe__fastcgi_params *params, const char *data,
                                size_t length, bool is_chunked, char *to);

/* Write a head that the HTTP server answers by 400, and logs with the request's line. */
char *sxe__fastcgi_params_write_wrong(const struct sxe__fastcgi_params *params, char *to);

/* Write a head that the HTTP server answers by 431, because it has more than head_max bytes. */
char *sxe__fastcgi_params_write_long(char *to, size_t head_max);

/* ---- sxe-http-fastcgi-request.c ---- */

enum sxe__fastcgi_request_state {
    SXE__FASTCGI_REQUEST_FREE,
    SXE__FASTCGI_REQUEST_PARAMS, /* parameters come; this state has a timeout */
    SXE__FASTCGI_REQUEST_RUNS,   /* the HTTP server has the request, and its timeouts */
    SXE__FASTCGI_REQUEST_STATES
};

struct sxe__fastcgi_request {
    struct sxe__fastcgi_connection *connection;
    struct sxe__fastcgi_request *next; /* of the same connection */
    SXE *inner;                        /* our end of the pair; NULL: not made yet */
    struct sxe__http_bridge bridge;
    uint64_t left; /* bytes of the body to come, if `body` is BODY_LENGTH */
    uint32_t used; /* bytes of `params` */
    uint16_t id;
    enum {
        SXE__FASTCGI_BODY_UNKNOWN, /* no CONTENT_LENGTH: the first STDIN decides */
        SXE__FASTCGI_BODY_LENGTH,
        SXE__FASTCGI_BODY_CHUNKED,
        SXE__FASTCGI_BODY_ENDED,  /* the end of STDIN has come */
        SXE__FASTCGI_BODY_DROPPED /* the request was refused */
    } body;
    bool is_too_long; /* the parameters do not fit in `params` */
    bool has_begun;   /* a part of the reply was sent */
    bool is_paused;   /* the reply waits until the connection has room */
    bool is_blocking; /* the body waits for the handler, and the connection with it */
    char params[];
};

/* Begin a request with that id. 0; -ENOBUFS: there are too many. */
SXE_MUST_USE int sxe__fastcgi_request_begin(struct sxe__fastcgi_connection *connection,
                                            uint16_t id);

/* The request with that id; NULL: there is none, so its records are ignored. */
struct sxe__fastcgi_request *
sxe__fastcgi_request_find(const struct sxe__fastcgi_connection *connection, uint16_t id);

/* A part of PARAMS or of STDIN; a part without bytes ends the stream. 0; -EPROTO: the stream has
 * ended before, or has not begun; or -errno: the connection must end. */
SXE_MUST_USE int sxe__fastcgi_request_params(struct sxe__fastcgi_request *request,
                                             struct sxe_span part);
SXE_MUST_USE int sxe__fastcgi_request_body(struct sxe__fastcgi_request *request,
                                           struct sxe_span part);

/* The client aborts the request: its handler sees that the client is gone. */
SXE_MUST_USE int sxe__fastcgi_request_abort(struct sxe__fastcgi_request *request);

/* Forget all requests of a connection, which has ended. */
void sxe__fastcgi_requests_drop(struct sxe__fastcgi_connection *connection);

/* The connection has room for output again. */
void sxe__fastcgi_requests_resume(struct sxe__fastcgi_connection *connection);

/* ---- sxe-http-fastcgi-server.c ---- */

enum sxe__fastcgi_state {
    SXE__FASTCGI_FREE,
    SXE__FASTCGI_FRESH, /* no request has come yet */
    SXE__FASTCGI_IDLE,  /* between requests */
    SXE__FASTCGI_BUSY,
    SXE__FASTCGI_CLOSING,
    SXE__FASTCGI_STATES
};

struct sxe__fastcgi_connection {
    struct sxe__fastcgi *fastcgi;
    SXE *sxe;
    struct sxe__fastcgi_request *requests;
    struct sxe_http_fastcgi reader;
    unsigned blocked;     /* how many requests cannot take their bodies now */
    bool is_last;         /* closed when no request is under way */
    bool is_trusted;      /* the peer is one of config.trusted */
    bool is_room_awaited; /* a mark in the output will call sxe__fastcgi_requests_resume */
};

struct sxe__fastcgi {
    struct sxe_http *http;
    struct sxe__fastcgi_connection *connections; /* the array of a pool */
    void *requests;                              /* the array of a pool of struct
                                                    sxe__fastcgi_request, each request_size bytes */
    size_t request_size;
    size_t params_max;
    char *head; /* room for a head */
    SXE *listeners[SXE__FASTCGI_LISTENERS];
    unsigned listeners_number;
    /* for the file below: a request of the connection has ended */
    void (*on_request_ended)(struct sxe__fastcgi_connection *connection);
};

#endif
