-- SPDX-License-Identifier: MIT
--
-- The row about PostgreSQL: a request selects a row by its key, in one process of each peer, with at
-- most ten connections to a server of PostgreSQL that the row starts.
--
-- PostgreSQL shares the client's CPU, so the row counts what a peer does in a second of its own CPU.
-- Node has the package pg of the npm registry, which tools/bench-deps.sh gets; nginx has a client in
-- the way of pgmoon (bench/peers/nginx/postgres.lua), because pgmoon is in no registry of Debian.

local machine = require "machine"
local servers = require "servers"

local MODULES, SHARE = "/usr/lib/nginx/modules/", "/usr/share/lua/5.1/"
local NODE_PATH = "build/bench/node_modules" -- bench-deps.sh installs pg there
local NODE_WARM_UP = 1.5 -- seconds of load until Node has compiled all that it will compile
local CONNECTIONS = 64

local TABLE = "CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL, price int NOT NULL); "
              .. "INSERT INTO items SELECT g, 'item ' || g, 1000 + g % 9000 FROM generate_series(10000, 19999) g; "
              .. "ANALYZE items;\n"

-- ---- PostgreSQL ----

local function program_of(name)
    local list <close> = assert(io.popen("ls /usr/lib/postgresql/*/bin/" .. name .. " 2>/dev/null | tail -1"))
    return list:read("l") or wire.has(name)
end

local function is_root()
    local file <close> = assert(io.open("/proc/self/status"))
    return file:read("a"):find("\nUid:%s+0%s") ~= nil
end

