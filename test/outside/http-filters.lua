-- SPDX-License-Identifier: MIT
-- Filters, by docs/lua-handlers.md, on a router with other routers and with files in it.

local http = require "http"
local script = require "script"

local text = [[
local http = require "sxe.http"
local r, api, deep = http.router(), http.router(), http.router()
local function mark(letter)
  return function(req) req.ctx.seen = (req.ctx.seen or "") .. letter end
end
deep:get("/x", function(req) return req.ctx.seen end)
deep:use("/files", http.static("."))
api:get("/y", function(req) return req.ctx.seen end)
api:use("/deep", deep)
r:use("/api", api)
r:get("/error", function() error "boom" end)
r:get("/z", function(req) return req.ctx.seen end)
deep:use(mark "d")
r:use(mark "r"):use(function(req) if req.headers.stop then return 401 end end)
api:use(mark "a")
r:use(function(req, res, next)
  local ok, result = pcall(next)
  if not ok then return 200, "caught" end
  if req.headers.wrap then return "(" .. tostring(result) .. ")" end
end)
return r
]]

local server <close> = script.start(text)

local function ask(line, ...)
    return http.ask(server, http.request(line, ...))
end

-- promise: docs/lua-handlers.md: Filters of an outer router run first, and filters of one router run in the order in
-- which they were added.
test("filters of outer routers run first", function()
    equal(ask("GET /z").body, "r")
    equal(ask("GET /api/y").body, "ra")
    equal(ask("GET /api/deep/x").body, "rad")
    equal(ask("GET //api/./q/../deep//x").body, "rad")
end)

-- promise: docs/lua-handlers.md: Filters also run before the replies 404, 405 and the reply to OPTIONS.
test("filters run before 404, 405 and OPTIONS", function()
    for _, line in ipairs{"GET /none", "PUT /z", "OPTIONS /z", "OPTIONS /api/deep/x", "GET /api/none",
                          "PUT /api/deep/x", "OPTIONS *", "BREW /api/deep/none", "GET /api/deep/files",
                          "GET /api/deep/files/README.md", "PUT /api/deep/files/README.md",
                          "GET /api/deep/files/none", "GET /api//deep//files//README.md"} do
        equal(ask(line, "Stop: 1").status, 401)
    end
    equal(ask("GET /none").status, 404)
    equal(ask("PUT /z").status, 405)
    equal(ask("OPTIONS /z").status, 204)
    equal(ask("GET /api/deep/files/README.md").status, 200)
end)

-- promise: docs/lua-handlers.md: The filter's own results replace the handler's; if the filter returns nothing, the
-- handler's reply stands.
test("a filter may replace what next() returns", function()
    equal(ask("GET /api/deep/x", "Wrap: 1").body, "(rad)")
    equal(ask("GET /api/deep/x").body, "rad")
    equal(ask("GET /none", "Wrap: 1").body, "(404)")
end)

-- promise: docs/lua-handlers.md: An error passes through `next()`, so `pcall(next)` catches it.
test("pcall(next) catches an error", function()
    equal(ask("GET /error").body, "caught")
end)

-- promise: docs/lua-handlers.md: **`req.ctx`** is a table of the request, empty at first
test("each request has its own ctx", function()
    for _ = 1, 20 do
        equal(ask("GET /api/deep/x").body, "rad")
    end
end)

-- promise: docs/lua-handlers.md: Nils at the end of the results do not count: `404, nil, nil` is `404`.
test("a filter may return more variables than next() has results", function()
    local passing <close> = script.start([[
        local r = require "sxe.http".router()
        r:use(function(req, res, next) local a, b, c, d = next() return a, b, c, d end)
        r:get("/status", function() return 202 end)
        r:get("/both", function() return 203, "both" end)
        r:get("/text", function() return "text", nil, nil end)
        r:get("/nothing", function() return nil, nil, nil end)
        r:get("/failed", function() return nil, "failed", nil end)
        return r]])
    for line, status in pairs{["GET /none"] = 404, ["PUT /text"] = 405, ["OPTIONS /text"] = 204,
                              ["GET /status"] = 202, ["GET /both"] = 203, ["GET /text"] = 200,
                              ["GET /nothing"] = 204, ["GET /failed"] = 500} do
        equal(http.ask(passing, http.request(line)).status, status, line)
    end
    equal(http.ask(passing, http.request "GET /both").body, "both")
    equal(http.ask(passing, http.request "GET /text").body, "text")
end)

-- promise: docs/lua-handlers.md: Once a filter has begun the reply, by `res:write` or `res:send`, no further filter and no handler runs: `next()` returns nothing.
test("a filter that has begun the reply answers alone", function()
    local alone <close> = script.start([[
        local r, ran = require "sxe.http".router(), 0
        r:use(function(req, res, next)
          if req.query.how == "write" then res:write("written") elseif req.query.how == "send" then res:send("sent") end
          if req.query.next then return next() end
        end)
        r:use(function(req) if req.path ~= "/ran" then ran = ran + 1 end end)
        r:get("/", function() ran = ran + 1 return "handler" end)
        r:get("/ran", function() return tostring(ran) end)
        return r]])
    for target, body in pairs{["/?how=write"] = "7\r\nwritten\r\n0\r\n\r\n", ["/?how=write&next=1"] = "7\r\nwritten\r\n0\r\n\r\n",
                              ["/?how=send"] = "sent", ["/?how=send&next=1"] = "sent"} do
        equal(http.ask(alone, http.request("GET " .. target, "Connection: close")).body, body, target)
    end
    equal(alone:ask "/ran", "0")
    equal(alone:ask "/?next=1", "handler")
    equal(alone:ask "/ran", "2")
end)
