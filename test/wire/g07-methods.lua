-- SPDX-License-Identifier: MIT
-- Methods: RFC 9110 section 9. http-echo replies to any method; sxe-httpd serves files, with GET, HEAD and OPTIONS
-- only.

local http = require "http"
local site = require "site"
local request = http.request
local echo <close> = http.echo()
local files <close> = site.start()

for _, method in ipairs{"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "HEAD",
                        "PROPFIND", "M-SEARCH", "QUERY", "BREW", "A", "get", "Get", "GE", "GETT",
                        "HEADS", "0", "!#$%&'*+-.^_`|~09azAZ", ("LONG"):rep(100)} do
    local shown = #method < 30 and method or "a name of 400 bytes"
    test(("RFC 9110 9.1: http-echo answers %s"):format(shown), function()
        http.check_answered(echo, request(method .. " /a"), {method = method, target = "/a"})
    end)
end

test("RFC 9110 9.1: a method longer than the first line may be is refused", function()
    http.check_refused(echo, {400, 414, 501}, request(("X"):rep(9000) .. " /"))
end)

http.test_refused(echo, {
    {"RFC 9110 9.3.6: CONNECT opens no tunnel", 501, request("CONNECT a:80")},
    {"RFC 9110 9.3.6: CONNECT to an IPv6 address opens no tunnel", 501,
     request("CONNECT [::1]:80")},
    {"RFC 9112 3.2.3: CONNECT to a path is refused", 400, request("CONNECT /")},
    {"RFC 9112 3.2.3: CONNECT without a port is refused", 400, request("CONNECT a")},
    {"RFC 9112 3.2.3: CONNECT with an empty port is refused", 400, request("CONNECT a:")},
    {"RFC 9112 3.2.3: CONNECT without a host is refused", 400, request("CONNECT :80")},
    {"RFC 9112 3.2.3: CONNECT to a port too large is refused", 400, request("CONNECT a:65536")},
    {"RFC 3986 7.4: CONNECT to a number is refused", 400, request("CONNECT 2130706433:80")},
    {"RFC 9112 3.2.3: CONNECT with a user is refused", 400, request("CONNECT me@a:80")},
    {"RFC 9112 3.2.3: CONNECT in absolute form is refused", 400, request("CONNECT http://a:80/")},
    {"RFC 9112 3.2.3: CONNECT with a path after the port is refused", 400,
     request("CONNECT a:80/")},
    {"RFC 9110 9.3.6: CONNECT with a body is refused", {400, 501},
     request("CONNECT a:80", "Content-Length: 5") .. "hello"},
    {"RFC 9110 9.3.6: CONNECT with a chunked body is refused", {400, 501},
     request("CONNECT a:80", "Transfer-Encoding: chunked") .. "0\r\n\r\n"},
})

test("RFC 9110 9.3.1: GET gets a file", function()
    local reply = http.ask(files, request("GET /hello.txt"))
    equal(reply.status, 200)
    equal(reply.body, site.HELLO)
end)

