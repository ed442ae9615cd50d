-- SPDX-License-Identifier: MIT
--
-- HAProxy before three servers that are ended and started again one after the other, with examples/deploy/haproxy.cfg.

local admin = require "admin"
local checks = require "soak-checks"

local haproxy = {}
haproxy.__index = haproxy

local RESTART_SECONDS <const> = 120
local SERVERS <const> = 3

local function start_server(self, port, admin_port)
    return admin.start_at(tostring(admin_port), "-p", tostring(port), "--proxy-from", "127.0.0.1", "--config",
                          self.directory .. "/plain.lua")
end

-- The example, but for its port, its servers, and its times, which are longer for a busy machine.
local function configure(self)
    local from <close> = assert(io.open "examples/deploy/haproxy.cfg")
    local text = from:read("a"):gsub("bind :8080", "bind fd@3"):gsub("\n    server [^\n]*", "")
                     :gsub("timeout connect 5s", "timeout connect 60s\n    timeout check 60s")
    for i, server in ipairs(self.servers) do
        text = text .. ("\n    server s%d 127.0.0.1:%d port %d"):format(i, server.port, server.admin_port)
    end
    local path = self.directory .. "/haproxy.cfg"
    local to <close> = assert(io.open(path, "w"))
    to:write(text .. "\n")
    return path
end

-- Start all; nil after a line that says why there is no HAProxy.
function haproxy.start(directory, complain)
    local program = wire.has "haproxy"
    if not program then
        print "skipped: HAProxy before three servers, because it is not installed"
        return nil
    end
    local self = setmetatable({directory = directory, complain = complain, servers = {}, restarts = 0, kills = 0,
                               front = wire.listen("127.0.0.1", 0)}, haproxy)
    self.port = self.front:port()
    for i = 1, SERVERS do self.servers[i] = start_server(self, wire.free_port(), wire.free_port()) end
    self.proc = wire.spawn{program, "-db", "-f", configure(self), pass = {self.front}}
    return self
end

local function pause_until(self, what, condition)
    local deadline = wire.time() + RESTART_SECONDS
    while not condition() do
        if wire.time() > deadline then
            self.complain(("haproxy: not within %d s: %s"):format(RESTART_SECONDS, what))
            return
        end
        coroutine.yield()
    end
end

local function ask_through(self)
    local sock <close> = wire.connect("127.0.0.1", self.port)
    sock:send "GET /a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    local reply = sock:recv_all()
    if not reply:find "^HTTP/1.1 200 " then self.complain(("haproxy answers %q"):format(reply:sub(1, 60))) end
end

local function check_end(self, server, status)
    if status ~= 0 then self.complain(("haproxy's server ended with %s"):format(status)) end
    for line in server.proc:errors():gmatch "[^\n]+" do
        if not checks.is_expected(line, 0) then self.complain("haproxy's server logs: " .. line) end
    end
end

local function restart(self, place)
    local old = self.servers[place]
    old.proc:signal "TERM"
    local is_ended, status
    pause_until(self, "the end of a server", function()
        is_ended, status = pcall(old.proc.wait, old.proc, 0.01)
        return is_ended
    end)
    if not is_ended then return end
    check_end(self, old, status)
    local new = start_server(self, old.port, old.admin_port)
    self.servers[place] = new
    self.restarts = self.restarts + 1
    -- HAProxy must find the new server before the next one is ended.
    pause_until(self, "HAProxy uses a server again", function()
        ask_through(self)
        return new:get("/metrics"):find('http_response_status_code="200"', 1, true)
    end)
end

function haproxy:begin_restarts()
    self.run = coroutine.create(function()
        for place = 1, SERVERS do restart(self, place) end
    end)
    self.wake = 0
end

function haproxy:step()
    if self.run and wire.time() > self.wake then
        local is_well, problem = coroutine.resume(self.run)
        if not is_well then self.complain("haproxy: " .. tostring(problem)) end
        if coroutine.status(self.run) == "dead" then self.run = nil end
        self.wake = wire.time() + 0.1
    end
end

function haproxy:finish_restarts()
    while self.run do
        self:step()
        wire.sleep(0.02)
    end
end

function haproxy:stop()
    self.proc:signal "TERM"
    self.proc:wait(60)
    for _, server in ipairs(self.servers) do
        server.proc:signal "TERM"
        check_end(self, server, server.proc:wait(60))
    end
end

return haproxy
