-- SPDX-License-Identifier: MIT
-- Notes in a file that any number of these programs share: PUT, GET and DELETE /notes/NAME; GET /notes lists ten names,
-- and GET /notes?after=NAME those that follow.
--   sxe-lua examples/lua/notes.lua 8000 notes.store

local http, store = require "sxe.http", require "sxe.store"
local db = assert(store.open(arg[2] or "notes.store"))
local r = http.router()

local function key_of(req) return "note:" .. req.params.name end

r:put("/notes/{name}", function(req)
  assert(db:put(key_of(req), req:body() or ""))
  return 204
end)

r:get("/notes/{name}", function(req)
  return db:get(key_of(req)) or error{ status = 404, message = "no such note" }
end)

r:delete("/notes/{name}", function(req)
  return db:del(key_of(req)) and 204 or 404
end)

r:get("/notes", function(req)
  local names, after = {}, req.query.after

  for key in db:each{ prefix = "note:", from = after and "note:" .. after .. "\0" } do
    names[#names + 1] = key:sub(6) .. "\n"
    if #names == 10 then break end
  end
  return table.concat(names)
end)

http.serve{ ip = "127.0.0.1", port = tonumber(arg[1] or 8000), handler = r }
