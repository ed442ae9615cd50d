-- SPDX-License-Identifier: MIT
--
-- Bodies of sxe.client in multipart/form-data (RFC 7578): fields, and files that are read while they are sent. The functions
-- of C come from sxe-lua-client.lua, which gets a function.
local c, check_list = ...
local find, format, gsub = string.find, string.format, string.gsub
local error, ipairs, min, pairs, require = error, ipairs, math.min, pairs, require
local tostring, type = tostring, type

local READ_MAX <const> = 65536 -- the most bytes of a file in memory
local FIELDS <const> = { name = "string", value = "string or number or boolean", file = "string", filename = "string",
  type = "string" }

-- The escapes in names, as browsers write them.
local ESCAPED <const> = { ["\r"] = "%0D", ["\n"] = "%0A", ['"'] = "%22" }

local function escape_name(name)
  return (gsub(name, '[\r\n"]', ESCAPED))
end

local function check_part(part)
  if type(part) ~= "table" then error("client: a part of multipart must be a table, not a " .. type(part), 0) end
  for key, value in pairs(part) do
    local wanted = FIELDS[key]

    if not wanted then error("client: a part of multipart has no '" .. tostring(key) .. "'", 0) end
    if not find(wanted, type(value), 1, true) then
      error("client: " .. key .. " of a part must be a " .. wanted .. ", not a " .. type(value), 0)
    end
  end
  if not part.name or (part.value == nil) == (part.file == nil) then
    error("client: a part of multipart has a name, and a value or a file", 0)
  end
  if part.type and find(part.type, "%c") then error("client: the type of a part has a control character", 0) end
end

local function head_of(part, boundary)
  local filename = part.filename or part.file and part.file:match("[^/]*$")
  local kind = part.type or part.file and "application/octet-stream"

  return "--" .. boundary .. '\r\nContent-Disposition: form-data; name="' .. escape_name(part.name) .. '"' ..
    (filename and '; filename="' .. escape_name(filename) .. '"' or "") ..
    (kind and "\r\nContent-Type: " .. kind or "") .. "\r\n\r\n"
end

-- The parts as {text =} or {text =, path =, size =}, in order, and the length of the body; or nil, why, code.
local function plan(parts, boundary)
  local planned, length = {}, 0

  for i, part in ipairs(parts) do
    local one = { text = head_of(part, boundary), size = 0 }

    if part.file then
      local status, why, code = require "sxe.file".stat(part.file)

      if not status then return nil, why, code end
      if status.type ~= "file" then return nil, "client: not a file: " .. part.file end
      one.path, one.size = part.file, status.size
    else
      one.text = one.text .. tostring(part.value) .. "\r\n"
    end
    planned[i] = one
    length = length + #one.text + one.size + (one.path and 2 or 0)
  end
  planned[#planned + 1] = { text = "--" .. boundary .. "--\r\n" }
  return planned, length + #planned[#planned].text
end

-- Return a function that returns the body piece by piece, then nil; or nil, why, code.
local function reader(planned)
  local at, left, file = 0, 0, nil

  local function read_file()
    local data, why, code = file:read(min(left, READ_MAX))

    if data then
      left = left - #data
      return data
    end
    file:close()
    return nil, why or "client: a file became shorter while it was sent", code
  end

  return function()
    local one, why, code

    if file and left > 0 then return read_file() end
    if file then
      file:close()
      file = nil
      return "\r\n"
    end
    at = at + 1
    one = planned[at]
    if not one or not one.path then return one and one.text end
    file, why, code = require "sxe.file".open(one.path)
    if not file then return nil, why, code end
    left = one.size
    return one.text
  end
end

-- Returns the type of the body, its length, and a function that makes a reader of the body; or nil, why, code.
return function(parts)
  local boundary = format("----sxe%016x%016x", c.random(), c.random())
  local planned, length, code

  for _, part in ipairs(check_list(parts, "multipart")) do check_part(part) end
  planned, length, code = plan(parts, boundary)
  if not planned then return nil, length, code end
  return "multipart/form-data; boundary=" .. boundary, length, function() return reader(planned) end
end
