-- SPDX-License-Identifier: MIT
--
-- --chroot, by docs/operations.md. Only root can run most of these tests.

local as_root = require "as-root"
local http = require "http"
local httpd = require "httpd"
local workers = require "workers"

-- LeakSanitizer cannot look into a process that has changed its user.
local ENV = {ASAN_OPTIONS = "detect_leaks=0"}
local USER = "65534:65534"

local function write(path, text)
    local file <close> = assert(io.open(path, "w"))
    file:write(text)
end

-- A new directory for --chroot, removed at the end of the block. Its www/index.html says "inside".
local function directory()
    local path = os.tmpname()
    os.remove(path)
    assert(os.execute(("mkdir -m 755 %s %s/www"):format(path, path)))
    write(path .. "/www/index.html", "inside\n")
    write(path .. "/404.html", "not inside\n")
    return setmetatable({path = path}, {__close = function() os.execute("rm -r " .. path) end})
end

local function start(path, ...)
    return httpd.spawn{wire.program("sxe-httpd"), "-p", "0", "--user", USER, "--chroot", path, env = ENV, ...}
end

local function root_of(pid)
    local pipe <close> = io.popen(("readlink /proc/%d/root"):format(pid))
    return pipe:read("l")
end

local function request(path)
    return ("GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"):format(path)
end

-- promise: docs/operations.md: With `--chroot DIR` each process that serves makes DIR its root directory before it
-- becomes the user: from then on the paths that it opens begin in DIR.
as_root.test("files and error pages are found below the directory", function()
    local dir <close> = directory()
    local server <close> = start(dir.path, "-r", "/www", "--error-page", "404 404.html")
    equal(http.ask(server, request "/").body, "inside\n")
    equal(http.ask(server, request "/none").body, "not inside\n")
end)

-- promise: docs/operations.md: | in DIR | the directory of `-r` and of routes, error pages, the script and all files
-- that it opens, requires and runs |
as_root.test("a script lies below the directory, and sees no file outside of it", function()
    local dir <close> = directory()
    local outside = os.tmpname()
    write(dir.path .. "/app.lua", ([[
        local names = {"/etc/passwd", "%s", "/../../etc/passwd", "/www/index.html"}
        return function()
            local seen = {}
            for i, name in ipairs(names) do seen[i] = io.open(name) and "yes" or "no" end
            return table.concat(seen, " ")
        end]]):format(outside))
    local server <close> = start(dir.path, "--lua", "app.lua")
    equal(http.ask(server, httpd.LAST).body, "no no no yes")
    os.remove(outside)
end)

-- promise: docs/operations.md: The supervisor stays outside, as root. With `--chroot` there always is a supervisor, as with `-w 1`.
as_root.test("workers have the new root directory, also after a reload; the supervisor has not", function()
    local dir <close> = directory()
    local server <close> = start(dir.path, "-r", "www")
    local before = workers.await(server, 1)
    equal(root_of(server.pid), "/")
    httpd.wait_until(function() return root_of(before[1]) == dir.path end, "a worker inside")
    server.proc:signal("HUP")
    local after = workers.await(server, 1, before)
    httpd.wait_until(function() return root_of(after[1]) == dir.path end, "a new worker inside")
    equal(http.ask(server, request "/").body, "inside\n")
end)

-- promise: docs/operations.md: The process of `--admin` enters DIR, too.
as_root.test("the admin process has the new root directory", function()
    local dir <close> = directory()
    local path = os.tmpname()
    os.remove(path)
    local server <close> = start(dir.path, "-r", "www", "--admin", path)
    equal(server.proc:line(20), "status at unix:" .. path)
    for _, pid in ipairs(workers.await(server, 2)) do
        httpd.wait_until(function() return root_of(pid) == dir.path end, "a process inside")
    end
    os.remove(path)
end)

-- promise: docs/operations.md: Workers in DIR cannot open the log or certificates again. So SIGUSR1 starts new
-- workers, with the access log that the path names now, and the configuration that was loaded last.
as_root.test("the log lies outside the directory, and new workers open it again", function()
    local dir <close> = directory()
    local logs <close> = directory()
    local log = logs.path .. "/log"
    local server <close> = start(dir.path, "-r", "www", "--access-log", log)
    local before = workers.await(server, 1)
    assert(os.rename(log, log .. ".1"))
    server.proc:signal("USR1")
    workers.await(server, 1, before)
    equal(http.ask(server, request "/").status, 200)
    httpd.wait_until(function()
        local file <close> = io.open(log)
        return file and (file:read("a"):find("GET / HTTP/1.1", 1, true))
    end, "a line in the new log")
end)

-- promise: docs/operations.md: If DIR cannot be entered, the server ends with exit status 1; `--check` tests this as
-- well.
as_root.test("a directory that is missing is refused", function()
    for _, more in ipairs{"--check", "-w2"} do
        local proc = wire.spawn{wire.program("sxe-httpd"), more, "-p", "0", "--user", USER, "--chroot",
                                "/nonexistent", env = ENV}
        equal(proc:wait(60), more == "--check" and 2 or 1)
        check(proc:errors():find("cannot make '/nonexistent' the root directory (--chroot)", 1, true), proc:errors())
    end
end)

as_root.test("--check looks for files below the directory", function()
    local dir <close> = directory()
    for root, status in pairs{["/www"] = 0, [dir.path .. "/www"] = 2} do
        local proc = wire.spawn{wire.program("sxe-httpd"), "--check", "--user", USER, "--chroot", dir.path, "-r", root,
                                env = ENV}
        equal(proc:wait(60), status)
    end
end)

-- promise: docs/operations.md: `--chroot` needs `--user` with another user than root, because root could leave DIR
-- again.
test("--chroot is refused with the user root, who could leave the directory", function()
    for _, user in ipairs{"root", "0"} do
        local proc = wire.spawn{wire.program("sxe-httpd"), "--chroot", "/", "--user", user}
        equal(proc:wait(20), 2)
        check(proc:errors():find("--chroot needs a user who cannot leave it", 1, true), proc:errors())
    end
    equal(wire.spawn{wire.program("sxe-httpd"), "--chroot", "/"}:wait(20), 2)
end)
