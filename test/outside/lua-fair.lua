-- SPDX-License-Identifier: MIT
--
-- Tasks that compute, by docs/lua.md and docs/lua-handlers.md: other tasks get their turns, however many tasks a
-- request starts.

local script = require "script"

local TEXT = [[
local task = require "sxe.task"
local order = {}
local function compute(seconds)
    local from = os.clock()
    while os.clock() - from < seconds do end
end
local function wait()
    for i = 1, 20 do compute(0.009) task.sleep(0) end
    order[#order + 1] = "bad"
end
local function spin()
    compute(0.04)
    order[#order + 1] = "bad"
end
return function(req)
    if req.path == "/order" then return table.concat(order, " ") end
    local is_bad = req.path ~= "/good"
    for i = 1, is_bad and 50 or 0 do task.start(req.path == "/spin" and spin or wait) end
    if not is_bad then
        for i = 1, 3 do task.sleep(0.001) end
        order[#order + 1] = "good"
    end
    return "well"
end]]

-- How many tasks of one request ended before another request did, which waits three times.
local function ended_before(path)
    local server <close> = script.start(TEXT, "--lua-sandbox")
    local sock <close> = server:connect()
    sock:timeout(120)
    sock:send(("GET %s HTTP/1.1\r\nHost: a\r\n\r\nGET /good HTTP/1.1\r\nHost: a\r\n\r\n"
        .. "GET /order HTTP/1.1\r\nHost: a\r\n\r\n"):format(path))
    for _ = 1, 2 do equal(sock:read_reply().body, "well") end
    local _, bad = sock:read_reply().body:gsub("bad", "")
    return bad
end

for _, path in ipairs { "/spin", "/wait" } do
    -- promise: docs/lua-handlers.md: A request that starts hundreds of tasks that compute delays
    --   another one's waits by little more than a request that starts one.
    test("tasks that compute let others run: " .. path, function()
        check(ended_before(path) < 25)
    end)
end

-- promise: docs/lua.md: | tasks of a request, with those that they start | 1/16 of `tasks`, at least 16 | `nil`, "no task is free, ..." |
test("requests whose tasks start tasks for ever do not keep others from being answered", function()
    local server <close> = script.start([[
local task = require "sxe.task"
local function start_for_ever()
    while task.start(start_for_ever) do end
    task.sleep(1000)
end
return function(req)
    if req.path == "/bad" then start_for_ever() end
    return "well"
end]], "--lua-sandbox", "--lua-tasks", "256")
    for _ = 1, 20 do
        local bad <close> = server:connect()
        bad:send "GET /bad HTTP/1.1\r\nHost: a\r\n\r\n"
        for _ = 1, 3 do equal(server:ask "/good", "well") end
    end
end)
