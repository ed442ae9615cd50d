-- SPDX-License-Identifier: MIT
--
-- A request that is malformed by RFC 9112 is refused, its connection is closed, and nothing after it is answered: if a
-- proxy and a server disagree about where a request ends, an attacker can smuggle a second request past the proxy.

local httpd = require "httpd"
local server <close> = httpd.start()

-- A correct request; the parts that the table `part` has replace its own.
local function request(part)
    return (part.line or "GET / HTTP/1.1") .. "\r\n" .. (part.host or "Host: a\r\n")
        .. (part.headers or "") .. "\r\n" .. (part.body or "")
end

local function length(value)
    return request{headers = "Content-Length: " .. value .. "\r\n", body = "x"}
end

local refused = {
    {400, "an empty request line, with blanks", request{line = "   "}},
    {400, "a method alone", request{line = "GET"}},
    {400, "no version, as HTTP/0.9 had it", request{line = "GET /"}},
    {400, "no target", request{line = "GET HTTP/1.1"}},
    {400, "two blanks for no target", request{line = "GET  HTTP/1.1"}},
    {400, "two blanks before the target", request{line = "GET  / HTTP/1.1"}},
    {400, "two blanks before the version", request{line = "GET /  HTTP/1.1"}},
    {400, "a blank in front", request{line = " GET / HTTP/1.1"}},
    {400, "a blank in the target", request{line = "GET /a b HTTP/1.1"}},
    {400, "a blank at the end of the line", request{line = "GET / HTTP/1.1 "}},
    {400, "a tab as the separator", request{line = "GET\t/\tHTTP/1.1"}},
    {400, "a method that is no token", request{line = "G(T / HTTP/1.1"}},
    {400, "a colon in the method", request{line = "GET: / HTTP/1.1"}},
    {400, "a version in lower case", request{line = "GET / http/1.1"}},
    {400, "a version without its minor number", request{line = "GET / HTTP/1"}},
    {400, "a version with too many digits", request{line = "GET / HTTP/1.10"}},
    {400, "a version of letters", request{line = "GET / HTTP/a.b"}},
    {400, "another protocol", request{line = "GET / FTP/1.1"}},
    {505, "HTTP/2.0", request{line = "GET / HTTP/2.0"}},
    {505, "HTTP/3.0", request{line = "GET / HTTP/3.0"}},
    {505, "HTTP/9.9", request{line = "GET / HTTP/9.9"}},

    {400, "a bare LF after the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n"},
    {400, "a bare LF after a header", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"},
    {400, "bare LF everywhere", "GET / HTTP/1.1\nHost: a\n\n"},
    {400, "a bare CR in the request line", request{line = "GET /\rHTTP/1.1"}},
    {400, "a bare CR in a value", request{headers = "X: a\rb\r\n"}},
    {400, "a bare CR as a line end", "GET / HTTP/1.1\rHost: a\r\r\n\r\n"},
    {400, "a NUL in the request line", request{line = "GET /\0 HTTP/1.1"}},
    {400, "a NUL in a header's name", request{headers = "X\0: a\r\n"}},
    {400, "a NUL in a value", request{headers = "X: a\0b\r\n"}},
    {400, "a control byte in the target", request{line = "GET /\1 HTTP/1.1"}},
    {400, "a control byte in a value", request{headers = "X: a\27b\r\n"}},
    {400, "a DEL in a value", request{headers = "X: a\127b\r\n"}},

    {400, "a header without a colon", request{headers = "X\r\n"}},
    {400, "a header without a name", request{headers = ": a\r\n"}},
    {400, "a blank before the colon", request{headers = "X : a\r\n"}},
    {400, "a tab before the colon", request{headers = "X\t: a\r\n"}},
    {400, "a blank in a name", request{headers = "X Y: a\r\n"}},
    {400, "a name that is no token", request{headers = "X(Y): a\r\n"}},
    {400, "a name with a byte above ASCII", request{headers = "X\xe9: a\r\n"}},
    {400, "a folded line", request{headers = "X: a\r\n b\r\n"}},
    {400, "a folded line with a tab", request{headers = "X: a\r\n\tb\r\n"}},
    {400, "a blank before the first header", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},

    {400, "no Host", request{host = ""}},
    {400, "Host twice", request{host = "Host: a\r\nHost: a\r\n"}},
    {400, "Host twice, in HTTP/1.0",
     request{line = "GET / HTTP/1.0", host = "Host: a\r\nHost: b\r\n"}},
    {400, "a Host with a blank", request{host = "Host: a b\r\n"}},
    {400, "a Host that is a list", request{host = "Host: a, b\r\n"}},
    {400, "a Host with a path", request{host = "Host: a/b\r\n"}},

    {400, "a negative Content-Length", length("-1")},
    {400, "a Content-Length with a sign", length("+1")},
    {400, "a Content-Length in hexadecimal", length("0x1")},
    {400, "an empty Content-Length", length("")},
    {400, "a Content-Length of words", length("one")},
    {400, "a Content-Length with a fraction", length("1.0")},
    {400, "two Content-Lengths that differ",
     request{headers = "Content-Length: 1\r\nContent-Length: 2\r\n", body = "xx"}},
    {400, "a list of Content-Lengths that differ", length("1, 2")},
    {400, "Content-Length and Transfer-Encoding",
     request{headers = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", body = "0\r\n\r\n"}},
    {400, "Transfer-Encoding and Content-Length",
     request{headers = "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", body = "0\r\n\r\n"}},
    {501, "a coding that we do not know",
     request{headers = "Transfer-Encoding: gzip, chunked\r\n", body = "0\r\n\r\n"}},
    {400, "a coding that is not chunked",
     request{headers = "Transfer-Encoding: gzip\r\n", body = "0\r\n\r\n"}},
    {400, "chunked twice",
     request{headers = "Transfer-Encoding: chunked, chunked\r\n", body = "0\r\n\r\n"}},
    {400, "chunked in HTTP/1.0",
     request{line = "GET / HTTP/1.0", headers = "Transfer-Encoding: chunked\r\n",
             body = "0\r\n\r\n"}},

    {400, "a TLS client", "\22\3\1\2\0\1\0\1\252\3\3" .. ("\171"):rep(32) .. "\r\n\r\n"},
    {400, "a reply for a request", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
    {400, "another protocol's greeting", "SSH-2.0-OpenSSH_9.2\r\n\r\n"},
}

for _, case in ipairs(refused) do
    local status, name, bytes = table.unpack(case)
    test(("%d: %s"):format(status, name), function()
        local sock <close> = server:connect()
        sock:send(bytes .. httpd.GET)
        local reply = sock:read_reply()
        equal(reply.status, status)
        equal(reply.headers.connection, "close")
        equal(sock:recv_all(), "", "answered after the refusal")
    end)
end

test("a correct request before the malformed one is answered first", function()
    for _, case in ipairs(refused) do
        local status, name, bytes = table.unpack(case)
        local sock <close> = server:connect()
        sock:send(httpd.GET .. bytes .. httpd.GET)
        equal(httpd.undated(sock:read_reply().raw), httpd.hello(), name)
        equal(sock:read_reply().status, status, name)
        equal(sock:recv_all(), "", name)
    end
end)

test("the server answers as before after all refusals", function()
    server:check_answers()
end)
