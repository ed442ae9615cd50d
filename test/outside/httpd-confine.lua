-- SPDX-License-Identifier: MIT
--
-- --confine, by docs/operations.md: scripts try what is not allowed.

local httpd = require "httpd"
local script = require "script"
local workers = require "workers"

-- LeakSanitizer needs to trace its process, which a confined process does not allow.
local ENV = {ASAN_OPTIONS = "detect_leaks=0"}

-- Start a server with a script in a new directory, which is removed with the server.
local function spawn(text, ...)
    local directory = os.tmpname()
    os.remove(directory)
    assert(os.execute("mkdir " .. directory))
    local path = directory .. "/app.lua"
    script.write({path = path}, text)
    local server = httpd.spawn{wire.program("sxe-httpd"), "-p", "0", "--lua", path, env = ENV, ...}
    server.directory, server.path = directory, path
    return setmetatable(server, script)
end

local function start(text, ...)
    return spawn(text, "--confine", ...)
end

local function test_confined(what, name, run)
    test(name, function()
        local server <close> = start "return function() return 'here' end"
        equal(server:ask(), "here")
        local why = server.proc:errors():match("%-%-confine: the kernel has no " .. what .. ", or a container refuses it: ([^:;]*)")
        if why then
            print(("skipped: %s, because the machine refuses %s: %s"):format(name, what:gsub("%%", ""), why))
        else
            run()
        end
    end)
end

local FILTER <const> = "filter of calls %(seccomp%)"

-- promise: docs/operations.md: Opening any other file fails with "Permission denied", whoever owns it.
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

-- promise: docs/operations.md: Opening any other file fails with "Permission denied", whoever owns it.
test_confined("Landlock", "threads that read and write files for sxe.file", function()
    for _, processes in ipairs{"1", "2"} do
        local server <close> = start([[
            local file = require "sxe.file"
            local path = arg[0]
            return function()
                local said = {}
                for i, try in ipairs{"/etc/shadow", "/etc/passwd", path .. ".new"} do
                    said[i] = tostring(select(2, file.read(try))):match "[^:]+$"
                end
                said[4] = tostring(select(2, file.write(path, "return 1"))):match "[^:]+$"
                said[5] = file.read(path) and "own"
                return table.concat(said, ",")
            end]], "-w", processes)
        equal(server:ask(), " Permission denied, Permission denied, No such file or directory, Permission denied,own")
    end
end)

-- promise: docs/operations.md: With `--confine` each process that serves gives up access to files and system calls
-- that it does not need, before it answers any request.
test("a script in a sandbox", function()
    local server <close> = start("return function() return tostring(os.execute) end", "--lua-sandbox")
    equal(server:ask(), "nil")
end)

-- promise: docs/operations.md: For a symbolic link the file to which it leads counts.
test_confined("Landlock", "a link out of the directory", function()
    local server <close> = start [[
        local link = arg[0]:gsub("app.lua$", "link")
        return function() return (select(2, io.open(link)) or "open"):match "[^:]+$" end]]
    assert(os.execute(("ln -s /etc/passwd %s/link"):format(server.directory)))
    equal(server:ask(), " Permission denied")
end)

-- Make certificates a and b in the layout of certbot: live/x.pem is a link to archive/NAME.pem. Returns nil if the
-- openssl command is missing.
local function make_certificates()
    local made = os.tmpname()
    os.remove(made)
    return os.execute(([[set -e; mkdir -p %s/live %s/archive; cd %s/archive
        for name in a b; do
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=$name -days 2 \
                -keyout $name.key -out $name.pem 2>/dev/null
        done]]):format(made, made, made)) and made
end

local function lead(made, name)
    for _, ext in ipairs{"key", "pem"} do
        assert(os.execute(("cd %s/live && ln -s ../archive/%s.%s new && mv -T new x.%s"):format(made, name, ext, ext)))
    end
end

-- promise: docs/operations.md: Where the table says "the directory of" a file, that file may be a symbolic link: then
-- the directory of the target is allowed, too, so that certificates of certbot are read again after each renewal.
test_confined("Landlock", "certificates that are links, and lead to other files later", function()
    local made = make_certificates()
    if not made or wire.spawn{wire.program("sxe-httpd"), "--tls-dev", "--check"}:wait(20) ~= 0 then
        print "skipped: certificates that are links, because openssl is not installed, or not built in"
        return
    end
    lead(made, "a")
    for _, workers_option in ipairs{{}, {"-w", "1"}} do
        local proc = wire.spawn{wire.program("sxe-httpd"), "-p", "0", "--confine", "--tls-cert", made .. "/live/x.pem",
            "--tls-key", made .. "/live/x.key", env = ENV, table.unpack(workers_option)}
        local port = assert(proc:line(60):match ":(%d+)/$", proc:errors())
        local server <close> = setmetatable({proc = proc, pid = proc:pid()}, httpd)
        local function serves(name)
            local asked <close> = io.popen(("openssl s_client -connect 127.0.0.1:%s </dev/null 2>/dev/null"):format(port))
            return asked:read "a":find("subject=CN ?= ?" .. name) ~= nil
        end
        check(serves "a", proc:errors())
        lead(made, "b")
        httpd.wait_until(function() return serves "b" end, "the other certificate")
        lead(made, "a")
        httpd.wait_until(function() return serves "a" end, "the first certificate")
    end
    os.execute("rm -r " .. made)
end)

