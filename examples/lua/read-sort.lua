-- SPDX-License-Identifier: MIT
-- POST appends its body to a file; GET sorts the parts of the file and returns them:
--     sxe-lua examples/lua/read-sort.lua 8000 /tmp
--     curl -d 'pear,apple,' localhost:8000/fruit      curl localhost:8000/fruit

local sxe, http, file = require "sxe", require "sxe.http", require "sxe.file"
local directory, separator = arg[2] or "/tmp", arg[3] or ","
local r = http.router()

local function path_of(req)
  -- No name leads out of the directory.
  return directory .. "/" .. (req.params.name:match "^%w[%w._-]*$" or error{ status = 404 })
end

r:get("/{name}", function(req)
  local text, why, code = file.read(path_of(req))
  local parts = {}

  if not text then error{ status = code == 2 and 404 or 500, message = why } end
  for part in sxe.split(text, separator) do parts[#parts + 1] = part end
  table.sort(parts)
  return table.concat(parts, separator)
end)

r:post("/{name}", function(req)
  assert(file.append(path_of(req), req:body()))
  return 204
end)

http.serve{ port = tonumber(arg[1]) or 8000, handler = r }
