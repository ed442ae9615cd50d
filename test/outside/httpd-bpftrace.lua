-- SPDX-License-Identifier: MIT
--
-- The scripts of tools/bpftrace show what happens at the probes. `make conformance PART=probes` runs this file: bpftrace
-- 0.17 does not always end, so each script is killed once it has printed its results.

local http = require "http"
local httpd = require "httpd"

local TRIALS <const> = 5
local ANSWER_SECONDS <const> = 20

local bpftrace <const> = wire.has "bpftrace"
local missing
if not bpftrace then
    missing = "bpftrace is not installed"
else
    local file <close> = assert(io.open(wire.program "sxe-httpd", "rb"))
    missing = not file:read("a"):find "\0sxe\0accept\0" and "there are no probes" or nil
end

-- A function that tells whether a text has all of these patterns.
local function has_all(...)
    local patterns = {...}
    return function(said)
        for _, pattern in ipairs(patterns) do
            if not said:find(pattern) then return false end
        end
        return true
    end
end

-- Tell bpftrace to end, until it has printed the results, or its end; nil: neither, after a while. A signal that comes
-- before bpftrace waits for one is lost.
local function end_bpftrace(proc, is_printed)
    local said = ""
    local deadline = wire.time() + ANSWER_SECONDS
    while wire.time() < deadline do
        pcall(proc.signal, proc, "INT")
        while proc:ready(2) do
            local line = proc:line()
            if not line then return said end
            said = said .. line .. "\n"
            if is_printed(said) then return said end
        end
    end
    return nil
end

-- Run bpftrace beside a server; act(server) when it watches. Returns its output, or nil and why there is none.
local function watch_once(name, is_printed, act, options)
    local server <close> = httpd.start(table.unpack(options))
    local proc <close> = wire.spawn{bpftrace, "-p", tostring(server.proc:pid()), "tools/bpftrace/" .. name} -- kills it
    local line
    repeat
        line = proc:line()
    until not line or line:find "^watching"
    if not line then return nil, "bpftrace does not run here: " .. proc:errors():match "[^\n]*" end
    act(server)
    return end_bpftrace(proc, is_printed)
end

-- A test of a script: is_printed(text) tells whether the text has all that the script must print.
local function test_script(sentence, name, is_printed, act, ...)
    if missing then
        print(("skipped: %s, because %s"):format(name, missing))
        return
    end
    local options = {...}
    test(sentence, function()
        local said, why
        for _ = 1, TRIALS do
            said, why = watch_once(name, is_printed, act, options)
            if said or why then break end
        end
        if why then
            print(("skipped: %s, because %s"):format(name, why))
            return
        end
        check(said, name .. " printed nothing")
        check(is_printed(said), said)
    end)
end

local function ask(server, ...)
    local sock <close> = server:connect()
    sock:send(http.request(...))
    return sock:read_reply()
end

-- promise: docs/observability.md: how long requests take, and how many replies have each status
test_script("requests.bt counts replies by status, and times them", "requests.bt",
            has_all("@replies%[200%]: 3\n", "@replies%[417%]: 1\n", "@microseconds"), function(server)
    for _ = 1, 3 do ask(server, "GET /") end
    ask(server, "GET /", "Expect: miracles")
end)

-- promise: docs/observability.md: how long connections live, how many requests each has, and the errors that end them
test_script("connections.bt counts requests of each connection, and errors", "connections.bt",
            has_all("@errors%[0%]: [23]\n", "@requests:.-%[4, 8%) +2 "), function(server)
    for _ = 1, 2 do
        local sock <close> = server:connect()
        for _ = 1, 4 do
            sock:send(http.request("GET /"))
            sock:read_reply()
        end
    end
    ask(server, "GET /") -- when this is answered, the server has seen the end of those two
end)

-- promise: docs/observability.md: each handler call that blocked the loop for longer than a millisecond, with its
-- path
test_script("handlers.bt times each call of a handler", "handlers.bt", function(said)
    local calls = 0
    for number in said:gmatch "%) +(%d+) |" do calls = calls + tonumber(number) end
    for number in said:gmatch "%[[01]%] +(%d+) |" do calls = calls + tonumber(number) end
    return calls == 5
end, function(server)
    for _ = 1, 5 do ask(server, "GET /a/path") end
end)

-- promise: docs/observability.md: each timeout: the socket, its state, and for how long it was quiet
test_script("timeouts.bt names the state of a connection that was too long in it", "timeouts.bt",
            has_all("@timeouts%[HEAD%]: 1\n"), function(server)
    local sock <close> = server:connect()
    sock:send("GET / HT")
    check(sock:recv_all():find "^HTTP/1.1 408 ")
end, "--header-timeout", "1")
