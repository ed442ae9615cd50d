-- SPDX-License-Identifier: MIT
--
-- tlslite-ng, made hostile, as client of sxe-httpd and as server of sxe-http, of sxe.client and of upstreams: slow, cut
-- and spoilt handshakes, huge hellos, floods of records, keys and alerts. Nobody else may notice, and nothing may leak.

local httpd = require "httpd"
local tls_site = require "tls-site"

local python = tls_site.python("tlslite", "tlslite-ng", "hostile peers of TLS")
if not python then
    return
end

local CLIENT <const>, SERVER <const> = "test/conformance/hostile-client.py", "test/conformance/hostile-server.py"
local MOST_GROWTH <const> = 4 << 20 -- bytes, of a process that has seen everything once

-- The seed of random choices. To repeat attacks, set SEED to the seed that a failed check printed.
local seed = os.getenv "SEED" or tostring(os.time())

local function attack(server, dice)
    local is_good, said = tls_site.run("env", "SEED=" .. dice, python, CLIENT, tostring(server.port))
    check(is_good, said)
end

-- Clients whose requests must all be answered, until the block ends.
local load = {}
load.__index = load

function load.start(url, ...)
    local proc = wire.spawn{wire.program("sxe-http"), "-q", "--insecure", "-c", "2", "-R", "50", "-d", "3600", "--timeout",
        "60", url, ...}
    return setmetatable({proc = proc}, load)
end

function load:__close(failure)
    self.proc:signal("INT")
    local said = self.proc:output(120)
    self.proc:wait(120)
    if failure == nil then
        local ok, errors = said:match "\nrequests  %d+  ok (%d+)  errors (%d+)  in flight"
        equal(errors, "0", said .. self.proc:errors())
        check(tonumber(ok) > 0 and not said:find("not opened", 1, true), said)
    end
end

-- docs/tls.md: A hostile peer loses its own connection; other connections are not affected.
test("a hostile client harms nobody, and keeps no memory and no descriptor", function()
    local site <close> = tls_site.new()
    local server <close> = httpd.start_tls("-c", "200", site:options())
    local descriptors, memory = wire.fds(server.pid), nil
    do
        local url = ("https://127.0.0.1:%d/"):format(server.port)
        local kept <close> = load.start(url)
        local short <close> = load.start(url, "-H", "Connection: close")
        attack(server, seed)
        memory = wire.rss(server.pid)
        for i = 1, 3 do attack(server, tostring(math.tointeger(seed) + i)) end
        local growth = wire.rss(server.pid) - memory
        check(growth < MOST_GROWTH, ("three rounds of attacks took %d bytes; seed %s"):format(growth, seed))
    end
    server:check_descriptors(descriptors)
end)

-- The tricks of a hostile server: its ports by their names, and whether a client may get a whole reply.
local function start_tricks(site)
    local proc = wire.spawn{python, SERVER, site:path "curve.pem", site:path "curve.key", seed}
    local tricks = {}
    for line in function() return proc:line(60) end do
        if line == "ready" then break end
        local port, name, kind = line:match "^(%d+) (%S+) (%S+)$"
        tricks[#tricks + 1] = {port = port, name = name, is_good = kind == "good"}
    end
    check(#tricks > 0, proc:errors())
    return tricks, proc
end

test("sxe-http ends in order, whatever a server does", function()
    local site <close> = tls_site.new()
    local tricks, peer = start_tricks(site)
    local ending <close> = peer
    for _, trick in ipairs(tricks) do
        local proc <close> = wire.spawn{wire.program("sxe-http"), "-q", "--insecure", "-c", "2", "-n", "2", "--timeout",
            trick.is_good and "60" or "2", ("https://127.0.0.1:%s/"):format(trick.port)}
        local said = proc:output(300)
        local status = proc:wait(300)
        local what = ("%s, seed %s: status %s, %s%s"):format(trick.name, seed, status, said, proc:errors())
        local ok = said:match "\nrequests  %d+  ok (%d+)  errors %d+  in flight 0"
        check(ok, what)
        check(not said:find("(first: )", 1, true) and not what:find("(TLS: )", 1, true), what)
        if trick.name:find("^byte_by_byte") then equal(ok, "4", what) end
        if not trick.is_good then
            equal(ok, "0", what)
            equal(status, 1, what)
        end
    end
end)

test("calls of sxe.client fail in order, and others go on", function()
    local site <close> = tls_site.new()
    local server <close> = httpd.start_tls("-c", "200", site:options())
    local tricks, peer = start_tricks(site)
    local ending <close> = peer
    local words, names = {wire.program("sxe-lua"), "--sockets", "128", "test/conformance/hostile-calls.lua",
                          tostring(server.port)}, {}
    for _, trick in ipairs(tricks) do
        words[#words + 1] = trick.port
        names[trick.port] = trick
    end
    local is_good, said = tls_site.run(table.unpack(words))
    check(is_good, said)
    for port, answer in said:gmatch "(%d+)\t([^\n]+)" do
        local trick = names[port]
        local must = trick and (trick.name:find "^byte_by_byte" or not trick.is_good)
        check(not must or (answer == "200") == trick.is_good, said)
    end
    local ok, failed = said:match "\ngood\t(%d+)\t(%d+)"
    check(failed == "0" and tonumber(ok) > 0, said)
    -- A connection to a server that sent a whole reply may be kept.
    local before, after = said:match "\ndescriptors\t(%d+)\t(%d+)"
    check(tonumber(after) <= before + 4, said)
    before, after = said:match "\npages\t(%d+)\t(%d+)"
    check(4096 * (after - before) < MOST_GROWTH, said)
end)

local function check_serves(server)
    local sock <close> = server:connect()
    sock:send "GET /site/ca.pem HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    local said = sock:recv_all()
    check(said:find "^HTTP/1.1 200 ", said)
end

test("a proxy answers 502 or 504 for a hostile upstream, and serves the others", function()
    local site <close> = tls_site.new()
    local tricks, peer = start_tricks(site)
    local ending <close> = peer
    local path = site:path "site.lua"
    do
        local file <close> = assert(io.open(path, "w"))
        file:write "return { upstreams = {\n"
        for i, trick in ipairs(tricks) do
            file:write(("t%d = { servers = 'https://127.0.0.1:%s', tls_insecure = true, connect_timeout = %s, "
                .. "reply_timeout = 5 },\n"):format(i, trick.port, trick.is_good and 60 or 2))
        end
        file:write(("}, routes = {\n['/site/{path...}'] = { root = '%s' },\n"):format(site.directory))
        for i in ipairs(tricks) do file:write(("['/t%d'] = { proxy = 't%d' },\n"):format(i, i)) end
        file:write "} }\n"
    end
    local server <close> = httpd.start("--config", path, "-c", "300")
    local descriptors = wire.fds(server.pid)
    for _ = 1, 2 do
        local waiting = {}
        for i, trick in ipairs(tricks) do
            local sock = server:connect()
            sock:send(("GET /t%d HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"):format(i))
            waiting[trick] = sock
            check_serves(server)
        end
        for trick, sock in pairs(waiting) do
            local is_whole, said = pcall(sock.recv_all, sock)
            local status = is_whole and said:match "^HTTP/1.1 (%d+)"
            local what = ("%s, seed %s: %s"):format(trick.name, seed, said)
            if trick.name:find "^byte_by_byte" then equal(status, "200", what) end
            check(trick.is_good or not is_whole or status == "502" or status == "504" or not said:find "\r\n0\r\n\r\n$", what)
            sock:close()
        end
        check_serves(server)
    end
    server:check_descriptors(descriptors + 8) -- connections that may be kept
end)
