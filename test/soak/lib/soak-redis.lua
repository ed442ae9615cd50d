-- SPDX-License-Identifier: MIT
--
-- A real redis-server, or a cluster of six, and what happens to them while soak-redis-load.lua sends numbered commands.
-- Each time the load prints a line, something happens: connections are killed, a server is stopped for some
-- milliseconds, a server is killed and started again; in a cluster, slots move, and replicas become masters, with the
-- master's consent or after its death.
--
-- Each server appends to a file what it executed, before it replies. So a killed server that is started again knows all
-- that its clients were told. A master that is killed for good is made to wait until its replica knows as much.

local httpd = require "httpd"

local soak_redis = {}

local PATIENCE <const>, WHOLE_SECONDS <const> = 600, 120
local NODE_TIMEOUT <const> = 5000 -- ms; a node that is started again at once must not count as dead
local SLOTS_MAX <const> = 60 -- that move at a time

-- ---- One server ----

local Server = {}
Server.__index = Server

-- Start a server; port nil: it has only a socket in its directory.
function Server:start()
    local words = {wire.has "redis-server", "--port", tostring(self.port or 0), "--unixsocket", self.path, "--dir",
                   self.directory, "--save", "", "--appendonly", "yes", "--appendfsync", "no",
                   "--auto-aof-rewrite-percentage", "0", "--logfile", self.directory .. "/log"}
    if self.port then
        table.move({"--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-port", tostring(self.bus),
                    "--cluster-node-timeout", tostring(NODE_TIMEOUT), "--repl-diskless-sync-delay", "0"}, 1, 10,
                   #words + 1, words)
    end
    repeat
        self.proc = wire.spawn(words)
        -- Another program may have one of the ports for a moment: then the server ends.
        local is_up, has_ended
        httpd.wait_until(function()
            is_up = pcall(wire.connect, self.path, 0)
            has_ended = pcall(self.proc.wait, self.proc, 0)
            return is_up or has_ended
        end, "redis-server listens, or cannot")
    until is_up and not has_ended
end

-- Send a command, and read its reply: a line or a text; nil: the server does not answer.
function Server:ask(command)
    local is_good, reply = pcall(function()
        local sock <close> = wire.connect(self.path, 0)
        sock:send(command .. "\r\n")
        local line = sock:recv_until "\r\n":sub(1, -3)
        local length = line:match "^%$(%d+)$"
        return length and sock:recv(tonumber(length)) or line
    end)
    return is_good and reply or nil
end

function Server:kill()
    self.proc:signal "KILL"
    self.proc:wait(60)
    os.remove(self.path)
end

-- Kill the connections of the load: all, or one. Redis-cli, which moves slots, speaks RESP2, and keeps its own.
function Server:kill_connections()
    local list = {}
    for line in (self:ask "CLIENT LIST" or ""):gmatch "[^\n]+" do
        if line:find(" resp=3", 1, true) then list[#list + 1] = line:match "^id=(%d+)" end
    end
    if #list == 0 then return end
    local first, last = 1, #list
    if math.random(2) == 1 then
        first = math.random(#list)
        last = first
    end
    for i = first, last do self:ask("CLIENT KILL ID " .. list[i]) end
end

function Server:stall()
    self.proc:signal "STOP"
    wire.sleep(math.random() * 0.03)
    self.proc:signal "CONT"
end

local function new_server(directory, port, bus)
    local server = setmetatable({directory = directory, path = directory .. "/s", port = port, bus = bus}, Server)
    assert(os.execute("mkdir " .. directory))
    server:start()
    return server
end

-- ---- A server that is alone ----

local Alone = {}
Alone.__index = Alone

function soak_redis.alone(directory)
    local what = {kills = 0, stalls = 0, restarts = 0}
    return setmetatable({server = new_server(directory .. "/alone"), what = what}, Alone)
end

function Alone:addresses()
    return {"unix:" .. self.server.path}
end

function Alone:disturb()
    local choice = math.random(10)
    if choice <= 5 then
        self.server:kill_connections()
        self.what.kills = self.what.kills + 1
    elseif choice <= 8 then
        self.server:stall()
        self.what.stalls = self.what.stalls + 1
    else
        self.server:kill()
        wire.sleep(math.random() * 0.02)
        self.server:start()
        self.what.restarts = self.what.restarts + 1
    end
end

function Alone:leave_alone()
    httpd.wait_until(function() return self.server:ask "SET {0}quiet yes" == "+OK" end, "the server takes a value")
end

function Alone:close()
    self.server:kill()
end
Alone.__close = Alone.close

-- ---- A cluster of six ----

local Cluster = {}
Cluster.__index = Cluster

local function cli(...)
    return wire.spawn{wire.has "redis-cli", ...}
end

local function field(text, name)
    return text and text:match("%f[%w_]" .. name .. ":([^\r\n]*)")
end

-- Why a node does not agree that the cluster is whole, and each master has a replica that follows it; nil: it does.
local function lacks(node)
    local nodes, info, role = node:ask "CLUSTER NODES", node:ask "CLUSTER INFO", node:ask "INFO replication"
    if not nodes or not info or not role then return "does not answer" end
    if nodes:find "fail" or nodes:find "handshake" then return nodes end
    if nodes:find "%[%d+%-[<>]" then return "a slot is open: " .. nodes end
    if field(info, "cluster_state") ~= "ok" or field(info, "cluster_known_nodes") ~= "6" then return info end
    local is_master = field(role, "role") == "master"
    local is_followed = is_master and role:find "slave%d:[^\r\n]*state=online"
    if not is_followed and field(role, "master_link_status") ~= "up" then return role end
end

local function await_whole(self)
    local deadline = wire.time() + WHOLE_SECONDS
    local why, node
    repeat
        why, node = nil, nil
        for i = 1, #self do
            if not why then why, node = lacks(self[i]), i end
        end
        if why then wire.sleep(0.02) end
    until not why or wire.time() > deadline
    if why then error(("the cluster is not whole: node %d: %s"):format(node, why), 0) end
end

local function node_with(self, role)
    local list = {}
    for _, node in ipairs(self) do
        if field(node:ask "INFO replication", "role") == role then list[#list + 1] = node end
    end
    return list[math.random(#list)]
end

local function id_of(node)
    return node:ask "CLUSTER MYID"
end

function soak_redis.cluster(directory)
    local what = {kills = 0, stalls = 0, restarts = 0, moves = 0, failovers = 0, deaths = 0}
    local self = setmetatable({what = what}, Cluster)
    local words = {"--cluster", "create", "--cluster-replicas", "1", "--cluster-yes"}
    for i = 1, 6 do
        self[i] = new_server(("%s/%d"):format(directory, i), wire.free_port(), wire.free_port())
        table.insert(words, 2 + i, "127.0.0.1:" .. self[i].port)
    end
    local proc <close> = cli(table.unpack(words))
    local said = proc:output(120)
    equal(proc:wait(120), 0, said)
    await_whole(self)
    return self
end

function Cluster:addresses()
    local list = {}
    for i, node in ipairs(self) do list[i] = "127.0.0.1:" .. node.port end
    return list
end

-- Begin to move slots from a master to another one.
local function begin_move(self)
    local from, to = node_with(self, "master"), node_with(self, "master")
    if from == to then return end
    self.moving = cli("--cluster", "reshard", "127.0.0.1:" .. from.port, "--cluster-from", id_of(from), "--cluster-to",
                      id_of(to), "--cluster-slots", tostring(math.random(SLOTS_MAX)), "--cluster-yes")
end

-- Wait until the slots have moved. If a node has not heard of the last failover yet, redis-cli moves none.
local function finish_move(self)
    local said = self.moving:output(PATIENCE)
    local status = self.moving:wait(PATIENCE)
    self.moving = nil
    if status == 0 then
        self.what.moves = self.what.moves + 1
    elseif not said:find "Nodes don't agree about configuration" then
        self.complaints[#self.complaints + 1] = "slots did not move: " .. said:sub(-300)
    end
end

local function fail_over(self)
    local replica = node_with(self, "slave")
    local ask_at = 0
    httpd.wait_until(function()
        if wire.time() > ask_at then -- the master may not agree in time
            replica:ask "CLUSTER FAILOVER"
            ask_at = wire.time() + NODE_TIMEOUT / 1000 + 1
        end
        return field(replica:ask "INFO replication", "role") == "master"
    end, "a replica that was told so is a master")
    self.what.failovers = self.what.failovers + 1
end

local function restart_one(self)
    local node = self[math.random(#self)]
    node:kill()
    node:start()
    self.what.restarts = self.what.restarts + 1
end

-- Kill a master for good, and start it again only when its replica has its place.
local function let_die(self)
    local master = node_with(self, "master")
    local replica
    master:ask "CLIENT PAUSE 60000 WRITE"
    httpd.wait_until(function()
        local said = master:ask "INFO replication"
        replica = tonumber(said:match "slave0:[^\r\n]*port=(%d+)")
        return said:match "slave0:[^\r\n]*offset=(%d+)" == field(said, "master_repl_offset")
    end, "the replica knows what its master knows")
    master:kill()
    for _, node in ipairs(self) do
        if node.port == replica then replica = node end
    end
    httpd.wait_until(function() return field(replica:ask "INFO replication", "role") == "master" end,
                     "the replica of a dead master is a master")
    master:start()
    self.what.deaths = self.what.deaths + 1
end

function Cluster:disturb()
    local choice = math.random(20)
    if choice <= 7 then
        self[math.random(#self)]:kill_connections()
        self.what.kills = self.what.kills + 1
    elseif choice <= 11 then
        self[math.random(#self)]:stall()
        self.what.stalls = self.what.stalls + 1
    else
        if self.moving then finish_move(self) end
        await_whole(self)
        if choice <= 15 then begin_move(self)
        elseif choice <= 17 then fail_over(self)
        elseif choice <= 19 then restart_one(self)
        else let_die(self) end
    end
end

function Cluster:leave_alone()
    if self.moving then finish_move(self) end
    await_whole(self)
    local said
    httpd.wait_until(function()
        local proc <close> = cli("-c", "-p", tostring(self[1].port), "SET", "{0}quiet", "yes")
        said = proc:output(60)
        return said == "OK\n"
    end, "the cluster takes a value")
end

function Cluster:close()
    for _, node in ipairs(self) do node:kill() end
end

-- ---- The load ----

-- Send `count` numbered commands to the server or cluster, and disturb it `times` times meanwhile. Returns the sums,
-- the messages that nobody expects, and what happened to the server. fault: what the load does wrong once, for its test.
function soak_redis.run(server, count, times, seed, fault)
    local complaints = {}
    server.complaints = complaints
    math.randomseed(seed)
    local load <close> = wire.spawn{
        env = {SXE_LOG_LEVEL = "error", SOAK_FAULT = fault}, wire.program "sxe-lua", "--sockets",
        "600", "test/soak/lib/soak-redis-load.lua", tostring(count), tostring(seed), tostring(times),
        table.unpack(server:addresses())}
    local sums
    for line in function() return load:line(PATIENCE) end do
        if line:find "^at " then server:disturb() end
        if line == "ended" then server:leave_alone() end
        if line:find "^odd: " then complaints[#complaints + 1] = line end
        if line:find "^sums: " then
            sums = {}
            for name, value in line:gmatch "(%w+)=(%d+)" do sums[name] = tonumber(value) end
        end
    end
    local status = load:wait(60)
    local errors = load:errors()
    if status ~= 0 or errors ~= "" then
        complaints[#complaints + 1] = ("the load ended with status %s: %s"):format(status, errors)
    end
    return sums or {}, complaints, server.what
end

return soak_redis
