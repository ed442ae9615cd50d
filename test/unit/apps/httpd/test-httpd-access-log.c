/* SPDX-License-Identifier: MIT
 *
 * The access log: its lines, from requests to a real server with a virtual clock, and its file.
 */
#include "http-site.h"

#include "../../../../apps/httpd/serve/access-log.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "capture-log.h"
#include "sxe-cidr.h"

#define DATE     "06/Nov/1994:08:49:37 +0000"
#define PEER     "127.0.0.1 - - [" DATE "] "
#define BUFFER   (64 * 1024) /* bytes of lines that wait to be written */
#define TEXT_MAX 1200

static char directory[] = "/tmp/sxe-access-log-XXXXXX";
static char path[64];
static char other[64];
static struct access_log *access_log;
static unsigned copies = 1; /* how often each line is added */
static bool has_ids;        /* lines of JSON have the id of the request */
static int write_error;     /* the error of writes to the log's file; 0: none */

/* ---- A log, and a server that fills it ---- */

static void
make_directory(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/log", directory);
    snprintf(other, sizeof(other), "%s/other", directory);
}

static void
remove_directory(void)
{
    (void)!unlink(path);
    (void)!unlink(other);
    (void)!rmdir(directory);
}

static void
log_reply(struct sxe_http_request *request, const struct sxe_http_summary *summary)
{
    if (write_error != 0)
        fake_os_fail(FAKE_WRITE, 1, 0, write_error);
    for (unsigned i = 0; i < copies; i++)
        access_log_add(access_log, request, summary);
    fake_os_reset();
}

static const struct log_format *
format_of(const char *text)
{
    static struct log_format format;
    char problem[LOG_FORMAT_PROBLEM] = "";

    ck_assert_msg(log_format_parse(&format, text, problem), "%s: %s", text, problem);
    return &format;
}

static void
open_log(const char *format)
{
    access_log = access_log_open(path, format_of(format), has_ids);
    ck_assert_msg(access_log != NULL, "%s: %s", path, strerror(errno));
}

static void
serve_logged(struct sxe_http_config config)
{
    if (config.handler == NULL)
        config.handler = echo;
    config.on_reply = log_reply;
    serve(config);
}

static void
log_with(struct sxe_http_config config, const char *format)
{
    serve_logged(config);
    open_log(format);
}

static void
end_log(void)
{
    access_log_close(access_log);
    end_site();
}

static const char *
read_file(const char *name)
{
    static char text[2 * BUFFER];
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t length = read(fd, text, sizeof(text) - 1);

    ck_assert_int_ge(length, 0);
    text[length] = '\0';
    close(fd);
    return text;
}

/* Send this text on a new connection; the replies are ignored. */
static void
request(const char *text)
{
    static char replies[70000];
    int peer = client();

    say(peer, text);
    peer_shutdown(peer);
    peer_receive(peer, replies, sizeof(replies));
    close(peer);
    turn(5);
}

/* ---- The formats ---- */

static const struct {
    const char *request;
    const char *line;
} lines[] = {
    {"GET /a?b=c HTTP/1.1\r\nHost: h\r\n\r\n", PEER "\"GET /a?b=c HTTP/1.1\" 200 10 \"-\" \"-\"\n"},
    {"GET / HTTP/1.1\r\nHost: h\r\nReferer: http://r/\r\nUser-Agent: curl/7.88.1\r\n\r\n",
     PEER "\"GET / HTTP/1.1\" 200 5 \"http://r/\" \"curl/7.88.1\"\n"},
    {"GET / HTTP/1.1\r\nHost: h\r\nReferer:\r\nUser-Agent:\r\n\r\n",
     PEER "\"GET / HTTP/1.1\" 200 5 \"\" \"\"\n"},
    {"HEAD / HTTP/1.0\r\n\r\n", PEER "\"HEAD / HTTP/1.0\" 200 0 \"-\" \"-\"\n"},
    {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
     PEER "\"POST / HTTP/1.1\" 200 10 \"-\" \"-\"\n"},
    {"BREW /pot HTTP/1.9\r\nHost: h\r\n\r\n", PEER "\"BREW /pot HTTP/1.9\" 200 9 \"-\" \"-\"\n"},
    {"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", PEER "\"OPTIONS * HTTP/1.1\" 200 9 \"-\" \"-\"\n"},
    {"GET http://h/x HTTP/1.1\r\nHost: h\r\n\r\n",
     PEER "\"GET http://h/x HTTP/1.1\" 200 14 \"-\" \"-\"\n"},
    /* Refused requests: the log has as much of them as was understood. */
    {"\x16\x03\x01\r\n\r\n", PEER "\"-\" 400 16 \"-\" \"-\"\n"},
    {"GET \r\n\r\n", PEER "\"GET\" 400 16 \"-\" \"-\"\n"},
    {"GET / HTTP/2.0\r\n\r\n", PEER "\"GET /\" 505 31 \"-\" \"-\"\n"},
    {"GET / HTTP/1.1\r\nUser-Agent: a\r\n\r\n", PEER "\"GET / HTTP/1.1\" 400 16 \"-\" \"a\"\n"},
    {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9999999\r\n\r\n",
     PEER "\"POST / HTTP/1.1\" 413 22 \"-\" \"-\"\n"},
    /* Bytes that would end a quoted field or a line, or control a terminal. */
    {"GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: a\"b\\c\td\xc3\xa9\x80\xff~ e\r\n\r\n",
     PEER "\"GET / HTTP/1.1\" 200 5 \"-\" \"a\\x22b\\x5Cc\\x09d\\xC3\\xA9\\x80\\xFF~ e\"\n"},
    {"GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: \x1b[31m\r\n\r\n",
     PEER "\"GET / HTTP/1.1\" 400 16 \"-\" \"-\"\n"},
};

START_TEST(a_request_is_one_line_of_combined)
{
    log_with((struct sxe_http_config){0}, "combined");
    request(lines[_i].request);
    access_log_flush(access_log);
    ck_assert_str_eq(read_file(path), lines[_i].line);
    end_log();
}
END_TEST

