-- SPDX-License-Identifier: MIT
--
-- --user, by docs/operations.md. Only root can run most of these tests.

local as_root = require "as-root"
local http = require "http"
local httpd = require "httpd"
local workers = require "workers"

-- LeakSanitizer cannot look into a process that has changed its user.
local ENV = {ASAN_OPTIONS = "detect_leaks=0"}

-- A server as user 65534 (nobody), which has few rights.
local function start(...)
    return httpd.spawn{wire.program("sxe-httpd"), "-p", "0", "--user", "65534:65534", env = ENV, ...}
end

-- Like start, with TLS: the first line of output says https, which httpd.spawn does not expect.
local function start_tls(...)
    local proc = wire.spawn{wire.program("sxe-httpd"), "-p", "0", "--user", "65534:65534", env = ENV, ...}
    local first = proc:line(20)
    check(first and first:find("^listening on https://"), ("%q and %q"):format(first, proc:errors()))
    return setmetatable({proc = proc, pid = proc:pid()}, httpd)
end

-- A line of /proc/PID/status, with single blanks.
local function status(pid, name)
    local file <close> = assert(io.open(("/proc/%d/status"):format(pid)))
    return (file:read("a"):match("\n" .. name .. ":%s*([^\n]*)"):gsub("%s+", " "):gsub(" $", ""))
end

-- Wait until the process is user 65534: a process that was just forked is still root.
local function check_is_nobody(pid)
    httpd.wait_until(function() return status(pid, "Uid") == "65534 65534 65534 65534" end, "another user")
    equal(status(pid, "Gid"), "65534 65534 65534 65534")
    equal(status(pid, "Groups"), "65534")
    equal(status(pid, "CapPrm"), ("0"):rep(16))
    equal(status(pid, "NoNewPrivs"), "1")
end

-- promise: docs/operations.md: The process has the groups of the user and no capability, and cannot become root
-- again. A program that it runs gets no more rights than it has.
as_root.test("workers become the user, also after a reload", function()
    local server <close> = start("-w", "2")
    local before = workers.await(server, 2)
    for _, pid in ipairs(before) do check_is_nobody(pid) end
    server:check_answers()
    server.proc:signal("HUP")
    for _, pid in ipairs(workers.await(server, 2, before)) do check_is_nobody(pid) end
    server:check_answers()
end)

-- promise: docs/operations.md: `HOME`, `USER` and `LOGNAME` become those of the user, for libraries that look for files there.
as_root.test("the environment is the user's", function()
    for _, options in ipairs{{}, {"-w", "1"}} do
        local path = os.tmpname()
        local file <close> = assert(io.open(path, "w"))
        file:write [[return function()
            return table.concat({os.getenv "HOME", os.getenv "USER", os.getenv "LOGNAME"}, " ")
        end]]
        file:close()
        assert(os.execute("chmod 644 " .. path))
        local server <close> = start("--lua", path, table.unpack(options))
        local sock <close> = server:connect()
        sock:send(httpd.LAST)
        equal(sock:read_reply().body, "/nonexistent nobody nobody")
        os.remove(path)
    end
end)

-- promise: docs/operations.md: The supervisor stays root, so that it can start the next worker, reload and replace
-- the program.
as_root.test("the supervisor stays root, and replaces a worker", function()
    local server <close> = start("-w", "1")
    local before = workers.await(server, 1)
    equal(status(server.pid, "Uid"), "0 0 0 0")
    workers.kill(before[1])
    check_is_nobody(workers.await(server, 1, before)[1])
    server:check_answers()
end)

-- promise: docs/operations.md: If root starts the server with `--user NAME` or `NAME:GROUP`, each process that serves
-- becomes that user before it answers any request.
as_root.test("a server without workers becomes the user, and logs it", function()
    local server <close> = start()
    check_is_nobody(server.pid)
    server:check_answers()
    httpd.wait_until(function()
        return server.proc:errors():find(" serves as user %S* ?%(65534%), group 65534\n")
    end, "the line that names the user")
end)

-- promise: docs/operations.md: | | the script, and all files that it opens and requires, including dicts and pools |
as_root.test("a script cannot read files that only root may read", function()
    local path, secret = os.tmpname(), os.tmpname()
    local file <close> = assert(io.open(path, "w"))
    file:write((([[
        local early = io.open("PATH")
        return function() return tostring(early) .. " " .. tostring(io.open("PATH")) end]]):gsub("PATH", secret)))
    file:close()
    assert(os.execute("chmod 644 " .. path))
    local server <close> = start("--lua", path)
    equal(http.ask(server, httpd.LAST).body, "nil nil")
    os.remove(path)
    os.remove(secret)
    secret = os.tmpname()
    local unreadable = wire.spawn{wire.program("sxe-httpd"), "--user", "65534:65534", "--lua", secret, env = ENV}
    equal(unreadable:wait(20), 1)
    check(unreadable:errors():find("Permission denied", 1, true), unreadable:errors())
    os.remove(secret)
end)

