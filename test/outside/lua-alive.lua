-- SPDX-License-Identifier: MIT
-- What keeps sxe-lua running, and its exit status, by docs/lua-handlers.md. If a program hangs here, the limits of
-- seconds end the test.

local FIRST = "local tcp, udp, spawn, task = require 'sxe.tcp', require 'sxe.udp', require 'sxe.spawn', require 'sxe.task'\n"

-- Run a script in sxe-lua; returns its exit status, its output and its errors. "PORT" in the script is replaced by the
-- port of a listener that accepts connections and sends nothing.
local function run(text, listener)
    local script = text:gsub("PORT", function() return tostring(listener:port()) end)
    local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", FIRST .. script, env = {SXE_LOG_LEVEL = "error"}}
    local output = proc:output(120)
    return proc:wait(120), output, proc:errors()
end

local function ends(text, expected, listener)
    local status, output, errors = run(text, listener)
    equal(errors, "", text)
    equal(output, expected or "", text)
    equal(status, 0, text)
end

-- promise: docs/lua-handlers.md: A connection, a UDP socket or a pipe of a process for which no task waits does not
-- keep the script alive.
test("connections that no task waits for end with the script, garbage-collected or not", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    ends("assert(tcp.connect('127.0.0.1', PORT))", "", listener)
    ends("assert(tcp.connect('127.0.0.1', PORT)) collectgarbage() collectgarbage()", "", listener)
    ends("conn = assert(tcp.connect('127.0.0.1', PORT))", "", listener)
    ends("conn = assert(tcp.connect('127.0.0.1', PORT)) collectgarbage()", "", listener)
    ends("conn = assert(tcp.connect('127.0.0.1', PORT)) print(conn:read(1, 0.01))", "nil\ttimeout\n", listener)
    ends("all = {} for i = 1, 20 do all[i] = assert(tcp.connect('127.0.0.1', PORT)) end", "", listener)
    ends("task.start(function() conn = assert(tcp.connect('127.0.0.1', PORT)) end):join()", "", listener)
    ends("local t = task.start(function() conn = assert(tcp.connect('127.0.0.1', PORT)) conn:read() end)" ..
         "while not conn do task.sleep(0.001) end t:cancel() print(t:join())", "\n", listener)
end)

-- promise: docs/lua-handlers.md: A connection, a UDP socket or a pipe of a process for which no task waits does not
-- keep the script alive.
test("a server's connections, UDP sockets and pipes that no task waits for end with the script", function()
    ends("socket = assert(udp.open('127.0.0.1', 0))")
    ends("assert(udp.open('127.0.0.1', 0)) collectgarbage()")
    ends("socket = assert(udp.open('127.0.0.1', 0)) socket:sendto('x', '127.0.0.1', socket.local_port)")
    ends([[
        local server = tcp.serve("127.0.0.1", 0, function(conn) kept = conn task.event():wait(0.05) end)
        task.sleep(0)
        mine = assert(tcp.connect("127.0.0.1", server.port))
        server:close()]])
    for _, how in ipairs{"", "child = ", "local child = "} do
        ends(how .. "assert(spawn{'sh', '-c', 'echo to stdout'})")
        ends(how .. "assert(spawn{'sh', '-c', 'echo to stderr >&2', stderr = 'pipe'}) collectgarbage()")
        ends(how .. "assert(spawn{'sh', '-c', 'echo both; echo both >&2', stderr = 'stdout'})")
        ends(how .. "assert(spawn{'cat', stdin = 'pipe'})")
    end
    ends("child = spawn{'sh', '-c', 'echo one; echo two'} print(child:read 'l') print(child:wait())",
         "one\ntrue\texit\t0\n")
end)

