-- SPDX-License-Identifier: MIT
--
-- The probes of docs/observability.md: they are in the program, and bpftrace's scripts show what happens there.

local http = require "http"
local httpd = require "httpd"

local PROBES <const> = {"accept", "readable", "parsed", "handler__begin", "handler__end", "reply", "flushed", "closed",
                        "timeout"}

-- The names of the probes in a program's file: its notes have provider, name and values, each ended by a zero.
local function probes_of(path)
    local file <close> = assert(io.open(path, "rb"))
    local names = {}
    for name in file:read("a"):gmatch "\0sxe\0([a-z_]+)\0[%-0-9]+@" do
        names[name] = true
    end
    return names
end

local present <const> = probes_of(wire.program "sxe-httpd")
if not next(present) then
    print "skipped: the probes, because the program was built without <sys/sdt.h>"
end

-- promise: docs/observability.md: `libsxe` has static probes (USDT) of the provider `sxe`.
test("each probe of the page is in the program, and no other", function()
    if not next(present) then return end
    for _, name in ipairs(PROBES) do
        check(present[name], name)
        present[name] = nil
    end
    equal(next(present), nil)
end)

-- Run a script of tools/bpftrace beside a server; act(server) when it watches. Returns the script's output, or nil if
-- it cannot run here.
local function watch(name, act, ...)
    local bpftrace = wire.has "bpftrace"
    -- bpftrace 0.17 does not always end when it is told to, so its scripts are tried only on demand.
    if not os.getenv "SXE_BPFTRACE" then
        print(("skipped: %s, because SXE_BPFTRACE=1 is not set"):format(name))
        return nil
    end
    if not next(probes_of(wire.program "sxe-httpd")) or not bpftrace then
        print(("skipped: %s, because %s"):format(name, bpftrace and "there are no probes" or "bpftrace is not installed"))
        return nil
    end
    local server <close> = httpd.start(...)
    local proc <close> = wire.spawn{bpftrace, "-p", tostring(server.proc:pid()), "tools/bpftrace/" .. name}
    local line
    repeat
        line = proc:line()
    until not line or line:find "^watching"
    if not line then
        print(("skipped: %s, because bpftrace does not run here: %s"):format(name, proc:errors():match "[^\n]*"))
        return nil
    end
    act(server)
    -- A signal that comes before bpftrace waits for one is lost.
    repeat
        proc:signal "INT"
    until pcall(proc.wait, proc, 5)
    return proc:output()
end

local function ask(server, ...)
    local sock <close> = server:connect()
    sock:send(http.request(...))
    return sock:read_reply()
end

-- promise: docs/observability.md: how long requests take, and how many replies have each status
test("requests.bt counts replies by status, and times them", function()
    local said = watch("requests.bt", function(server)
        for _ = 1, 3 do ask(server, "GET /") end
        ask(server, "GET /", "Expect: miracles")
    end)
    if not said then return end
    check(said:find "@replies%[200%]: 3\n", said)
    check(said:find "@replies%[417%]: 1\n", said)
    check(said:find "@microseconds", said)
end)

-- promise: docs/observability.md: how long connections live, how many requests each has, and the errors that end them
test("connections.bt counts requests of each connection, and errors", function()
    local said = watch("connections.bt", function(server)
        for _ = 1, 2 do
            local sock <close> = server:connect()
            for _ = 1, 4 do
                sock:send(http.request("GET /"))
                sock:read_reply()
            end
        end
        ask(server, "GET /") -- when this is answered, the server has seen the end of those two
    end)
    if not said then return end
    local ended = tonumber(said:match "@errors%[0%]: (%d+)\n")
    check(ended == 2 or ended == 3, said)
    check(said:find "@requests:.-%[4, 8%) +2 ", said)
end)

-- promise: docs/observability.md: each handler call that blocked the loop for longer than a millisecond, with its
-- path
test("handlers.bt times each call of a handler", function()
    local said = watch("handlers.bt", function(server)
        for _ = 1, 5 do ask(server, "GET /a/path") end
    end)
    if not said then return end
    local calls = 0
    for number in said:gmatch "%) +(%d+) |" do calls = calls + tonumber(number) end
    for number in said:gmatch "%[[01]%] +(%d+) |" do calls = calls + tonumber(number) end
    equal(calls, 5, said)
end)

-- promise: docs/observability.md: each timeout: the socket, its state, and for how long it was quiet
test("timeouts.bt names the state of a connection that was too long in it", function()
    local said = watch("timeouts.bt", function(server)
        local sock <close> = server:connect()
        sock:send("GET / HT")
        check(sock:recv_all():find "^HTTP/1.1 408 ")
    end, "--header-timeout", "1")
    if not said then return end
    check(said:find "@timeouts%[HEAD%]: 1\n", said)
end)
