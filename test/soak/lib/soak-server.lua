-- SPDX-License-Identifier: MIT
--
-- A sxe-httpd of server.lua: its processes, also after upgrades, its logs, and what it holds.

local checks = require "soak-checks"
local json = require "json-text"

local server = {}
server.__index = server

local function read_file(path)
    local file <close> = io.open(path, "rb")
    return file and file:read "a"
end

-- Start a server of the site in `directory`; `complain(text)` is called for each line that nothing explains.
function server.start(name, directory, complain)
    local self = setmetatable({name = name, directory = directory, complain = complain, kills = 0, torn = 0,
                               is_steady = false, reloads = 0, upgrades = 0, lines = 0, log_at = 0, rest_of_log = ""}, server)
    self.log, self.access_log = ("%s/%s.log"):format(directory, name), ("%s/%s.access"):format(directory, name)
    self.unix = ("%s/%s.sock"):format(directory, name)
    -- The shell writes the log to a file, which can be read in parts.
    self.proc = wire.spawn{"sh", "-c", 'exec "$@" 2>>"$0"', self.log, wire.program "sxe-httpd", "--config",
                           directory .. "/site.lua", "--access-log", self.access_log, "--unix", self.unix}
    self.pid, self.group = self.proc:pid(), self.proc:pid()
    self:read_output(true)
    return self
end

-- Read where the server listens; the first time, wait for the last of these lines.
function server:read_output(is_first)
    while is_first and not self.admin_port or self.proc:ready(0) do
        local line = self.proc:line()
        if not line then
            return is_first and error(("%s did not start: %s"):format(self.name, read_file(self.log)), 0)
        end
        self.tls_port = tonumber(line:match "^listening on https://127%.0%.0%.1:(%d+)/") or self.tls_port
        self.port = tonumber(line:match "^listening on http://127%.0%.0%.1:(%d+)/") or self.port
        self.admin_port = tonumber(line:match "^status at http://127%.0%.0%.1:(%d+)/") or self.admin_port
    end
end

-- Read new lines of the log: follow upgrades, and complain of lines that nothing explains.
function server:read_log()
    local file <close> = assert(io.open(self.log, "rb"))
    file:seek("set", self.log_at)
    local new = file:read "a"
    self.log_at = self.log_at + #new
    local text = self.rest_of_log .. new
    for line in text:gmatch "([^\n]*)\n" do
        self.lines = self.lines + 1
        local next_pid = line:match "process (%d+) serves in place of this one"
        self.pid = tonumber(next_pid) or self.pid
        self.upgrades = self.upgrades + (next_pid and 1 or 0)
        self.reloads = self.reloads + (line:find(" was loaded again", 1, true) and 1 or 0)
        if not checks.is_expected(line, self.kills) then
            self.complain(("%s logs: %s"):format(self.name, line))
        end
    end
    self.rest_of_log = text:match "[^\n]*$"
    self:read_output(false)
end

function server:signal(name, pid)
    return (os.execute(("kill -%s %d 2>/dev/null"):format(name, pid or self.pid)))
end

-- What the admin listener says; nil if it does not answer now, because its process is being replaced.
function server:status()
    local is_read, status = pcall(function()
        local sock <close> = wire.connect("127.0.0.1", self.admin_port)
        sock:send "GET /status.json HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        return json.decode(sock:recv_all():match "\r\n\r\n(.*)$")
    end)
    return is_read and status or nil
end

-- Kill one of the workers, or the process of the admin listener.
function server:kill_one()
    local status = self:status()
    if not status then return end
    local pids = {}
    for _, worker in ipairs(status.workers) do pids[#pids + 1] = worker.pid end
    for _, pid in ipairs(self:children()) do
        if (read_file(("/proc/%d/comm"):format(pid)) or ""):find "admin" then pids[#pids + 1] = pid end
    end
    self.kills = self.kills + 1
    self:signal("KILL", pids[math.random(#pids)])
end

function server:children()
    local pids = {}
    local text = read_file(("/proc/%d/task/%d/children"):format(self.pid, self.pid)) or ""
    for pid in text:gmatch "%d+" do pids[#pids + 1] = tonumber(pid) end
    return pids
end

-- The processes of the server, of all its programs: {pid = {state, parent}}.
function server:processes()
    local found = {}
    local list <close> = io.popen "cat /proc/[0-9]*/stat 2>/dev/null"
    for line in list:lines() do
        local pid, state, parent, group = line:match "^(%d+) %(.*%) (%a) (%d+) (%d+)"
        if tonumber(group) == self.group then found[tonumber(pid)] = {state = state, parent = tonumber(parent)} end
    end
    return found
end

-- Zombies whose parent should have waited for them.
function server:zombies()
    local found, processes = {}, self:processes()
    for pid, process in pairs(processes) do
        local parent = processes[process.parent]
        if process.state == "Z" and parent and parent.state ~= "Z" then found[pid] = true end
    end
    return found
end

-- Whether the server is at rest: no connection is open, and earlier workers and programs have ended.
function server:is_at_rest()
    self:read_log()
    pcall(self.proc.wait, self.proc, 0.01) -- after an upgrade the first program is this driver's zombie
    local status = self:status()
    if not status or status.connections ~= 0 or #status.workers ~= 2 or #self:children() ~= 3 then return false end
    local count = 0
    for _, process in pairs(self:processes()) do count = count + (process.state ~= "Z" and 1 or 0) end
    return count == 4
end

-- Descriptors and anonymous memory of the supervisor, and of the workers together. The pages of files are left out: PSS
-- shares them among all processes that have them mapped, so it grows when other programs of the machine end.
function server:sample()
    local sample = {supervisor_fds = wire.fds(self.pid), supervisor_kib = wire.pss_anon(self.pid) / 1024, workers_fds = 0,
                    workers_kib = 0}
    for _, worker in ipairs(self:status().workers) do
        sample.workers_fds = sample.workers_fds + wire.fds(worker.pid)
        sample.workers_kib = sample.workers_kib + wire.pss_anon(worker.pid) / 1024
    end
    return sample
end

-- Check the access log, and begin another one, as logrotate does. A worker that is killed while it writes leaves a part
-- of a line.
function server:rotate()
    local old = self.access_log .. ".old"
    local file <close> = io.open(old)
    for line in file and file:lines() or function() end do
        self.torn = self.torn + (checks.is_access_line(line) and 0 or 1)
        if not checks.is_access_line(line) and self.torn > self.kills then
            self.complain(("%s writes to its access log: %s"):format(self.name, line))
        end
    end
    assert(os.rename(self.access_log, old))
    self:signal "USR1"
end

-- End the server, and check that nothing of it is left.
function server:stop()
    self:signal "TERM"
    local deadline = wire.time() + 60
    local left
    repeat
        wire.sleep(0.05)
        pcall(self.proc.wait, self.proc, 0.01)
        left = 0
        for _, process in pairs(self:processes()) do left = left + (process.state ~= "Z" and 1 or 0) end
    until left == 0 or wire.time() > deadline
    self:read_log()
    if left > 0 then self.complain(("%s: %d processes are left 60 s after SIGTERM"):format(self.name, left)) end
    if os.rename(self.unix, self.unix) then -- which fails if there is no such file
        self.complain(("%s left its socket file %s"):format(self.name, self.unix))
    end
end

-- Kill whatever still runs, when the soak itself fails.
function server:kill_all()
    os.execute(("kill -KILL -%d 2>/dev/null"):format(self.group))
end

return server
