-- SPDX-License-Identifier: MIT
--
-- A running sxe-httpd with an admin listener: `local server <close> = admin.start(...)`. It has the
-- methods of httpd.lua's servers, and others that ask the admin listener.

local httpd = require "httpd"

local admin = setmetatable({}, {__index = httpd})
admin.__index = admin
admin.__close = httpd.__close

function admin.start_at(place, ...)
    local server = setmetatable(httpd.start("--admin", place, ...), admin)
    local line = server.proc:line(20)
    server.admin_path = line and line:match("^status at unix:(.*)$")
    server.admin_ip, server.admin_port = (line or ""):match("^status at http://%[?([%x.:]+)%]?:(%d+)/%S*$")
    server.admin_port = tonumber(server.admin_port)
    if not (server.admin_port or server.admin_path) then
        error(("expected where the status is, got %q and %q"):format(line, server.proc:errors()), 2)
    end
    return server
end

function admin.start(...)
    return admin.start_at("0", ...)
end

function admin:dial()
    return wire.connect(self.admin_path or self.admin_ip, self.admin_port or 0)
end

-- Send one request to the admin listener; return the status of the reply, and the whole reply.
function admin:ask(method, path, fields, body)
    local sock <close> = self:dial()
    local lines = {("%s %s HTTP/1.1"):format(method, path),
                   "Host: 127.0.0.1:" .. (self.admin_port or 1), "Connection: close"}
    for _, field in ipairs(fields or {}) do
        if field:find("^Host:") then
            lines[2] = field
        else
            lines[#lines + 1] = field
        end
    end
    if body then
        lines[#lines + 1] = "Content-Length: " .. #body
    end
    sock:send(table.concat(lines, "\r\n") .. "\r\n\r\n" .. (body or ""))
    local reply = sock:recv_all()
    return tonumber(reply:match("^HTTP/1.1 (%d+) ")), reply:match("\r\n\r\n(.*)$"), reply
end

function admin:get(path)
    local status, body = self:ask("GET", path)
    equal(status, 200, path)
    return body
end

-- The sum of the samples of a metric whose labels contain each of the given texts.
function admin.sum(text, name, ...)
    local sum = 0
    for labels, value in ("\n" .. text):gmatch("\n" .. name .. "({?[^\n]-}?) ([%d.e+-]+)%f[\n]") do
        local is_wanted = true
        for _, label in ipairs{...} do
            is_wanted = is_wanted and labels:find(label, 1, true) ~= nil
        end
        sum = sum + (is_wanted and tonumber(value) or 0)
    end
    return sum
end

function admin:token()
    return self:get("/token")
end

function admin:act(path, body)
    return self:ask("POST", path, {"X-Sxe-Token: " .. self:token()}, body or "")
end

return admin