START_TEST(common_is_the_same_without_referer_and_agent)
{
    log_with((struct sxe_http_config){0}, "common");
    request(lines[0].request);
    request(lines[1].request);
    end_log();
    ck_assert_str_eq(read_file(path),
                     PEER "\"GET /a?b=c HTTP/1.1\" 200 10\n" PEER "\"GET / HTTP/1.1\" 200 5\n");
}
END_TEST

#define JSON(status, bytes)                                                       \
    "{\"time\":\"1994-11-06T08:49:37Z\",\"status\":" #status ",\"bytes\":" #bytes \
    ",\"duration_us\":0,\"peer\":\"127.0.0.1\""

static const struct {
    const char *request;
    const char *line;
} objects[] = {
    {"GET /a HTTP/1.1\r\nHost: h:80\r\n\r\n",
     JSON(200, 6) ",\"method\":\"GET\",\"target\":\"/a\",\"version\":\"1.1\",\"host\":\"h:80\"}\n"},
    {"GET / HTTP/1.0\r\nReferer: http://r/\r\nUser-Agent: \"\\\t\xe9~\r\n\r\n",
     JSON(200, 5) ",\"method\":\"GET\",\"target\":\"/\",\"version\":\"1.0\","
                  "\"referer\":\"http://r/\","
                  "\"user_agent\":\"\\\"\\\\\\t\\u00e9~\"}\n"},
    {"rubbish\r\n\r\n",
     JSON(400, 16) ",\"refused\":\"the method is not a token followed by one space\"}\n"},
    {"GET / HTTP/2.0\r\n\r\n",
     JSON(505, 31) ",\"method\":\"GET\",\"target\":\"/\",\"refused\":\"the version is not "
                   "HTTP/1\"}\n"},
    {"GET / HTTP/1.1\r\n\r\n", JSON(400, 16) ",\"method\":\"GET\",\"target\":\"/\","
                                             "\"refused\":\"an HTTP/1.1 request has no Host\"}\n"},
};

START_TEST(a_request_is_one_object_of_json)
{
    log_with((struct sxe_http_config){0}, "json");
    request(objects[_i].request);
    end_log();
    ck_assert_str_eq(read_file(path), objects[_i].line);
}
END_TEST

START_TEST(json_has_the_id_of_the_request)
{
    struct sxe_cidr_list trusted = {.number = 0};

    ck_assert_int_eq(sxe_cidr_add(&trusted, "127.0.0.1", NULL), 0);
    has_ids = true;
    log_with((struct sxe_http_config){.trusted = &trusted, .request_id = "X-Id"}, "json");
    request("GET / HTTP/1.0\r\nX-Id: from-proxy\r\n\r\n");
    end_log();
    ck_assert_ptr_nonnull(strstr(read_file(path), ",\"request_id\":\"from-proxy\"}\n"));
}
END_TEST

START_TEST(json_has_the_trace)
{
    const char *line;

    log_with((struct sxe_http_config){.trace = true}, "json");
    request("GET / HTTP/1.0\r\n\r\n");
    end_log();
    line = strstr(read_file(path), ",\"trace_id\":\"");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_eq(strstr(line, "\",\"span_id\":\""), line + 13 + 32);
    ck_assert_str_eq(line + 13 + 32 + 13 + 16, "\"}\n");
}
END_TEST

/* ---- Formats to order ---- */

static const struct {
    const char *format;
    const char *request;
    const char *line;
} orders[] = {
    {"$remote_addr,$status,$body_bytes_sent,$worker", "GET / HTTP/1.0\r\n\r\n",
     "127.0.0.1,200,5,3\n"},
    {"$time_local|$time_iso8601", "GET / HTTP/1.0\r\n\r\n", DATE "|1994-11-06T08:49:37Z\n"},
    {"$request_time $duration_us", "GET / HTTP/1.0\r\n\r\n", "0.000 0\n"},
    {"$request_method\t${request_uri}x$server_protocol", "GET /a HTTP/1.0\r\n\r\n",
     "GET\t/ax"
     "HTTP/1.0\n"},
    {"a text of more than 16 bytes: $status", "GET / HTTP/1.0\r\n\r\n",
     "a text of more than 16 bytes: 200\n"},
    {"[$request_method] \"$request_method\"", "BREW / HTTP/1.0\r\n\r\n", "[BREW] \"BREW\"\n"},
    {"\"${request}T\"", "GET /T HTTP/1.0\r\n\r\n", "\"GE\\x54 /\\x54 HTTP/1.0T\"\n"},
    {"$$$status$$", "GET / HTTP/1.0\r\n\r\n", "$200$\n"},
    {"$ssl_protocol $trace_id $span_id", "GET / HTTP/1.0\r\n\r\n", "- - -\n"},
    {"$host", "GET / HTTP/1.1\r\nHost: h:80\r\n\r\n", "h\n"},
    {"$host", "GET http://i:1/ HTTP/1.1\r\nHost: h\r\n\r\n", "i\n"},
    {"$host", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "[::1]\n"},
    {"$host", "GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n", "[::1]\n"},
    {"$host", "GET / HTTP/1.0\r\n\r\n", "-\n"},
    {"$scheme", "GET / HTTP/1.0\r\n\r\n", "http\n"},
    /* A request that was refused. */
    {"\"$request\" $server_protocol $status", "GET / HTTP/2.0\r\n\r\n", "\"GET /\" - 505\n"},
    {"$request_method,$request_uri,$request", "\x16\r\n\r\n", "-,-,-\n"},
    /* Any field, whatever its case; the first one counts. */
    {"$http_x_a_b", "GET / HTTP/1.0\r\nx-A-b: 1\r\nX-A-B: 2\r\n\r\n", "1\n"},
    {"$http_X_A", "GET / HTTP/1.0\r\nX-A: 1\r\n\r\n", "1\n"},
    /* A text that is not there, and one that is empty. */
    {"$http_a \"$http_a\"", "GET / HTTP/1.0\r\n\r\n", "- \"-\"\n"},
    {"$http_a \"$http_a\"", "GET / HTTP/1.0\r\nA:\r\n\r\n", "- \"\"\n"},
    /* A field cannot be forged. */
    {"$http_a $status", "GET / HTTP/1.0\r\nA: x 500\r\n\r\n", "x\\x20500 200\n"},
    {"$http_a|$http_b;$status", "GET / HTTP/1.0\r\nA: |;\r\nB: ;|,\r\n\r\n",
     "\\x7C;|\\x3B\\x7C,;200\n"},
    {"'$http_a'", "GET / HTTP/1.0\r\nA: b' \"c\r\n\r\n", "'b\\x27\\x20\\x22c'\n"},
    {"[$http_a]", "GET / HTTP/1.0\r\nA: ][\r\n\r\n", "[\\x5D\\x5B]\n"},
    {"\"$http_a\" \"b $http_a\"", "GET / HTTP/1.0\r\nA: 1 2\t\\\"3\r\n\r\n",
     "\"1 2\\x09\\x5C\\x223\" \"b 1\\x202\\x09\\x5C\\x223\"\n"},
    {"$request", "GET /a HTTP/1.0\r\n\r\n", "GET\\x20/a\\x20HTTP/1.0\n"},
    {"\xc3\xa9 $http_a", "GET / HTTP/1.0\r\nA: \xc3\xa9\r\n\r\n", "\xc3\xa9 \\xC3\\xA9\n"},
    /* JSON. */
    {"{\"s\":$status,\"t\":[$request_time],\"r\":\"$request\",\"p\":\"$ssl_protocol\"}",
     "GET /a HTTP/1.0\r\n\r\n", "{\"s\":200,\"t\":[0.000],\"r\":\"GET /a HTTP/1.0\",\"p\":\"\"}\n"},
    {"{\"\\\"$http_a\":\"${http_b} $http_c\"}",
     "GET / HTTP/1.0\r\nA: \"}\\\xff\r\nB: 1 2\t\r\n\r\n", "{\"\\\"\\\"}\\\\\\u00ff\":\"1 2 \"}\n"},
};

