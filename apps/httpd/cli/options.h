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

#define HTTPD_UNIX_PATH_MAX 107 /* the longest path of a unix socket, in bytes */

/* Whether a listener that speaks TLS asks clients for certificates. */
enum httpd_clients {
    HTTPD_CLIENTS_AS_GIVEN, /* the listener does as --tls-client-ca and --tls-client say */
    HTTPD_CLIENTS_OFF,
    HTTPD_CLIENTS_OPTIONAL,
    HTTPD_CLIENTS_REQUIRED,
    HTTPD_CLIENTS_NUMBER
};

/* An address or path of --listen. */
struct httpd_place {
    char ip[INET6_ADDRSTRLEN]; /* "": the address of -i */
    unsigned short port;
    /* the path of a unix socket, which is path_text; NULL: listen at ip and port */
    const char *path;
    char path_text[HTTPD_UNIX_PATH_MAX + 1];
    /* whether TLS is off at this place; it is always off at a unix socket without ,tls */
    bool is_plain;
    bool wants_tls; /* whether TLS was explicitly asked for at this place */
    enum httpd_clients clients;
};

/* The options of TLS. Certificate i belongs to key i. */
struct httpd_tls_options {
    const char *certificate[HTTPD_PAIRS_MAX];
    const char *key[HTTPD_PAIRS_MAX];
    unsigned certificates;
    unsigned keys;
    /* the OCSP reply for certificate i; NULL: it has none */
    const char *staple[HTTPD_PAIRS_MAX];
    unsigned staples;
    /* the authorities that sign the certificates of clients; NULL: clients are not asked for
     * certificates */
    const char *client_ca;
    bool is_client_given;  /* whether --tls-client was given */
    bool is_optional;      /* whether clients without a certificate are accepted */
    bool is_modern;        /* whether only TLS 1.3 is used */
    bool is_profile_given; /* whether --tls-profile was given */
    bool is_hsts_given;
    bool is_redirecting; /* whether --http-redirect was given */
    /* "": it was not given; then httpd_settle_redirect sets it to the address of -i */
    const char *redirect_ip;
    unsigned short redirect_port;
    unsigned long memory_max; /* the most bytes that TLS may use; 0: no limit */
    unsigned long hsts_ms;
    /* whether --tls-dev was given: the server makes a certificate that is only in memory */
    bool is_dev;
};

struct httpd_options {
    const char *ip;
    unsigned short port;
    const char *unix_path; /* a unix socket at which to listen, too; NULL: there is none */
    unsigned socket_mode;  /* the permissions of the socket file; 0: those that the umask gives */
    struct httpd_place places[HTTPD_LISTEN_MAX];
    unsigned places_number;
    bool fastcgi_is_on;
    struct httpd_place fastcgi;  /* where FastCGI is answered, if it is on */
    struct sxe_http_config http; /* the limits and timeouts of the server */
    /* settings for files; if root is NULL, the greeting is served */
    struct sxe_http_files_config files;
    const char *index[HTTPD_INDEX_MAX + 1]; /* the names of --index, ended by NULL */
    char types[HTTPD_TYPES_MAX];            /* the lines of --type */
    struct error_pages error_pages;
    struct httpd_proxy passes[HTTPD_PROXIES_MAX]; /* the values of each --proxy */
    struct upstream_tls proxy_tls; /* the TLS settings of upstreams that have none of their own */
    unsigned passes_number;
    struct sxe_cidr_list proxies;
    struct sxe_cidr_list trusted;
    uint32_t stall_timeout_ms;
    uint32_t hang_timeout_ms;      /* how long a turn of a process's loop may take; 0: no limit */
    uint32_t stop_timeout_ms;      /* how long requests in progress may take when the server ends */
    char fields[HTTPD_FIELDS_MAX]; /* the fields of --header, each ended by CR LF */
    const char *access_log;        /* path of the access log; NULL: no log */
    struct log_format access_log_format;
    bool access_log_format_given;
    double access_log_rate; /* the part of the requests that is logged, if is_sample_given */
    uint32_t access_log_slow_ms;
    bool is_sample_given;
    bool is_slow_given;     /* whether --access-log-slow was given */
    const char *stats_path; /* the path at which counters are shown; NULL: nowhere */
    struct sxe_cidr_list stats_from;
    bool admin_is_on;
    const char *admin_ip;
    unsigned short admin_port;
    /* the path of a unix socket; NULL: the admin process listens at admin_ip and admin_port */
    const char *admin_path;
    const char *script; /* path of the script; NULL: no script */
    struct sxe_lua_config lua;
    /* the path of a file for the counts of executed lines; NULL: lines are not counted */
    const char *lua_coverage;
    unsigned workers; /* the number of serving processes under a supervisor; 0: -w was not given */
    bool is_repl;     /* whether to run a shell at the terminal, without a supervisor */
    bool is_script_described; /* whether an option for scripts was given */
    bool is_hang_given;       /* whether --hang-timeout was given */
    bool is_place_given;      /* whether ip, port, unix_path or a place of --listen was given */
    bool is_port_given;       /* whether ip, port or unix_path was given */
    bool is_place_wanted; /* whether to listen at ip, port and unix_path; listening_open sets it */
    bool is_confined;     /* see confine.h */
    bool is_bare;         /* whether no option was given, see first-steps.h */
    bool plan;
    struct become user;
    struct httpd_tls_options tls;
    struct config_options config;
};

/* Parse the command line into *options. Returns -1 if the program is to go on. Otherwise it must
 * exit with the status that is returned: 0 (after --help or --version) or 2 (after a message). */
int httpd_options_parse(struct httpd_options *options, int argc, char **argv);

#endif
