-- SPDX-License-Identifier: MIT
--
-- rate and burst, by docs/configuration.md. The rates here allow one more request after an hour, so no test depends on
-- how long it takes.

local as_root = require "as-root"
local http = require "http"
local httpd = require "httpd"
local workers = require "workers"

-- LeakSanitizer cannot look into a process that has changed its user.
local ENV = {ASAN_OPTIONS = "detect_leaks=0"}

local site <const> = os.tmpname()
do
    local file <close> = assert(io.open(site, "w"))
    file:write([[return { routes = {
        ["/often"] = { status = 200, rate = "1/h", burst = 10 },
        ["/once"] = { status = 200, rate = "1/h" },
        ["/free"] = { status = 200 } } }]])
    file:close()
    assert(os.execute("chmod 644 " .. site))
end

local function ask(server, path)
    return http.ask(server, ("GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"):format(path))
end

-- Send `number` requests, each on a new connection; returns how many pass.
local function passed(server, path, number)
    local count = 0
    for _ = 1, number do
        local status = ask(server, path).status
        check(status == 200 or status == 429, status)
        if status == 200 then count = count + 1 end
    end
    return count
end

-- promise: docs/configuration.md: All workers count together, and a reload keeps the counts.
test("workers count together, also after a reload and after a worker was replaced", function()
    local server <close> = httpd.start("--config", site, "-w", "2")
    local before = workers.await(server, 2)
    equal(passed(server, "/often", 30), 10)
    equal(passed(server, "/free", 30), 30)
    server.proc:signal("HUP")
    local after = workers.await(server, 2, before)
    equal(passed(server, "/often", 10), 0)
    workers.kill(after[1])
    httpd.wait_until(function() return #workers.of(server) == 2 and workers.of(server)[1] ~= after[1] end, "another")
    equal(passed(server, "/often", 10), 0)
end)

-- promise: docs/configuration.md: `Retry-After` says in how many seconds the client may try again.
test("a client that asks too often is told when to come back", function()
    local server <close> = httpd.start("--config", site)
    equal(ask(server, "/once").status, 200)
    local reply = ask(server, "/once")
    equal(reply.status, 429)
    local seconds = tonumber(reply.headers["retry-after"])
    check(seconds and seconds > 0 and seconds <= 3600, reply.headers["retry-after"])
end)

as_root.test("workers of another user, in another directory, count together, too", function()
    local path = os.tmpname()
    os.remove(path)
    assert(os.execute("mkdir -m 755 " .. path))
    for _, more in ipairs{{}, {"--chroot", path}} do
        local server <close> = httpd.spawn{wire.program("sxe-httpd"), "-p", "0", "--config", site, "-w", "2", "--user",
                                           "65534:65534", env = ENV, table.unpack(more)}
        workers.await(server, 2)
        equal(passed(server, "/often", 30), 10)
    end
    os.execute("rmdir " .. path)
end)