START_TEST(a_line_is_made_to_order)
{
    log_with((struct sxe_http_config){0}, orders[_i].format);
    access_log_set_worker(access_log, 3);
    request(orders[_i].request);
    end_log();
    ck_assert_str_eq(read_file(path), orders[_i].line);
}
END_TEST

/* A byte that must be escaped in some formats, at each place of a text that is tested eight bytes
 * at
 * a time. */
static const struct {
    const char *format;
    const char *before;
    const char *after;
    const char *escaped; /* the bytes that this format escapes, but for \x80 and above */
} around[] = {
    {"$http_a", "", "", " \t\"\\"},
    {"\"$http_a\"", "\"", "\"", "\t\"\\"},
    {"\"[$http_a!\"", "\"[", "!\"", "\t\"\\[!"},
    {"~$http_a@", "~", "@", " \t\"\\~@"},
};

static void
check_escape_at(const char *before, const char *after, bool is_escaped, unsigned char byte)
{
    for (unsigned place = 0; place < 20; place++) {
        char text[200];
        char line[300];

        snprintf(text, sizeof(text), "GET / HTTP/1.0\r\nA: a%.*s%c%.*s\r\n\r\n", (int)place,
                 "bbbbbbbbbbbbbbbbbbbb", byte, 20 - (int)place, "cccccccccccccccccccc");
        request(text);
        snprintf(text, sizeof(text), is_escaped ? "\\x%02X" : "%c", byte);
        snprintf(line, sizeof(line), "%sa%.*s%s%.*s%s\n", before, (int)place,
                 "bbbbbbbbbbbbbbbbbbbb", text, 20 - (int)place, "cccccccccccccccccccc", after);
        access_log_flush(access_log);
        ck_assert_str_eq(read_file(path), line);
        ck_assert_int_eq(truncate(path, 0), 0);
    }
}

START_TEST(an_escape_is_made_at_each_place)
{
    static const char bytes[] = " !\"#@A[\\]^~\t\x80\xA2\xDC\xFF";

    log_with((struct sxe_http_config){0}, around[_i].format);
    for (const char *byte = bytes; *byte != '\0'; byte++)
        check_escape_at(around[_i].before, around[_i].after,
                        (unsigned char)*byte >= 0x80 || strchr(around[_i].escaped, *byte) != NULL,
                        (unsigned char)*byte);
    end_log();
}
END_TEST

START_TEST(a_line_to_order_has_ids)
{
    struct sxe_cidr_list trusted = {.number = 0};
    const char *line;

    ck_assert_int_eq(sxe_cidr_add(&trusted, "127.0.0.1", NULL), 0);
    log_with((struct sxe_http_config){.trusted = &trusted, .request_id = "X-Id", .trace = true},
             "$request_id $trace_id $span_id");
    request("GET / HTTP/1.0\r\nX-Id: a|b\r\n"
            "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n");
    end_log();
    line = read_file(path);
    ck_assert_ptr_eq(strstr(line, "a|b 4bf92f3577b34da6a3ce929d0e0e4736 "), line);
    ck_assert_uint_eq(strlen(line), 4 + 32 + 1 + 16 + 1);
}
END_TEST

START_TEST(a_line_has_the_client_that_a_proxy_names)
{
    struct sxe_cidr_list trusted = {.number = 0};

    ck_assert_int_eq(sxe_cidr_add(&trusted, "127.0.0.1", NULL), 0);
    log_with(
        (struct sxe_http_config){.trusted = &trusted, .forwarding = SXE_HTTP_FORWARDING_FORWARDED},
        "$remote_addr $scheme $host");
    request("GET / HTTP/1.0\r\nForwarded: for=1.2.3.4;proto=https;host=\"i:8\"\r\n\r\n");
    end_log();
    ck_assert_str_eq(read_file(path), "1.2.3.4 https i\n");
}
END_TEST

START_TEST(the_duration_is_in_seconds_and_microseconds)
{
    static char reply[2000];
    int peer;

    log_with((struct sxe_http_config){.handler = push_later}, "$request_time $duration_us");
    peer = client();
    say(peer, "GET / HTTP/1.0\r\n\r\n");
    EXPECT_OF("later", "/", 0);
    fake_time_advance(1023 * MS); /* each turn of the loop takes one ms more */
    turn(1);
    sxe_http_reply_text(site.response, 200, "");
    turn(5);
    EXPECT_OF("done", "/", 0);
    peer_receive(peer, reply, sizeof(reply));
    close(peer);
    end_log();
    ck_assert_str_eq(read_file(path), "1.025 1025000\n");
}
END_TEST

