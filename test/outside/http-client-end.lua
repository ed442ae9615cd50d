-- SPDX-License-Identifier: MIT
--
-- A client closes, half-closes or resets its connection at each stage of a request, over TCP and over a unix socket:
-- whether the handler is cancelled, and which replies the client still gets.

local httpd = require "httpd"
local script = require "script"

-- GET /count returns how many handlers have ended because they were cancelled.
local APP = [[
local http, task = require "sxe.http", require "sxe.task"
local r, cancelled, waiting = http.router(), 0, 0

local function wait()
    waiting = waiting + 1
    local slept, why = task.sleep(1000)
    waiting = waiting - 1
    cancelled = cancelled + (why == "cancelled" and 1 or 0)
    return slept, why
end

r:get("/wait", function() wait() return "late" end)
r:get("/stream", function(_, res) res:write "begun" wait() end)
r:get("/events", function(_, res) res:sse():send "begun" wait() end)
r:post("/parts", function(req) for _ in req:chunks() do wait() end return "late" end)
r:get("/now", function() return "now" end)
r:get("/soon", function() task.sleep(0.1) return "soon" end)
r:get("/count", function() return waiting .. " " .. cancelled end)
return r
]]

local function get(path)
    return "GET " .. path .. " HTTP/1.1\r\nHost: a\r\n\r\n"
end

-- Name, request, and the text (nil: none) that the client reads before it leaves: then the handler has come so far.
local STAGES = {
    {"the handler waits", get "/wait"},
    {"the reply has begun", get "/stream", "begun"},
    {"events are sent", get "/events", "begun"},
    {"a part of the body is held", "POST /parts HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\npart"},
}

local WAYS = {
    {"closes", function(sock) sock:close() end},
    {"half-closes", function(sock) sock:shutdown() end},
    {"resets", function(sock) sock:reset() end},
}

-- Call fn(server, connect) for TCP and for a unix socket; connect() opens a connection.
local function with_transports(fn, ...)
    local path = os.tmpname()
    os.remove(path)
    local server <close> = script.start(APP, "--unix", path, ...)
    fn(server, function() return server:connect() end)
    fn(server, function() return wire.connect(path) end)
end

local function count(server)
    local waiting, cancelled = server:ask("/count"):match "^(%d+) (%d+)$"
    return tonumber(waiting), tonumber(cancelled)
end

local function check_cancelled(server, connect, stage, way)
    local _, before = count(server)
    local sock <close> = connect()
    sock:send(stage[2])
    if stage[3] then sock:recv_until(stage[3]) end
    httpd.wait_until(function() return count(server) == 1 end, stage[1])
    way[2](sock)
    httpd.wait_until(function() return select(2, count(server)) == before + 1 end,
                     stage[1] .. ", and the client " .. way[1])
    equal((count(server)), 0)
end

-- promise: docs/lua-handlers.md: A client is gone when it has closed, half-closed or reset its connection. The server
-- checks this while the handler waits, and while its reply, which may be a stream of events, has begun and not ended.
test("a handler is cancelled when its client leaves, by a close, a half-close or a reset, at each stage", function()
    with_transports(function(server, connect)
        for _, stage in ipairs(STAGES) do
            for _, way in ipairs(WAYS) do
                check_cancelled(server, connect, stage, way)
            end
        end
    end)
end)

-- promise: docs/http.md: Replies that have ended are still sent, so a client that half-closes after its request gets
--   what handlers answer at once.
test("a client that half-closes gets the replies that were made at once", function()
    with_transports(function(_, connect)
        local sock <close> = connect()
        sock:send(get "/now" .. get "/now" .. get "/wait" .. get "/now")
        sock:shutdown()
        local _, replies = sock:recv_all():gsub("\r\n\r\nnow", "")
        equal(replies, 2)
    end)
end)

-- promise: docs/http.md: with `config.half_close` every request continues after the client's half-close
test("with --half-close a client that half-closes gets replies that come later", function()
    with_transports(function(server, connect)
        local sock <close> = connect()
        sock:send(get "/soon" .. get "/now")
        sock:shutdown()
        local replies = sock:recv_all()
        check(replies:find "soon.*now", replies)
        equal(select(2, count(server)), 0)
    end, "--half-close")
end)

-- promise: docs/http.md: On a unix socket the server can tell a close from a half-close at once.
test("with --half-close a unix client that closes counts as gone", function()
    local path = os.tmpname()
    os.remove(path)
    local server <close> = script.start(APP, "--unix", path, "--half-close")
    local sock <close> = wire.connect(path)
    sock:send(get "/wait")
    httpd.wait_until(function() return count(server) == 1 end, "it waits")
    sock:close()
    httpd.wait_until(function() return select(2, count(server)) == 1 end, "it is cancelled")
end)
