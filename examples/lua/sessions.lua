-- SPDX-License-Identifier: MIT
-- Sessions in a file. All servers that are given the file share them, and they outlive the servers. A
-- file name without a slash would be in /dev/shm, which a restart of the machine empties.
--   sxe-httpd --lua examples/lua/sessions.lua -- ./sessions.dict

local dict, http = require "sxe.dict", require "sxe.http"
local sessions = assert(dict.open{ name = "sessions", cells = 10000, evicts = true, file = arg[1] })
local idle = 1800
local r = http.router()

local function random_id()
  local file <close> = assert(io.open("/dev/urandom", "rb"))

  return (file:read(16):gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

local function id_of(req)
  return (req.headers.cookie or ""):match("session=(%x+)") or ""
end

r:post("/login", function(req, res)
  local id = random_id()

  assert(sessions:put(id, req:form().user or "nobody", idle))
  res.headers["Set-Cookie"] = "session=" .. id .. "; HttpOnly; SameSite=Lax"
  return 204
end)

r:get("/", function(req)
  local id = id_of(req)
  local user = sessions:get(id) or error{ status = 401, message = "please log in" }

  sessions:expire(id, idle)
  return "Hello, " .. user .. "!\n"
end)

r:post("/logout", function(req) sessions:remove(id_of(req)) return 204 end)
return r