/* ---- Sampling ---- */

static struct sxe_cidr_list trusted_peers;

/* Log in JSON that part of the requests from a trusted peer. */
static void
log_part(sxe_http_handler handler, bool is_traced, double rate)
{
    trusted_peers = (struct sxe_cidr_list){.number = 0};
    ck_assert_int_eq(sxe_cidr_add(&trusted_peers, "127.0.0.1", NULL), 0);
    log_with((struct sxe_http_config){.handler = handler,
                                      .trusted = &trusted_peers,
                                      .request_id = "X-Id",
                                      .trace = is_traced},
             "json");
    access_log_sample(access_log, rate, 1000);
}

static unsigned
count_lines(void)
{
    unsigned number = 0;

    for (const char *p = read_file(path); (p = strchr(p, '\n')) != NULL; p++)
        number++;
    return number;
}

#define TRACED(draw)                                                    \
    "GET /" draw " HTTP/1.0\r\ntraceparent: 00-4bf92f3577b34da6a3" draw \
    "-00f067aa0ba902b7-01\r\n\r\n"

START_TEST(the_end_of_the_trace_id_decides)
{
    log_part(NULL, true, 0.25);
    request(TRACED("bfffffffffffff"));
    request(TRACED("c0000000000000"));
    request(TRACED("ffffffffffffff"));
    request(TRACED("00000000000000"));
    end_log();
    ck_assert_uint_eq(count_lines(), 2);
    ck_assert_ptr_nonnull(strstr(read_file(path), "\"target\":\"/c0000000000000\""));
    ck_assert_ptr_nonnull(strstr(read_file(path), "\"target\":\"/ffffffffffffff\""));
    ck_assert_ptr_nonnull(strstr(read_file(path), "\"sample_rate\":0.25}\n"));
}
END_TEST

/* The ids are fixed, so the number of those that are chosen is, too. */
START_TEST(without_a_trace_the_id_of_the_request_decides)
{
    char text[100];

    log_part(NULL, false, 0.5);
    for (unsigned twice = 0; twice < 2; twice++) {
        for (unsigned i = 0; i < 100; i++) {
            snprintf(text, sizeof(text), "GET /%u HTTP/1.0\r\nX-Id: request-%u\r\n\r\n", i, i);
            request(text);
        }
    }
    end_log();
    ck_assert_uint_eq(count_lines() % 2, 0); /* an id is chosen always, or never */
    ck_assert_uint_gt(count_lines(), 2 * 35);
    ck_assert_uint_lt(count_lines(), 2 * 65);
}
END_TEST

static enum sxe_http_verdict
fail_or_echo(struct sxe_http_request *request_, struct sxe_http_response *response)
{
    if (sxe_http_target(request_).length > 1)
        return sxe_http_reply_status(response, 500);
    return echo(request_, response);
}

START_TEST(errors_of_the_server_are_always_logged)
{
    log_part(fail_or_echo, false, 0);
    request("GET / HTTP/1.0\r\n\r\n");
    request("GET /fail HTTP/1.0\r\n\r\n");
    end_log();
    ck_assert_uint_eq(count_lines(), 1);
    ck_assert_ptr_nonnull(strstr(read_file(path), "\"status\":500,"));
    ck_assert_ptr_nonnull(strstr(read_file(path), "\"sample_rate\":1}\n"));
}
END_TEST

START_TEST(slow_requests_are_always_logged)
{
    static char reply[2000];
    static const struct {
        const char *request;
        const char *target;
        unsigned ms;
    } requests[] = {{"GET /fast HTTP/1.0\r\n\r\n", "/fast", 900},
                    {"GET /slow HTTP/1.0\r\n\r\n", "/slow", 1000}};

    log_part(push_later, false, 0);
    for (unsigned i = 0; i < 2; i++) {
        int peer = client();

        say(peer, requests[i].request);
        EXPECT_OF("later", requests[i].target, 0);
        fake_time_advance(requests[i].ms * MS);
        turn(1);
        sxe_http_reply_text(site.response, 200, "");
        turn(5);
        EXPECT_OF("done", requests[i].target, 0);
        peer_receive(peer, reply, sizeof(reply));
        close(peer);
        turn(5);
    }
    end_log();
    ck_assert_uint_eq(count_lines(), 1);
    ck_assert_ptr_nonnull(strstr(read_file(path), "\"target\":\"/slow\""));
}
END_TEST

static enum sxe_http_verdict
echo_to_user(struct sxe_http_request *request_, struct sxe_http_response *response)
{
    request_->is_authenticated = true;
    return echo(request_, response);
}

START_TEST(a_user_is_one_word)
{
    const struct sxe_http_config config = {.handler = echo_to_user};

    log_with(config, "common");
    request("GET / HTTP/1.0\r\nAuthorization: Basic YSBi/yA6cA\r\n\r\n"); /* "a b\xff :p" */
    request("GET / HTTP/1.0\r\nAuthorization: Basic OnA\r\n\r\n");        /* ":p" */
    end_log();
    ck_assert_str_eq(read_file(path),
                     "127.0.0.1 - a\\x20b\\xFF\\x20 [" DATE "] \"GET / HTTP/1.0\" 200 5\n" PEER
                     "\"GET / HTTP/1.0\" 200 5\n");
    remove_directory();
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    log_with(config, "json");
    request("GET / HTTP/1.0\r\nAuthorization: Basic YSBiOnA\r\n\r\n");
    end_log();
    ck_assert_ptr_nonnull(strstr(read_file(path), ",\"peer\":\"127.0.0.1\",\"user\":\"a b\","));
}
END_TEST

