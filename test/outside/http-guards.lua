-- SPDX-License-Identifier: MIT
-- A client tries to get past a filter by spelling the path of a guarded handler or file in every possible way.

local http = require "http"
local script = require "script"

local directory = os.tmpname() .. ".d"
local text = [[
local http = require "sxe.http"
local r, admin, deep, root, tenant = http.router(), http.router(), http.router(), http.router(), http.router()
local function secret() return "SECRET" end
local function deny(who)
  return function(req) if not req.headers.key then return 403, who end end
end
os.execute "mkdir -p DIR/sub; printf SECRET >DIR/x; printf SECRET >DIR/sub/x"
admin:use(deny "admin")
deep:get("/y", secret)
deep:use("/files", http.static "DIR")
admin:get("/x", secret)
admin:any("/any/{rest...}", secret)
admin:use("/files", http.static "DIR")
admin:use("/deep", deep)
root:use(deny "root")
root:get("/", secret)
root:get("/v/{id}.json", secret)
tenant:use(deny "tenant")
tenant:get("/z", secret)
tenant:use("/f", http.static "DIR")
r:use("/admin", admin)
r:use("/root/", root)
r:use("/t/{tenant}", tenant)
r:get("/open", function() return "open" end)
r:use(function(req, _, next)
  if req.headers.wrap == "twice" then next() return tostring(pcall(next)) end
  if req.headers.wrap == "file" then next() return tostring(pcall(function() return req.path end)) end
end)
return r
]]
local server <close> = script.start((text:gsub("DIR", directory)))

local GUARDED = {"/admin/x", "/admin/any/a", "/admin/files/x", "/admin/files/sub/x", "/admin/deep/y",
                 "/admin/deep/files/x", "/root/", "/root/v/1.json", "/t/a/z", "/t/a/f/x", "/t/admin/f/sub/x"}

local PARTS = {"", "/", "//", "/.", "/..", "/../x", "%2F", "%5C", "%00", "/%2e%2e", "/%2E", "/;a=b", ";p", "%20", "?a", "%",
               "\\", "/open/..", "/open/%2e%2e"}

local function spellings(path)
    local all = {(path:gsub("[^/]", function(c) return ("%%%02x"):format(c:byte()) end)), path:upper()}
    for _, part in ipairs(PARTS) do
        all[#all + 1], all[#all + 2] = path .. part, part .. path
        for at in path:gmatch "()/" do
            if at > 1 then all[#all + 1] = path:sub(1, at - 1) .. part .. path:sub(at) end
        end
    end
    return all
end

local function ask(line, ...)
    return http.ask(server, http.request(line, "Connection: close", ...))
end

-- promise: docs/lua-handlers.md: `filter(req, res, next)` runs before each handler of the router, and before the
-- handlers of the routers and files that are mounted in it. If the filter returns something, its results are the
-- reply.
test("no spelling of a path gets past a filter", function()
    for _, path in ipairs(GUARDED) do
        equal(ask("GET " .. path, "Key: 1").body, "SECRET", path)
        for _, target in ipairs(spellings(path)) do
            for _, before in ipairs{"", "http://a", "http://a:80"} do
                local reply = ask("GET " .. before .. target)
                check(not reply.raw:find("SECRET", 1, true), before .. target)
                http.check_one_of({400, 403, 404}, reply.status)
            end
        end
    end
end)

-- promise: docs/lua-handlers.md: Filters also run before the replies `404`, `405` and the reply to OPTIONS. If no
-- route takes a path, the filters of the outer router run, then those of each router that is mounted above the path.
test("no method gets past a filter", function()
    for _, path in ipairs(GUARDED) do
        for _, method in ipairs{"HEAD", "POST", "OPTIONS", "TRACE", "BREW", "get"} do
            equal(ask(method .. " " .. path).status, 403, method .. " " .. path)
        end
    end
    for _, path in ipairs{"/admin", "/admin/", "/admin/none", "/admin/deep/none", "/root", "/root/none", "/t/a", "/t/a/none"} do
        equal(ask("GET " .. path).status, 403, path)
    end
    for _, path in ipairs{"/adminx", "/t", "/t/", "/rootx/"} do
        equal(ask("GET " .. path).status, 404, path)
    end
end)

-- promise: docs/lua-handlers.md: A filter can call next() once.
test("next() cannot be called twice", function()
    equal(ask("GET /open", "Wrap: twice").body, "false")
    equal(ask("GET /none", "Wrap: twice").body, "false")
end)

-- promise: docs/lua-handlers.md: If the handler sends a file, `req` and `res` have ended when `next()` returns.
test("a filter cannot change the reply of a file", function()
    equal(ask("GET /admin/files/x", "Key: 1", "Wrap: file").body, "SECRET")
    equal(ask("GET /open", "Wrap: file").body, "true")
end)

os.execute("rm -r " .. directory)

local FAILING = [[
local http, task, file = require "sxe.http", require "sxe.task", require "sxe.file"
local checks = {
  denied = function() return nil, "denied" end,
  file = function() return file.read("/nonexistent/key") end,
  late = function(_, _, next) return task.deadline(0.001, function() task.sleep(100000) return next() end) end,
  around = function(_, _, next) next() return nil, "denied" end,
}
local r = http.router()
for name, check in pairs(checks) do
  local guarded = http.router()
  guarded:use(function(...) return check(...) end)
  guarded:get("/x", function() return "SECRET" end)
  guarded:use("/files", function() return "SECRET" end)
  r:use("/" .. name, guarded)
end
return r
]]

-- promise: docs/lua-handlers.md: In a filter, as in a handler, `nil, message` is an error: `500`, with a line in the
-- log
test("a filter that fails lets no request pass", function()
    local failing <close> = script.start(FAILING)
    for _, name in ipairs{"denied", "file", "late", "around"} do
        for _, path in ipairs{"/x", "/files/a", "/none"} do
            local reply = http.ask(failing, http.request("GET /" .. name .. path, "Connection: close"))
            equal(reply.status, 500, name .. path)
            check(not reply.raw:find("SECRET", 1, true), name .. path)
            check(failing.proc:errors():find("GET /" .. name .. path, 1, true), name .. path)
        end
    end
end)

-- promise: docs/lua-handlers.md: In fn, req.path and req.params raise no error: parts that cannot be decoded are as
-- in req.escaped_path.
test("on_error says which path was refused", function()
    local named <close> = script.start([[
        local r = require "sxe.http".router()
        r:get("/n/{x}", function(req) return req.params.x end)
        r:on_error(function(req, _, err) return err.status, req.path .. " " .. req.params.x end)
        return r]])
    for _, name in ipairs{"a%2Fb", "%00", "%5C"} do
        local reply = http.ask(named, http.request("GET /n/" .. name, "Connection: close"))
        equal(reply.status, 400)
        equal(reply.body, "/n/" .. name .. " " .. name)
    end
end)
