-- SPDX-License-Identifier: MIT
-- A server whose response times follow a known law (test/peer/known-law.h), and a run of sxe-http against it:
--
--     local server <close> = known.start "fixed:5"
--     local ran = known.load(server, "-c", "8", "-d", "1")   -> {status, output, errors, total}
--     ran.total["service_p50_us"]                            -> a number; nil if it cannot be told

local cli = require "cli"

local known = {}

local Server = {}
Server.__index = Server

function Server:__close()
    self.proc:signal("TERM")
    self.proc:wait(20)
end

function known.start(law)
    local build = os.getenv "SXE_BUILD" or "build/release"
    local proc = wire.spawn{build .. "/test/known-server", law}
    local port = (proc:line(20) or ""):match "^port (%d+)"
    check(port, "known-server " .. law .. ": " .. (port and "" or proc:errors()))
    return setmetatable({proc = proc, url = "http://127.0.0.1:" .. port .. "/"}, Server)
end

local function split(line)
    local fields = {}
    for field in (line:gsub("\r", "") .. ","):gmatch "([^,]*)," do
        fields[#fields + 1] = field
    end
    return fields
end

-- The last line of --csv, which has the figures of all trials together.
local function read_total(path)
    local lines, total = {}, {}
    for line in io.lines(path) do
        lines[#lines + 1] = split(line)
    end
    for i, name in ipairs(lines[1] or {}) do
        total[name] = tonumber(lines[#lines][i])
    end
    return total
end

function known.load(server, ...)
    local path = os.tmpname()
    local words = {...}
    words[#words + 1] = server.url
    local ran = cli.run("sxe-http", "-q", "--csv", path, table.unpack(words))
    ran.total = read_total(path)
    os.remove(path)
    return ran
end

return known