START_TEST(the_date_is_that_of_the_reply)
{
    log_with((struct sxe_http_config){0}, "common");
    request("GET /1 HTTP/1.0\r\n\r\n");
    fake_time_step_wall(INT64_C(86400 * 30) * (int64_t)SXE_NS_PER_SECOND);
    request("GET /2 HTTP/1.0\r\n\r\n");
    end_log();
    ck_assert_str_eq(read_file(path),
                     "127.0.0.1 - - [06/Nov/1994:08:49:37 +0000] \"GET /1 HTTP/1.0\" 200 6\n"
                     "127.0.0.1 - - [06/Dec/1994:08:49:37 +0000] \"GET /2 HTTP/1.0\" 200 6\n");
}
END_TEST

/* ---- Long and hostile texts of clients ---- */

/* A text of `length` equal letters. */
static const char *
letters(char letter, size_t length)
{
    static char text[5][3000];
    static unsigned next;
    char *to = text[next++ % 5];

    ck_assert_uint_lt(length, sizeof(text[0]));
    memset(to, letter, length);
    to[length] = '\0';
    return to;
}

START_TEST(a_long_text_is_cut_and_the_line_goes_on)
{
    static char text[12000];
    static char line[12000];

    log_with((struct sxe_http_config){0}, "combined");
    snprintf(text, sizeof(text), "%s /%s HTTP/1.0\r\nReferer: %s\r\nUser-Agent: %s\r\n\r\n",
             letters('M', 2000), letters('t', 2000), letters('r', 2000), letters('u', 2000));
    request(text);
    end_log();
    snprintf(line, sizeof(line), PEER "\"%s /%s HTTP/1.0\" 200 4002 \"%s\" \"%s\"\n",
             letters('M', TEXT_MAX), letters('t', TEXT_MAX - 1), letters('r', TEXT_MAX),
             letters('u', TEXT_MAX));
    ck_assert_str_eq(read_file(path), line);
}
END_TEST

/* A text that repeats `what` `number` times. */
static const char *
repeated(const char *what, unsigned number)
{
    static char text[8000];

    text[0] = '\0';
    for (unsigned i = 0; i < number; i++)
        snprintf(text + strlen(what) * i, sizeof(text) - strlen(what) * i, "%s", what);
    return text;
}

START_TEST(the_largest_object_of_json_is_whole)
{
    static char text[16000];
    static char line[12000];

    log_with((struct sxe_http_config){0}, "json");
    snprintf(text, sizeof(text),
             "%s /%s HTTP/1.1\r\nHost: %s\r\nReferer: %s\r\nUser-Agent: %s\r\n\r\n",
             letters('M', 2000), letters('t', 2000), letters('h', 2000), letters('\xff', 2000),
             letters('\xff', 2000));
    request(text);
    end_log();
    snprintf(line, sizeof(line),
             JSON(200, 4002) ",\"method\":\"%s\",\"target\":\"/%s\",\"version\":\"1.1\","
                             "\"host\":\"%s\",\"referer\":\"%s\",",
             letters('M', TEXT_MAX), letters('t', TEXT_MAX - 1), letters('h', TEXT_MAX),
             repeated("\\u00ff", TEXT_MAX / 6));
    snprintf(line + strlen(line), sizeof(line) - strlen(line), "\"user_agent\":\"%s\"}\n",
             repeated("\\u00ff", TEXT_MAX / 6));
    ck_assert_str_eq(read_file(path), line);
}
END_TEST

/* As many texts as a format may have, each of them as long as a head allows. */
START_TEST(the_largest_line_to_order_is_whole)
{
    static char text[16000];
    static char format[2048];
    const bool is_json = _i == 1;
    size_t length;

    snprintf(format, sizeof(format), "%s", is_json ? "{\"" : "");
    for (unsigned i = 0; i < LOG_FORMAT_TEXTS; i++)
        snprintf(format + strlen(format), sizeof(format) - strlen(format), "$http_a,");
    length = strlen(format);
    while (length < sizeof(format) - 3)
        format[length++] = 'x';
    snprintf(format + length, sizeof(format) - length, "%s", is_json ? "\"}" : "");
    log_with((struct sxe_http_config){0}, format);
    snprintf(text, sizeof(text), "GET / HTTP/1.0\r\nA: %s\r\n\r\n", letters('\xff', 2900));
    request(text);
    end_log();
    ck_assert_uint_eq(strlen(read_file(path)), strlen(format) -
                                                   LOG_FORMAT_TEXTS * strlen("$http_a") +
                                                   LOG_FORMAT_TEXTS * TEXT_MAX + 1);
}
END_TEST

START_TEST(no_escape_is_cut_in_its_middle)
{
    static char text[8000];
    static char line[8000];

    log_with((struct sxe_http_config){0}, "combined");
    snprintf(text, sizeof(text), "GET / HTTP/1.0\r\nUser-Agent: %s\"\"\r\n\r\n",
             letters('a', TEXT_MAX - 1));
    request(text);
    end_log();
    snprintf(line, sizeof(line), PEER "\"GET / HTTP/1.0\" 200 5 \"-\" \"%s\\x22\"\n",
             letters('a', TEXT_MAX - 1));
    ck_assert_str_eq(read_file(path), line);
}
END_TEST

static const struct {
    const char *format;
    const char *parts[3];
} gone[] = {
    {"common", {PEER "\"GET /later HTTP/1.1\" 499 0\n"}},
    {"json",
     {",\"status\":499,\"bytes\":0,", ",\"peer\":\"127.0.0.1\",",
      ",\"error\":\"Connection reset by peer\"}\n"}},
};

START_TEST(who_leaves_before_the_reply_is_a_499)
{
    int peer;

    log_with((struct sxe_http_config){.handler = push_later}, gone[_i].format);
    peer = client();
    say(peer, GET("/later"));
    EXPECT_OF("later", "/later", 0);
    peer_reset(peer);
    EXPECT_OF("done", "/later", -ECONNRESET);
    end_log();
    for (unsigned i = 0; i < 3 && gone[_i].parts[i] != NULL; i++)
        ck_assert_ptr_nonnull(strstr(read_file(path), gone[_i].parts[i]));
}
END_TEST

