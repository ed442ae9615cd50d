-- SPDX-License-Identifier: MIT
-- The options for files; g10 to g15 test how files are served.

local http = require "http"
local site = require "site"

local function get(target, ...)
    local server <close> = site.start(...)
    return server:get(target)
end

test("--listing: a directory without an index is listed; without the option, 403", function()
    equal(get("/bare/").status, 403)
    local reply = get("/bare/", "--listing")
    equal(reply.status, 200)
    check(reply.body:find("file.txt", 1, true), reply.body)
end)

test("--index: the first name that exists is served, and index.html no longer", function()
    equal(get("/").body, "<p>home\n")
    equal(get("/", "--index", "missing.html", "--index", "page.html").body, "<p>page\n")
    equal(get("/", "--index", "missing.html").status, 403)
end)

test("--dot-files: names that begin with a dot are served; without the option, 404", function()
    equal(get("/.hidden").status, 404)
    equal(get("/.dir/file.txt").status, 404)
    equal(get("/.hidden", "--dot-files").status, 200)
    equal(get("/.dir/file.txt", "--dot-files").status, 200)
end)

test("--type: can be repeated, and overrides a built-in content type", function()
    local server <close> = site.start("--type", "text/x-first HTML css", "--type", "text/x-second svg")
    equal(server:get("/page.html").headers["content-type"], "text/x-first")
    equal(server:get("/style.css").headers["content-type"], "text/x-first")
    equal(server:get("/image.svg").headers["content-type"], "text/x-second")
    equal(server:get("/data.json").headers["content-type"], "application/json")
end)

test("--cache-control: is sent with files, not with refusals", function()
    local server <close> = site.start("--cache-control", "public, max-age=3600")
    equal(server:get("/hello.txt").headers["cache-control"], "public, max-age=3600")
    equal(server:get("/none").headers["cache-control"], nil)
end)

test("--max-ranges: RFC 9110 14.2: more ranges than that get the whole file", function()
    local server <close> = site.start("--max-ranges", "2")
    local function status(range)
        return server:get_and_go_on("/big.bin", "Range: bytes=" .. range).status
    end
    equal(status("0-4"), 206)
    equal(status("0-4,500-504"), 206)
    equal(status("0-4,500-504,1000-"), 206, "one of which is not there")
    equal(status("0-4,500-504,900-904"), 200)
end)

test("--max-ranges 0: RFC 9110 14.3: ranges are not accepted, and the server says so", function()
    local server <close> = site.start("--max-ranges", "0")
    for _, fields in ipairs{{}, {"Range: bytes=0-4"}, {"Range: bytes=1000-"}, {"Range: bytes=x"}} do
        local reply = server:get_and_go_on("/big.bin", table.unpack(fields))
        equal(reply.status, 200)
        equal(reply.headers["accept-ranges"], "none")
        equal(reply.headers["content-range"], nil)
        equal(reply.body, site.BIG)
    end
    local reply = server:get_and_go_on("/big.bin", "Range: bytes=0-4",
                                       "If-Modified-Since: " .. site.MODIFIED)
    equal(reply.status, 304, "conditions hold all the same")
end)

test("--max-ranges 256: RFC 9110 15.3.7.2: 256 parts are sent", function()
    local server <close> = site.start("--max-ranges", "256")
    local ranges = {}
    for i = 0, 255 do
        ranges[#ranges + 1] = ("%d-%d"):format(i * 3, i * 3)
    end
    local list = table.concat(ranges, ",")
    local reply = server:get_and_go_on("/big.bin", "Range: bytes=" .. list)
    equal(reply.status, 206)
    equal(select(2, reply.body:gsub("\r\nContent%-Range: bytes ", "")), 256)
    equal(server:get_and_go_on("/big.bin", "Range: bytes=" .. list .. ",999-").status, 200)
end)

test("--header: is sent with every reply, also with refusals and 304", function()
    local server <close> = site.start("--header", "Server: sxe", "--header", "X-Robots: none")
    local replies = {
        server:get("/hello.txt"),
        server:get("/none"),
        server:get("/hello.txt", "If-Modified-Since: " .. site.AFTER),
        http.ask(server, "GET / HTTP/1.1\r\n\r\n"),
        http.ask(server, "BREW / HTTP/1.1\r\nHost: a\r\n\r\n"),
    }
    local statuses = {200, 404, 304, 400, 501}
    for i, reply in ipairs(replies) do
        equal(reply.status, statuses[i])
        equal(reply.headers.server, "sxe", "Server with " .. reply.status)
        equal(reply.headers["x-robots"], "none", "X-Robots with " .. reply.status)
    end
end)

test("a root with a slash at its end, and one relative to the working directory", function()
    local tree <close> = site.start()
    local parent, name = tree.root:match("^(.*)/([^/]*)$")
    for _, root in ipairs{tree.root .. "/", tree.root .. "//.", name, "./" .. name .. "/"} do
        local server <close> = require("httpd").spawn{
            "sh", "-c", 'program=$(realpath "$1"); cd "$2"; exec "$program" -p 0 -r "$3"', "sh",
            wire.program("sxe-httpd"), parent, root}
        equal(http.ask(server, http.request("GET /hello.txt")).body, site.HELLO, root)
    end
end)
