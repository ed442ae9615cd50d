-- SPDX-License-Identifier: MIT
--
-- Workers, by docs/workers.md, in sxe-lua and sxe-httpd: many calls in odd orders, ends that come at a bad time, values
-- of any shape.

local cli = require "cli"
local httpd = require "httpd"
local script = require "script"

local FIRST = [[
local worker, task = require "sxe.worker", require "sxe.task"
local function spin() while true do end end
local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
]]

-- Run a script in sxe-lua; it must exit with 0 and log no error. Returns what it prints.
local function run(text)
    return cli.output_of(200, {wire.program "sxe-lua", "-e", FIRST .. text, env = {SXE_LOG_LEVEL = "error"}})
end

-- promise: docs/workers.md: Calls of many tasks may be in progress at once.
test("a thousand calls of a hundred tasks get their own results, in whatever order they end", function()
    equal(run[[
        local w = worker.new{ code = function()
            local sleep = require "sxe.task".sleep
            return function(n, text)
                if n % 3 == 0 then sleep(n % 5 / 1000) elseif n % 50 == 1 then error{ n = n } end
                return n, text
            end
        end }
        local right, failed = 0, 0
        local function call(i)
            for j = 1, 10 do
                local n = 10 * i + j
                local a, b = w:call(n, ("x"):rep(n))
                if a == n and #b == n then right = right + 1 elseif not a and b.n == n then failed = failed + 1 end
            end
        end
        local tasks = {}
        for i = 0, 99 do tasks[#tasks + 1] = task.start(call, i) end
        for _, t in ipairs(tasks) do t:join() end
        print(right, failed, w.calls)]], "987\t13\t0\n")
end)

-- promise: docs/workers.md: nil, booleans, integers, floats, strings with any bytes, `json.null`, and tables of these
-- can be copied, with cycles and with tables that occur twice.
test("values of any shape come back as they were", function()
    equal(run[[
        math.randomseed(7)
        local w = worker.new{ code = "return function(...) return ... end" }
        local function value(depth, all)
            local kind = math.random(depth < 4 and 8 or 5)
            if kind == 1 then return math.random(0) elseif kind == 2 then return math.random() end
            if kind == 3 then return math.random() < 0.5 end
            if kind == 4 then return string.char(math.random(0, 255), 0, 255):rep(math.random(0, 50)) end
            if kind == 5 and #all > 0 then return all[math.random(#all)] end
            local t = {}
            all[#all + 1] = t
            for i = 1, math.random(0, 9) do
                local key = math.random() < 0.5 and i or "k" .. i
                t[key] = value(depth + 1, all)
            end
            return t
        end
        local function same(a, b, seen)
            if type(a) ~= "table" then return a == b and math.type(a) == math.type(b) end
            if type(b) ~= "table" or seen[a] then return seen[a] == b end
            seen[a] = b
            for k, v in pairs(a) do if not same(v, b[k], seen) then return false end end
            for k in pairs(b) do if a[k] == nil then return false end end
            return true
        end
        for i = 1, 300 do
            local v = value(0, {})
            assert(same(v, (w:call(v)), {}), i)
        end
        print "same"]], "same\n")
end)

-- promise: docs/workers.md: Code that computes is interrupted, even if it catches errors; its `<close>` variables
-- run.
test("a worker that does not want to end is stopped", function()
    for _, code in ipairs{
        "while true do end",
        "while true do pcall(spin) end",
        "local function again() pcall(spin) return again() end again()",
        "coroutine.wrap(function() while true do pcall(spin) end end)()",
        "while true do pcall(table.sort, { 2, 1 }, spin) end",
        "while true do pcall(string.gsub, 'x', 'x', spin) end",
        "local t <close> = setmetatable({}, { __close = spin }) spin()",
        "setmetatable({}, { __gc = spin }) require 'sxe.worker'.parent:receive()",
        "require 'sxe.task'.sleep(1e9)",
    } do
        equal(run(([[
            local w = worker.new{ code = "local function spin() while true do end end %s" }
            local t = task.start(w.call, w, "x")
            task.sleep(0.02)
            print(w:stop(), w.status)
            print(t:join())]]):format(code)), "true\tended\nnil\tworker 'code': it was stopped\n")
    end
    equal(run[[
        local w = worker.new{ code = function()
            local t <close> = setmetatable({}, { __close = function() print "closed" io.stdout:flush() end })
            require "sxe.worker".parent:send "ready"
            while true do end
        end }
        w:receive()
        w:stop()]], "closed\n")
end)

-- promise: docs/workers.md: If a task stops waiting for its call, because the task was cancelled or its task.deadline
-- is over, the call is cancelled in the worker, too, even if it computes.
test("a call that nobody waits for leaves the worker free for the next one", function()
    equal(run[[
        local w = worker.new{ code = "", calls = 1 }
        print(task.deadline(0.01, w.call, w, spin))
        print(w:call(fib, 10), w.calls)
        local all = {}
        for i = 1, 20 do all[i] = task.start(w.call, w, spin) end
        task.sleep(0.01)
        for i = 20, 1, -1 do all[i]:cancel() end
        print(w:call(fib, 11), w.calls)]], "nil\ttimeout\n55\t0\n89\t0\n")
end)

-- promise: docs/workers.md: w.load is the count of calls that the thread has not finished, including calls for which
-- no task waits any more.
test("a worker whose call was given up in a function of C gets no other call while one is free", function()
    equal(run[[
        local path, right = os.tmpname(), 0
        os.remove(path)
        assert(os.execute("mkfifo " .. path))
        local function hold(path) -- open(2) waits until another process or thread opens the FIFO
            io.open(path .. ".in", "w"):close()
            io.open(path):close()
        end
        local function give_up(call, ...)
            local t = task.start(call, ...)
            local file
            repeat
                file = io.open(path .. ".in")
                task.sleep(0.001)
            until file
            file:close()
            os.remove(path .. ".in")
            t:cancel()
            return t:join()
        end
        local w = worker.new{ code = "", calls = 1 }
        print(give_up(w.call, w, hold, path), w.calls, w.load <= 1)
        give_up(worker.run, hold, path)
        for _ = 1, worker.cores() > 1 and 4 or 0 do right = right + worker.run(fib, 10) end
        print(right == 4 * 55 or worker.cores() == 1)
        local held <close> = io.open(path, "r+")
        print(w:call(fib, 10), worker.run(fib, 10), w.load)
        os.remove(path)]], "nil\t0\ttrue\ntrue\n55\t55\t0\n")
end)

-- promise: docs/workers.md: the worker's memory limit, at least 1 MiB: beyond it a call fails with "not enough
-- memory"
test("a worker at its limit of memory fails one call, and serves the next", function()
    equal(run[[
        local w = worker.new{ code = "", memory = 4 << 20 }
        local function grow() local t = {} while true do t[#t + 1] = ("x"):rep(1000) .. #t end end
        for i = 1, 5 do
            local v, why = w:call(grow)
            print(v, why:match "not enough memory", w:call(fib, i))
        end
        local v, why = w:call(function(x) return #x end, ("x"):rep(8 << 20))
        print(v, why:match "not enough memory")]],
        ("nil\tnot enough memory\t%d\n"):rep(5):format(1, 1, 2, 3, 5) .. "nil\tnot enough memory\n")
end)

-- promise: docs/workers.md: A worker that has ended does not count, even while its handle lives.
test("a thousand workers live one after the other, and their handles together", function()
    equal(run[[
        local all = {}
        for i = 1, 1000 do
            all[i] = assert(worker.new{ code = "return function(n) return n end", memory = 1 << 20 })
            assert(all[i]:call(i) == i and all[i]:stop())
        end
        print(#all, all[1].status, all[1000].status)]], "1000\tended\tended\n")
end)

-- promise: docs/workers.md: or `nil, message, code` if the system has no thread or no memory, or if 256 workers of the
--   process run.
test("the worker after the 256th is refused until one ends", function()
    equal(run[[
        local all, w, why = {}
        repeat
            w, why = worker.new{ code = "", memory = 1 << 20 }
            all[#all + 1] = w
        until not w
        print(#all, why)
        all[7]:stop()
        print(worker.new{ code = "" } ~= nil)]],
        "256\tworker.new: the process has 256 workers, which is the limit: stop one first\ntrue\n")
end)

-- promise: docs/workers.md: If the worker has ended, `send` returns `nil, "worker 'NAME': it was stopped"`, or the
-- error that ended the worker. Messages that a worker has not received when it ends are lost; messages that it sent
-- before can still be received.
test("messages from a worker that was stopped arrive, messages to it do not", function()
    equal(run[[
        local w = worker.new{ name = "w", code = [=[
            local parent = require "sxe.worker".parent
            for i = 1, 3 do parent:send(i) end
            parent:receive() parent:send "last" while true do end]=] }
        w:send "one" w:send "two"
        print(w:receive(), w:receive(), w:receive(), w:receive())
        print(w:stop(), w:send(1))
        print(w:receive())
        local e = worker.new{ name = "e", code = "require 'sxe.worker'.parent:send 'sent' error 'my fault'" }
        while e.status == "running" do task.sleep(0.001) end
        print((select(2, e:send(1)):match "[^\n]*"), e:receive(), (select(2, e:receive()):match "[^\n]*"))]],
        "1\t2\t3\tlast\ntrue\tnil\tworker 'w': it was stopped\nnil\tworker 'w': it was stopped\n" ..
        "worker 'e': e:1: my fault\tsent\tworker 'e': e:1: my fault\n")
end)

-- promise: docs/workers.md: If the receiver has no memory for a message, the message is dropped: `receive` returns
-- `nil` and a text that says so, and the next call returns the next message.
test("a message without memory keeps no other one back", function()
    equal(run[[
        local w = worker.new{ memory = 4 << 20, code = [=[
            local parent = require "sxe.worker".parent
            for i = 1, 6 do
                local v, why = parent:receive()
                parent:send(v and #v or why:match "a message of %d+ bytes was dropped: not enough memory" and "dropped")
            end]=] }
        for i = 1, 3 do w:send(("x"):rep(8 << 20)) w:send(("x"):rep(i)) end
        for i = 1, 6 do print(w:receive()) end]], "dropped\n1\ndropped\n2\ndropped\n3\n")
end)

-- promise: docs/workers.md: the name in messages, of 1 to 31 bytes; of a longer path the end
test("a worker's name is whole, or the end of a path", function()
    equal(run[=[
local directory = os.tmpname()
os.remove(directory)
local path = directory .. "/" .. ("\u{e9}"):rep(40) .. ".lua"
os.execute("mkdir " .. directory)
local file = assert(io.open(path, "w"))
file:write "error 'mine'"
file:close()
local w <close> = worker.new{file = path}
print(#w.name <= 31, utf8.len(w.name) ~= nil, path:sub(-#w.name) == w.name, (select(2, w:call()):find(w.name, 1, true)) ~= nil)
os.execute("rm -r " .. directory)
print(pcall(worker.new, {code = "", name = ("x"):rep(32)}))
local good <close> = worker.new{code = "", name = ("x"):rep(31)}
print(#good.name)
]=], "true\ttrue\ttrue\ttrue\nfalse\tworker.new: name: 1 to 31 bytes expected, got 32\n31\n")
end)

-- promise: docs/workers.md: A message has at most 64 MiB, and tables are at most 100 deep: beyond that `call` and
-- `send` raise an error that names the limit.
test("a message beyond its limits names them", function()
    equal(run[[
        local w = worker.new{ code = "return function(s) return #s end", memory = 1 << 30 }
        local text = ("x"):rep((64 << 20) - 100)
        print(w:call(text) == #text)
        print((select(2, pcall(w.send, w, text .. text)):match "larger than.*"))
        print((select(2, pcall(w.call, w, { text }, text)):match "larger than.*"))
        local deep = {}
        for i = 1, 100 do deep = { deep } end
        print((select(2, pcall(w.send, w, deep)):match "nested.*"))]],
        "true\n" .. ("larger than the limit of 67108864 bytes (64 MiB)\n"):rep(2) .. "nested more than 100 deep\n")
end)

test("map names the argument that is of another type", function()
    equal(run[[
        print(select(2, pcall(worker.map, nil, fib)))
        print(select(2, pcall(worker.map, {}, nil)))
        print(select(2, pcall(worker.map, {}, fib, 3)))]],
        "worker.map: items must be a table, not a nil\nworker.map: fn must be a function, not a nil\n" ..
        "worker.map: options must be a table, not a number\n")
end)

-- promise: docs/workers.md: If its code fails, or a server that the code plans cannot listen, each call returns that error.
test("a server of a worker names the port that is in use", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    for module, options in pairs{tcp = "'127.0.0.1', PORT, print", http = "{ ip = '127.0.0.1', port = PORT, handler = print }"} do
        local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", FIRST .. ([[
            local w = worker.new{ code = "require 'sxe.%s'.serve(%s)" }
            for _ = 1, 2 do print((select(2, w:call(fib, 1)):match "[^\n]*")) end]]):format(module,
            options:gsub("PORT", listener:port()))}
        equal(proc:output(200), ("worker 'code': %s.serve cannot listen at 127.0.0.1 port %d: Address already in use\n")
            :format(module, listener:port()):rep(2))
        equal(proc:wait(60), 0)
    end
end)

-- promise: docs/workers.md: A function of `worker.run` or of a call requires modules where it needs them, also
-- `sxe.file` and `sxe.store`.
test("functions in the shared workers read and write files", function()
    local directory = os.tmpname()
    os.remove(directory)
    assert(os.execute("mkdir " .. directory))
    equal(run(([[
        local directory = "%s"
        local names = { "a", "b", "c", "d" }
        local function write(name)
            local f <close> = assert(require "sxe.file".open(directory .. "/" .. name, "w"))
            return assert(f:write(name:rep(1000)))
        end
        local function read(name)
            return #assert(require "sxe.file".read(directory .. "/" .. name))
        end
        local function keep(name)
            local db <close> = assert(require "sxe.store".open(directory .. "/" .. name .. ".db"))
            assert(db:put("name", name))
            return db:get "name"
        end
        assert(worker.map(names, write))
        print(table.concat(worker.map(names, read), " "))
        print(table.concat(worker.map(names, keep), " "))
        print(worker.run(read, "b"))
        local w <close> = worker.new{ code = "" }
        print(w:call(read, "c"))]]):format(directory)), "1000 1000 1000 1000\na b c d\n1000\n1000\n")
    os.execute("rm -r " .. directory)
end)

-- promise: docs/workers.md: Functions (except the first argument of a call), userdata, coroutines, and tables as keys
-- are refused; the error names the path.
test("what cannot be copied is named", function()
    equal(run[[
        local w = worker.new{ code = "return function() return { ok = { print } } end" }
        local function why(v) return (select(2, pcall(w.send, w, v)):match "(%S*message%S*) is a") end
        print(why(print), why{ a = { b = spin } }, why{ { io.stdout } }, why{ x = { [1] = coroutine.create(print) } })
        print(why{ ["two words"] = spin }, why{ a = { [{}] = 1 } })
        print((select(2, w:call()):match "^result 1.ok%[1%] is a function"))]],
        "message\tmessage.a.b\tmessage[1][1]\tmessage.x[1]\nnil\tmessage.a\nresult 1.ok[1] is a function\n")
end)

-- promise: docs/workers.md: After the first error no further item begins, running items are cancelled, and `map`
-- returns `nil`, the error with the index of its item, and that index.
test("map stops at the first error", function()
    equal(run[[
        local v, why, i = worker.map({ 1, 2, "x", 4 }, function(n)
            if n == 4 then while true do end end
            return n + 1 > 0 and n * n
        end)
        print(v, why:match "^item 3: .*attempt to add a 'string'" ~= nil, i)
        print(table.concat(worker.map({ 5, 4, 3 }, function(n, i) return n * 10 + i end), " "))]],
        "nil\ttrue\t3\n51 42 33\n")
end)

-- promise: docs/workers.md: A state that ends asks its workers to end, and waits for them, but for no more than 2
-- seconds, because a C function that does not return cannot be interrupted.
test("a program ends though its workers compute, or never return", function()
    equal(run[[
        for i = 1, 4 do worker.new{ code = "while true do end" } end
        local w = worker.new{ code = "" }
        task.start(w.call, w, spin)
        print(task.deadline(0.05, w.receive, w))
        os.exit(0, true)]], "nil\ttimeout\n")
    local path = os.tmpname()
    os.remove(path)
    assert(os.execute("mkfifo " .. path))
    local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", FIRST .. ([[
        local w = worker.new{ name = "stuck", code = "" }
        local function open(path)
            require "sxe.worker".parent:send "begun"
            io.open(path)
        end
        local t = task.start(w.call, w, open, "%s")
        w:receive()
        print(t:join(0.5))
        t:cancel()]]):format(path)}
    equal(proc:output(100), "nil\ttimeout\n")
    equal(proc:wait(100), 0)
    check(proc:errors():find("worker 'stuck' does not end", 1, true), proc:errors())
    os.remove(path)
end)

local SERVER = FIRST .. [[
local w = worker.new{ code = "return function(...) return ... end" }
return function(req)
    if req.path == "/spin" then return tostring(worker.run(spin)) end
    if req.path == "/echo" then return w:call(VERSION) end
    return tostring(worker.run(fib, 15))
end]]

for _, workers in ipairs{"1", "2"} do
    -- promise: docs/workers.md: A worker also ends at the end of its `<close>` variable, when it is garbage, and when
    --   the state that made it ends: on reload and at exit.
    test("a server is loaded again while its workers are busy, with -w " .. workers, function()
        local server <close> = script.start((SERVER:gsub("VERSION", "'one'")), "-w", workers)
        local busy = {}
        for i = 1, 2 do
            busy[i] = server:connect()
            busy[i]:send("GET /spin HTTP/1.1\r\nHost: a\r\n\r\n")
        end
        equal(server:ask("/echo"), "one")
        for i, version in ipairs{"two", "three"} do
            server:write((SERVER:gsub("VERSION", "'" .. version .. "'")))
            server:reload()
            httpd.wait_until(function() return server:ask("/echo") == version end, version)
            busy[i]:close()
        end
        equal(server:ask("/"), "610")
    end)
end