START_TEST(a_head_that_does_not_come_whole_has_a_line_of_what_came)
{
    int peer;

    log_with((struct sxe_http_config){.head_timeout_ms = 100}, "common");
    peer = client();
    say(peer, "GET /slow HTT");
    wait_ms(300);
    EXPECT_REFUSAL(peer, "408 Request Timeout");
    close(peer);
    end_log();
    ck_assert_ptr_nonnull(strstr(read_file(path), "] \"GET /slow\" 408 20\n"));
}
END_TEST

START_TEST(a_proxy_says_whose_request_it_is)
{
    struct sxe_cidr_list proxies = {.number = 0};

    ck_assert_int_eq(sxe_cidr_add(&proxies, "127.0.0.1", NULL), 0);
    log_with((struct sxe_http_config){.proxies = &proxies}, "common");
    request("PROXY TCP4 192.0.2.7 198.51.100.1 56324 80\r\nGET / HTTP/1.0\r\n\r\n");
    request("PROXY TCP6 2001:db8::7 2001:db8::1 56324 80\r\nGET / HTTP/1.0\r\n\r\n");
    request("PROXY TCP6 ::ffff:192.0.2.8 2001:db8::1 1 80\r\nGET / HTTP/1.0\r\n\r\n");
    end_log();
    ck_assert_str_eq(read_file(path), "192.0.2.7 - - [" DATE "] \"GET / HTTP/1.0\" 200 5\n"
                                      "2001:db8::7 - - [" DATE "] \"GET / HTTP/1.0\" 200 5\n"
                                      "192.0.2.8 - - [" DATE "] \"GET / HTTP/1.0\" 200 5\n");
}
END_TEST

START_TEST(a_unix_socket_has_no_address)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "/tmp/sxe-access-log"};
    int peer;

    log_with((struct sxe_http_config){0}, "common");
    peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", other);
    ck_assert_int_eq(sxe_http_listen_unix(site.http, other), 0);
    ck_assert_int_eq(connect(peer, (struct sockaddr *)&at, sizeof(at)), 0);
    turn(2);
    say(peer, GET("/"));
    EXPECT_OK(peer, "GET /");
    close(peer);
    end_log();
    ck_assert_str_eq(read_file(path), "unix - - [" DATE "] \"GET / HTTP/1.1\" 200 5\n");
}
END_TEST

/* ---- Opening ---- */

START_TEST(lines_are_added_to_a_file_that_is_there)
{
    struct stat found;

    for (unsigned i = 0; i < 2; i++) {
        log_with((struct sxe_http_config){0}, "common");
        request("GET / HTTP/1.0\r\n\r\n");
        end_log();
    }
    ck_assert_str_eq(read_file(path),
                     PEER "\"GET / HTTP/1.0\" 200 5\n" PEER "\"GET / HTTP/1.0\" 200 5\n");
    ck_assert_int_eq(stat(path, &found), 0);
    ck_assert_uint_eq(found.st_mode & 07777 & ~0640u, 0);
}
END_TEST

START_TEST(what_cannot_be_opened_is_null_and_says_why)
{
    unsigned open = fake_os_open_fds();

    ck_assert_ptr_null(access_log_open("/nonexistent/log", format_of("common"), false));
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_ptr_null(access_log_open(directory, format_of("common"), false));
    ck_assert_int_eq(errno, EISDIR);
    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    ck_assert_ptr_null(access_log_open(path, format_of("common"), false));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_uint_eq(fake_os_open_fds(), open);
    access_log_close(NULL);
    access_log_set_worker(NULL, 1);
}
END_TEST

/* Redirect the standard output from here on. */
static void
redirect(int to)
{
    fflush(stdout);
    ck_assert_int_eq(dup2(to, STDOUT_FILENO), STDOUT_FILENO);
    close(to);
}

/* Write one line to the log "-". */
static void
log_to_output(void)
{
    serve_logged((struct sxe_http_config){0});
    access_log = access_log_open("-", format_of("common"), false);
    ck_assert_ptr_nonnull(access_log);
    request("GET / HTTP/1.0\r\n\r\n");
    end_log();
}

