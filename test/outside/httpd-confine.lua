-- SPDX-License-Identifier: MIT
--
-- What docs/operations.md says of --confine: scripts try what is not allowed.

local httpd = require "httpd"
local script = require "script"

-- LeakSanitizer traces the process in which it looks, and a confined one cannot be traced.
local ENV = {ASAN_OPTIONS = "detect_leaks=0"}

local function start(text, ...)
    local directory = os.tmpname()
    os.remove(directory)
    assert(os.execute("mkdir " .. directory))
    local path = directory .. "/app.lua"
    script.write({path = path}, text)
    local server = httpd.spawn{wire.program("sxe-httpd"), "-p", "0", "--confine", "--lua", path, env = ENV, ...}
    server.directory, server.path = directory, path
    return setmetatable(server, script)
end

local function test_confined(what, name, run)
    test(name, function()
        local server <close> = start "return function() return 'here' end"
        equal(server:ask(), "here")
        if server.proc:errors():find("--confine: this kernel has no " .. what, 1, true) then
            print(("skipped: %s, because the kernel has no %s"):format(name, what))
            return
        end
        run()
    end)
end

-- promise: docs/operations.md: Any other file is refused with "Permission denied", whoever owns it.
test_confined("Landlock", "files that no option names", function()
    local server <close> = start [[
        local path = arg[0]
        return function(req)
            local said = {}
            for _, try in ipairs{{"/etc/shadow", "r"}, {"/etc/passwd", "r"}, {path, "w"}, {path .. ".new", "w"}} do
                said[#said + 1] = select(2, io.open(try[1], try[2])):match "[^:]+$"
            end
            return table.concat(said, ",")
        end]]
    equal(server:ask(), (" Permission denied"):rep(4, ","))
end)

-- promise: docs/operations.md: A symbolic link is judged by the file that it leads to.
test_confined("Landlock", "a link out of the directory", function()
    local server <close> = start [[
        local link = arg[0]:gsub("app.lua$", "link")
        return function() return (select(2, io.open(link)) or "open"):match "[^:]+$" end]]
    assert(os.execute(("ln -s /etc/passwd %s/link"):format(server.directory)))
    equal(server:ask(), " Permission denied")
end)

-- promise: docs/operations.md: | written, with `--lua` | `/dev/shm`, where pools and dicts have their files |
test_confined("Landlock", "a file in /dev/shm, and one of the script's own", function()
    local server <close> = start [[
        local path = os.tmpname and "/dev/shm/confine-" .. tostring({}):match "0x(%x+)"
        return function()
            local file = assert(io.open(path, "w"))
            file:close()
            return tostring(os.remove(path)) .. tostring(io.open(arg[0]) ~= nil)
        end]]
    equal(server:ask(), "truetrue")
end)

-- promise: docs/operations.md: A refused system call returns "Operation not permitted" to the script or library that makes it.
test_confined("filter", "programs", function()
    local server <close> = start [[
        local spawn = require "sxe.spawn"
        return function()
            local ok, err = pcall(spawn, {"true"})
            return tostring(ok and select(2, spawn{"true"}) or err) .. tostring(os.execute "true")
        end]]
    local said = server:ask()
    check(said:find("Operation not permitted", 1, true), said)
    check(said:find "nil$", said)
end)

-- promise: docs/operations.md: SIGHUP, SIGUSR1 and SIGUSR2 do what they do elsewhere.
test_confined("Landlock", "a reload", function()
    local server <close> = start("return function() return 'first' end", "-w", "2")
    equal(server:ask(), "first")
    server:write "return function() return 'second' end"
    server:reload()
    server:await "second"
end)
