-- SPDX-License-Identifier: MIT
--
-- Scripts that would never end, by docs/lua.md and docs/lua-handlers.md: only their own client loses its reply, and
-- SIGTERM still ends the server.

local script = require "script"

local PATIENCE = 120 -- seconds, for a busy machine

-- A handler that runs one of the texts of HANGS at /hang.
local TEXT = [[
local function spin() while true do end end
local function closing() return setmetatable({}, {__close = spin}) end
local function deep() return 1 + deep() end
local function fill() local t = {} for i = 1, 1 << 40 do t[i] = ("x"):rep(1000) .. i end end
local function hang() %s end
return function(req) if req.path == "/hang" then hang() end return "well" end
]]

local HANGS = {
    ["a loop"] = "spin()",
    ["a loop that catches errors"] = "while true do pcall(spin) end",
    ["a loop of errors"] = "while true do pcall(error) end",
    ["recursion through pcall"] = "local function f() return pcall(f) end while true do f() end",
    ["recursion through metamethods"] = [[local m = setmetatable({}, {__index = function(t, k)
        return t[k .. "x"] end}) while true do pcall(function() return m.x end) end]],
    ["recursion that is no tail call"] = "while true do pcall(deep) end",
    ["recursion in coroutines, one after the other"] =
        "while true do coroutine.wrap(function() pcall(deep) end)() end",
    ["a handler of xpcall"] = "xpcall(spin, spin) spin()",
    ["a handler of xpcall, in a coroutine"] =
        "coroutine.wrap(function() xpcall(spin, spin) end)() spin()",
    ["a handler that calls itself"] = [[local function handle() return xpcall(spin, handle) end
        xpcall(spin, handle) spin()]],
    ["a handler that fails"] = "while true do xpcall(error, function() error() end) end",
    ["a handler for an error in a function of C"] = "xpcall(table.sort, spin, {3, 1, 2}, spin) spin()",
    ["a handler when memory is out"] = "xpcall(fill, spin) spin()",
    ["<close> in a coroutine of coroutine.wrap"] =
        "coroutine.wrap(function() local _c <close> = closing() spin() end)()",
    ["<close> of a coroutine that is dead"] = [[local co = coroutine.create(function()
        local _a <close> = closing() local _b <close> = closing() spin() end)
        coroutine.resume(co) coroutine.close(co) spin()]],
    ["<close> when memory is out"] =
        "coroutine.wrap(function() local _c <close> = closing() fill() end)() spin()",
    ["<close> of a coroutine that waits"] = [[local co = coroutine.create(function()
        local _c <close> = closing() coroutine.yield() end)
        coroutine.resume(co) coroutine.close(co) spin()]],
    ["__tostring of an error"] = "error(setmetatable({}, {__tostring = spin}))",
    ["__lt"] = "local m = setmetatable({}, {__lt = spin}) return m < m",
    ["an iterator"] = [[for _ in coroutine.wrap(function()
        while true do coroutine.yield(1) end end) do end]],
    ["a comparison in table.sort"] = "table.sort({3, 1, 2}, spin)",
    ["a function for string.gsub"] = '("x"):gsub("x", spin)',
    ["JSON of tables that are empty, but were large"] = [[local e, t = {}, {}
        for i = 1, 131000 do e[i] = true end
        for i = 1, 131000 do e[i] = nil end
        for i = 1, 100000 do t[i] = e end
        require "sxe.json".encode(t)]],
    ["JSON of tables that had many names"] = [[local e, t = {}, {}
        for i = 1, 4000 do e["k" .. i] = true end
        for i = 1, 4000 do e["k" .. i] = nil end
        for i = 1, 100000 do t[i] = e end
        while true do require "sxe.json".encode(t) end]],
    ["a reader of load that never ends"] =
        'while true do load(function() return "local a = 1 " end) end',
}

