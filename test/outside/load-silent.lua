-- SPDX-License-Identifier: MIT
--
-- Workers of sxe-http that do not answer: stopped ones, and one whose script is in a function of C. Each case takes ten
-- seconds of the program's own.

local httpd = require "httpd"
local load = require "load"

local function children(pid)
    local file <close> = io.open(("/proc/%d/task/%d/children"):format(pid, pid))
    return file:read("a")
end

local SILENT <const> = "did not answer for too long and was ended"

-- promise: docs/load-generator.md: A worker that does not answer for ten seconds, because it is stopped or in a C
-- function that does not return, ends the run in the same way.
test("a worker that is stopped for good ends the run", function()
    local server <close> = httpd.start()
    local client = load.start(server.port, "-c", "4", "-t", "2", "-R", "100", "-d", "60", "--drain", "1")
    client.proc:line(60)
    client.proc:line(60)
    local worker = children(client.proc:pid()):match "%d+"
    check(os.execute("kill -STOP " .. worker))
    client.output = client.proc:output(200)
    equal(client.proc:wait(60), 1)
    local errors = client.proc:errors()
    check(errors:find(("worker 1 of 2 (process %s) %s"):format(worker, SILENT), 1, true), errors)
    check(client.output:find("died after", 1, true), client.output)
end)

test("a script in a pattern that does not end ends the run, too", function()
    local server <close> = httpd.start()
    local path = os.tmpname()
    local file <close> = assert(io.open(path, "w"))
    file:write 'function request() return ("a"):rep(40):find(("a?"):rep(40) .. ("a"):rep(40)) and wrk.format() end\n'
    file:close()
    local client = load.start(server.port, "-c", "2", "-d", "1", "--drain", "1", "-s", path)
    client.proc:output(600)
    equal(client.proc:wait(60), 1)
    local errors = client.proc:errors()
    check(errors:find(SILENT, 1, true), errors)
    os.remove(path)
end)
