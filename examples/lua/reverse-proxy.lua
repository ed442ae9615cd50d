-- SPDX-License-Identifier: MIT
-- Passes requests on to other servers, after its own checks. Bodies pass in parts, and not through Lua.
--     sxe-lua examples/lua/reverse-proxy.lua 7003 127.0.0.1:8000 127.0.0.1:8001
--     curl localhost:7003/files/a      curl localhost:7003/admin/users?key=secret      curl localhost:7003/servers

local http = require "sxe.http"
local port = tonumber(arg[1])
local servers = table.move(arg, 2, #arg, 1, {})
local app = http.proxy{ servers = servers, name = "app", balance = "least", connect_timeout = 1 }
local admin = http.proxy{ upstream = app, path = "/internal/" } -- the same servers; /admin/a is /internal/a there
local router = http.router()

router:use("/files", app) -- no Lua runs for these requests
router:any("/admin/{rest...}", function(req, res)
  if req.query.key ~= "secret" then return 403 end
  res.headers["Cache-Control"] = "no-store" -- sent together with the server's fields
  return admin(req, res)
end)
router:get("/servers", function() return app:servers() end)

http.serve{ ip = "127.0.0.1", port = port, handler = router }
