-- SPDX-License-Identifier: MIT
--
-- C functions that do not return, by docs/lua-httpd.md: the server's child is replaced, SIGTERM ends it, and it ends
-- when its parent is killed. The same for sxe-lua.

local httpd = require "httpd"
local script = require "script"

local PATIENCE = 120 -- seconds, for a busy machine

-- A request for /hang calls a function that takes hours.
local TEXT = [[
return function(req)
    if req.path == "/pid" then return io.open("/proc/self/stat"):read "n" .. "" end
    if req.path ~= "/hang" then return "well" end
    local text = ("a"):rep(60)
    return tostring(text:find(("a?"):rep(60) .. text))
end
]]

-- Send a request that hangs.
local function hang(server)
    local sock = server:connect()
    sock:timeout(PATIENCE)
    sock:send "GET /hang HTTP/1.1\r\nHost: a\r\n\r\n"
    return sock
end

-- Whether a thread of the process runs. Its first thread may have ended (Z) while another one holds the port.
local function is_alive(pid)
    local file <close> = io.open(("/proc/%d/stat"):format(pid))
    local state, threads = (file and file:read "a" or ""):match("%) (%a)" .. (" %-?%d+"):rep(16) .. " (%d+) ")
    return state ~= nil and (state ~= "Z" or tonumber(threads) > 1)
end

local function errors_until(server, words)
    local all = ""
    httpd.wait_until(function()
        all = all .. server.proc:errors()
        return all:find(words, 1, true)
    end, words)
    return all
end

-- promise: docs/lua-httpd.md: When one turn of the loop takes longer than `--hang-timeout` (10 s; 0: no limit), the
-- parent kills the child and starts another one.
test("a server that hangs is replaced, and the log says what it ran", function()
    local server <close> = script.start(TEXT, "--hang-timeout", "1")
    local first = server:ask "/pid"
    for _ = 1, 2 do
        local sock <close> = hang(server)
        check(sock:eof(PATIENCE), "the request that hangs has no end")
        server:await "well"
    end
    check(server:ask "/pid" ~= first, "the same process serves")
    errors_until(server, "has blocked its loop for more than 1000 ms, in find, "
                 .. server.path .. ":5: it is killed, and another is started (--hang-timeout)")
end)

for name, text in pairs{
    ["string.rep of nothing"] = '(""):rep(1 << 62)',
    ["table.move of nothing"] = "table.move({}, 1, 1 << 60, 2)",
    ["table.insert into what says that it is long"] =
        "table.insert(setmetatable({}, {__len = function() return 1 << 60 end}), 1, 2)",
} do
    -- promise: docs/lua-httpd.md: When one turn of the loop takes longer than `--hang-timeout` (10 s; 0: no limit), the child
    --   is ended and another one started.
    test(name .. " hangs one process only", function()
        local server <close> = script.start(([[
            return function(req) if req.path == "/hang" then %s end return "well" end]]):format(text),
                                            "--hang-timeout", "500ms")
        local sock <close> = hang(server)
        check(sock:eof(PATIENCE), "the request that hangs has no end")
        server:await "well"
    end)

    -- promise: docs/lua.md: Nothing it does keeps other requests waiting for more than 100 ms of CPU, or takes more
    --   memory than its cap.
    test(name .. " does not hang a sandbox", function()
        local server <close> = script.start(([[
            return function(req) if req.path == "/hang" then %s end return "well" end]]):format(text),
                                            "--lua-sandbox", "--hang-timeout", "0")
        local sock <close> = hang(server)
        check(sock:read_reply().status >= 200, "a reply")
        server:await "well"
    end)
end

-- promise: docs/lua-httpd.md: SIGTERM ends a server that hangs, too, at the latest 5 s after `--stop-timeout`.
test("SIGTERM ends a server that hangs", function()
    local server <close> = script.start(TEXT, "--hang-timeout", "0", "--stop-timeout", "500ms")
    local sock <close> = hang(server)
    server:stop()
end)

-- promise: docs/lua-httpd.md: The parent does not end a child that a debugger or SIGSTOP has stopped; the log says
-- that the child is stopped.
test("a child that SIGSTOP stopped is not replaced", function()
    -- os.execute may take longer than a short limit, under sanitizers on a busy machine, before the child is stopped.
    local server <close> = script.start(
        [[return function(req)
            if req.path == "/stop" then os.execute "kill -STOP $PPID" end
            return io.open("/proc/self/stat"):read "n" .. "" end]], "--hang-timeout", "5")
    local first = server:ask()
    local sock <close> = server:connect()
    sock:timeout(PATIENCE)
    sock:send "GET /stop HTTP/1.1\r\nHost: a\r\n\r\n"
    errors_until(server, "is stopped, by a signal or a debugger: it is not replaced")
    assert(os.execute("kill -CONT " .. first))
    equal(sock:read_reply().body, first)
    equal(server:ask(), first)
end)

for name, path in pairs{["a server that hangs"] = "/hang", ["a server that is well"] = "/"} do
    -- promise: docs/lua-httpd.md: When the parent is killed, the child ends in good order; a child that hangs is
    --   ended after 2 s.
    test(name .. " ends with its parent, and its port is free", function()
        local server = script.start(TEXT, "--hang-timeout", "0", "--stop-timeout", "500ms")
        local child = tonumber(server:ask "/pid")
        local sock <close> = server:connect()
        sock:send(("GET %s HTTP/1.1\r\nHost: a\r\n\r\n"):format(path))
        if path == "/" then equal(sock:read_reply().body, "well") end
        server.proc:signal "KILL"
        server.proc:wait(PATIENCE)
        httpd.wait_until(function() return not is_alive(child) end, "the end of the child")
        local again <close> = script.start(TEXT, "-p", tostring(server.port))
        equal(again:ask(), "well")
        os.execute("rm -r " .. server.directory)
    end)
end

-- ---- sxe-lua ----

local function start(text)
    return wire.spawn{wire.program "sxe-lua", "-e", text}
end

-- promise: docs/lua-handlers.md: SIGTERM, SIGHUP and, without a shell, Ctrl-C end the script and all its tasks.
for _, signal in ipairs{"TERM", "INT", "HUP"} do
    test("a script that loops ends with SIG" .. signal, function()
        local proc <close> = start([[
            require "sxe.task".sleep(0) print "here" io.stdout:flush() while true do end]])
        equal(proc:line(PATIENCE), "here")
        proc:signal(signal)
        equal(proc:wait(PATIENCE), 128 + ({TERM = 15, INT = 2, HUP = 1})[signal])
    end)
end

-- promise: docs/lua-handlers.md: A script that blocks the loop is ended 5 seconds after the signal, or one second
-- after another signal.
test("a script that hangs ends with SIGTERM", function()
    local texts = {
        [[local text = ("a"):rep(60) text:find(("a?"):rep(60) .. text)]],
        [[table.sort({3, 1, 2}, function() while true do end end)]],
        [[setmetatable({}, {__gc = function() while true do end end}) collectgarbage()]],
    }
    local procs = {}
    for i, text in ipairs(texts) do
        procs[i] = start([[require "sxe.task".sleep(0) print "here" io.stdout:flush() ]] .. text)
        equal(procs[i]:line(PATIENCE), "here")
        procs[i]:signal "TERM"
        if i == 2 then procs[i]:signal "INT" end
    end
    for i in ipairs(texts) do
        local status = procs[i]:wait(PATIENCE)
        check(status ~= 0, ("script %d: %s"):format(i, tostring(status)))
        procs[i] = nil
    end
end)
