-- SPDX-License-Identifier: MIT
-- Reads a form with files (RFC 7578), as it arrives: texts into memory, files into a directory.

local crypto, file, task = require "sxe.crypto", require "sxe.file", require "sxe.task"
local ending_of = require "posts".ending_of
local multipart = {}
local Form = {}
Form.__index = Form
local HEAD_MAX, PARTS_MAX = 4096, 20

local function refuse(status, message) error({ status = status, message = message }, 0) end

-- Returns read_until(stop, take): calls take(bytes) with all that comes before the text `stop`, in pieces.
local function reader(req)
  local chunks, state = req:chunks()
  local buffer, is_at_end = "\r\n", false -- so that the first boundary looks like the others
  return function(stop, take)
    while true do
      local first, last = buffer:find(stop, 1, true)
      local length = first and first - 1 or math.max(0, #buffer - #stop + 1)
      take(buffer:sub(1, length))
      buffer = buffer:sub((last or length) + 1)
      if first then return end
      local bytes = chunks(state)
      if not bytes and is_at_end then refuse(400, "the form ends too early") end
      is_at_end = not bytes
      buffer = buffer .. (bytes or "\r\n") -- a client need not end its last line
    end
  end
end

local function read_text(read_until, stop, max, what)
  local parts, size = {}, 0
  read_until(stop, function(bytes)
    size = size + #bytes
    if size > max then refuse(413, what .. " is too long") end
    parts[#parts + 1] = bytes
  end)
  return table.concat(parts)
end

local function read_file(form, read_until, stop, options, label)
  local path = ("%s/%s.part"):format(options.directory, crypto.random_token())
  local size, head = 0, ""
  form.paths[#form.paths + 1] = path
  local output <close> = assert(file.open(path, "w"))
  read_until(stop, function(bytes)
    size, head = size + #bytes, #head < 4 and head .. bytes:sub(1, 4) or head
    if size > options.file_max then refuse(413, ("a file has at most %d bytes"):format(options.file_max)) end
    assert(output:write(bytes))
  end)
  assert(output:close())
  if size == 0 then return file.remove(path) and nil end -- no file was chosen
  local name = ("%s.%s"):format(crypto.random_token(), ending_of(head))
  form.paths[#form.paths] = options.directory .. "/" .. name
  assert(file.rename(path, form.paths[#form.paths]))
  return { name = name, label = label, size = size }
end

local function read_parts(form, read_until, boundary, options)
  local stop = "\r\n--" .. boundary
  read_text(read_until, stop, 2, "the text before the form")
  for _ = 1, PARTS_MAX do
    if read_text(read_until, "\r\n", 64, "a boundary"):sub(1, 2) == "--" then return end
    local head = read_text(read_until, "\r\n\r\n", HEAD_MAX, "a part's head")
    local name = head:match '[; ]name="([^"]*)"' or refuse(400, "a part of the form has no name")
    local label = head:match 'filename="([^"]*)"'
    if label then
      form.files[name] = read_file(form, read_until, stop, options, label)
    else
      form.texts[name] = read_text(read_until, stop, options.text_max, name)
    end
  end
  refuse(413, "the form has too many parts")
end

-- The form: texts and files by name. The end of its <close> variable removes the files, except after form:keep().
function multipart.read(req, options)
  local kind = req.headers["content-type"] or ""
  local boundary = kind:match '^multipart/form%-data;.*boundary="?([^";]+)'
  if not boundary then refuse(415, "a form with files is expected") end
  local form = setmetatable({ texts = {}, files = {}, paths = {} }, Form)
  local good, why = pcall(read_parts, form, reader(req), boundary, options)
  if good then return form end
  form:__close()
  error(why, 0)
end

function Form:keep() self.paths = {} end

function Form:__close() -- if the client is gone, this task may not wait
  for _, path in ipairs(self.paths) do task.start(file.remove, path) end
end

return multipart