-- promise: docs/operations.md: If the access log does not exist, it is created as a file of the user, also at
-- SIGUSR1.
as_root.test("the log is the user's, and is opened again where the user may create no file", function()
    local path = os.tmpname()
    os.remove(path)
    assert(os.execute("mkdir -m 755 " .. path))
    local server <close> = start("-w", "2", "--access-log", path .. "/log")
    local function owner()
        local pipe <close> = io.popen("stat -c %u " .. path .. "/log 2>/dev/null")
        return pipe:read("l")
    end
    equal(owner(), "65534")
    assert(os.rename(path .. "/log", path .. "/old"))
    server.proc:signal("USR1")
    httpd.wait_until(function() return owner() == "65534" end, "a new log")
    server:check_answers()
    httpd.wait_until(function()
        for _, name in ipairs{"/log", "/old"} do
            local file <close> = io.open(path .. name)
            if file and file:read("l") then return true end
        end
        return false
    end, "a line in a log") -- a worker may have answered before it opened the new log
    check(not server.proc:errors():find("cannot open the access log", 1, true), server.proc:errors())
    os.execute("rm -r " .. path)
end)

-- promise: docs/operations.md: The supervisor notices when a certificate or key that was named at the start changes,
-- and starts new workers, with the configuration that was loaded last. If the new certificate or key cannot be used,
-- the earlier workers stay in place, and the log says why.
as_root.test("certificates that only root may read are reloaded when they change", function()
    local path = os.tmpname()
    os.remove(path)
    assert(os.execute("mkdir -m 700 " .. path))
    local function make(name)
        return os.execute(("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=a "
            .. "-days 2 -keyout %s/%s.key -out %s/%s.pem 2>/dev/null"):format(path, name, path, name))
    end
    local function replace(ext) assert(os.rename(path .. "/b." .. ext, path .. "/a." .. ext)) end
    if make("a") and make("b") and wire.spawn{wire.program("sxe-httpd"), "--tls-dev", "--check"}:wait(20) == 0 then
        local server <close> = start_tls("-w", "2", "--tls-cert", path .. "/a.pem", "--tls-key", path .. "/a.key")
        local before = workers.await(server, 2)
        replace("pem")
        httpd.wait_until(function() return server.proc:errors():find("could not be loaded again", 1, true) end, "the reason")
        for _, pid in ipairs(before) do check(workers.kill(pid, 0), pid .. " ended") end
        replace("key")
        for _, pid in ipairs(workers.await(server, 2, before)) do check_is_nobody(pid) end
    else
        print("skipped: certificates of root, because openssl is not installed, or not built in")
    end
    os.execute("rm -r " .. path)
end)

-- promise: docs/operations.md: The process of `--admin` becomes the user, too, and keeps one capability: it may signal the supervisor (`CAP_KILL`).
as_root.test("the admin process is the user, and reloads", function()
    local path = os.tmpname()
    os.remove(path)
    local server <close> = start("-w", "1", "--admin", path)
    equal(server.proc:line(20), "status at unix:" .. path)
    local admin
    for _, pid in ipairs(workers.await(server, 2)) do
        if status(pid, "CapPrm") ~= ("0"):rep(16) then admin = pid end
    end
    equal(status(admin, "Uid"), "65534 65534 65534 65534")
    equal(tonumber(status(admin, "CapPrm"), 16), 1 << 5)
    os.remove(path)
end)

local function exists(path) return (os.execute("test -e " .. path)) end

-- A new directory with a script that listens at the unix socket "s" in that directory.
local function directory_with_script()
    local dir = os.tmpname()
    os.remove(dir)
    assert(os.execute("mkdir -m 777 " .. dir))
    local file <close> = assert(io.open(dir .. "/app.lua", "w"))
    file:write((([[
        local http = require "sxe.http"
        http.serve{unix = "DIR/s", handler = function() return "inside" end}]]):gsub("DIR", dir)))
    return dir
end

-- promise: docs/operations.md: So the file of a unix socket that comes from a script, or from a changed
-- configuration, is not removed at the end; the next start replaces it.
as_root.test("the file of a script's socket stays, and is replaced", function()
    local dir = directory_with_script()
    for _ = 1, 2 do
        local proc = wire.spawn{wire.program("sxe-httpd"), "--lua", dir .. "/app.lua", "--user", "65534:65534", env = ENV}
        httpd.wait_until(function() return proc:errors():find(" serves as user ", 1, true) and exists(dir .. "/s") end,
                         "a server")
        proc:signal("TERM")
        equal(proc:wait(60), 0, proc:errors())
        check(exists(dir .. "/s"), "the file is gone")
    end
    os.execute("rm -r " .. dir)
end)

