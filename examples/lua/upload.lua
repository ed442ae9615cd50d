-- SPDX-License-Identifier: MIT
-- Receives files in parts, and says meanwhile how much of a file has arrived:
--     sxe-lua examples/lua/upload.lua 8000 /tmp
--     curl -T film.mp4 localhost:8000/film.mp4      curl localhost:8000/film.mp4/progress

local http, file, task = require "sxe.http", require "sxe.file", require "sxe.task"
local directory = arg[2] or "/tmp"
local uploads, r = {}, http.router()

local function check_name(name)
  return name:match "^%w[%w._-]*$" or error{ status = 404 }
end

r:put("/{name}", function(req)
  local name = check_name(req.params.name)
  local path = directory .. "/" .. name
  local part = path .. "." .. req.id
  local upload = { got = 0, size = tonumber(req.headers["Content-Length"]) }
  uploads[name] = upload
  local _ <close> = setmetatable({}, {
    __close = function() -- also runs if the client goes away; then this task may not wait
      uploads[name] = nil
      task.start(file.remove, part)
    end,
  })
  local output <close> = assert(file.open(part, "w"))
  for chunk in req:chunks() do
    assert(output:write(chunk))
    upload.got = upload.got + #chunk
  end
  assert(output:close())
  assert(file.rename(part, path))
  return 201
end)

r:get("/{name}/progress", function(req)
  return uploads[check_name(req.params.name)] or error{ status = 404, message = "no such upload" }
end)

http.serve{ port = tonumber(arg[1]) or 8000, handler = r, limits = { body = 1 << 30 } }
