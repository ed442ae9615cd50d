-- SPDX-License-Identifier: MIT
--
-- Makes requests, and checks the replies to them. Every check sends one request more after those of
-- the case: a server that misjudges the end of a message answers it wrongly, or not at all.

local httpd = require "httpd"
local http = {}

-- http.request("POST /a", "Content-Length: 1") .. "x"; HTTP/1.1 and a Host unless they are given.
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

-- A request with these lines and no others.
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

-- A running examples/http-echo, a program that is too short to end in an orderly way.
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

-- The reply to one request, on a connection of its own.
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

-- A refusal is one short reply, the last on its connection; then the connection is closed, not
-- reset.
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

-- The reply of http-echo. expected: body, method and target, where they matter.
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

-- The reply to http.LAST, and the end.
function http.check_last(sock)
    http.check_echoed(sock:read_reply(), {method = "GET", target = "/last", body = ""})
    equal(sock:recv_all(), "", "said after the last reply")
end

-- One request to http-echo must be answered as expected, and the next one, too.
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
