-- SPDX-License-Identifier: MIT
--
-- The file of sxe-httpd's unix socket: its permissions, and which process removes it.

local function run(command)
    local pipe <close> = io.popen(command .. " 2>/dev/null")
    return (pipe:read("a"):gsub("%s+$", ""))
end

local function mode_of(path)
    return run("stat -c %a '" .. path .. "'")
end

local directory = run("mktemp -d")
local path = directory .. "/socket"

-- Start a server that listens at the path.
local function start(...)
    local proc = wire.spawn{wire.program("sxe-httpd"), "-p", "0", "--unix", path, ...}
    check(proc:line(60), proc:errors())
    equal(proc:line(60), "listening on unix:" .. path, proc:errors())
    return proc
end

local function stop(proc)
    proc:signal("TERM")
    equal(proc:wait(60), 0, proc:errors())
end

local function write(name, text)
    local file <close> = assert(io.open(directory .. "/" .. name, "w"))
    file:write(text)
    return directory .. "/" .. name
end

-- promise: docs/httpd.1: The file is removed at the end, unless another process has replaced it.
test("the socket's file is removed at the end, twice in a row", function()
    for _ = 1, 2 do
        local proc <close> = start()
        check(mode_of(path) ~= "")
        stop(proc)
        equal(mode_of(path), "")
    end
end)

-- promise: docs/httpd.1: The file is removed at the end, unless another process has replaced it.
test("the socket's file of another server at the same path stays", function()
    local first <close> = start()
    os.remove(path)
    local second <close> = start()
    stop(first)
    check(mode_of(path) ~= "")
    stop(second)
    equal(mode_of(path), "")
end)

-- promise: docs/httpd.1: The file is removed at the end, unless another process has replaced it.
test("the socket's file of a server with a script stays over a reload, and is removed at the end", function()
    local script = write("app.lua", "return function() return 'hello' end")
    local proc <close> = start("--lua", script, "--socket-mode", "640")
    equal(mode_of(path), "640")
    proc:signal("HUP")
    repeat wire.sleep(0.01) until proc:errors():find("was loaded again", 1, true)
    equal(mode_of(path), "640")
    stop(proc)
    equal(mode_of(path), "")
end)

-- promise: docs/httpd.1: The file of a server that was killed is replaced.
test("the socket's file of a server that was killed is replaced", function()
    local first <close> = start()
    first:signal("KILL")
    first:wait(60)
    check(mode_of(path) ~= "")
    local second <close> = start("--socket-mode", "600")
    equal(mode_of(path), "600")
    stop(second)
end)

-- promise: docs/httpd.1: Permissions of the unix socket, as an octal number such as 660
test("an invalid mode is refused", function()
    for _, mode in ipairs{"", "8", "0", "1000", "-1", "u+w", "66x", "99999999999999999999"} do
        local proc <close> = wire.spawn{wire.program("sxe-httpd"), "-p", "0", "--unix", path, "--socket-mode", mode}
        equal(proc:wait(60), 2, mode)
        check(proc:errors():find("--socket-mode", 1, true), proc:errors())
    end
    local proc <close> = wire.spawn{wire.program("sxe-httpd"), "-p", "0", "--socket-mode", "660"}
    equal(proc:wait(60), 2)
    check(proc:errors():find("needs a unix socket", 1, true), proc:errors())
end)

os.execute("rm -rf " .. directory)
