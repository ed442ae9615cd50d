-- SPDX-License-Identifier: MIT
--
-- A script in a new directory, and a sxe-httpd --lua that serves it. The directory is removed when the server stops.

local httpd = require "httpd"
local script = {}
script.__index = setmetatable(script, {__index = httpd})

-- Write a file in one step (rename), so that the server never reads a part of it.
local function write(path, text)
    local file <close> = assert(io.open(path .. ".part", "w"))
    file:write(text)
    file:close()
    assert(os.rename(path .. ".part", path))
end

-- Start sxe-httpd with a script of this text, and with these options.
function script.start(text, ...)
    local directory = os.tmpname()
    os.remove(directory)
    assert(os.execute("mkdir " .. directory))
    local path = directory .. "/app.lua"
    write(path, text)
    local server = httpd.start("--lua", path, ...)
    server.directory, server.path = directory, path
    return setmetatable(server, script)
end

-- Replace the script, or write another file beside it; this does not reload the script.
function script:write(text, name)
    write(name and self.directory .. "/" .. name or self.path, text)
end

function script:reload()
    self.proc:signal("HUP")
end

-- The body of the reply to GET `path`, on a new connection.
function script:ask(path)
    local sock <close> = self:connect()
    sock:send(("GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"):format(path or "/"))
    return sock:read_reply().body
end

function script:await(body)
    httpd.wait_until(function() return self:ask() == body end, body)
end

function script:__close(failure)
    httpd.__close(self, failure)
    os.execute("rm -r " .. self.directory)
end

return script
