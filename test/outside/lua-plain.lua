-- SPDX-License-Identifier: MIT
--
-- sxe.run of a plain interpreter, lua5.4. The module exists in release only.

local http = require "http"
local httpd = require "httpd"

local build = os.getenv("SXE_BUILD") or "build/release"
local interpreter = os.execute("test -e " .. build .. "/lua/sxe.so") and wire.has("lua5.4")

local function test_plain(name, run)
    if interpreter then
        test(name, run)
    else
        print("skipped: " .. name .. ", because lua5.4 is not installed, or this is not release")
    end
end

-- The output of a script, which must end well.
local function output_of(script)
    local proc <close> = wire.spawn{interpreter, "-e", script,
                                    env = {LD_LIBRARY_PATH = build, LUA_CPATH = build .. "/lua/?.so"}}
    local output = proc:output(120)
    equal(proc:wait(60), 0, proc:errors())
    return output
end

-- promise: docs/lua.md: The function has all modules of this documentation, and tasks.
test_plain("a function asks a server, twice at once", function()
    local server <close> = httpd.start()
    equal(output_of(([[
        print(require "sxe".run(function(url)
            local client, task = require "sxe.client", require "sxe.task"
            local function body() return assert(client.get(url)).body end
            local first, second = task.start(body), task.start(body)
            return first:join() == second:join(), body()
        end, %q))]]):format(server.url)), "true\t" .. httpd.BODY .. "\n")
    check(http.ask(server, http.request("GET /")).status == 200)
end)

-- promise: docs/lua.md: Like `sxe-lua`, `sxe.run` returns when nothing of the function can run any more.
test_plain("a task that was started ends before the run", function()
    equal(output_of([[
        require "sxe".run(function()
            local task = require "sxe.task"
            task.start(function() task.sleep(0.05) print "task" end)
        end)
        print "after"]]), "task\nafter\n")
end)

-- promise: docs/lua.md: An error that was not caught ends the run, and `sxe.run` raises its text.
test_plain("an error is raised, and the next run works", function()
    equal(output_of([[
        local sxe = require "sxe"
        for _ = 1, 20 do
            local good, text = pcall(sxe.run, "error 'no luck'")
            assert(not good and text:find "no luck")
            assert(not pcall(sxe.run, function() require "sxe.task".sleep(0) local t = nil return t.x end))
        end
        print(sxe.run("return ...", 1, nil, {2}) == 1)]]), "true\n")
end)
