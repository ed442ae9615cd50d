-- SPDX-License-Identifier: MIT
--
-- The start of a script, by docs/lua-handlers.md: its top level may compute before it makes servers, routes and files.

local cli = require "cli"
local httpd = require "httpd"
local script = require "script"

local COMPUTE = [[
local http = require "sxe.http"
local from = os.clock()
while os.clock() - from < 0.1 do end
]]

local function routes(name)
    return COMPUTE .. ([[
local r = http.router()
r:get("/%s", function() return "%s" end)
return r]]):format(name, name)
end

-- promise: docs/lua-handlers.md: The top level may compute before it plans them, for as long as a handler
--   may compute
test("routes that are made after 100 ms of computing, at the start and at a reload", function()
    for _, workers in ipairs{"1", "2"} do
        local server <close> = script.start(routes "first", "-w", workers)
        equal(server:ask "/first", "first")
        server:write(routes "second")
        server:reload()
        httpd.wait_until(function() return server:ask "/second" == "second" end, "the reload")
    end
end)

-- promise: docs/lua-handlers.md: The top level may compute before it plans them, for as long as a handler
--   may compute
test("files that are planned after 100 ms of computing", function()
    local server <close> = script.start(COMPUTE .. 'return http.static((arg[0]:match "^(.*)/"))')
    check(server:ask "/app.lua":find("os.clock", 1, true))
end)

-- promise: docs/lua-handlers.md: The top level may compute before it plans them, for as long as a handler
--   may compute
test("sxe-lua: a server that is made after 100 ms of computing", function()
    local ran = cli.run("sxe-lua", "-e", COMPUTE .. [[
        local server = http.serve{port = 0, handler = function() return "well" end}
        require "sxe.task".sleep(0)
        io.write(server.port > 0 and "well" or "none")
        server:stop()]])
    equal(ran.output, "well", ran.errors)
    equal(ran.status, 0)
end)
