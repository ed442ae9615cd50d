-- SPDX-License-Identifier: MIT
--
-- tools/flame, by docs/observability.md: pictures of processes that compute, and processes of which there is none.

local httpd = require "httpd"
local script = require "script"
local workers = require "workers"

local directory <const> = os.tmpname()
os.remove(directory)
assert(os.execute("mkdir " .. directory))
local _ <close> = setmetatable({}, {__close = function() os.execute("rm -r " .. directory) end})

local function write(name, text)
    local path = directory .. "/" .. name
    local file <close> = assert(io.open(path, "w"))
    file:write(text)
    return path
end

local function read(path)
    local file <close> = io.open(path)
    return file and file:read "a"
end

-- Run the tool. Returns its exit status, and what it said.
local function flame(...)
    local proc <close> = wire.spawn{wire.program "sxe-lua", "tools/flame", ...}
    local said = proc:output(120)
    return proc:wait(20), said .. proc:errors()
end

-- Draw a process until the picture has frames with all of these names: on a busy machine, the first ones may have few
-- samples. Returns the picture.
local function draw(pid, names)
    local path <const> = directory .. "/picture.svg"
    local picture, lacking
    for _ = 1, 60 do
        local status, said = flame(pid, "0.5", path)
        check(status == 0 or said:find "used no CPU time", said)
        picture, lacking = read(path) or "", nil
        for _, name in ipairs(names) do
            lacking = lacking or not picture:find("<title>" .. name .. ", [%d.]+ %%</title>") and name
        end
        if not lacking then break end
    end
    check(not lacking, ("no %s in %s"):format(lacking, picture))
    check(picture:find "^<svg " and picture:find "</svg>\n$", picture)
    return picture
end

-- The level of a frame in a picture: frames of calls stand on those of their callers.
local function level_of(picture, name)
    return -tonumber(picture:match("<title>" .. name .. ", [^<]*</title><rect [^>]*y=\"(%d+)\""))
end

local busy <const> = write("busy.lua", [[
local function inner(n)
  local list = {}
  for i = 1, n do list[i] = ("x"):rep(i % 100) end
  return table.concat(list)
end
local function outer()
  for _ = 1, 10 do inner(1000) end
  return true
end
print "ready"
io.stdout:flush()
while outer() do end
]])

-- Start a script that computes for ever.
local function start_busy()
    local proc = wire.spawn{wire.program "sxe-lua", busy}
    equal(proc:line(60), "ready")
    return proc
end

-- promise: docs/observability.md: **`flame` draws functions of C and of Lua in one picture**, each on the function that
-- called it, as wide as its share of the CPU time.
test("functions of a script stand between the functions of C that run them and those that they call", function()
    local proc <close> = start_busy()
    local place = busy:gsub("%p", "%%%0")
    local names = {"run_script", "sxe__lua_resume", "main chunk " .. place .. ":1", "outer " .. place .. ":6",
                   "inner " .. place .. ":1", "rep"}
    local picture = draw(proc:pid(), names)
    for i = 2, #names do
        check(level_of(picture, names[i - 1]) < level_of(picture, names[i]), names[i])
    end
end)

-- promise: docs/observability.md: Afterwards the process has one more descriptor.
test("a process that was drawn twice has one more descriptor", function()
    local proc <close> = start_busy()
    for _ = 1, 2 do
        draw(proc:pid(), {"run_script"})
        local list <close> = io.popen(("ls -l /proc/%d/fd"):format(proc:pid()))
        equal(select(2, list:read "a":gsub("/memfd:sxe%-profile", "")), 1)
    end
end)

-- Send SIGPROF, and wait until the process takes samples, or takes none.
local function switch(pid, is_on)
    workers.kill(pid, "PROF")
    httpd.wait_until(function()
        local list <close> = io.popen(("ls -l /proc/%d/fd"):format(pid))
        local name = list:read "a":match "(%d+) %-> /memfd:sxe%-profile"
        return (read(("/proc/%d/fd/%s"):format(pid, name)):sub(1, 8) == "sxeprof1") == is_on
    end, "SIGPROF")
end

-- promise: docs/observability.md: A process takes samples for one `flame` at a time.
test("a process that takes samples is refused, and SIGPROF ends them", function()
    local proc <close> = start_busy()
    draw(proc:pid(), {"run_script"})
    switch(proc:pid(), true)
    local status, said = flame(proc:pid(), "0.1", directory .. "/other.svg")
    equal(status, 1)
    check(said:find("takes samples already; kill %-PROF " .. proc:pid() .. " ends that"), said)
    switch(proc:pid(), false)
    draw(proc:pid(), {"run_script"})
end)

-- promise: docs/observability.md: With `-w` or `--lua` PID is a worker, not the supervisor.
test("a worker is drawn while it serves, and the supervisor is refused", function()
    local server <close> = script.start [[
local function render(n)
  local sum = 0
  for i = 1, n do sum = sum + i % 7 end
  return tostring(sum)
end
return function() return render(20000) .. "\n" end
]]
    local load <close> = wire.spawn{wire.program "sxe-http", "-q", "--abort", "-c", "2", "-d", "300", server.url}
    local place = server.path:gsub("%p", "%%%0")
    local picture = draw(workers.await(server, 1)[1], {"sxe_run", "render " .. place .. ":1"})
    check(level_of(picture, "sxe_run") < level_of(picture, "render " .. place .. ":1"))
    local status, said = flame(server.pid, "0.1", directory .. "/other.svg")
    equal(status, 1)
    check(said:find "takes no samples: it is no sxe%-lua, and no process of sxe%-httpd that serves", said)
    equal(read(directory .. "/other.svg"), nil)
    load:signal "KILL"
end)

test("no process, and none that samples itself", function()
    local other <close> = wire.spawn{"sleep", "300"}
    local status, said = flame(other:pid(), "1")
    equal(status, 1)
    check(said:find "takes no samples", said)
    other:signal "KILL"
    other:wait(20)
    status, said = flame("999999999")
    equal(status, 1)
    check(said:find "there is no process 999999999", said)
    for _, words in ipairs{{}, {"x"}, {"1", "0"}, {"1", "1", "a", "b"}} do
        status, said = flame(table.unpack(words))
        equal(status, 2)
        check(said:find "^usage: flame PID", said)
    end
end)
