-- SPDX-License-Identifier: MIT
--
-- Searches of sxe-http for the highest rate. The result must not depend on this machine's speed, so the tests use
-- conditions that hold, or fail, on any machine.

local cli = require "cli"

-- Start a server whose response times follow a known law (test/peer/README.md).
local function serve(law)
    local path = wire.program("sxe-http"):gsub("[^/]+$", "test/known-server")
    local proc = wire.spawn{path, law}
    return proc, (proc:line(20):match "^port (%d+)")
end

local function find(port, condition, ...)
    return cli.run("sxe-http", "-p", port, "-c", "16", "--timeout", "120", "--find", condition, ...)
end

-- promise: docs/load-generator.md: Before each step, no request arrives until none is in flight: each request of the
-- step before is answered, or has timed out and its connection is opened again. So a step does not measure the
-- backlog of the step before.
test("a search from 4,000/s down finds the limit of a server with 400/s", function()
    local server <close>, port = serve "capped:400"
    local ran = find(port, "p50<500ms", "-R", "4000", "-d", "3")
    local found = tonumber(ran.output:match "\nfound     ([%d.]+)/s is the highest rate that held")
    check(found and found > 40 and found < 600, ran.output .. ran.errors)
    check(ran.status == 0 or ran.status == 4, ran.output)
    check(server)
end)

-- promise: docs/load-generator.md: If no rate was found that holds, and lower rates cannot be judged in that time,
-- the answer is `could not tell`, with the exit status 5; use a longer `-d`.
test("a search that cannot decide says so", function()
    local server <close>, port = serve "fixed:5"
    local ran = find(port, "p99<1ms", "-R", "50", "-d", "0.3")
    check(ran.status == 5 or ran.status == 4, ran.output .. ran.errors)
    local answer = "\nfound     could not tell which rate holds p99<1ms"
    check(ran.output:find(answer, 1, true), ran.output)
    check(server)
end)

-- promise: docs/load-generator.md: It begins at 10/s, or at `-R`, and doubles the rate until the condition does not
-- hold. Then it halves the interval between the highest rate that held and the lowest that did not, until these are 2
-- % apart.
test("a search begins at 10/s", function()
    local server <close>, port = serve "fixed:5"
    local ran = find(port, "p99<1ms", "-d", "0.3")
    check(ran.errors:find "^find      10/s  ok [%d.]+/s  [^\n]*\nfind      20/s  ", ran.errors)
    check(server)
end)
