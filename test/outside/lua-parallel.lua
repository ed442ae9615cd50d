-- SPDX-License-Identifier: MIT
-- task.parallel when it is cancelled, by docs/lua-handlers.md.

local function runs(expected, script)
    local proc <close> = wire.spawn{wire.program("sxe-lua"), "-e", script, env = {SXE_LOG_LEVEL = "error"}}
    equal(proc:output(60), expected, script)
    equal(proc:wait(60), 0, proc:errors())
end

-- promise: docs/lua-handlers.md: When the call itself is cancelled, no further item begins.
test("a cancelled task.parallel begins no further item", function()
    runs("1\n3\n", [[
        local task = require "sxe.task"
        for _, limit in ipairs{ 1, 3 } do
            local began = 0
            local t <close> = task.start(task.parallel, { 1, 2, 3, 4, 5, 6, 7 }, function()
                began = began + 1
                task.sleep(1000)
            end, limit)
            task.sleep(0.01)
            t:cancel()
            for _ = 1, 20 do task.sleep(0) end
            print(began)
        end]])
end)

-- A regression test: this took 5 seconds of CPU, and four times as long for twice as many items.
-- promise: docs/lua-handlers.md: at most `limit` at a time. It returns a table of the results, with their count in
-- `n`.
test("more items than there can be tasks are all done, and are cancelled quickly", function()
    runs("40000\ttrue\n", [[
        local task = require "sxe.task"
        local list = {}
        for i = 1, 40000 do list[i] = i end
        local done = task.parallel(list, function(i) task.sleep(0) return i end)
        local t = task.start(task.parallel, list, function() task.sleep(1000) end)
        task.sleep(0.01)
        local before = os.clock()
        t:cancel()
        task.sleep(0)
        print(done.n, os.clock() - before < 3)]])
end)

-- A regression test: each of 16,000 items got a time slice before the task that was to end them, which took minutes.
-- promise: docs/lua-handlers.md: When its client is gone, a handler is cancelled: the call in which it waits returns
-- `nil, "cancelled"`.
test("cancelled items that compute end without another time slice", function()
    runs("true\n", [[
        local task = require "sxe.task"
        local list, counts, before, more = {}, {}, {}, 0
        for i = 1, 50 do list[i] = i end
        local t = task.start(task.parallel, list, function(i)
            counts[i] = 0
            while true do counts[i] = counts[i] + 1 end
        end)
        while #counts < 50 do task.sleep(0) end
        table.move(counts, 1, 50, 1, before)
        t:cancel()
        while #task.all() > 1 do task.sleep(0) end
        for i = 1, 50 do more = more + (counts[i] > before[i] and 1 or 0) end
        print(more < 25 or more)]])
end)

-- promise: docs/lua-handlers.md: fn may be any function, task.parallel too.
test("task.deadline in a cancelled task begins nothing", function()
    runs("nil\tcancelled\nfalse\tcancelled\n1\n", [[
        local task = require "sxe.task"
        local t = task.start(function()
            print(task.sleep(1000))
            local ok, why = pcall(task.deadline, 1000, function() print "begun" task.sleep(9) end)
            print(ok, why:match "cancelled$")
        end)
        task.sleep(0.01)
        t:cancel()
        t:join()
        for _ = 1, 20 do task.sleep(0) end
        print(#task.all())]])
end)

-- promise: docs/lua-handlers.md: The first call that fails cancels the others, and its error is raised
test("the error of the first that failed is raised, whatever the others raise when they are cancelled", function()
    runs("FIRST\nFIRST\nFIRST\nFIRST\nTHIRD\n", [[
        local task = require "sxe.task"
        for _, wait in ipairs{
            function() return task.sleep(1000) end,
            function() return task.parallel{ function() task.sleep(1000) end } end,
            function() return task.deadline(1000, task.sleep, 1000) end,
            function() return (task.queue():get()) end,
        } do
            local _, message = pcall(task.parallel, {
                function() wait() error("SECOND", 0) end,
                function() task.sleep(0.01) error("FIRST", 0) end,
            })
            print(message)
        end
        print(select(2, pcall(task.parallel, { type, function() error("THIRD", 0) end }, function(f) f(1) end)))
        os.exit(0) -- otherwise the errors of the tasks would make the status 1]])
end)
