-- SPDX-License-Identifier: MIT
--
-- usage: wire server.lua [SECONDS [SEED]]    for so long (3600 s) put load on servers that are reloaded, upgraded,
--                                            killed and attacked meanwhile; print a line each minute, then a verdict.
--                                            Exit status 1: something happened that nothing explains.
--
-- SOAK_RATE=100 requests a second go to each server on kept connections, and half as many on others. SOAK_FAULT=kill
-- kills a worker of which the soak does not know, to see that it fails then.
--
-- Three kinds of servers run at once. "restless" is reloaded, replaced and killed at random. "steady" is left alone, so
-- that its memory shows what load and hostile clients alone leave, and no request to it may fail. HAProxy stands before
-- three more, which are ended and started again one after the other. Loads of sxe-http and the clients of
-- lib/soak-clients.lua use restless and steady. After each round, of a minute or a twentieth of the time, all clients
-- close their connections: each server must get to rest, and is measured.

package.path = package.path .. ";test/wire/lib/?.lua"

local checks = require "soak-checks"
local clients = require "soak-clients"
local haproxy = require "soak-haproxy"
local json = require "json-text"
local soak_server = require "soak-server"

local SECONDS <const> = tonumber(arg[1]) or 3600
local SEED <const> = tonumber(arg[2]) or os.time()
local ROUND_SECONDS <const> = math.max(10, math.min(60, SECONDS / 20))
local RATE <const> = tonumber(os.getenv "SOAK_RATE") or 100 -- requests a second, kept connections of one server
local CONNECTIONS <const> = 8 -- of a load
local FEW <const> = 2 -- connections of a slow load, so that a server does not close one as idle when it is used at last
local CLIENTS <const> = 16
local SUSPECT <const> = 4 -- the exit status of sxe-http on a busy machine
local FIRST_FILES <const> = 4000 -- above the entries of all workers' file caches
local REST_SECONDS <const> = 90
-- How much more descriptors and memory may be in the last quarter than in the second one: a share, and a fixed part for
-- what differs from worker to worker.
local FDS_ROOM <const> = 2
local KIB_SHARE <const>, KIB_ROOM <const> = 0.03, 256
local COMPLAINTS_SHOWN <const> = 20

-- The configuration in which $NAME stands for a text of make_site().
local SITE <const> = [[
return {
    ip = "127.0.0.1", lua = "$DIRECTORY/app.lua", $USER $LISTEN
    body_timeout = 3, stall_timeout = 5, stop_timeout = 5, connections = 128, lua_tasks = 128,
    routes = {["/{path...}"] = {root = "$DIRECTORY/files"}, ["/lua/{path...}"] = {script = true}},
}
]]
local LISTEN <const> = [[port = 0, listen = "0,plain", tls_cert = "$DIRECTORY/cert.pem", tls_key = "$DIRECTORY/key.pem",
    admin = "0", workers = 2,]]
