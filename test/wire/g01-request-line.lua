-- SPDX-License-Identifier: MIT
-- The request line: RFC 9112 section 3, and its target: RFC 3986.

local http = require "http"
local request = http.request
local server <close> = http.echo()

local function line(text)
    return http.bare(text, "Host: a")
end

local answered = {
    {"RFC 9112 2.2: one empty line before a request is ignored", "\r\n" .. request("GET /a"),
     {target = "/a"}},
    {"RFC 9112 2.2: several empty lines before a request are ignored",
     "\r\n\r\n\r\n" .. request("GET /a"), {target = "/a"}},
    {"RFC 9112 2.2: an empty line after a body is ignored", http.sized(5, "hello\r\n"),
     {body = "hello"}},
    {"RFC 9112 2.2: an empty line after a chunked body is ignored",
     http.chunked("5\r\nhello\r\n0\r\n\r\n\r\n"), {body = "hello"}},
    {"RFC 9112 2.3: HTTP/1.0 is answered as HTTP/1.1",
     request("GET / HTTP/1.0", "Connection: keep-alive")},
    {"RFC 9110 2.5: HTTP/1.2 is read as HTTP/1.1", request("GET / HTTP/1.2")},
    {"RFC 9110 2.5: HTTP/1.9 is read as HTTP/1.1", request("GET / HTTP/1.9")},
    {"RFC 9112 3.2.2: a target in absolute form", request("GET http://a/b?c"),
     {target = "http://a/b?c"}},
    {"RFC 9112 3.2.2: a target in absolute form with a port", request("GET http://a:80/b")},
    {"RFC 3986 7.4: a target in absolute form with an address", request("GET http://127.0.0.1/")},
    {"RFC 9112 3.2.2: a target in absolute form without a path", request("GET http://a")},
    {"RFC 9112 3.2.2: a target in absolute form with a query alone", request("GET http://a?b")},
    {"RFC 9112 3.2.2: a target in absolute form with an IPv6 address",
     request("GET http://[::1]/")},
    {"RFC 9112 3.2.2: a target in absolute form overrules Host",
     request("GET http://b/c", "Host: a"), {target = "http://b/c"}},
    {"RFC 9110 4.2.3: a scheme in capitals", request("GET HTTP://a/")},
    {"RFC 9110 4.2.2: https in absolute form", request("GET https://a/")},
    {"RFC 9112 3.2.4: * is the target of OPTIONS", request("OPTIONS *")},
}
http.test_answered(server, answered)

local targets = {
    {"RFC 9112 3.2.1", "the shortest target", "/"},
    {"RFC 9112 3.2.1", "a path", "/a/b.html"},
    {"RFC 9112 3.2.1", "a query", "/where?q=now"},
    {"RFC 9112 3.2.1", "an empty query", "/?"},
    {"RFC 9112 3.2.1", "two slashes in front are a path", "//a/b"},
    {"RFC 9112 3.2.1", "a path that looks like a URI", "/http://b/"},
    {"RFC 3986 3.3", "every byte that a path may have", "/-._~!$&'()*+,;=:@09azAZ/%41%7e%Ff"},
    {"RFC 3986 3.4", "slashes and question marks in a query", "/?a/b?c"},
    {"WHATWG URL 1.3", "a percent sign that is text in a query", "/?q=100%"},
    {"WHATWG URL 1.3", "what begins like an escape in a query", "/?a=%zz&b=%4"},
    {"RFC 3986 3.3", "empty segments", "/a//b///"},
    {"RFC 3986 3.3", "a colon in the first segment", "/a:b"},
    {"RFC 9112 3", "a target of 8,000 bytes", "/" .. ("x"):rep(7999)},
}
for _, case in ipairs(targets) do
    local section, name, target = table.unpack(case)
    test(("%s: %s is passed on unchanged"):format(section, name), function()
        http.check_answered(server, request("GET " .. target), {target = target})
    end)
end

