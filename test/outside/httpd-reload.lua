-- SPDX-License-Identifier: MIT
-- SIGHUP, by docs/lua-httpd.md: scripts that load slowly or never finish loading, and nohup.

local httpd = require "httpd"
local script = require "script"

local function version(n, before)
    return ("%s return function() return '%d' end"):format(before or "", n)
end

local SLOW = "require 'sxe.task'.sleep(0.3)"

-- promise: docs/lua-httpd.md: So a load begins after each SIGHUP, even if signals come faster than the script loads.
test("the newest script is served although SIGHUPs keep coming, and the log reports no failed process", function()
    local server <close> = script.start(version(0))
    for n = 1, 3 do
        server:write(version(n, SLOW))
        httpd.wait_until(function()
            server:reload()
            return server:ask() == tostring(n)
        end, "the script that loads slowly")
    end
    check(not server.proc:errors():find("ended with", 1, true), server.proc:errors())
end)

-- promise: docs/lua-httpd.md: So a load begins after each SIGHUP
test("SIGHUP during a load loads the script that was written meanwhile", function()
    local server <close> = script.start(version(0))
    for n = 1, 10, 2 do
        server:write(version(n, "io.stderr:write('loading " .. n .. "\\n') " .. SLOW))
        server:reload()
        httpd.wait_until(function() return server.proc:errors():find("loading " .. n, 1, true) end, "a load")
        server:write(version(n + 1))
        server:reload()
        server:await(tostring(n + 1))
    end
end)

-- promise: docs/lua-httpd.md: A load that is not done 10 seconds after such a signal (1 with `--dev`) is ended, with
-- a warning in the log; the next load gets twice that time.
test("a script that never finishes loading is replaced by the next", function()
    local server <close> = script.start(version(0), "--dev")
    server:write(version(1, "io.stderr:write('loading\\n') while true do require 'sxe.task'.sleep(1) end"))
    server:reload()
    httpd.wait_until(function() return server.proc:errors():find("loading", 1, true) end, "a load")
    server:write(version(2))
    server:reload()
    server:await("2")
    check(server.proc:errors():find("is still not loaded, 1 s after another load was requested", 1, true), server.proc:errors())
    check(not server.proc:errors():find("ended with", 1, true), server.proc:errors())
end)

-- promise: docs/lua-httpd.md: Under `nohup` SIGHUP reloads the script as usual; programs that the script runs ignore
-- SIGHUP there, as under any other program.
test("under nohup SIGHUP reloads the script, and programs of the script ignore it", function()
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write([[
        local spawn = require "sxe.spawn"
        return function() return spawn{ "sh", "-c", "kill -HUP $$; echo alive" }:read "l" or "dead" end]])
    file:close()
    for _, ignored in ipairs{false, true} do
        local server <close> = httpd.spawn{"sh", "-c", (ignored and "trap '' HUP; " or "") .. 'exec "$@"', "sh",
            wire.program("sxe-httpd"), "-p", "0", "--lua", path}
        server.proc:signal("HUP")
        httpd.wait_until(function() return server.proc:errors():find("was loaded again", 1, true) end, "a reload")
        equal(script.ask(server), ignored and "alive" or "dead")
    end
    os.remove(path)
end)

-- promise: docs/lua-httpd.md: The earlier child waits for a connection or a child process of the script only while
-- a task waits for it
test("an idle connection of the script does not delay the server's end", function()
    local peer <close> = wire.listen("127.0.0.1", 0)
    local server <close> = script.start(([[
        local tcp = require "sxe.tcp"
        local kept
        return function()
            kept = kept or assert(tcp.connect("127.0.0.1", %d))
            return "connected"
        end]]):format(peer:port()), "--stop-timeout", "3600")
    check(server:ask() == "connected", "the script's answer")
    server.proc:signal("TERM")
    check(server.proc:wait() == 0, "the end")
end)

-- promise: docs/lua-httpd.md: The earlier child waits for a connection or a child process of the script only while
-- a task waits for it; other child processes are killed.
test("processes that no task waits for do not delay the end, and are killed", function()
    local function is_gone(pid)
        local file = io.open("/proc/" .. pid .. "/stat")
        return file == nil or (file:close() and false)
    end
    for _, command in ipairs{[["cat", stdin = "pipe"]], [["sleep", "10000"]], [["sleep", "10000", stdin = "pipe"]]} do
        local server <close> = script.start(([[
            local kept
            return function()
                kept = kept or require "sxe.spawn"{ %s }
                return tostring(kept.pid)
            end]]):format(command), "--stop-timeout", "3600")
        local first = server:ask()
        check(tonumber(first), first)
        server:reload()
        httpd.wait_until(function() return is_gone(first) end, "the end of what the first script ran")
        local second = server:ask()
        check(tonumber(second) and second ~= first, second)
        server.proc:signal("TERM")
        check(server.proc:wait() == 0, "the end")
        httpd.wait_until(function() return is_gone(second) end, "the end of what the second script ran")
    end
end)

-- A client that has received the whole reply, and keeps its connection open.
local function has_all(port)
    local sock = wire.connect("127.0.0.1", port)
    sock:send("GET / HTTP/1.0\r\n\r\n")
    check(sock:recv_all():find("^HTTP/1.1 200"))
    return sock
end

-- The least time that a server needs to end, of ten. A connection that lingers is closed after 5 seconds, so the least
-- time must be shorter; the others may be longer on a busy machine.
local function least_of_ends(...)
    local least = math.huge
    for _ = 1, 10 do
        local server <close> = httpd.start(...)
        local holder <close> = has_all(server.port)
        local begin = wire.time()
        server.proc:signal("TERM")
        equal(server.proc:wait(), 0)
        least = math.min(least, wire.time() - begin)
        if least < 3 then break end
    end
    return least
end

-- promise: docs/lua-httpd.md: A client that has its whole last reply, and keeps its connection open, does not delay
-- the end.
test("a client that has its reply and stays connected does not delay the end, nor with files", function()
    local directory = os.tmpname()
    os.remove(directory)
    os.execute("mkdir " .. directory .. " && echo hello > " .. directory .. "/index.html && echo 'return function() "
        .. "return [[hello]] end' > " .. directory .. "/app.lua")
    local least = least_of_ends("--lua", directory .. "/app.lua", "--stop-timeout", "3600")
    check(least < 3, least)
    least = least_of_ends("-r", directory, "--stop-timeout", "3600")
    check(least < 3, least)
    os.execute("rm -r " .. directory)
end)

-- promise: docs/lua-handlers.md: A client that has its whole reply, and keeps its connection open, does not delay the
-- stop.
test("server:stop returns when clients have their replies, not when they close", function()
    local ran = require "cli".run("sxe-lua", "-e", [[
        local http, task, tcp = require "sxe.http", require "sxe.task", require "sxe.tcp"
        local least = math.huge
        local servers = {}
        for i = 1, 5 do servers[i] = http.serve{ port = 0, ip = "127.0.0.1", handler = function() return "hi" end } end
        task.sleep(0)
        for i = 1, 5 do
            local conn <close> = assert(tcp.connect("127.0.0.1", servers[i].port))
            conn:write "GET / HTTP/1.0\r\n\r\n"
            assert(conn:read "a")
            local begin = os.time()
            assert(servers[i]:stop())
            assert(servers[i]:stop())
            least = math.min(least, os.time() - begin)
        end
        print(least < 4)]])
    equal(ran.output, "true\n", ran.errors)
end)
