-- SPDX-License-Identifier: MIT
-- What docs/lua-handlers.md says of errors in the log.

local cli = require "cli"

-- promise: docs/lua-handlers.md: The log shows the fields of any other table, and the traceback of the place that raised it.
test("an uncaught table shows its fields and where it was raised", function()
    local ran = cli.run("sxe-lua", "-e", "local function f()\n error{ code = 5 } end\nf()")
    equal(ran.status, 1)
    check(ran.errors:find("{code = 5}", 1, true), ran.errors)
    check(ran.errors:find(":2: in", 1, true), ran.errors)
end)

-- promise: docs/lua-handlers.md: The log shows the fields of any other table, and the traceback of the place that raised it.
test("an error whose __tostring fails says so, and does not end the program otherwise", function()
    local ran = cli.run("sxe-lua", "-e", [[
        local bad = setmetatable({}, { __tostring = function(self) error(self) end })
        error(bad)]])
    equal(ran.status, 1)
    check(ran.errors:find("__tostring failed", 1, true), ran.errors)
end)