-- The field lines of a reply, without Date.
local function fields(reply)
    local lines = {}
    for line in reply.raw:match("^.-\r\n\r\n"):gmatch("[^\r]+\r\n") do
        if not line:find("^Date:") then
            lines[#lines + 1] = line
        end
    end
    return table.concat(lines)
end

for _, target in ipairs{"/hello.txt", "/", "/sub/", "/sub", "/missing", "/empty.txt", "/big.bin",
                        "/packed.js", "/bare/", "/.hidden", "/hello.txt/"} do
    test(("RFC 9110 9.3.2: HEAD of %s has the fields of GET, and no body"):format(target), function()
        local got = http.ask(files, request("GET " .. target, "Connection: close"))
        local sock <close> = files:connect()
        sock:send(request("HEAD " .. target) .. request("HEAD " .. target, "Connection: close"))
        equal(sock:read_reply("HEAD").status, got.status)
        local headed = sock:read_reply("HEAD")
        equal(fields(headed), fields(got))
        equal(sock:recv_all(), "", "a body")
    end)
end

test("RFC 9110 9.3.2: HEAD with an Accept-Encoding has the fields of GET", function()
    local encoding = "Accept-Encoding: gzip, br, zstd"
    equal(fields(http.ask(files, request("HEAD /packed.js", encoding))),
          fields(http.ask(files, request("GET /packed.js", encoding))))
end)

test("RFC 9110 9.3.2: a HEAD that is refused gets no body", function()
    local sock <close> = files:connect()
    sock:send(http.bare("HEAD / HTTP/1.1"))
    http.check_refusal(sock, 400, "HEAD")
end)

local function check_allow(reply)
    local allow = ", " .. (reply.headers.allow or "") .. ","
    for _, method in ipairs{"GET", "HEAD", "OPTIONS"} do
        check(allow:find(", " .. method .. ",", 1, true), "no " .. method .. " in Allow: " .. allow)
    end
    check(not allow:find("POST") and not allow:find("TRACE"), "Allow: " .. allow)
end

for _, target in ipairs{"/hello.txt", "/", "*"} do
    test(("RFC 9110 9.3.7: OPTIONS of %s lists the methods"):format(target), function()
        local sock <close> = files:connect()
        sock:send(request("OPTIONS " .. target) .. request("GET /hello.txt"))
        local reply = sock:read_reply()
        http.check_one_of({200, 204}, reply.status)
        equal(reply.body, "")
        if reply.status == 204 then
            equal(reply.headers["content-length"], nil, "RFC 9110 8.6: Content-Length of a 204")
        end
        if target ~= "*" or reply.headers.allow then
            check_allow(reply)
        end
        equal(sock:read_reply().body, site.HELLO)
    end)
end

test("RFC 9110 9.3.7: OPTIONS with a body is answered, and so is the next request", function()
    local sock <close> = files:connect()
    sock:send(request("OPTIONS /hello.txt", "Content-Length: 5") .. "hello"
              .. request("GET /hello.txt"))
    http.check_one_of({200, 204}, sock:read_reply().status)
    equal(sock:read_reply().body, site.HELLO)
end)

for _, method in ipairs{"POST", "PUT", "DELETE", "PATCH", "TRACE"} do
    test(("RFC 9110 15.5.6: a file does not allow %s"):format(method), function()
        local reply = http.ask(files, request(method .. " /hello.txt"))
        equal(reply.status, 405)
        check_allow(reply)
        check(#reply.body > 0, "no body")
    end)
end

for _, method in ipairs{"BREW", "get", "Head", "GETT", "X"} do
    test(("RFC 9110 15.6.2: the method %s is unknown"):format(method), function()
        http.check_one_of({405, 501}, http.ask(files, request(method .. " /hello.txt")).status)
    end)
end

-- Requests after a 405 may be answered or not; but the refused request's body must never be read as a request.
for _, case in ipairs{
    {"a body of a stated length", "Content-Length: %d", "%s"},
    {"a chunked body", "Transfer-Encoding: chunked", "%x\r\n%s\r\n0\r\n\r\n"},
} do
    local name, field, body = table.unpack(case)
    test(("RFC 9112 9.3: %s of a method that is not allowed is not read as a request"):format(name), function()
        local evil = request("GET /empty.txt")
        local sock <close> = files:connect()
        local sent = body == "%s" and evil or body:format(#evil, evil)
        sock:pump(request("POST /hello.txt", field:format(#sent)) .. sent
                  .. request("GET /hello.txt", "Connection: close"))
        equal(sock:read_reply().status, 405)
        if not sock:eof() then
            equal(sock:read_reply().body, site.HELLO)
            equal(sock:recv_all(), "")
        end
    end)
end

test("RFC 9110 9.3.1: a body of a GET for a file is read and ignored", function()
    local sock <close> = files:connect()
    sock:send(request("GET /hello.txt", "Content-Length: 5") .. "hello"
              .. request("GET /hello.txt", "Connection: close"))
    equal(sock:read_reply().body, site.HELLO)
    equal(sock:read_reply().body, site.HELLO)
    equal(sock:recv_all(), "")
end)