-- promise: docs/operations.md: A server that root started with `--config` leaves such files, too, because a reload may bring a `user`.
as_root.test("the file of a script's socket stays after a server with a configuration", function()
    local dir = directory_with_script()
    local config <close> = assert(io.open(dir .. "/config.lua", "w"))
    config:write(("return { lua = %q }"):format(dir .. "/app.lua"))
    config:close()
    local proc = wire.spawn{wire.program("sxe-httpd"), "--config", dir .. "/config.lua"}
    httpd.wait_until(function() return exists(dir .. "/s") end, "a server")
    proc:signal("TERM")
    equal(proc:wait(60), 0, proc:errors())
    check(exists(dir .. "/s"), "the file is gone")
    os.execute("rm -r " .. dir)
end)

-- promise: docs/operations.md: At the end it removes the files of `--unix` that it made, if the same directory
--   still holds the same sockets.
as_root.test("a socket in another directory is not removed", function()
    local dir = os.tmpname()
    os.remove(dir)
    assert(os.execute(("mkdir -m 777 %s %s/own %s/others"):format(dir, dir, dir)))
    local other <close> = httpd.start("--unix", dir .. "/others/s")
    do
        local server <close> = start("-w", "1", "--unix", dir .. "/own/s")
        assert(os.execute(("cd %s && mv own away && ln -s others own"):format(dir)))
        server.proc:signal("TERM")
        equal(server.proc:wait(60), 0)
    end
    check(exists(dir .. "/others/s"), "the socket of another server is gone")
    check(exists(dir .. "/away/s"), "a socket is gone that is not at the path")
    local server <close> = start("-w", "1", "--unix", dir .. "/away/t")
    server.proc:signal("TERM")
    equal(server.proc:wait(60), 0)
    check(not exists(dir .. "/away/t"), "its own socket is there")
    os.execute("rm -r " .. dir)
end)

-- promise: docs/operations.md: A user that does not exist is refused, by `--check` as well.
test("an unknown user is refused", function()
    for _, more in ipairs{"--check", "--print-config", "-w2"} do
        local proc = wire.spawn{wire.program("sxe-httpd"), more, "--user", "no-such-user"}
        equal(proc:wait(20), 2)
        check(proc:errors():find("the user that serves (--user) is 'no-such-user'", 1, true), proc:errors())
    end
end)

-- promise: docs/operations.md: `--user root` confirms that root is meant, and ends the warning.
as_root.test("--user root gives no warning", function()
    local server <close> = httpd.start("--user", "root")
    server:check_answers()
    check(not server.proc:errors():find("started as root", 1, true), server.proc:errors())
end)

-- promise: docs/operations.md: `--check` as root reads certificates and keys, becomes the user, and then opens
-- directories, error pages and the script, so it names files that the user may not read:
as_root.test("--check reports files that the user may not read", function()
    local dir = os.tmpname()
    os.remove(dir)
    assert(os.execute(("mkdir -m 700 %s && printf page >%s/404.html && printf return >%s/app.lua"):format(dir, dir, dir)))
    for _, options in ipairs{{"-r", dir}, {"--lua", dir .. "/app.lua"}, {"--error-page", "404 " .. dir .. "/404.html"}} do
        local proc = wire.spawn{wire.program("sxe-httpd"), "--check", "--user", "65534:65534", env = ENV,
                                table.unpack(options)}
        equal(proc:wait(60), 2)
        check(proc:errors():find("Permission denied", 1, true), proc:errors())
        check(proc:errors():find("sxe-httpd: files were opened as user 65534, group 65534 (--user)\n", 1, true),
              proc:errors())
        proc = wire.spawn{wire.program("sxe-httpd"), "--check", env = ENV, table.unpack(options)}
        equal(proc:wait(60), 0, proc:errors())
    end
    os.execute("rm -r " .. dir)
end)

-- promise: docs/operations.md: `--check` by another user opens files as that user, and says so.
as_root.test("--check works for another user than root", function()
    local other = "setpriv --reuid=65533 --regid=65533 --clear-groups "
    if not os.execute(other .. "test -x " .. wire.program("sxe-httpd") .. " 2>/dev/null") then
        print("skipped: another user may look, too, because that user cannot run the program, or setpriv is not here")
        return
    end
    local proc = wire.spawn{"sh", "-c", "exec " .. other .. wire.program("sxe-httpd") .. " --check --user 65534:65534",
                            env = ENV}
    equal(proc:wait(60), 0, proc:errors())
    check(proc:errors():find("files are checked as user 65533, not as user 65534 (--user)", 1, true), proc:errors())
end)
