-- SPDX-License-Identifier: MIT
-- Paths of requests, by docs/http.md and docs/lua-handlers.md, with a script that has routes and files.

local http = require "http"
local script = require "script"

local directory = os.tmpname() .. ".d"
local text = [[
local http = require "sxe.http"
local r = http.router()
local function say(req) return "guard " .. req.path end
os.execute("mkdir -p DIR/admin && echo secret > DIR/admin/x && echo open > DIR/open")
r:any("/admin", say):any("/admin/{rest...}", say)
r:get("/one/{name}", function(req) return req.params.name end)
r:get("/raw/{name}", function(req) return req.escaped_params.name .. " " .. req.escaped_path end)
r:get("/query", function(req) return req.query.q end)
r:use("", http.static("DIR"))
return r
]]
local server <close> = script.start((text:gsub("DIR", directory)))

local function ask(target)
    return http.ask(server, http.request("GET " .. target))
end

-- promise: docs/http.md: So a route that protects `/admin/x` protects every spelling of that path.
for _, target in ipairs{"/admin/x", "//admin/x", "/x/..//admin/x", "/./admin/x", "/%61dmin/x",
                        "/admin//x", "/admin/./x", "/admin/y/../x", "//x//..//%2e//ADMIN/../admin/x",
                        "/%2e/admin/x", "/y/%2e%2E/admin/x", "http://a//admin/x", "/admin/%78"} do
    test("a guard sees " .. target, function()
        equal(ask(target).body, "guard /admin/x")
    end)
end

test("a file that is not guarded is served", function()
    equal(ask("//open?%").body, "open\n")
end)

-- promise: docs/http.md: For a path that breaks this rule, static files, [proxies](proxy.md#escaped-slashes), `req.path` and `req.params` of Lua answer 400
for _, target in ipairs{"/one/a%2Fb", "/one/%2fetc", "/one/a%5cb", "/one/a%00", "/x%2F..%2Fadmin",
                        "/admin/..%2f..%2fx", "/admin%2Fx", "/%2e%2e%2fadmin/x", "/admin/x%00"} do
    test("400 for " .. target, function()
        equal(ask(target).status, 400)
    end)
end

-- promise: docs/lua-handlers.md: `req.escaped_path` and `req.escaped_params` are the same texts, not decoded, for
-- handlers that need such paths
test("a handler can read the escaped path", function()
    equal(ask("/raw/a%2fb%20").body, "a%2Fb%20 /raw/a%2Fb%20")
end)

-- promise: docs/http.md: In a query a `%` without two digits is text: `?q=100%` is `100%`.
test("a percent sign in a query is text", function()
    equal(ask("/query?q=100%").body, "100%")
    equal(ask("/query?q=%zz%4").body, "%zz%4")
    equal(ask("/query?q=%41%").body, "A%")
end)

-- promise: docs/http.md: Static files ignore the query.
test("static files ignore the query", function()
    equal(ask("/open?%00%2f..%").body, "open\n")
end)

os.execute("rm -r " .. directory)
