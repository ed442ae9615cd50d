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

-- promise: docs/lua-httpd.md: A browser gets the same as a page, with the request and the local variables of the function that failed.
test("--dev: a browser gets a page, in which nothing of the request or the script is markup", function()
    local server <close> = require "script".start([[
        return function(req)
            local secret = "<script>alert(1)</script>"
            error("<b>" .. req.query.q)
        end]], "--dev")
    local sock <close> = server:connect()
    sock:send("GET /?q=%3Ci%3E HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nX-A: <u>\r\nConnection: close\r\n\r\n")
    local reply = sock:read_reply()
    equal(reply.status, 500)
    check(reply.headers["content-type"]:find("text/html", 1, true))
    check(reply.body:find("secret = ", 1, true), reply.body)
    check(reply.body:find("GET /?q=%3Ci%3E", 1, true), reply.body)
    for _, markup in ipairs{"<script>", "<b>", "<i>", "<u>"} do
        check(not reply.body:find(markup, 1, true), markup)
    end
    equal(server:ask("/"):sub(1, 7), "error: ")
end)