-- promise: docs/operations.md: | write, with `--lua` | `/dev/shm`, where pools and dicts have their files |
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

-- A server whose script makes the call of test/peer/refused-calls.c that the path names.
local function start_calls(...)
    local server = spawn([[
        local module = arg[0]:gsub("app.lua$", "calls.so")
        return function(req)
            local call = assert(package.loadlib(module, "try_" .. req.path:sub(2)))
            return select("#", call(1, 2, 3)) == 1 and "refused" or "made"
        end]], ...)
    local build = os.getenv "SXE_BUILD" or "build/release"
    assert(os.execute(("cp %s/test/refused-calls.so %s/calls.so"):format(build, server.directory)))
    return server
end

-- promise: docs/operations.md: The filter refuses new programs and processes, `ptrace` and the memory of other
-- processes, mounts, namespaces, another user, raw and packet sockets, kernel modules, the clock, io_uring, `bpf` and
-- keys of the kernel.
test_confined(FILTER, "calls of each kind", function()
    local server <close> = start_calls "--confine"
    for call in ([[execve execveat fork ptrace process_vm_readv mount umount chroot unshare setns setuid raw packet
            init_module clock_settime io_uring bpf keyctl]]):gmatch "%S+" do
        equal(server:ask("/" .. call), "refused", call)
    end
end)

-- promise: docs/operations.md: A process may send signals to other processes of its user.
test_confined(FILTER, "signals", function()
    local server <close> = start_calls "--confine"
    equal(server:ask "/kill", "made")
end)

-- Any user may make these calls on this machine, so in the test above it is the filter that refuses them.
test("calls without --confine", function()
    local server <close> = start_calls()
    for _, call in ipairs{"execve", "execveat", "fork", "setuid"} do
        equal(server:ask("/" .. call), "made", call)
    end
end)

-- promise: docs/operations.md: A system call for another architecture (32 bits, x32) ends the process.
test_confined(FILTER, "a call of x32", function()
    local machine <close> = io.popen "uname -m"
    if machine:read "l" ~= "x86_64" then
        print "skipped: a call of x32, because the processor has none"
        return
    end
    local server <close> = start_calls("--confine", "-w", "1")
    local sock <close> = server:connect()
    sock:send "GET /x32 HTTP/1.1\r\nHost: a\r\n\r\n"
    equal(sock:recv_all(), "")
    equal(server:ask "/execve", "refused") -- the worker that replaced the ended one answers
end)

-- promise: docs/operations.md: Scripts cannot run programs: `sxe.spawn`, `io.popen` and `os.execute` return `nil`, a
-- message and 1:
test("programs", function()
    local server <close> = start [[
        local calls = {"sort", spawn = require "sxe.spawn", popen = io.popen, execute = os.execute}
        return function(req)
            local name = req.path:sub(2)
            local result, message, code = calls[name](name == "spawn" and {"sort"} or "sort")
            return ("%s %s %s"):format(result, message, code)
        end]]
    for _, name in ipairs{"spawn", "popen", "execute"} do
        equal(server:ask("/" .. name), "nil sort: Operation not permitted: --confine lets no program run 1")
    end
end)

-- promise: docs/operations.md: SIGHUP, SIGUSR1 and SIGUSR2 work as without `--confine`.
test("a reload, a log that is opened again, and an upgrade", function()
    local logs = os.tmpname()
    os.remove(logs)
    assert(os.execute("mkdir " .. logs))
    local server = start("return function() return 'first' end", "-w", "2", "--access-log", logs .. "/log")
    equal(server:ask(), "first")
    server:write "return function() return 'second' end"
    server:reload()
    server:await "second"
    assert(os.rename(logs .. "/log", logs .. "/old"))
    server.proc:signal "USR1"
    httpd.wait_until(function()
        server:ask()
        local file <close> = io.open(logs .. "/log")
        return file ~= nil and file:read "a" ~= ""
    end, "a line in the new log")
    server:write "return function() return 'third' end"
    server.proc:signal "USR2"
    local pid
    httpd.wait_until(function()
        pid = server.proc:errors():match "process (%d+) serves in place of this one"
        return pid ~= nil
    end, "another program")
    equal(server.proc:wait(20), 0, server.proc:errors())
    equal(server:ask(), "third")
    workers.kill(pid, "TERM")
    assert(os.execute(("rm -r %s %s"):format(logs, server.directory)))
end)
