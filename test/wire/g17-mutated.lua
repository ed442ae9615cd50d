-- SPDX-License-Identifier: MIT
-- Pipelined requests, one of which has a fault at a random place: requests before it must be answered, those after it
-- may be; the server sends nothing but correct replies. 100,000 such requests leave no descriptor and no memory in use.

local http = require "http"
local httpd = require "httpd"
local server <close> = http.echo()

local SEEDS = 20
local CONNECTIONS = 500 -- for each seed
local REQUESTS = 10 -- on each connection

local good = {
    http.request("GET /a?b=c", "User-Agent: test", "Accept: */*", "Connection: keep-alive"),
    http.request("POST /a", "Content-Length: 11", "Content-Type: text/plain") .. "hello world",
    http.chunked("5;a=\"b\"\r\nhello\r\n10\r\n0123456789abcdef\r\n0\r\nX: y\r\n\r\n"),
    http.request("OPTIONS *", "Content-Length: 0"),
    http.request("PUT http://a:80/b", "Expect: 100-continue", "Content-Length: 3") .. "abc",
    http.request("HEAD /", "Accept-Encoding: gzip;q=0.5, br", "Upgrade: x"),
    http.request("DELETE /a%20b HTTP/1.0", "Connection: keep-alive"),
}

local ODD = {"\r", "\n", "\r\n", "\0", " ", "\t", ":", ",", ";", "\"", "%", "/", "0", "-", "\x80",
             "\xff", "\r\n\r\n", "chunked", "Content-Length: 1\r\n",
             "Transfer-Encoding: chunked\r\n", "18446744073709551616", "HTTP/1.1", ("x"):rep(9000)}

local function faulty(request)
    local at, from = math.random(#request), math.random(#request)
    local before, after = request:sub(1, at - 1), request:sub(at + 1)
    local kinds = {
        function() return before .. string.char(math.random(0, 255)) .. after end,
        function() return before .. after end,
        function() return before .. ODD[math.random(#ODD)] .. request:sub(at) end,
        function() return before .. ODD[math.random(#ODD)] .. after end,
        function() return before .. request:sub(from) end, -- bytes are missing, or sent twice
    }
    return kinds[math.random(#kinds)]()
end

-- The statuses of all replies in `said`, which must hold complete replies and nothing else.
local function statuses_of(said)
    local statuses, at = {}, 1
    while at <= #said do
        local status, head, after = said:match("^HTTP/1%.1 (%d%d%d) [%a ]+\r\n(.-\r\n)\r\n()", at)
        check(status, "no reply: " .. said:sub(at, at + 200))
        for line in head:gmatch("(.-)\r\n") do
            check(status == "100" or line:find("^[%a-]+: [^%c]*$"), "no field: " .. line)
        end
        if status ~= "100" then
            local length = tonumber(head:match("Content%-Length: (%d+)\r\n"))
            check(length and head:find("Date: ", 1, true), "no length or date: " .. head)
            -- The refusal of a HEAD looks like any other, but has no body; it is the last reply, so nothing follows it.
            local bodyless = head:find("X-Echo-Method: HEAD\r\n", 1, true)
                or (tonumber(status) >= 400 and after == #said + 1)
            after = after + (bodyless and 0 or length)
            statuses[#statuses + 1] = tonumber(status)
        end
        at = after
    end
    equal(at, #said + 1, "where the last reply ends")
    return statuses
end

local function talk()
    local requests, fault = {}, math.random(REQUESTS)
    for i = 1, REQUESTS do
        requests[i] = good[math.random(#good)]
    end
    requests[fault] = faulty(requests[fault])
    local bytes = table.concat(requests)
    local sock <close> = server:connect()
    sock:pump(bytes)
    sock:shutdown()
    local statuses = statuses_of(sock:recv_all())
    check(#statuses >= fault - 1, ("%d replies to %q"):format(#statuses, bytes))
    for i, status in ipairs(statuses) do
        check(status == 200 or (i >= fault and i == #statuses and status >= 400), bytes)
    end
end

test("100,000 requests, one in ten with a fault, leave no trace", function()
    local descriptors, memory = wire.fds(server.pid), nil
    for seed = 1, SEEDS do
        math.randomseed(seed)
        for _ = 1, CONNECTIONS do
            talk()
        end
        memory = memory or wire.rss(server.pid)
    end
    server:check_descriptors(descriptors)
    local grown = wire.rss(server.pid) - memory
    check(grown < 4 * 1024 * 1024 * httpd.slack, ("grown by %d bytes"):format(grown))
end)