START_TEST(standard_output_may_be_a_file)
{
    redirect(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ck_assert_int_eq(write(STDOUT_FILENO, "before\n", 7), 7);
    log_to_output();
    ck_assert_str_eq(read_file(path), "before\n" PEER "\"GET / HTTP/1.0\" 200 5\n");
}
END_TEST

START_TEST(standard_output_that_is_a_pipe_is_not_changed_for_others)
{
    char text[100] = "";
    int ends[2];

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    redirect(ends[1]);
    log_to_output();
    ck_assert_int_eq(fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_gt(read(ends[0], text, sizeof(text) - 1), 0);
    ck_assert_str_eq(text, PEER "\"GET / HTTP/1.0\" 200 5\n");
}
END_TEST

START_TEST(standard_output_may_be_a_socket)
{
    char text[100] = "";
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    redirect(ends[1]);
    log_to_output();
    ck_assert_int_gt(read(ends[0], text, sizeof(text) - 1), 0);
    ck_assert_str_eq(text, PEER "\"GET / HTTP/1.0\" 200 5\n");
}
END_TEST

START_TEST(standard_output_may_be_missing)
{
    close(STDOUT_FILENO);
    ck_assert_ptr_null(access_log_open("-", format_of("common"), false));
    ck_assert_int_eq(errno, EBADF);
}
END_TEST

/* ---- Logs that cannot be written ---- */

#define LINE        (PEER "\"GET / HTTP/1.1\" 200 5\n")
#define LINE_LENGTH (sizeof(LINE) - 1)
#define FIT         (BUFFER / LINE_LENGTH) /* lines in the buffer */

/* Add lines to the log. */
static void
add_lines(unsigned number)
{
    copies = number;
    request(GET("/"));
    copies = 1;
}

/* The file must have this many lines, all of them complete. */
static void
check_lines_in(const char *name, unsigned number)
{
    const char *text = read_file(name);

    ck_assert_uint_eq(strlen(text), number * LINE_LENGTH);
    for (unsigned i = 0; i < number; i++)
        ck_assert_int_eq(memcmp(text + i * LINE_LENGTH, LINE, LINE_LENGTH), 0);
}

START_TEST(lines_wait_in_the_buffer_until_it_is_full)
{
    log_with((struct sxe_http_config){0}, "common");
    add_lines(FIT);
    ck_assert_str_eq(read_file(path), "");
    add_lines(1);
    check_lines_in(path, FIT);
    access_log_flush(access_log);
    check_lines_in(path, FIT + 1);
    ck_assert_uint_eq(access_log_dropped(access_log), 0);
    end_log();
}
END_TEST

START_TEST(f12_on_a_full_disk_lines_are_dropped_and_counted_and_then_it_goes_on)
{
    log_with((struct sxe_http_config){0}, "common");
    capture_log();
    add_lines(FIT);
    write_error = ENOSPC;
    ck_assert_ptr_null(sxe_log_set_request("of-another"));
    add_lines(3);
    ck_assert_uint_eq(access_log_dropped(access_log), 3);
    ck_assert(logged("cannot be written: No space left on device; lines are dropped until it can"));
    write_error = 0;
    access_log_flush(access_log);
    ck_assert(logged("has lost 3 lines, because it could not be written"));
    ck_assert(!logged("of-another"));
    SXE_WARN("the request goes on");
    ck_assert(logged("of-another"));
    ck_assert_str_eq(sxe_log_set_request(NULL), "of-another");
    add_lines(2);
    end_log();
    check_lines_in(path, FIT + 2);
}
END_TEST

/* Make a pipe at the log's path; returns its reading end. */
static int
make_pipe(void)
{
    int reader;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_ge(fcntl(reader, F_SETPIPE_SZ, 4096), 4096);
    return reader;
}

/* Read what is in the pipe; it must continue the lines that came before. */
static void
read_pipe(int reader, size_t *length)
{
    char bytes[4096];
    ssize_t n;

    while ((n = read(reader, bytes, sizeof(bytes))) > 0) {
        for (ssize_t i = 0; i < n; i++)
            ck_assert_int_eq(bytes[i], LINE[(*length)++ % LINE_LENGTH]);
    }
}

START_TEST(f12_a_pipe_that_nobody_reads_holds_nobody_up)
{
    unsigned added = 3 * FIT;
    size_t length = 0;
    int reader;

    serve_logged((struct sxe_http_config){0});
    reader = make_pipe();
    open_log("common");
    capture_log();
    add_lines(added);
    ck_assert_uint_gt(access_log_dropped(access_log), 0);
    ck_assert_uint_lt(access_log_dropped(access_log), added);
    ck_assert(logged("cannot be written: Resource temporarily unavailable; lines are dropped"));
    for (unsigned i = 0; i < BUFFER / 4096 + 2; i++) {
        read_pipe(reader, &length);
        access_log_flush(access_log);
    }
    ck_assert_uint_eq(length, (added - access_log_dropped(access_log)) * LINE_LENGTH);
    ck_assert(logged("lines, because it could not be written"));
    close(reader);
    end_log();
}
END_TEST

/* Between two pieces another worker may write. */
START_TEST(a_pipe_gets_whole_lines)
{
    char bytes[8192];
    size_t length = 0;
    ssize_t n = 0;
    int reader;

    serve_logged((struct sxe_http_config){0});
    reader = make_pipe();
    open_log("common");
    capture_log();
    add_lines(FIT);
    for (unsigned i = 0; i < 2 * BUFFER / 4096; i++) {
        access_log_flush(access_log);
        while ((n = read(reader, bytes, sizeof(bytes))) > 0) {
            ck_assert_int_eq(n % LINE_LENGTH, 0);
            length += (size_t)n;
        }
    }
    ck_assert_uint_eq(length, FIT * LINE_LENGTH);
    close(reader);
    end_log();
}
END_TEST

START_TEST(f12_a_pipe_that_is_closed_is_no_end)
{
    int reader;

    serve_logged((struct sxe_http_config){0});
    reader = make_pipe();
    open_log("common");
    capture_log();
    close(reader);
    add_lines(FIT + 7);
    ck_assert_uint_eq(access_log_dropped(access_log), 7);
    ck_assert(logged("cannot be written: Broken pipe"));
    end_log();
    ck_assert(logged("has lost "));
}
END_TEST

START_TEST(what_is_left_at_the_end_is_counted)
{
    log_with((struct sxe_http_config){0}, "common");
    capture_log();
    add_lines(5);
    fake_os_fail(FAKE_WRITE, 1, 0, EIO);
    access_log_close(access_log);
    fake_os_reset();
    ck_assert(logged("has lost 5 lines, because it could not be written"));
    end_site();
}
END_TEST

static void
limit_files_to(rlim_t size)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = size;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Other workers never go on in the middle of a line: it is cut off, and written whole later. If it
 * cannot be cut off, its rest is dropped. */
START_TEST(half_a_line_is_cut_off)
{
    log_with((struct sxe_http_config){0}, "common");
    capture_log();
    signal(SIGXFSZ, SIG_IGN);
    add_lines(3);
    limit_files_to(LINE_LENGTH + 10);
    if (_i == 1)
        fake_os_fail(FAKE_LSEEK, 1, 1, EIO);
    access_log_flush(access_log);
    fake_os_reset();
    limit_files_to(RLIM_INFINITY);
    ck_assert_uint_eq(access_log_dropped(access_log), (unsigned)_i);
    if (_i == 0)
        check_lines_in(path, 1);
    else
        ck_assert_uint_eq(strlen(read_file(path)), LINE_LENGTH + 10);
    end_log();
    if (_i == 0)
        check_lines_in(path, 3);
}
END_TEST

START_TEST(a_pipe_that_is_opened_again_begins_with_a_whole_line)
{
    int reader;

    serve_logged((struct sxe_http_config){0});
    reader = make_pipe();
    open_log("common");
    capture_log();
    add_lines(3);
    fake_os_limit(FAKE_WRITE, LINE_LENGTH + 5);
    fake_os_fail(FAKE_WRITE, 2, 0, EAGAIN);
    ck_assert_int_eq(access_log_reopen(access_log), 0);
    fake_os_reset();
    ck_assert_uint_eq(access_log_dropped(access_log), 1);
    close(reader);
    end_log();
}
END_TEST

/* The lines wait in the FIFO until a reader opens it. */
START_TEST(a_fifo_needs_no_reader)
{
    char text[100] = "";
    int reader;

    serve_logged((struct sxe_http_config){0});
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    open_log("common");
    add_lines(1);
    access_log_flush(access_log);
    reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_eq(read(reader, text, sizeof(text) - 1), LINE_LENGTH);
    ck_assert_str_eq(text, LINE);
    close(reader);
    end_log();
}
END_TEST

/* ---- Reopening the log ---- */

START_TEST(a_log_that_was_renamed_is_begun_again)
{
    log_with((struct sxe_http_config){0}, "common");
    add_lines(2);
    ck_assert_int_eq(rename(path, other), 0);
    add_lines(1);
    ck_assert_int_eq(access_log_reopen(access_log), 0);
    add_lines(4);
    end_log();
    check_lines_in(other, 3);
    check_lines_in(path, 4);
}
END_TEST

START_TEST(a_log_that_cannot_be_opened_again_goes_on)
{
    unsigned open;

    log_with((struct sxe_http_config){0}, "common");
    open = fake_os_open_fds();
    add_lines(1);
    fake_os_fail(FAKE_OPEN, 1, 1, EMFILE);
    ck_assert_int_eq(access_log_reopen(access_log), -EMFILE);
    add_lines(1);
    ck_assert_uint_eq(fake_os_open_fds(), open);
    end_log();
    check_lines_in(path, 2);
}
END_TEST

START_TEST(no_line_is_in_two_files)
{
    log_with((struct sxe_http_config){0}, "common");
    add_lines(3);
    fake_os_limit(FAKE_WRITE, LINE_LENGTH + 5);
    ck_assert_int_eq(rename(path, other), 0);
    ck_assert_int_eq(access_log_reopen(access_log), 0);
    fake_os_reset();
    ck_assert_uint_eq(access_log_dropped(access_log), 0);
    end_log();
    check_lines_in(other, 1);
    check_lines_in(path, 2);
}
END_TEST

static Suite *
access_log_suite(void)
{
    Suite *suite = suite_create("httpd access log");
    TCase *formats = tcase_create("formats");
    TCase *clients = tcase_create("clients");
    TCase *file = tcase_create("file");

    tcase_add_checked_fixture(formats, make_directory, remove_directory);
    tcase_add_loop_test(formats, a_request_is_one_line_of_combined, 0,
                        (int)(sizeof(lines) / sizeof(lines[0])));
    tcase_add_test(formats, common_is_the_same_without_referer_and_agent);
    tcase_add_test(formats, json_has_the_id_of_the_request);
    tcase_add_test(formats, json_has_the_trace);
    tcase_add_loop_test(formats, a_line_is_made_to_order, 0,
                        (int)(sizeof(orders) / sizeof(orders[0])));
    tcase_add_loop_test(formats, an_escape_is_made_at_each_place, 0,
                        (int)(sizeof(around) / sizeof(around[0])));
    tcase_add_test(formats, a_line_to_order_has_ids);
    tcase_add_test(formats, a_line_has_the_client_that_a_proxy_names);
    tcase_add_test(formats, the_duration_is_in_seconds_and_microseconds);
    tcase_add_test(formats, the_end_of_the_trace_id_decides);
    tcase_add_test(formats, without_a_trace_the_id_of_the_request_decides);
    tcase_add_test(formats, errors_of_the_server_are_always_logged);
    tcase_add_test(formats, slow_requests_are_always_logged);
    tcase_add_loop_test(formats, a_request_is_one_object_of_json, 0,
                        (int)(sizeof(objects) / sizeof(objects[0])));
    tcase_add_test(formats, the_date_is_that_of_the_reply);
    tcase_add_test(formats, a_user_is_one_word);
    suite_add_tcase(suite, formats);
    tcase_add_checked_fixture(clients, make_directory, remove_directory);
    tcase_add_test(clients, a_long_text_is_cut_and_the_line_goes_on);
    tcase_add_test(clients, the_largest_object_of_json_is_whole);
    tcase_add_loop_test(clients, the_largest_line_to_order_is_whole, 0, 2);
    tcase_add_test(clients, no_escape_is_cut_in_its_middle);
    tcase_add_loop_test(clients, who_leaves_before_the_reply_is_a_499, 0, 2);
    tcase_add_test(clients, a_head_that_does_not_come_whole_has_a_line_of_what_came);
    tcase_add_test(clients, a_proxy_says_whose_request_it_is);
    tcase_add_test(clients, a_unix_socket_has_no_address);
    suite_add_tcase(suite, clients);
    tcase_add_checked_fixture(file, make_directory, remove_directory);
    tcase_add_test(file, lines_are_added_to_a_file_that_is_there);
    tcase_add_test(file, what_cannot_be_opened_is_null_and_says_why);
    tcase_add_test(file, standard_output_may_be_a_file);
    tcase_add_test(file, standard_output_that_is_a_pipe_is_not_changed_for_others);
    tcase_add_test(file, standard_output_may_be_a_socket);
    tcase_add_test(file, standard_output_may_be_missing);
    tcase_add_test(file, lines_wait_in_the_buffer_until_it_is_full);
    tcase_add_test(file, f12_on_a_full_disk_lines_are_dropped_and_counted_and_then_it_goes_on);
    tcase_add_test(file, f12_a_pipe_that_nobody_reads_holds_nobody_up);
    tcase_add_test(file, a_pipe_gets_whole_lines);
    tcase_add_test(file, f12_a_pipe_that_is_closed_is_no_end);
    tcase_add_test(file, what_is_left_at_the_end_is_counted);
    tcase_add_loop_test(file, half_a_line_is_cut_off, 0, 2);
    tcase_add_test(file, a_fifo_needs_no_reader);
    tcase_add_test(file, a_pipe_that_is_opened_again_begins_with_a_whole_line);
    tcase_add_test(file, a_log_that_was_renamed_is_begun_again);
    tcase_add_test(file, a_log_that_cannot_be_opened_again_goes_on);
    tcase_add_test(file, no_line_is_in_two_files);
    suite_add_tcase(suite, file);
    return suite;
}

int
main(void)
{
    return sxe_test_main(access_log_suite());
}