local versions = {
    {400, "in lower case", "http/1.1"},
    {400, "in mixed case", "Http/1.1"},
    {400, "without its minor number", "HTTP/1"},
    {400, "with an empty minor number", "HTTP/1."},
    {400, "with an empty major number", "HTTP/.1"},
    {400, "without numbers", "HTTP/"},
    {400, "without a slash", "HTTP1.1"},
    {400, "with a comma", "HTTP/1,1"},
    {400, "with two digits after the dot", "HTTP/1.10"},
    {400, "with a 0 before the major number", "HTTP/01.1"},
    {400, "with two digits before the dot", "HTTP/11.1"},
    {400, "with a sign", "HTTP/+1.1"},
    {400, "with letters for digits", "HTTP/a.b"},
    {400, "with a third number", "HTTP/1.1.1"},
    {400, "with a letter after it", "HTTP/1.1x"},
    {400, "with a blank in it", "HTTP/ 1.1"},
    {400, "with digits of another script", "HTTP/\xef\xbc\x91.1"},
    {400, "of another protocol", "FTP/1.1"},
    {400, "of a name that is longer", "XHTTP/1.1"},
    {505, "0.9", "HTTP/0.9"},
    {505, "2.0", "HTTP/2.0"},
    {505, "3.0", "HTTP/3.0"},
    {505, "9.9", "HTTP/9.9"},
}
for _, case in ipairs(versions) do
    local status, name, version = table.unpack(case)
    test(("RFC 9112 2.3: a version %s is refused"):format(name), function()
        http.check_refused(server, status, line("GET / " .. version))
    end)
end

