-- SPDX-License-Identifier: MIT
--
-- What: starts, checks and stops a server of any peer.
-- Place: a peer's start(context) gets its context from here; load.lua and rows call servers.start().
--
-- context  port, root, scratch (an empty directory), cpu (a number or a list), workers,
--          connections, service, row
--          spawn(words, {env =, cpu =}) -> proc    pinned, with as many descriptors as possible
--          fill(path, {WORD = ...}) -> path        a copy in scratch with each @WORD@ replaced
--          wait_ready(proc or port)                wait until the port accepts
--          server(proc, ...) -> server
-- server   port, pids() -> the present ones, stop(), command (as typed), pss()

local machine = require "machine"
local others = require "others"
local warden = require "warden"

local servers = {}

local READY_SECONDS = 20
local number = 0 -- number of the last context: each context has its own directory

-- Quote a word so that sh reads it as it is.
local function quoted(word)
    return word:find("^[%w_@%%+=:,./-]+$") and word or "'" .. word:gsub("'", "'\\''") .. "'"
end

function servers.command_line(words)
    local list = {}
    for i, word in ipairs(words) do
        list[i] = quoted(tostring(word))
    end
    return table.concat(list, " ")
end

function servers.free_port()
    local listener <close> = wire.listen("127.0.0.1", 0)
    return listener:port()
end

local function accepts(port)
    local good, sock = pcall(wire.connect, "127.0.0.1", port)
    if good then
        sock:close()
    end
    return good
end

-- Raise the driver's soft limit of descriptors to the hard limit. All processes that it starts
-- inherit the limit: our servers would raise it themselves, other servers would not.
function servers.allow_descriptors()
    local file <close> = assert(io.open("/proc/self/stat"))
    os.execute(('prlimit --pid %s --nofile="$(ulimit -Hn)"'):format(file:read("a"):match("^%d+")))
end