-- Let one request hang, and check that another client is served.
local function check_hang(text, ...)
    local server <close> = script.start(TEXT:format(text), ...)
    local sock <close> = server:connect()
    sock:timeout(PATIENCE)
    sock:send "GET /hang HTTP/1.1\r\nHost: a\r\n\r\n"
    local status = sock:read_reply().status
    check(status == 500 or status == 503, "status " .. tostring(status))
    server:await "well"
end

for name, text in pairs(HANGS) do
    -- promise: docs/lua.md: Nothing keeps a script alive after that: no `pcall`, no handler of
    --   `xpcall`, no `<close>` variable (even of a coroutine that has died), no finalizer, no hook of
    --   `debug.sethook`, no coroutine.
    test(name .. " ends", function() check_hang(text, "--lua-cpu", "100ms", "--lua-memory", "64m") end)

    -- promise: docs/lua.md: Nothing it does keeps other requests waiting for more than 100 ms of CPU, or takes more
    --   memory than its cap.
    test(name .. " ends in a sandbox", function() check_hang(text, "--lua-sandbox") end)
end

-- promise: docs/lua.md: Nothing keeps a script alive after that: no `pcall`, no handler of `xpcall`,
--   no `<close>` variable (even of a coroutine that has died), no finalizer, no hook of `debug.sethook`,
--   no coroutine.
test("a finalizer that is set after setmetatable, and a hook of debug.sethook, end", function()
    check_hang([[local late = {__gc = true}
        setmetatable({}, late)
        late.__gc = spin
        collectgarbage() spin()]], "--lua-cpu", "100ms")
    check_hang([[coroutine.wrap(function() debug.sethook(spin, "", 1) deep() end)() spin()]],
               "--lua-cpu", "100ms")
end)

-- promise: docs/lua.md: It cannot delay other requests by more than 100 ms of CPU time, or take more memory than its
-- limit.
test("encoding tables that were large, and are empty now, does not hang", function()
    local server <close> = script.start([[
local e, t = {}, {}
for i = 1, 131000 do e[i] = true end
for i = 1, 131000 do e[i] = nil end
for i = 1, 100000 do t[i] = e end
return function(req)
    if req.path == "/whole" then return t end
    if req.path == "/few" then return {table.unpack(t, 1, 1000)} end
    return "well"
end]], "--lua-sandbox")
    for _, path in ipairs { "/whole", "/few" } do
        local sock <close> = server:connect()
        sock:timeout(PATIENCE)
        sock:send("GET " .. path .. " HTTP/1.1\r\nHost: a\r\n\r\n")
        local reply = sock:read_reply()
        check(reply.status == 500 or reply.body:match "^%[{}", "status " .. reply.status)
        server:await "well"
    end
end)

-- promise: docs/lua.md: It cannot delay other requests by more than 100 ms of CPU time, or take more memory than its
-- limit.
test("a join of a list without end does not hang in a sandbox", function()
    local server <close> = script.start([[
local empty = setmetatable({}, {__index = table.concat})
local endless = setmetatable({}, {__len = function() return 1 << 53 end, __index = empty})
return function(req)
    if req.path == "/hang" then return table.concat(endless) end
    return table.concat({1, "b", 3.5}, "-") .. table.concat({1, 2, 3}, "", 2, 3)
end]], "--lua-sandbox")
    local sock <close> = server:connect()
    sock:timeout(PATIENCE)
    sock:send "GET /hang HTTP/1.1\r\nHost: a\r\n\r\n"
    equal(sock:read_reply().status, 500)
    server:await "1-b-3.523"
end)

-- promise: docs/lua.md: Deep recursion ends as in plain Lua, "stack overflow", or at `cpu_ms`.
test("recursion ends with a stack overflow", function()
    local server <close> = script.start([[
local function deep() return 1 + deep() end
return function() return select(2, pcall(deep)):match "stack overflow" or "?" end]],
                                        "--lua-cpu", "100s")
    equal(server:ask(), "stack overflow")
end)
