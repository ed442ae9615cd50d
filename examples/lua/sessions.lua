-- SPDX-License-Identifier: MIT
-- Logging in and out. The sessions are in a file, and so is the secret of their cookies: all servers that are given the
-- file share both, and the file outlives them. A file name without a slash would be in /dev/shm, which a restart of the
-- machine empties.
--   sxe-httpd --lua examples/lua/sessions.lua -- ./sessions.dict

local crypto, dict = require "sxe.crypto", require "sxe.dict"
local http, session = require "sxe.http", require "sxe.session"
local memory = assert(dict.open{ name = "sessions", cells = 10000, evicts = true, file = arg[1] })

memory:cas("secret", nil, crypto.random_token()) -- the first server makes it
memory:mark("secret", "pinned")
local sessions = session.new{ secret = memory:get "secret", dict = memory, idle = 1800 }
local r = http.router()

r:use(sessions:filter())

r:post("/login", function(req)
  local user = req:form().user or "nobody"

  req.ctx.session:renew()
  req.ctx.session:set("user", user)
  return 204
end)

r:get("/", function(req)
  local user = req.ctx.session:get "user" or error{ status = 401, message = "please log in" }

  return "Hello, " .. user .. "!\n"
end)

r:post("/logout", function(req)
  req.ctx.session:destroy()
  return 204
end)

return r
