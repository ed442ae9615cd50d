-- SPDX-License-Identifier: MIT
-- A handler that computes, in threads beside the loop: other requests do not wait for it.
--     sxe-lua examples/lua/worker.lua &        then: curl 'http://127.0.0.1:8000/fib?n=30'
local http = require "sxe.http"
local worker = require "sxe.worker"
local port = tonumber(arg[1]) or 8000

local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end

local router = http.router()

router:get("/", function() return "not blocked\n" end)

router:get("/fib", function(req)
  local n = math.tointeger(tonumber(req.query.n))

  if not n or n < 0 or n > 40 then error{ status = 400, message = "n: 0 to 40" } end
  return { n = n, fib = assert(worker.run(fib, n)) }
end)

router:get("/fibs", function()
  return table.concat(assert(worker.map({ 5, 10, 15, 20 }, fib)), " ") .. "\n"
end)

http.serve{ ip = "127.0.0.1", port = port, handler = router }
