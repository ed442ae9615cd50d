-- SPDX-License-Identifier: MIT
--
-- Programs that are started with closed descriptors, blocked signals or limits.

local http = require "http"

local function shell(line, ...)
    local proc <close> = wire.spawn{"sh", "-c", line, "sh", ...}
    local output = proc:output(100)
    return output, proc:wait(100), proc:errors()
end

local directory = shell("mktemp -d"):gsub("%s+$", "")
local pool, lua, httpd = wire.program "sxe-pool", wire.program "sxe-lua", wire.program "sxe-httpd"
local dict = directory .. "/dict"

local function write(name, text)
    local file <close> = assert(io.open(directory .. "/" .. name, "w"))
    file:write(text)
    return directory .. "/" .. name
end

local fill = write("fill.lua", [[
local d = require("sxe.dict").open{name = "outside", file = arg[1], cells = 1000}
for i = 1, 100 do d:put("key" .. i, "value") end
for _ = 1, 3000 do print "a line of output that may go astray" io.stderr:write "and one of errors\n" end
assert(d:get "key7" == "value")
]])

-- promise: docs/pool.1: Beyond that, only repair changes the elements, their states or their order.
test("output never goes into a pool's file, whichever standard descriptors are closed", function()
    for _, closed in ipairs{"", ">&-", "<&-", "2>&-", ">&- 2>&-", "<&- >&-", "<&- >&- 2>&-"} do
        os.remove(dict)
        shell('"$1" "$2" "$3" ' .. closed, lua, fill, dict)
        for _, command in ipairs{"dump", "--json dump", "check", "show", "watch -n 1", "repair"} do
            shell('p=$1; f=$2; "$p" ' .. command .. ' "$f" ' .. closed, pool, dict)
        end
        local output, status, errors = shell('"$1" check "$2" && "$1" dump "$2" | grep -c key', pool, dict)
        equal(status, 0, closed .. ": " .. output .. errors)
        check(output:find "100%s*$", closed .. ": " .. output)
    end
end)

local function serve(prefix, ...)
    local words = {"sh", "-c", prefix .. ' "$@"', "sh", httpd, "-p", "0", ...}
    local proc = wire.spawn(words)
    return proc, tonumber(proc:line(60):match ":(%d+)/?$")
end

local spin = write("spin.lua", [[
return function(req) while req.path == "/spin" do end return "well" end
]])

-- promise: docs/httpd.1: Signals that were blocked when the server was started are unblocked.
test("a server that was started with all signals blocked can be ended, and ends scripts that compute", function()
    local words = {"--lua", spin, "--lua-cpu", "0.2"}
    for i = 1, 2 do
        local proc <close>, port = serve("exec env --block-signal", table.unpack(words, i == 1 and 1 or 5))
        if i == 1 then
            local sock <close> = wire.connect("127.0.0.1", port)
            sock:send(http.request "GET /spin")
            equal(sock:read_reply().status, 500)
        end
        proc:signal "TERM"
        equal(proc:wait(100), 0, proc:errors())
    end
end)

-- promise: docs/httpd.1: If the log cannot be written, because the disk is full, a limit is reached or the pipe has
-- no reader, whole lines are dropped, and standard error says how many; no request waits for the log.
test("an access log at the limit of a file's size loses lines, and no request fails", function()
    local log = directory .. "/access.log"
    local proc <close>, port = serve("ulimit -f 4; exec", "--access-log", log, "-r", directory)
    local sock <close> = wire.connect("127.0.0.1", port)
    for _ = 1, 2000 do
        sock:send(http.request "GET /nothing")
        equal(sock:read_reply().status, 404)
    end
    proc:signal "TERM"
    equal(proc:wait(100), 0)
    check(proc:errors():find "has lost %d+ lines", proc:errors())
    local size = 0
    for line in io.lines(log, "L") do
        size = size + #line
        equal(line:sub(-1), "\n")
    end
    check(size <= 4096 and size > 1900, size)
end)

-- promise: docs/pool.1: or the output cannot be written
test("help that cannot be written is a failure", function()
    for _, program in ipairs{pool, lua, httpd, wire.program "sxe-http"} do
        for _, option in ipairs{"--help", "--version", "-h"} do
            local _, status, errors = shell('"$1" ' .. option .. ' >/dev/full', program)
            equal(status, 1, program .. option)
            check(errors:find "cannot write to standard output: No space left on device", errors)
            _, status = shell('"$1" ' .. option .. ' >&-', program)
            equal(status, 1, program .. option)
        end
    end
end)

test("a configuration or a plan that cannot be written is a failure, too", function()
    for _, option in ipairs{"--print-config", "--plan"} do
        local _, status, errors = shell('"$1" ' .. option .. ' >/dev/full', httpd)
        equal(status, 1, option)
        check(errors:find "cannot write to standard output: No space left on device", errors)
    end
end)

-- promise: docs/httpd.1: The file is removed at the end, unless another process has replaced it.
test("a file at the socket's path stays, and the message names it", function()
    local path = write("text", "whole\n")
    local _, status, errors = shell('"$1" -p 0 --unix "$2"', httpd, path)
    equal(status, 1)
    check(errors:find("a file of that name exists and is not a socket", 1, true), errors)
    equal(shell('cat "$1"', path), "whole\n")
end)
shell('rm -r "$1"', directory)

-- promise: docs/lua.1: Standard error has a report: the version, the signal, and the calls that led there.
test("sxe-lua reports a fault that ends it", function()
    local script = 'os.execute("kill -ABRT " .. io.open("/proc/self/stat"):read("n"))'
    local _, status, errors = shell('ulimit -c 0; printf %s "$2" | "$1" -; exit $?', lua, script)
    equal(status, 134)
    check(errors:find("sxe%-lua %d+%.%d+%.%d+ .*crashed with signal 6 %(Aborted%)"), errors)
end)
