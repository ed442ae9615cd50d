-- SPDX-License-Identifier: MIT
--
-- Cancelled tasks that compute, or that catch the error of their cancelling, in sxe-lua.

local cli = require "cli"

-- Run a script in sxe-lua; it must exit with 0. Returns what it prints.
local function run(text)
    return cli.output_of(200, {wire.program "sxe-lua", "-e",
                                    'local task = require "sxe.task"\n' .. text,
                                    env = {SXE_LOG_LEVEL = "error"}})
end

local CLOSED = 'local _ <close> = setmetatable({}, {__close = function() print "closed" end})\n'

-- promise: docs/lua-handlers.md: A task that computes and does not wait is interrupted: after its time slice the
-- error "cancelled" is raised at the place where it computes.
test("a task that computes for ever ends when it is cancelled, others go on", function()
    equal(run([[
        local t = task.start(function() ]] .. CLOSED .. [[ while true do end end)
        task.sleep(0.02)
        t:cancel()
        print(t:join())
        print(t.status)
    ]]), "closed\nnil\tcancelled\ncancelled\n")
end)

-- promise: docs/lua-handlers.md: After that error, or after a call that returned `nil, "cancelled"`, the task may
-- compute for 50 time slices (half a second of CPU) to clean up before it is interrupted again.
test("a task that cleans up may compute for several time slices", function()
    for _, wait in ipairs{"while true do end", "task.sleep(1000)"} do
        equal(run([[
            local function tidy()
                local stop = os.clock() + 0.1
                while os.clock() < stop do end
                print "tidy"
            end
            local t = task.start(function()
                local _ <close> = setmetatable({}, {__close = tidy})
                ]] .. wait .. [[
                tidy()
            end)
            task.sleep(0.02)
            t:cancel()
            t:join()
            print(t.status)
        ]]), wait:find("sleep") and "tidy\ntidy\ndone\n" or "tidy\ncancelled\n")
    end
end)

-- promise: docs/lua-handlers.md: A task that catches 100 errors about its cancellation, or four that interrupted it,
-- and continues, is ended at once; its `<close>` variables are closed.
test("a task that catches all errors ends, too, whether it waits or computes", function()
    for _, body in ipairs{
        "pcall(task.sleep, 1)",
        "pcall(function() while true do end end)",
        "xpcall(task.sleep, print, 1)",
        "coroutine.wrap(function() while true do pcall(task.sleep, 1) end end)()",
        "pcall(error, 'x') pcall(task.sleep, 0)",
    } do
        local printed = run([[
            local t = task.start(function() ]] .. CLOSED .. "while true do " .. body .. [[ end end)
            task.sleep(0.02)
            t:cancel()
            t:cancel()
            print(t:join())
            print(t.status)
            print(task.start(function() return "the next one" end):join())
        ]])
        check(printed:find("closed\nnil\tcancelled\ncancelled\nthe next one\n$"), body .. printed)
    end
end)