-- A command as the user nobody: the server refuses to run as root.
local function as_nobody(words)
    local list = is_root() and {"setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"} or {}
    return table.move(words, 1, #words, #list + 1, list)
end

local function lacks_postgres()
    if not program_of("initdb") or not program_of("postgres") then
        return "PostgreSQL is not installed (package postgresql); make bench-deps installs it"
    elseif is_root() and not wire.has("setpriv") then
        return "PostgreSQL refuses root, and setpriv is not installed (package util-linux)"
    end
    return nil
end

-- Run a command to its end.
local function run(words)
    local proc <close> = wire.spawn(as_nobody(words))
    local output = proc:output(60)
    if proc:wait(60) ~= 0 then
        error(("%s: %s%s"):format(words[1], output, proc:errors()), 0)
    end
end

-- Make a cluster of databases with the table, while no server runs: postgres --single reads SQL.
local function make_cluster(data)
    run{program_of("initdb"), "-D", data, "-U", "bench", "--auth=trust", "-N", "-E", "UTF8", "--locale=C"}
    run{"sh", "-c", 'printf %s "$1" | "$2" --single -j -D "$3" postgres >"$3/log" 2>&1', "sh", TABLE .. "\n",
        program_of("postgres"), data}
end

local function start_postgres(house)
    return servers.start(house, {start = function(context)
        local data = context.scratch .. "/data"
        assert(os.execute("chmod 711 " .. house.scratch .. " && chmod 777 " .. context.scratch))
        make_cluster(data)
        local proc = context.spawn(as_nobody{program_of("postgres"), "-D", data, "-k", "", "-p",
                                             tostring(context.port), "-c", "listen_addresses=127.0.0.1", "-c",
                                             "fsync=off", "-c", "jit=off", "-c", "autovacuum=off"},
                                   {cpu = house.client_cpu})
        context.wait_ready(proc)
        return context.server(proc)
    end}, {})
end

-- ---- Peers ----

local function launch(context, words, options)
    local proc = context.spawn(words, options)
    if options and options.says then
        if not proc:line(20) then
            error(("%s ended: %s"):format(words[1], proc:errors()), 0)
        end
    else
        context.wait_ready(proc)
    end
    return context.server(proc)
end

local function start_ours(context)
    return launch(context, {wire.program("sxe-httpd"), "-w", "1", "-p", tostring(context.port), "--requests",
                            "1000000000", "--idle-timeout", "3600", "--lua", "bench/lua/postgres.lua", "--",
                            tostring(context.postgres)})
end

local function start_node(context)
    return launch(context, {wire.has("node"), "bench/peers/node/postgres.js", tostring(context.port),
                            tostring(context.postgres)}, {says = true, env = {NODE_PATH = NODE_PATH}})
end

local function start_nginx(context)
    local path = context.fill("bench/peers/nginx/postgres.conf", {
        MODULES = MODULES, SHARE = SHARE, PLACES = 1024, POSTGRES = context.postgres,
        PEERS = os.getenv("PWD") .. "/bench/peers/nginx"})
    return launch(context, {wire.has("nginx"), "-c", path})
end

local function exists(path)
    local file <close> = io.open(path)
    return file ~= nil
end

-- Why a peer cannot be measured here; nil: it can.
local function lacks(name, path, package)
    if not wire.has(name) then
        return ("%s is not installed; make bench-deps installs it"):format(name)
    elseif not exists(path) then
        return ("%s is not installed; make bench-deps installs it"):format(package)
    end
    return nil
end

local function lacks_nginx()
    return lacks("nginx", MODULES .. "ngx_http_lua_module.so", "libnginx-mod-http-lua")
           or not os.execute("ls /usr/lib/*/lua/5.1/cjson.so >/dev/null 2>&1") and "lua-cjson is not installed; "
           .. "make bench-deps installs it" or nil
end

local NODE_VERSION = ([[printf '%%s, pg %%s\n' "$(node --version)" "$(sed -n 's/.*"version": "\(.*\)".*/\1/p' ]]
                      .. [[%s/pg/package.json)"]]):format(NODE_PATH)

local PEERS = {
    {name = "sxe-httpd-postgres", title = "sxe-httpd -w 1 --lua", start = start_ours,
     missing = function() return not program_of("postgres") and "there is no PostgreSQL" or nil end,
     version = wire.program("sxe-httpd") .. " --version"},
    {name = "node-pg", title = "Node http, pg", start = start_node, warm_up = NODE_WARM_UP, version = NODE_VERSION,
     missing = function() return lacks("node", NODE_PATH .. "/pg/package.json", "pg of the npm registry") end},
    {name = "nginx-pgmoon", title = "nginx + Lua, as pgmoon", start = start_nginx, missing = lacks_nginx,
     version = "nginx -v 2>&1"},
}

-- ---- The row ----

-- Whether a reply is a row, whose members may come in any order.
local function is_row(reply)
    local id = reply.body:match('"id":(%d+)')
    local is_good = id and #reply.body == 45 and reply.body:find('"name":"item ' .. id .. '"', 1, true)
                    and reply.body:find('"price":' .. 1000 + id % 9000, 1, true)
    return is_good and true, "the body is " .. reply.body
end

local LOAD = {connections = CONNECTIONS, target = "/", body = is_row, second = false}

-- One sample. PostgreSQL stays for all rounds of the row.
local function run_select(bench, peer)
    local kept = bench.kept or {}
    kept.postgres = kept.postgres or start_postgres(bench)
    return bench.with(peer, function()
        return bench.start(peer, {postgres = kept.postgres.port, connections = CONNECTIONS + 64})
    end, function(server)
        local first = machine.busy(kept.postgres.pids())
        local sample = bench.load(server, LOAD)
        sample.more = {postgres_us = sample.rate and (machine.busy(kept.postgres.pids()) - first)
                                     / (sample.rate * (sample.seconds or 1)) * 1e6}
        return sample
    end)
end

return {
    {name = "postgres-select", group = "postgres", unit = "replies/CPU s", peers = PEERS, reference = "node-pg",
     ours = "sxe-httpd-postgres", missing = lacks_postgres, run = run_select, budget = 45, load = LOAD,
     title = "A row of PostgreSQL by its key, as JSON, 64 connections",
     work = "each request selects one of 10,000 rows by a random key, over at most ten connections to PostgreSQL, "
            .. "which shares the client's CPU: what a server does in a second of its own CPU time is compared",
     command = "sxe-httpd -w 1 -p PORT --lua bench/lua/postgres.lua -- POSTGRES_PORT; "
               .. "sxe-http -c 64 -d 1 http://127.0.0.1:PORT/",
     checks = "the body of the first reply, the status of all",
     void = "a reply with another length; a connection refused, reset or closed; 0.08 of a CPU taken by others",
     columns = {{"rate", "per second", 0}, {"server_us", "server µs", 2}, {"p50", "p50 µs", 0}, {"p99", "p99 µs", 0}},
     target = {{peer = "node-pg", ratio = 1, of = "issue 21"}, {peer = "nginx-pgmoon", ratio = 1, of = "issue 21"}}},
}
