-- SPDX-License-Identifier: MIT
-- Visitors send a rule, code that nobody has checked, and then values for it. Each rule has a realm of its own.
--     sxe-lua examples/lua/realm.lua &
--     curl -d 'calls = 0 function rule(n) calls = calls + 1 return n * 2, calls end' http://127.0.0.1:8000/rules/twice
--     curl 'http://127.0.0.1:8000/rules/twice?n=21'
local http = require "sxe.http"
local realm = require "sxe.realm"
local port = tonumber(arg[1]) or 8000
local RULES_MAX = 1000
local rules, count = {}, 0

-- The fault of a rule is the visitor's, so it is a reply and no error of the server.
local STATUS = { time = 503, memory = 507, error = 422 }

local function fault(why, kind)
  local line = type(why) == "string" and why:match("[^\n]*") or "an error that is no text"

  error{ status = STATUS[kind] or 500, message = line }
end

local router = http.router()

router:post("/rules/{name}", function(req)
  local name, old = req.params.name, rules[req.params.name]

  if not old and count == RULES_MAX then error{ status = 507, message = "too many rules" } end
  local rule, why, kind = realm.new{ name = "rule", code = req:body(), memory_max = "256K", time_max_ms = 20 }

  if not rule then fault(why, kind) end
  if old then old:close() else count = count + 1 end
  rules[name] = rule
  return ("%d bytes\n"):format((rule:memory()))
end)

router:get("/rules/{name}", function(req)
  local rule = rules[req.params.name] or error{ status = 404, message = "no such rule" }
  local value, calls, kind = rule:call("rule", tonumber(req.query.n))

  if kind then fault(calls, kind) end
  return { value = value, calls = calls }
end)

http.serve{ ip = "127.0.0.1", port = port, handler = router }