-- promise: docs/lua-handlers.md: A task keeps the script alive if it can run, sleeps, waits with a time limit, or
-- waits for something from outside: a connection, a datagram, a file, the end of a process.
test("sxe-lua waits for a task that waits for input from outside", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", FIRST .. ([[
        local conn = assert(tcp.connect("127.0.0.1", %d))
        local other = assert(tcp.connect("127.0.0.1", %d))
        task.start(function() print(conn:read "l") end)]]):format(listener:port(), listener:port())}
    local sock <close> = listener:accept()
    local other <close> = listener:accept()
    wire.sleep(0.2)
    sock:send("it has waited\n")
    other:send("dropped\n")
    equal(proc:output(60), "it has waited\n")
    equal(proc:wait(60), 0)
    ends([[task.start(function() print(spawn{"sh", "-c", "sleep 0.2"}:wait()) end)]], "true\texit\t0\n")
    ends([[task.start(function()
        local socket = assert(udp.open("127.0.0.1", 0))
        task.start(function() task.sleep(0.1) socket:sendto("late", "127.0.0.1", socket.local_port) end)
        print((socket:recvfrom()))
    end)]], "late\n")
    ends([[require "sxe.timer".after(0.1, function() print "late" end)]], "late\n")
    ends([[task.start(function() print(#require "sxe.file".read("/dev/zero", { length = 5 })) end)]], "5\n")
end)

-- promise: docs/lua-handlers.md: A task that waits only for other tasks does not keep the script alive when none of
-- these tasks can run.
test("tasks that wait for each other end, and the script's own wait is an error", function()
    ends("task.start(function() task.event():wait() end)")
    ends("local q = task.queue() task.start(function() q:get() end) task.start(function() q:get() end)")
    local status, _, errors = run("task.queue():get()")
    equal(status, 1)
    check(errors:find("the script waits, but nothing is left that could wake it", 1, true), errors)
    local listener <close> = wire.listen("127.0.0.1", 0)
    status, _, errors = run("conn = tcp.connect('127.0.0.1', PORT) task.queue():get()", listener)
    equal(status, 1)
    check(errors:find("nothing is left that could wake it", 1, true), errors)
end)

-- promise: docs/lua-handlers.md: At the end each connection is closed once its output is sent
test("written data is sent, although no task waits for it", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    for _, kept in ipairs{"local conn", "conn"} do
        local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", FIRST .. ([[
            %s = assert(tcp.connect("127.0.0.1", %d))
            for i = 1, 400 do conn:write(("x"):rep(10000)) end
            print "written"]]):format(kept, listener:port())}
        local sock <close> = listener:accept()
        equal(#sock:recv_all(), 4000000)
        equal(proc:output(60), "written\n")
        equal(proc:wait(60), 0)
    end
end)

-- promise: docs/lua-handlers.md: Then sxe-lua waits for child processes that still run: their input ends, and their
-- output pipes are closed.
test("child processes find their pipes closed, and sxe-lua waits for them", function()
    local path = os.tmpname()
    ends(("spawn{'sh', '-c', 'cat; echo done > %s', stdin = 'pipe'}"):format(path))
    local file <close> = assert(io.open(path))
    equal(file:read("a"), "done\n")
    ends(("child = spawn{'sh', '-c', 'sleep 0.2; echo done >> %s', stdout = 'null'}"):format(path))
    equal(file:read("a"), "done\n")
    os.remove(path)
    for _, how in ipairs{"", "child = "} do
        local status = run(how .. "spawn{'yes'}")
        equal(status, 0)
        ends(how .. "spawn{'sh', '-c', 'yes >&2', stderr = 'pipe'} spawn{'sh', '-c', 'exec 2> /dev/null; yes'}")
    end
end)

-- promise: docs/lua-handlers.md: Then `sxe-lua` waits for child processes that still run: their input ends, and their
-- output pipes are closed.
test("SIGTERM ends a script that waits for its child processes", function()
    local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", FIRST .. [[
        spawn{"sleep", "1000"} print "started" io.stdout:flush()]]}
    equal(proc:line(60), "started")
    proc:signal("TERM")
    equal(proc:wait(60), 143)
end)

-- ---- The exit status of sxe-lua ----

-- promise: docs/lua-handlers.md: An error counts as received if join, task.deadline or task.parallel raised it,
-- before or after the task ended, once or several times.
test("an error that a join raised does not change the exit status", function()
    local failing = "local function fail() error('no', 0) end\n"
    for _, text in ipairs{
        "local t = task.start(fail) print(pcall(t.join, t))",                             -- joined before the task ends
        "local t = task.start(fail) task.sleep(0.02) print(pcall(t.join, t))",            -- joined after the task ended
        "local t = task.start(fail) task.sleep(0) pcall(t.join, t) print(pcall(t.join, t))",
        "local t = task.start(fail) local function join() return pcall(t.join, t) end\n" .. -- joined by two tasks
            "local a, b = task.start(join), task.start(join) a:join() print(b:join())",
        "print(pcall(task.deadline, 1, fail))",
        "print(pcall(task.parallel, { 1, 2, 3 }, fail))",
        "print(pcall(task.parallel, { fail, fail, function() task.sleep(5) end }))",
        "print(pcall(task.parallel, { fail, function() pcall(task.sleep, 5) error 'late' end }))",
    } do
        local status, output = run(failing .. text)
        check(output:find("false\tno\n$"), text .. output)
        equal(status, 0, text)
    end
end)

