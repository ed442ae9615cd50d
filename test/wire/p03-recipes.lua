-- SPDX-License-Identifier: MIT
-- The job queue of docs/recipes.md survives kill -9: what a killed worker had begun, another one ends.

local httpd = require "httpd"

local path, script = os.tmpname(), os.tmpname()

-- The page's first script, with other numbers.
local function write_script(sleep)
    local page = assert(io.open("docs/recipes.md")):read("a")
    local text = assert(page:match("```lua\n(.-)```"))
    local file <close> = assert(io.open(script, "w"))
    local changed, count = text:gsub("task%.sleep%(0%.01%)", "task.sleep(" .. sleep .. ")")
    equal(count, 1)
    changed, count = changed:gsub("BUSY = 60", "BUSY = 1")
    equal(count, 1)
    file:write(changed)
end

local function ask(server, method, body)
    local sock <close> = server:connect()
    sock:send(("%s /jobs HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s")
        :format(method, #body, body))
    return sock:recv_all()
end

local function wait_for(server, state, number)
    httpd.wait_until(function()
        return ask(server, "GET", ""):find(('"%s":%d[,}]'):format(state, number))
    end, state .. " " .. number)
end

local function kill_worker(pid)
    local file <close> = assert(io.open(("/proc/%d/task/%d/children"):format(pid, pid)))
    local child = assert(file:read("n"))
    check(os.execute("kill -KILL " .. child))
end

test("a job of a worker that was killed is done by the next one", function()
    write_script(1000)
    os.remove(path)
    local server = httpd.spawn{"/usr/bin/env", "JOBS=" .. path, wire.program "sxe-httpd", "-p", "0",
                               "--lua", script}
    check(ask(server, "POST", "wash up"):find("HTTP/1.1 202", 1, true))
    wait_for(server, "busy", 1)
    write_script(0)
    kill_worker(server.pid)
    wait_for(server, "done", 1)
    server.proc:signal("TERM")
    server.proc:wait(20)
end)

os.remove(path)
os.remove(script)
