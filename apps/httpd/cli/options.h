/* SPDX-License-Identifier: MIT
 *
 * What: the command line of sxe-httpd. Parsing and --help use one table of options.
 */
#ifndef HTTPD_OPTIONS_H
#define HTTPD_OPTIONS_H

#include <netinet/in.h>
#include <stdbool.h>

#include "access-log.h"
#include "become.h"
#include "config.h"
#include "error-pages.h"
#include "sxe-cidr.h"
#include "sxe-http-file.h"
#include "sxe-http.h"
#include "sxe-lua.h"
#include "upstreams.h"

#define HTTPD_FIELDS_MAX 4096
#define HTTPD_TYPES_MAX  4096
#define HTTPD_INDEX_MAX  8
#define HTTPD_PAIRS_MAX  8

#define HTTPD_LISTEN_MAX 6

#define HTTPD_UNIX_PATH_MAX 107 /* bytes of the path of a unix socket */

/* Whether a listener that speaks TLS asks clients for certificates. */
enum httpd_clients {
    HTTPD_CLIENTS_AS_GIVEN, /* as --tls-client-ca and --tls-client say */
    HTTPD_CLIENTS_OFF,
    HTTPD_CLIENTS_OPTIONAL,
    HTTPD_CLIENTS_REQUIRED,
    HTTPD_CLIENTS_NUMBER
};

/* A place of --listen. */
struct httpd_place {
    char ip[INET6_ADDRSTRLEN]; /* "": the address of -i */
    unsigned short port;
    const char *path; /* path_text, in place of ip and port; NULL: it is no unix socket */
    char path_text[HTTPD_UNIX_PATH_MAX + 1];
    bool is_plain;  /* whether TLS is off at this place, as it is at unix sockets without ,tls */
    bool wants_tls; /* whether TLS was asked for at this place */
    enum httpd_clients clients;
};

/* Each certificate has the key of the same index. */
struct httpd_tls_options {
    const char *certificate[HTTPD_PAIRS_MAX];
    const char *key[HTTPD_PAIRS_MAX];
    unsigned certificates;
    unsigned keys;
    /* the OCSP reply for the certificate of the same index; NULL: none */
    const char *staple[HTTPD_PAIRS_MAX];
    unsigned staples;
    /* the authorities for clients; NULL: clients are not asked for certificates */
    const char *client_ca;
    bool is_client_given;  /* --tls-client was given */
    bool is_optional;      /* a client may have no certificate */
    bool is_modern;        /* TLS 1.3 only */
    bool is_profile_given; /* --tls-profile was given */
    bool is_hsts_given;
    bool is_redirecting;     /* --http-redirect was given */
    const char *redirect_ip; /* "": not given; httpd_settle_redirect makes it the address of -i */
    unsigned short redirect_port;
    unsigned long memory_max; /* bytes; 0: no limit */
    unsigned long hsts_ms;
    bool is_dev; /* --tls-dev: a certificate that is only in memory */
};

struct httpd_options {
    const char *ip;
    unsigned short port;
    const char *unix_path; /* NULL: listen at ip and port only */
    unsigned socket_mode;  /* permissions of unix_path; 0: those of the umask */
    struct httpd_place places[HTTPD_LISTEN_MAX];
    unsigned places_number;
    struct sxe_http_config http;            /* limits and times of the server */
    struct sxe_http_files_config files;     /* root is NULL: serve the greeting */
    const char *index[HTTPD_INDEX_MAX + 1]; /* names of --index, ended by NULL */
    char types[HTTPD_TYPES_MAX];            /* lines of --type */
    struct error_pages error_pages;
    struct httpd_proxy passes[HTTPD_PROXIES_MAX]; /* each --proxy */
    struct upstream_tls proxy_tls; /* the TLS settings of upstreams that have none of their own */
    unsigned passes_number;
    struct sxe_cidr_list proxies;
    struct sxe_cidr_list trusted;
    uint32_t stall_timeout_ms;
    uint32_t hang_timeout_ms;      /* the longest turn of a process's loop; 0: no limit */
    uint32_t stop_timeout_ms;      /* how long requests in progress may take at the end */
    char fields[HTTPD_FIELDS_MAX]; /* fields of --header, each ended by CR LF */
    const char *access_log;        /* path of the access log; NULL: no log */
    struct log_format access_log_format;
    bool access_log_format_given;
    double access_log_rate; /* the share of requests that is logged, if is_sample_given */
    uint32_t access_log_slow_ms;
    bool is_sample_given;
    bool is_slow_given;     /* --access-log-slow was given */
    const char *stats_path; /* the path at which counters are shown; NULL: nowhere */
    struct sxe_cidr_list stats_from;
    bool admin_is_on;
    const char *admin_ip;
    unsigned short admin_port;
    const char *admin_path; /* the path of a unix socket, in place of ip and port; NULL: none */
    const char *script;     /* path of the script; NULL: no script */
    struct sxe_lua_config lua;
    const char *lua_coverage; /* path for the counts of lines; NULL: count no lines */
    unsigned workers; /* how many serving processes under a supervisor; 0: -w was not given */
    bool is_repl;     /* whether to run a shell at the terminal, without a supervisor */
    bool is_script_described; /* whether an option for scripts was given */
    bool is_hang_given;       /* --hang-timeout was given */
    bool is_place_given;      /* whether ip, port, unix_path or a place of --listen was given */
    bool is_port_given;       /* whether ip, port or unix_path was given */
    bool is_place_wanted; /* set by listening_open: whether to serve at ip, port and unix_path */
    bool is_confined;     /* see confine.h */
    bool is_bare;         /* whether no option was given, see first-steps.h */
    bool plan;
    struct become user;
    struct httpd_tls_options tls;
    struct config_options config;
};

/* Parse the command line into *options. -1: continue; 0 (after --help, --version) or 2 (after a
 * message): exit with this status. */
int httpd_options_parse(struct httpd_options *options, int argc, char **argv);

#endif
