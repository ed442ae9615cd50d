-- SPDX-License-Identifier: MIT
-- A program in C and one in Lua share a pool, and each survives the other's death: examples/shared-pool.c and
-- examples/lua/shared-pool.lua. Then two sxe-httpd share a dict.

local httpd = require "httpd"

local build = os.getenv("SXE_BUILD") or "build/release"
local counts = build:find("coverage", 1, true) and os.execute("mkdir -p " .. build .. "/lua")
local path = os.tmpname()
local runs = 0

-- The file of a script's coverage, in the folder that tools/coverage.sh reads.
local function counted(name)
    runs = runs + 1
    return build .. "/lua/" .. name .. "-" .. runs .. ".info"
end

local function forget()
    os.remove(path)
end

-- ---- The pool ----

local function has_all(done, list)
    for _, word in ipairs(list) do
        if not done[word] then return false end
    end
    return true
end

local worker = {}
worker.__index = worker

-- done: a table in which worker:next() marks the jobs that are finished.
function worker.start(done)
    local command = {wire.program("sxe-lua"), "examples/lua/shared-pool.lua", path}
    if counts then table.insert(command, 2, "--coverage=" .. counted("shared-pool")) end
    local proc = wire.spawn(command)
    local self = setmetatable({proc = proc, done = done or {}, begun = {}}, worker)
    self.found = (proc:line(20) or proc:errors()):match("^pool\t(.*)$")
    check(self.found, proc:errors())
    return self
end

-- Read the next line: returns "begin", "again" or "end", and the job; nothing when the worker has ended.
function worker:next()
    local what, word = (self.proc:line(20) or ""):match("^(%l+)\t(.*)$")
    if what == "end" then
        self.done[word], self.begun[word] = true, nil
    elseif what then
        self.begun[word] = true
    end
    return what, word
end

function worker:await(wanted)
    local what, word
    repeat
        what, word = self:next()
        check(what, self.proc:errors())
    until what == wanted
    return word
end

function worker:finish(all)
    while not has_all(self.done, all) do self:await("end") end
end

-- Kill the worker and read the rest of its output. Returns a job that it had begun and not finished, or nil.
function worker:kill()
    self.proc:signal("KILL")
    equal(self.proc:wait(20), "signal KILL")
    while self:next() do end
    return next(self.begun)
end

function worker:stop()
    self.proc:signal("TERM")
    equal(self.proc:wait(20), 128 + 15, self.proc:errors())
end

local function put(...)
    return wire.spawn{wire.program("examples/shared-pool"), path, ...}
end

local function words(from, to)
    local list = {}
    for i = from, to do list[#list + 1] = "w" .. i end
    return list
end

test("a job that a killed worker had begun is done by the next worker", function()
    forget()
    local undone
    for attempt = 1, 20 do -- a busy machine may give the worker the time to finish both jobs
        local lua = worker.start()
        equal(lua.found, attempt == 1 and "created" or "completed")
        local program <close> = put("a" .. attempt, "b" .. attempt)
        equal(program:wait(20), 0, program:errors())
        lua:await("begin")
        undone = lua:kill()
        if undone then break end
    end
    local lua = worker.start()
    equal(lua.found, "completed")
    equal(lua:await("again"), undone)
    lua:finish{undone}
    lua:stop()
end)

test("a program that is killed while it puts jobs goes on where it was", function()
    forget()
    local lua = worker.start()
    local list, done = words(1, 56), 0
    while done < #list do
        local program <close> = put(table.unpack(list, done + 1))
        for _ = 1, 20 do
            if not program:line(20) then break end
            done = done + 1
        end
        program:signal("KILL")
        local status = program:wait(20)
        check(status == 0 or status == "signal KILL", program:errors())
    end
    lua:finish(list)
    lua:stop()
end)

test("program and worker are killed in turn, and no job is lost", function()
    forget()
    local list, put_so_far, done = words(1, 56), 0, {}
    local program, lua = put(table.unpack(list)), worker.start(done)
    for round = 1, 10 do
        for _ = 1, 1 + round % 4 do
            if not has_all(done, list) then lua:next() end
        end
        if round % 2 == 0 then
            for _ = 1, 5 do put_so_far = program:line(20) and put_so_far + 1 or put_so_far end
            program:signal("KILL")
            program:wait(20)
            program = put(table.unpack(list, put_so_far + 1))
        else
            lua:kill()
            lua = worker.start(done)
        end
    end
    lua:finish(list)
    equal(program:wait(20), 0, program:errors())
    lua:stop()
end)

-- ---- The dict ----

local function serve(name)
    return httpd.start("--lua", "examples/lua/" .. name .. ".lua",
                       counts and "--lua-coverage=" .. counted(name) or "--lua-cpu=1",
                       "--", path, "300")
end

local function ask(server, line, head, body)
    local sock <close> = server:connect()
    sock:send(("%s HTTP/1.1\r\nHost: a\r\n%sContent-Length: %d\r\n\r\n%s")
              :format(line, head or "", #(body or ""), body or ""))
    return sock:read_reply()
end

-- The pid of the child that serves the requests.
local function child_of(server)
    local path_of_children = ("/proc/%d/task/%d/children"):format(server.pid, server.pid)
    local file <close> = assert(io.open(path_of_children))
    return file:read("n")
end

-- Replace the child by `replace` (a signal to it, or a reload), and wait until another child serves.
local function replace_child(server, replace)
    local before = child_of(server)
    replace(before)
    httpd.wait_until(function()
        local now = child_of(server)
        return now and now ~= before
    end, "another child")
end

local function kill_child(server)
    replace_child(server, function(child) assert(os.execute("kill -9 " .. child)) end)
end

local function reload(server)
    replace_child(server, function() server.proc:signal("HUP") end)
end

test("two servers share one rate limit, also after a child of either dies", function()
    forget()
    local left = 9
    local function next_of(server)
        equal(ask(server, "GET /").body, left .. " left\n")
        left = left - 1
    end
    local one = serve("shared-limit")
    local two <close> = serve("shared-limit")
    for _ = 1, 3 do next_of(one) next_of(two) end
    kill_child(one)
    next_of(one)
    reload(two)
    next_of(two)
    one:stop()
    local three <close> = serve("shared-limit")
    next_of(three)
    next_of(two)
    local reply = ask(three, "GET /")
    equal(reply.status, 429)
    local seconds = tonumber(reply.headers["retry-after"])
    check(seconds >= 1 and seconds <= 300, seconds)
end)

test("a session of one server is known to the other, and survives", function()
    forget()
    local one, two = serve("sessions"), serve("sessions")
    equal(ask(one, "GET /").status, 401)
    local reply = ask(one, "POST /login", "Content-Type: application/x-www-form-urlencoded\r\n",
                      "user=Ann")
    equal(reply.status, 204)
    local cookie = "Cookie: " .. reply.headers["set-cookie"]:match("^session=[^;]+") .. "\r\n"
    equal(ask(two, "GET /", cookie).body, "Hello, Ann!\n")
    one:stop()
    two:stop()
    local later <close> = serve("sessions")
    equal(ask(later, "GET /", cookie).body, "Hello, Ann!\n")
    equal(ask(later, "POST /logout", cookie).status, 204)
    equal(ask(later, "GET /", cookie).status, 401)
end)

forget()