local APP <const> = [[
local dict = require "sxe.dict".open{name = "soak", file = "$DIRECTORY/soak.dict", cells = 1000, evicts = true}
local task = require "sxe.task"
local router = require "sxe.http".router()
router:get("/lua/hello", function(req) return "hello " .. (req.query.name or "") .. "\n" end)
router:get("/lua/count", function() return {count = dict:add "count"} end)
router:get("/lua/wait", function() task.sleep(0.02) return "waited\n" end)
router:post("/lua/length", function(req) task.sleep(0.02) return tostring(#req:body()) end)
return router
]]

io.stdout:setvbuf "line"
math.randomseed(SEED)

local complaints = {}
local function complain(format, ...)
    local text = os.date "%H:%M:%S " .. (select("#", ...) > 0 and format:format(...) or format)
    complaints[#complaints + 1] = text
    if #complaints <= COMPLAINTS_SHOWN then print("UNEXPLAINED: " .. text) end
end

local function write(path, text)
    local file <close> = assert(io.open(path, "wb"))
    file:write(text)
end

local function run(command)
    assert(os.execute(command), command)
end

local function make_site()
    local directory = os.tmpname()
    os.remove(directory)
    run(("mkdir -p %s/files"):format(directory))
    local id <close> = io.popen "id -u"
    local texts = {DIRECTORY = directory, USER = id:read "n" == 0 and 'user = "root",' or ""}
    local function fill(name, text, listen)
        write(directory .. "/" .. name, (text:gsub("%$LISTEN", listen):gsub("%$(%u+)", texts)))
    end
    fill("site.lua", SITE, LISTEN)
    fill("plain.lua", SITE, "")
    fill("app.lua", APP, "")
    write(directory .. "/files/a.txt", "a file\n")
    write(directory .. "/files/big.bin", ("0123456789abcdef"):rep(65536))
    write(directory .. "/files/page.html", ("<p>a page</p>\n"):rep(1000))
    run(("cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem " ..
         "-out cert.pem -subj /CN=localhost -days 80 2>/dev/null"):format(directory))
    return directory
end

-- ---- Loads ----

local function start_load(directory, name, target, port, scheme, rate, connections, ...)
    local path = ("%s/%s.json"):format(directory, name)
    local command = {wire.program "sxe-http", "-q", "--timeout", "60", "-d", ("%.0f"):format(ROUND_SECONDS), "-R",
                     ("%.0f"):format(rate), "-c", tostring(connections), "--json", path, ...}
    for _, page in ipairs{"a.txt", "page.html", "lua/hello?name=Ann", "lua/count", "lua/wait"} do
        command[#command + 1] = ("%s://127.0.0.1:%d/%s"):format(scheme, port, page)
    end
    return {name = name, target = target, path = path, proc = wire.spawn(command), kills = target.kills,
            connections = connections}
end

local function start_loads(directory, servers, balancer)
    local loads = {}
    for _, server in ipairs(servers) do
        local function add(kind, port, scheme, rate, connections, ...)
            loads[#loads + 1] = start_load(directory, server.name .. "-" .. kind, server, port, scheme, rate,
                                           connections, ...)
        end
        add("kept", server.port, "http", RATE, CONNECTIONS)
        add("new", server.port, "http", RATE / 4, CONNECTIONS, "--header", "Connection: close")
        add("tls", server.tls_port, "https", RATE / 4, CONNECTIONS, "--insecure")
        add("tls-new", server.tls_port, "https", math.max(2, RATE / 20), FEW, "--insecure", "--header",
            "Connection: close")
    end
    if balancer then
        loads[#loads + 1] = start_load(directory, "haproxy", balancer, balancer.port, "http", RATE / 4, CONNECTIONS)
    end
    return loads
end

local function run_first_load(server, ...)
    local proc <close> = wire.spawn{wire.program "sxe-http", "-q", "--timeout", "60", ...}
    local output = proc:output(120)
    local status = proc:wait(120)
    if status ~= 0 and status ~= SUSPECT then
        complain("the first load of %s: %s%s", server.name, output, proc:errors())
    end
end

-- Use all memory that a server reserved. Elements of its pools are used in turn, so that the usual load would touch the
-- last of them after ten minutes: those of the files by files that do not exist.
local function warm_up(server)
    local path = server.directory .. "/first.log"
    local lines = {}
    for i = 1, FIRST_FILES do
        lines[i] = ('127.0.0.1 - - [30/Nov/2026:17:17:%02d +0000] "GET /none/%d HTTP/1.1" 404 0 "-" "-"'):format(
                   i // 200, i)
    end
    write(path, table.concat(lines, "\n") .. "\n")
    run_first_load(server, "--requests", "4000", "-c", "100", "-b", ("b"):rep(3000),
                   ("http://127.0.0.1:%d/lua/length"):format(server.port))
    run_first_load(server, "--replay", path, "--speed", "4", "-c", "50", "--expect-status", "404",
                   ("http://127.0.0.1:%d/"):format(server.port))
end

local function finish_load(load, sums)
    load.proc:output(ROUND_SECONDS + 120)
    local status = load.proc:wait(120)
    local is_read, report = pcall(function()
        local file <close> = assert(io.open(load.path, "rb"))
        return json.decode(file:read "a")
    end)
    if not is_read then
        return complain("sxe-http (%s) ended with %s without a report: %s", load.name, status, load.proc:errors())
    end
    local kills = load.target.kills - load.kills
    local requests, failed, unexplained = checks.judge(report.total, kills, load.connections)
    sums.requests, sums.failed = sums.requests + requests, sums.failed + failed
    if unexplained > 0 then
        run(("cp %s %s.%d"):format(load.path, load.path, os.time()))
        complain("sxe-http (%s): %d of %d requests failed, %d of them without a reason; %d kills; see %s.*", load.name,
                 failed, requests, unexplained, kills, load.path)
    end
end

-- ---- What happens to the restless server ----

local function disturb(server)
    local choice = math.random(10)
    if choice <= 4 then
        server:signal "HUP"
    elseif choice <= 6 then
        server:signal "USR2"
    else
        server:kill_one()
    end
end

-- ---- Rest and figures ----

local function await_rest(servers)
    local deadline = wire.time() + REST_SECONDS
    for _, server in ipairs(servers) do
        while not server:is_at_rest() and wire.time() < deadline do wire.sleep(0.1) end
        if not server:is_at_rest() then
            local status = server:status()
            complain("%s is not at rest %d s after its last client: %s connections, %s workers, %d children",
                     server.name, REST_SECONDS, status and status.connections, status and #status.workers,
                     #server:children())
        end
        local zombies = server:zombies()
        if next(zombies) then
            wire.sleep(1)
            for pid in pairs(server:zombies()) do
                if zombies[pid] then complain("%s has a zombie, process %d", server.name, pid) end
            end
        end
    end
end

local FIGURES <const> = {"supervisor_fds", "supervisor_kib", "workers_fds", "workers_kib"}

local function judge_samples(server)
    for _, figure in ipairs(FIGURES) do
        local samples = {}
        for i, sample in ipairs(server.samples) do samples[i] = sample[figure] end
        local is_fds = figure:find "fds"
        local before, after, is_flat = checks.flat(samples, is_fds and 0 or KIB_SHARE,
                                                   is_fds and FDS_ROOM or KIB_ROOM)
        if before then
            print(("%s: %s: median %.0f in the second quarter, %.0f in the last"):format(server.name, figure, before,
                                                                                          after))
        end
        if is_flat == false then complain("%s: %s grows: from %.0f to %.0f", server.name, figure, before, after) end
    end
end

local function show(round, servers, balancer, sums)
    local words = {("%s round %d: %d requests, %d failed"):format(os.date "%H:%M:%S", round, sums.requests,
                                                                    sums.failed)}
    for _, server in ipairs(servers) do
        local sample = server.samples[#server.samples]
        words[#words + 1] = ("%s: %d reloads, %d upgrades, %d kills, fds %d + %d, KiB %.0f + %.0f"):format(server.name,
            server.reloads, server.upgrades, server.kills, sample.supervisor_fds, sample.workers_fds,
            sample.supervisor_kib, sample.workers_kib)
    end
    words[#words + 1] = balancer and ("haproxy: %d restarts"):format(balancer.restarts) or nil
    words[#words + 1] = ("%d unexplained"):format(#complaints)
    print(table.concat(words, "; "))
end

-- ---- The soak ----

-- What SOAK_FAULT asks for: the verdict must name it.
local function make_fault(server)
    if os.getenv "SOAK_FAULT" == "kill" then
        server:kill_one()
        server.kills = server.kills - 1
    end
end

local function soak_round(directory, servers, balancer, crowd, sums)
    local restless = servers[1]
    local loads = start_loads(directory, servers, balancer)
    local finish = wire.time() + ROUND_SECONDS
    local next_disturbance = wire.time() + 1 + math.random() * ROUND_SECONDS / 4
    if balancer then balancer:begin_restarts() end
    while wire.time() < finish do
        crowd:step()
        if balancer then balancer:step() end
        if wire.time() > next_disturbance then
            disturb(restless)
            next_disturbance = wire.time() + 0.2 + math.random() * ROUND_SECONDS / 4
        end
        for _, server in ipairs(servers) do server:read_log() end
        wire.sleep(0.02)
    end
    make_fault(servers[2])
    if balancer then balancer:finish_restarts() end
    for _, load in ipairs(loads) do finish_load(load, sums) end
    crowd:rest()
    await_rest(servers)
    for _, server in ipairs(servers) do
        server.samples[#server.samples + 1] = server:sample()
        server:rotate()
    end
end

local function soak(directory, servers)
    for i, name in ipairs{"restless", "steady"} do
        servers[i] = soak_server.start(name, directory, complain)
        servers[i].samples, servers[i].is_steady = {}, name == "steady"
    end
    for _, server in ipairs(servers) do warm_up(server) end
    local balancer = haproxy.start(directory, complain)
    local crowd = clients.new(servers, CLIENTS, complain)
    local sums = {requests = 0, failed = 0}
    local finish, round = wire.time() + SECONDS, 0
    repeat
        round = round + 1
        soak_round(directory, servers, balancer, crowd, sums)
        show(round, servers, balancer, sums)
    until wire.time() > finish
    for _, server in ipairs(servers) do judge_samples(server) end
    for _, server in ipairs(servers) do server:stop() end
    if balancer then balancer:stop() end
    print(("%d rounds, %d requests, %d failed, %d slow and hostile clients, seed %d"):format(round, sums.requests,
          sums.failed, crowd.count, SEED))
end

test("load, reloads, upgrades, kills, slow and hostile clients together", function()
    local directory = make_site()
    local servers = {}
    local is_done, problem = xpcall(soak, debug.traceback, directory, servers)
    for _, server in ipairs(servers) do server:kill_all() end
    if not is_done then error(problem, 0) end
    print(#complaints == 0 and "verdict: nothing unexplained" or
          ("verdict: %d unexplained; the logs are in %s"):format(#complaints, directory))
    equal(#complaints, 0, "unexplained")
    run("rm -r " .. directory)
end)
