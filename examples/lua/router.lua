-- SPDX-License-Identifier: MIT
-- Routes, JSON and errors:   sxe-lua examples/lua/router.lua 8000
--     curl localhost:8000/users/7      curl -d '{"name":"Ann"}' localhost:8000/users

local http = require "sxe.http"
local users, last = {}, 0
local r = http.router()

r:get("/users/{id}", function(req)
  return users[tonumber(req.params.id)] or error{ status = 404, message = "no such user" }
end)

r:post("/users", function(req, res)
  local user = req:json()

  last = last + 1
  user.id = last
  users[last] = user
  res.headers.Location = "/users/" .. last
  return 201, user
end)

-- Runs before each handler. If it returned a value, that would be the reply.
r:use(function(req, res)
  res.headers["X-Request-Id"] = req.id
end)

r:on_error(function(req, _, err)
  return { error = err.message, id = req.id }
end)

http.serve{ port = tonumber(arg[1]) or 8000, handler = r }