local refused = {
    {"RFC 9112 2.2: a bare LF before a request", "\n" .. request("GET /")},
    {"RFC 9112 2.2: a bare CR before a request", "\r" .. request("GET /")},
    {"RFC 9112 2.2: a blank before the method", " " .. request("GET /")},
    {"RFC 9112 2.2: a line of blanks before a request", " \r\n" .. request("GET /")},
    {"RFC 9112 2.2: a bare LF after the version", "GET / HTTP/1.1\nHost: a\r\n\r\n"},
    {"RFC 9112 2.2: a bare CR after the version", "GET / HTTP/1.1\rHost: a\r\n\r\n"},
    {"RFC 9112 2.2: CR CR LF after the version", "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n"},
    {"RFC 9112 2.2: LF CR after the version", "GET / HTTP/1.1\n\rHost: a\r\n\r\n"},
    {"RFC 9112 2.2: a bare CR in the target", line("GET /a\rb HTTP/1.1")},
    {"RFC 9112 2.2: a bare CR for a blank", line("GET /\rHTTP/1.1")},
    {"RFC 9112 2.2: a bare LF for a blank", line("GET /\nHTTP/1.1")},
    {"RFC 9112 2.2: a byte order mark before the method", "\xef\xbb\xbf" .. request("GET /")},
    {"RFC 9112 3: a method alone", line("GET")},
    {"RFC 9112 3: no version, as HTTP/0.9 had it", line("GET /")},
    {"RFC 9112 3: no target", line("GET HTTP/1.1")},
    {"RFC 9112 3: no method", line("/ HTTP/1.1")},
    {"RFC 9112 3: an empty target", line("GET  HTTP/1.1")},
    {"RFC 9112 3: an empty method", line(" / HTTP/1.1")},
    {"RFC 9112 3: two blanks before the target", line("GET  / HTTP/1.1")},
    {"RFC 9112 3: two blanks before the version", line("GET /  HTTP/1.1")},
    {"RFC 9112 3: a blank after the version", line("GET / HTTP/1.1 ")},
    {"RFC 9112 3: a tab after the version", line("GET / HTTP/1.1\t")},
    {"RFC 9112 3: a blank in the target", line("GET /a b HTTP/1.1")},
    {"RFC 9112 3: a tab for the first blank", line("GET\t/ HTTP/1.1")},
    {"RFC 9112 3: a tab for the second blank", line("GET /\tHTTP/1.1")},
    {"RFC 9112 3: a vertical tab for a blank", line("GET\v/ HTTP/1.1")},
    {"RFC 9112 3: a form feed for a blank", line("GET /\fHTTP/1.1")},
    {"RFC 9112 3: a no-break space for a blank", line("GET\xa0/ HTTP/1.1")},
    {"RFC 9112 3: a fourth word", line("GET / HTTP/1.1 HTTP/1.1")},
    {"RFC 9112 3: a status line", line("HTTP/1.1 200 OK")},
    {"RFC 9110 9.1: a parenthesis in the method", line("G(T / HTTP/1.1")},
    {"RFC 9110 9.1: a colon after the method", line("GET: / HTTP/1.1")},
    {"RFC 9110 9.1: a NUL in the method", line("GE\0T / HTTP/1.1")},
    {"RFC 9110 9.1: a byte above ASCII in the method", line("G\xc3\x89T / HTTP/1.1")},
    {"RFC 9110 9.1: a quoted method", line("\"GET\" / HTTP/1.1")},
    {"RFC 9112 3.2: a fragment", line("GET /a#b HTTP/1.1")},
    {"RFC 9112 3.2: neither a slash nor a scheme", line("GET index.html HTTP/1.1")},
    {"RFC 9112 3.2: a query alone", line("GET ?a HTTP/1.1")},
    {"RFC 9112 3.2: a host alone", line("GET www.example.com HTTP/1.1")},
    {"RFC 9112 3.2.3: host and port for a GET", line("GET a:80 HTTP/1.1")},
    {"RFC 9112 3.2.4: * for a GET", line("GET * HTTP/1.1")},
    {"RFC 9112 3.2.4: * and more", line("OPTIONS *a HTTP/1.1")},
    {"RFC 3986 7.4: absolute with a number", line("GET http://2130706433/ HTTP/1.1")},
    {"RFC 3986 7.4: absolute with an octal number", line("GET http://017700000001/ HTTP/1.1")},
    {"RFC 3986 7.4: absolute with two numbers", line("GET http://0x7f.1/ HTTP/1.1")},
    {"RFC 3986 7.4: absolute with a zero in front", line("GET http://127.01.0.1/ HTTP/1.1")},
    {"RFC 3986 7.4: absolute with an escaped address", line("GET http://%3127.0.0.1/ HTTP/1.1")},
    {"RFC 1034 3.1: absolute with an empty label", line("GET http://a..b/ HTTP/1.1")},
    {"RFC 1034 3.1: absolute with a dot alone", line("GET http://./ HTTP/1.1")},
    {"RFC 9112 3.2.2: absolute without a host", line("GET http:///a HTTP/1.1")},
    {"RFC 9110 4.2.1: absolute with a port alone", line("GET http://:80/ HTTP/1.1")},
    {"RFC 9110 4.2.4: absolute with a user", line("GET http://me@a/ HTTP/1.1")},
    {"RFC 9110 4.2.4: absolute with a password", line("GET http://me:pw@a/ HTTP/1.1")},
    {"RFC 3986 3.2.3: absolute with a port of letters", line("GET http://a:b/ HTTP/1.1")},
    {"RFC 3986 3.2.2: absolute with half an address", line("GET http://[::1/ HTTP/1.1")},
    {"RFC 3986 3.1: a scheme without slashes", line("GET mailto:a HTTP/1.1")},
    {"RFC 3986 3.1: a scheme that begins with a digit", line("GET 1http://a/ HTTP/1.1")},
    {"RFC 9112 3.2.2: a target in absolute form without Host",
     http.bare("GET http://a/ HTTP/1.1")},
    {"RFC 3986 2.1: half an escape", line("GET /%4 HTTP/1.1")},
    {"RFC 3986 2.1: a percent sign at the end", line("GET /100% HTTP/1.1")},
    {"RFC 3986 2.1: an escape that is not hexadecimal", line("GET /%4g HTTP/1.1")},
    {"RFC 3986 2: a NUL in the target", line("GET /\0 HTTP/1.1")},
    {"RFC 3986 2: a control byte in the target", line("GET /\1 HTTP/1.1")},
    {"RFC 3986 2: a DEL in the target", line("GET /\127 HTTP/1.1")},
    {"RFC 3986 2: a byte above ASCII in the target", line("GET /caf\xc3\xa9 HTTP/1.1")},
    {"RFC 3986 2: a quotation mark in the target", line("GET /\" HTTP/1.1")},
    {"RFC 3986 2: angle brackets in the target", line("GET /<a> HTTP/1.1")},
    {"RFC 9113 3.4: the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
    {"RFC 8446 5.1: the greeting of TLS",
     "\22\3\1\2\0\1\0\1\252\3\3" .. ("\171"):rep(32) .. "\r\n\r\n"},
}
for _, case in ipairs(refused) do
    local name, bytes = table.unpack(case)
    test(name .. " is refused", function()
        -- In a request line of HTTP/2, both the version and the target are wrong.
        http.check_refused(server, name:find("HTTP/2") and {400, 505} or 400, bytes)
    end)
end

test("RFC 9112 2.2: a request in two pieces, cut at every point", function()
    local bytes = "\r\n" .. request("POST /a?b", "Content-Length: 3") .. "xyz"
    local sock <close> = server:connect()
    for at = 1, #bytes - 1 do
        sock:send(bytes:sub(1, at))
        sock:send(bytes:sub(at + 1))
        http.check_echoed(sock:read_reply(), {method = "POST", target = "/a?b", body = "xyz"})
    end
end)

test("RFC 9112 2.1: the server waits for the rest of a request", function()
    local sock <close> = server:connect()
    for _, piece in ipairs{"G", "ET ", "/he", "llo ", "HTTP", "/1.1", "\r", "\n", "Ho", "st:", " ",
                           "a", "\r", "\n", "\r"} do
        sock:send(piece)
        check(not sock:ready(0.01), "answered before its end, after " .. piece)
    end
    sock:send("\n")
    http.check_echoed(sock:read_reply(), {target = "/hello"})
end)
