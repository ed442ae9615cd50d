-- SPDX-License-Identifier: MIT
--
-- Makes requests and checks replies. Each check sends one more request after those of its case: a server that
-- misjudges where a message ends gives a wrong reply to this last one, or none.

local httpd = require "httpd"
local http = {}

-- http.request("POST /a", "Content-Length: 1") .. "x" makes a request of HTTP/1.1 with a Host, unless these are given.
function http.request(line, ...)
    local lines = {line:find(" HTTP/", 1, true) and line or line .. " HTTP/1.1", "Host: a", ...}
    for i = 3, #lines do
        if lines[i]:lower():find("^host:") then
            table.remove(lines, 2)
            break
        end
    end
    return table.concat(lines, "\r\n") .. "\r\n\r\n"
end

-- A request of exactly these lines.
function http.bare(...)
    return table.concat({...}, "\r\n") .. "\r\n\r\n"
end

function http.chunked(body, ...)
    return http.request("POST /chunked", "Transfer-Encoding: chunked", ...) .. body
end

function http.sized(length, body)
    return http.request("POST /sized", "Content-Length: " .. length) .. body
end

http.LAST = http.request("GET /last", "Connection: close")

-- A running examples/http-echo. This small program has no graceful stop, so the test kills it.
local echo = setmetatable({}, {__index = httpd})
echo.__index = echo

function http.echo(...)
    return setmetatable(httpd.spawn{wire.program("examples/http-echo"), "-p", "0", ...}, echo)
end

function echo:__close(failure)
    if failure == nil then
        self.proc:signal("TERM")
        local status = self.proc:wait(20)
        check(status == 0 or status == "signal TERM", ("ended with %s: %s"):format(status,
              self.proc:errors()))
        check(not self.proc:errors():find("Sanitizer"), self.proc:errors())
    end
end

-- Send one request on a new connection and return the reply.
function http.ask(server, request)
    local sock <close> = server:connect()
    sock:send(request)
    return sock:read_reply(request:match("^%S+"))
end

local function check_one_of(statuses, status)
    if type(statuses) == "number" then
        return equal(status, statuses, "status")
    end
    for _, good in ipairs(statuses) do
        if status == good then
            return
        end
    end
    error(("expected a status of %s, got %d"):format(table.concat(statuses, ", "), status), 3)
end
http.check_one_of = check_one_of

-- Check a refusal: it is a short reply, the last on its connection, and the connection is closed afterwards, not reset.
function http.check_refusal(sock, statuses, method)
    local reply = sock:read_reply(method)
    check_one_of(statuses, reply.status)
    equal(reply.headers.connection, "close", "Connection")
    check(reply.headers.date, "no Date")
    if method ~= "HEAD" then
        check(#reply.body > 0 and #reply.body < 1024, "no short body: " .. reply.raw)
        check((reply.headers["content-type"] or ""):find("^text/plain"), reply.raw)
    end
    equal(sock:recv_all(), "", "said after the refusal")
    return reply
end

function http.check_refused(server, statuses, bytes, method)
    local sock <close> = server:connect()
    sock:pump(bytes .. http.LAST)
    return http.check_refusal(sock, statuses, method)
end

-- Check a reply of http-echo. `expected` may have body, method and target.
function http.check_echoed(reply, expected)
    equal(reply.status, 200, "status")
    equal(reply.version, "1.1", "version")
    equal(reply.body, expected.method == "HEAD" and "" or expected.body or reply.body, "body")
    for _, name in ipairs{"method", "target"} do
        if expected[name] then
            equal(reply.headers["x-echo-" .. name], expected[name], "X-Echo-" .. name)
        end
    end
end

-- Check the reply to http.LAST, and that the connection closes after it.
function http.check_last(sock)
    http.check_echoed(sock:read_reply(), {method = "GET", target = "/last", body = ""})
    equal(sock:recv_all(), "", "said after the last reply")
end

-- Check that http-echo answers one request as expected, and the next one as well.
function http.check_answered(server, bytes, expected)
    local sock <close> = server:connect()
    sock:pump(bytes .. http.LAST)
    http.check_echoed(sock:read_reply(expected.method), expected)
    http.check_last(sock)
end

-- cases: {name, bytes, expected}
function http.test_answered(server, cases)
    for _, case in ipairs(cases) do
        local name, bytes, expected = table.unpack(case)
        test(name, function() http.check_answered(server, bytes, expected or {}) end)
    end
end

-- cases: {name, status or statuses, bytes}
function http.test_refused(server, cases)
    for _, case in ipairs(cases) do
        local name, statuses, bytes = table.unpack(case)
        test(name, function() http.check_refused(server, statuses, bytes) end)
    end
end

return http