-- Start a process that may run on one CPU, or on the CPUs of a list.
function servers.spawn(words, cpu, env)
    local command = {env = env}
    if type(cpu) == "table" then
        command = {"taskset", "-c", table.concat(cpu, ","), env = env}
    else
        command.cpu = cpu
    end
    for _, word in ipairs(words) do
        command[#command + 1] = tostring(word)
    end
    return wire.spawn(command)
end

local function has_ended(proc)
    return (pcall(proc.wait, proc, 0))
end

-- End processes and everything that they started; each has its own process group.
local function end_all(procs)
    for _, proc in ipairs(procs) do
        if not has_ended(proc) then
            os.execute(("kill -s KILL -- -%d 2>/dev/null"):format(proc:pid()))
            pcall(proc.wait, proc, 20)
        end
        warden.has_ended(proc)
    end
end

local function wait_ready(context, proc)
    local give_up = wire.time() + READY_SECONDS
    local port = type(proc) == "number" and proc or context.port
    proc = type(proc) == "userdata" and proc or context.procs[#context.procs]
    repeat
        if accepts(port) then
            return
        end
        if proc and has_ended(proc) then
            error("the server ended: " .. proc:errors(), 0)
        end
        wire.sleep(0.01)
    until wire.time() > give_up
    error("the server does not accept connections: " .. (proc and proc:errors() or ""), 0)
end

local function fill(context, path, words)
    local known = {PORT = context.port, ROOT = context.root, SCRATCH = context.scratch,
                   WORKERS = context.workers, CONNECTIONS = context.connections}
    local source <close> = assert(io.open(path))
    local text = source:read("a"):gsub("@(%u+)@", setmetatable(words or {}, {__index = known}))
    local copy = context.scratch .. "/" .. path:match("[^/]+$")
    local file <close> = assert(io.open(copy, "w"))
    file:write(text)
    return copy
end

local Server = {}
Server.__index = Server

local function make_server(context, ...)
    local server = setmetatable({port = context.port, procs = {...}, cpu = context.cpu,
                                 command = context.command}, Server)
    if #server.procs == 0 then
        server.procs = context.procs
    end
    server.proc = server.procs[1]
    server.pid = server.proc:pid()
    function server.pids()
        local pids = {}
        for _, proc in ipairs(server.procs) do
            local tree = machine.tree(proc:pid())
            table.move(tree, 1, #tree, #pids + 1, pids)
        end
        return pids
    end
    function server.stop() end_all(server.procs) end
    return server
end

-- Bytes of memory of all processes of the server; memory that they share is counted once.
function Server:pss()
    local sum = 0
    for _, pid in ipairs(self.pids()) do
        sum = sum + wire.pss(pid)
    end
    return sum
end

-- given: values of the context that replace the defaults. house has cpu, root and scratch.
local function make_context(house, given)
    number = number + 1
    local context = {}
    for name, value in pairs(given) do
        context[name] = value
    end
    context.port = context.port or servers.free_port()
    context.root = context.root or house.root
    context.cpu = context.cpu or house.server_cpu
    context.workers = context.workers or 1
    context.connections = context.connections or 128
    context.scratch = ("%s/server-%d"):format(house.scratch, number)
    assert(os.execute("mkdir " .. context.scratch))
    context.procs = {}
    function context.spawn(words, options)
        options = options or {}
        context.command = context.command or servers.command_line(words)
        local proc = servers.spawn(words, options.cpu or context.cpu, options.env)
        context.procs[#context.procs + 1] = proc
        warden.has_begun(proc)
        return proc
    end
    function context.wait_ready(proc) wait_ready(context, proc) end
    function context.fill(path, words) return fill(context, path, words) end
    function context.server(...) return make_server(context, ...) end
    return context
end

-- Start a server of this peer. Raises an error that says why it did not start.
function servers.start(house, peer, given)
    local context = make_context(house, given)
    local good, server = pcall(peer.start, context)
    if not good then
        end_all(context.procs)
        error(server, 0)
    end
    server.port = server.port or context.port
    server.cpu = server.cpu or context.cpu
    server.command = server.command or context.command
    server.pss = server.pss or Server.pss
    server.warm_up, server.peer = peer.warm_up, peer.name
    local stop, is_running = server.stop, true
    function server.stop()
        if is_running then
            is_running = false
            others.leave_out(server.pids())
        end
        stop(server)
        end_all(context.procs) -- also processes that the server does not know any more
        os.execute("rm -rf " .. context.scratch)
    end
    local class = getmetatable(server) or {}
    class.__close = function(self) self.stop() end
    return setmetatable(server, class)
end

-- Send one request, and return its reply.
function servers.ask(port, target, headers, post)
    local sock <close> = wire.connect("127.0.0.1", port)
    local lines = {("%s %s HTTP/1.1"):format(post and "POST" or "GET", target),
                   ("Host: 127.0.0.1:%d"):format(port)}
    table.move(headers or {}, 1, #(headers or {}), #lines + 1, lines)
    if post then
        lines[#lines + 1] = "Content-Length: " .. #post
    end
    sock:timeout(20)
    sock:send(table.concat(lines, "\r\n") .. "\r\n\r\n" .. (post or ""))
    return sock:read_reply()
end

-- The length of a server's reply to a request of this load; nil and why, if the reply is wrong.
function servers.look(server, load)
    local reply = servers.ask(server.port, load.target or "/", load.headers, load.post)
    local expected = "," .. (load.status or "200") .. ","
    if not expected:find("," .. reply.status .. ",", 1, true) then
        return nil, "the first reply's status is " .. reply.status
    end
    if type(load.body) == "string" and load.body ~= reply.body then
        return nil, ("the first reply's body is %q, not %q"):format(reply.body:sub(1, 80),
                                                                   load.body:sub(1, 80))
    end
    local good, why = true, nil
    if type(load.body) == "function" then
        good, why = load.body(reply)
    end
    if not good then
        return nil, "the first reply: " .. (why or "wrong")
    end
    return #reply.raw
end

return servers
