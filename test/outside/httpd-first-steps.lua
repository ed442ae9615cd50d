-- SPDX-License-Identifier: MIT
--
-- sxe-httpd without any option, in folders with and without an index.html. It listens at a socket that is passed.

local http = require "http"
local httpd = require "httpd"

local program = wire.program("sxe-httpd"):gsub("^[^/]", os.getenv("PWD") .. "/%0")

local function folder(name)
    local made <close> = io.popen("mktemp -d")
    local path = made:read("l")
    if name then
        local file <close> = assert(io.open(path .. "/" .. name, "w"))
        file:write("my page\n")
    end
    return setmetatable({path = path}, {__close = function() os.execute("rm -r " .. path) end})
end

local function start(path)
    local listener <close> = wire.listen("127.0.0.1", 0)
    return httpd.spawn{"sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", path, program,
                       pass = {listener}}
end

local function body(server)
    return http.ask(server, http.request("GET /")).body
end

-- promise: docs/lua-httpd.md: Without any option, `sxe-httpd` serves the folder in which it is started, if that
-- folder has an `index.html`; otherwise it answers each request with "Hello, World!".
test("the folder is served only if it has an index.html", function()
    for name, expected in pairs{["index.html"] = "my page\n", ["index.htm"] = httpd.BODY} do
        local here <close> = folder(name)
        local server <close> = start(here.path)
        equal(body(server), expected, name)
    end
end)

-- promise: docs/lua-httpd.md: In both cases it prints further steps.
test("it prints how to go on", function()
    for _, name in ipairs{"index.html", "other"} do
        local here <close> = folder(name)
        local server <close> = start(here.path)
        server.proc:signal("TERM")
        local output = server.proc:output(20)
        check(output:find "sxe%-httpd %-r DIR" and output:find "sxe%-httpd %-%-lua FILE" and output:find "%-%-help", output)
        check(output:find(name == "index.html" and "which has an index.html" or "has no index.html", 1, true), output)
    end
end)

-- promise: docs/httpd.1: in others, and with any option, it does not.
test("with an option no folder is served that is not named", function()
    local here <close> = folder("index.html")
    local server <close> = httpd.spawn{"sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", here.path,
                                       program, "-p", "0"}
    equal(body(server), httpd.BODY)
end)
