-- SPDX-License-Identifier: MIT
--
-- The script of docs/tutorial-load.md, which is examples/load-test.sh.

local httpd = require "httpd"
local tutorial = require "tutorial"

local function run(server, p99)
    local here <close> = assert(io.popen("mktemp -d"))
    local dir = here:read("l")
    local proc <close> = wire.spawn{"sh", "-c", 'cd "$0" && exec "$@"', dir, os.getenv("PWD") .. "/examples/load-test.sh",
        server.url, "2000", p99, env = {SECONDS_EACH = "1", SXE_HTTP = wire.program("sxe-http"):gsub("^[^/]", os.getenv("PWD") .. "/%0")}}
    local output = proc:output(120)
    local status = proc:wait(60)
    local file <close> = assert(io.open(dir .. "/load.json"))
    check(file:read("a"):find('"thresholds"', 1, true))
    os.execute("rm -r " .. dir)
    return output, status
end

-- promise: docs/tutorial-load.md: The script is [examples/load-test.sh](../examples/load-test.sh):
test("the page shows the script", function()
    check(tutorial.shows("docs/tutorial-load.md", "examples/load-test.sh"))
end)

-- promise: docs/tutorial-load.md: If one of `--threshold` is missed, the exit status is 3, and the report names it.
test("a threshold that no server holds fails, and the report names it", function()
    local server <close> = httpd.start()
    local output, status = run(server, "1us")
    check(output:find("threshold%s+p99<1us MISSED"), output)
    check(status ~= 0, status)
end)

test("both steps are run, and each has its report", function()
    local server <close> = httpd.start()
    local output = run(server, "100s")
    check(output:find("== as fast as 64 connections can\nclosed loop: 64 connections", 1, true), output)
    check(output:find("== 2000 requests a second\n", 1, true), output)
    check(output:find("threshold%s+p99<100s"), output)
end)
