-- SPDX-License-Identifier: MIT
--
-- Replies with files: which facts of a file they show; and lines of logs that are lost and counted.

local http = require "http"
local httpd = require "httpd"
local site = require "site"

local function field(server, name)
    return server:get("/hello.txt").headers[name]
end

-- promise: docs/http.md: Replies have X-Content-Type-Options: nosniff, so a browser uses the type that the server
-- sends;
test("files come with nosniff, parts and listings too; --sniff leaves it out", function()
    local server <close> = site.start("--listing")
    equal(field(server, "x-content-type-options"), "nosniff")
    equal(server:get("/hello.txt", "Range: bytes=0-0").headers["x-content-type-options"], "nosniff")
    local plain <close> = site.start("--sniff")
    equal(field(plain, "x-content-type-options"), nil)
    local own <close> = site.start("--header", "X-Content-Type-Options: nosniff")
    equal(field(own, "x-content-type-options"), "nosniff")
end)

-- promise: docs/http.md: a hash of the file's size, its modification time and its inode change time. A client cannot
-- compute these values from it.
test("the entity tag holds neither size, nor inode, nor time", function()
    local server <close> = site.start()
    local tag = field(server, "etag")
    check(tag:find('^"%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x"$'), tag)
    local other = server:get("/page.html").headers.etag
    check(tag ~= other, other)
    equal(field(server, "etag"), tag)
end)

-- promise: docs/lua-httpd.md: `log_lines_lost` counts lines of the log and of the access log that could not be
-- written.
test("lines of the access log that are lost are counted", function()
    local server <close> = httpd.start("--stats", "/stats", "--access-log", "/dev/full")
    local function lost()
        return tonumber(http.ask(server, http.request("GET /stats")).body:match('"log_lines_lost":(%d+)'))
    end
    equal(lost(), 0)
    repeat until lost() > 0 -- each request adds a line to the log, which is written only now and then
end)

-- promise: docs/httpd.1: one line of the log says so
test("a server that root started says so, others do not", function()
    local id <close> = io.popen("id -u")
    local server <close> = httpd.start()
    equal(server.proc:errors():find("started as root", 1, true) ~= nil, id:read("l") == "0", server.proc:errors())
end)

-- promise: docs/lua-handlers.md: It raises an error for a directory that cannot be opened, and for a `cache_control`
-- with control bytes.
test("http.static refuses a Cache-Control with control bytes", function()
    for _, value in ipairs{"a\\r\\nB: c", "a\\n", "\\x7f", "\\1"} do
        local proc <close> = wire.spawn{wire.program("sxe-lua"), "-e",
            ('print(pcall(require "sxe.http".static, ".", { cache_control = "%s" })) os.exit(0)'):format(value)}
        check(proc:line(20):find("^false"), value)
    end
end)