-- promise: docs/lua-handlers.md: is 1 after an error that no code received: an error of the script's top level or of
-- a callback, or an error that ended a task and that no `join` raised.
test("an error that no join raised makes the exit status 1", function()
    local failing = "local function fail() error('no', 0) end\n"
    for _, text in ipairs{
        "fail()",
        "task.start(fail)",
        "local t = task.start(fail) task.sleep(0.02) print(t.status)",
        "local t = task.start(function() task.sleep(0.1) fail() end) print(t:join(0.01)) task.sleep(0.2)",
        "local t = task.start(fail) t:join()",
        "local t = task.start(fail) pcall(t.join, t) task.start(fail)",
        "local t = task.start(fail) task.start(function() t:join() end)", -- the task that joins fails with the error
        "task.parallel({ fail })",
        "local main = task.self() task.start(function() pcall(main.join, main) end) task.sleep(0) fail()",
        "require 'sxe.timer'.after(0.01, fail)",
        "sxe_timer_start(sxe_timer_new(fail, 0.01))",
        "local _ <close> = setmetatable({}, {__close = fail})",
    } do
        local run_it = text:find("sxe_timer", 1, true) and "sxe_register(0, function() " .. text .. " end)" or text
        local status = run(failing .. run_it)
        equal(status, 1, text)
    end
    equal(run("print(pcall(error, 'caught'))"), 0)
    equal(run("task.start(pcall, error, 'caught'):join()"), 0)
    equal(run("local t = task.start(task.sleep, 9) t:cancel() print(t:join())"), 0)
end)

-- promise: docs/lua-handlers.md: All errors that end tasks are logged.
test("an error that a join raised is also logged", function()
    local status, _, errors = run("local t = task.start(error, 'where is it', 0) pcall(t.join, t)")
    equal(status, 0)
    check(errors:find("where is it", 1, true), errors)
end)

-- ---- Signals ----

-- promise: docs/lua-handlers.md: If SIGHUP is ignored when sxe-lua starts, as under nohup, it stays ignored.
test("SIGHUP ends a script, but neither a script under nohup nor its child processes", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local script = FIRST .. ([[
        local conn = assert(tcp.connect("127.0.0.1", %d))
        local child = assert(spawn{ "sh", "-c", "kill -HUP $$; echo alive; cat > /dev/null", stdin = "pipe" })
        print(child:read "l")
        io.stdout:flush()
        print(conn:read "l")]]):format(listener:port())
    for _, ignored in ipairs{false, true} do
        local proc <close> = wire.spawn{"sh", "-c", (ignored and "trap '' HUP; " or "") .. 'exec "$@"', "sh",
                                        wire.program "sxe-lua", "-e", script}
        local sock <close> = listener:accept()
        equal(proc:line(60), ignored and "alive" or "nil\tclosed")
        proc:signal("HUP")
        if ignored then
            sock:send("goes on\n")
        end
        equal(proc:output(60), ignored and "goes on\n" or "")
        equal(proc:wait(60), ignored and 0 or 129)
    end
end)

-- promise: docs/lua-handlers.md: A connection that is collected as garbage is closed as by `close`.
test("connections that were forgotten are closed, and what was written to them arrives", function()
    local script = [[
        local tcp, task = require "sxe.tcp", require "sxe.task"
        local ended = 0
        local server = tcp.serve("127.0.0.1", 0, {connections = 8, handler = function(conn)
            assert(conn:read("a") == "bye")
            ended = ended + 1
        end})
        task.start(function()
            task.sleep(0)
            for i = 1, 300 do assert(assert(tcp.connect("127.0.0.1", server.port)):write("bye")) end
            repeat collectgarbage() task.sleep(0.01) until ended == 300
            print "all"
            os.exit(0)
        end)
    ]]
    local proc <close> = wire.spawn{wire.program("sxe-lua"), "--sockets", "4", "-e", script}
    equal(proc:line(120), "all", proc:errors())
end)
