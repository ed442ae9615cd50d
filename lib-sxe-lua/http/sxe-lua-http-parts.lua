-- SPDX-License-Identifier: MIT
--
-- require "sxe.multipart": forms with files (RFC 7578), read as they arrive.
--
--   "\r\n" body          the first boundary then looks like the others
--   "\r\n--BOUNDARY"     ends a part, and begins the next
--   "--"                 after a boundary: the form ends
--   "\r\n" fields "\r\n\r\n" bytes
--
-- The buffer holds one chunk of the body and the bytes in which a boundary may have begun. sxe-lua-http-parts.c gives
-- remove_now(path), which removes a file at once, in the thread of the loop, and is_unread(req), which says whether no
-- byte of the body was read.
local remove_now, is_unread = ...
local error, find, format, gsub, match, max = error, string.find, string.format, string.gsub, string.match, math.max
local ipairs, lower, pairs, pcall, setmetatable = ipairs, string.lower, pairs, pcall, setmetatable
local char, sub, tonumber, tostring, type = string.char, string.sub, tonumber, tostring, type
local assert, concat = assert, table.concat
local encoding, file, task = require "sxe.encoding", require "sxe.file", require "sxe.task"

local HEAD_MAX <const> = 8192
local BOUNDARY_MAX <const> = 70
local DEFAULTS <const> = { file_max = 10485760, text_max = 65536, parts_max = 100 }

local multipart = {}
local Form = { __name = "sxe.multipart.form" }
Form.__index = Form
local paths_of = setmetatable({}, { __mode = "k" }) -- the files that the end of a form removes

-- The files that must not outlive the state: when it ends, no task can remove them any more.
local function remove_all_now(paths) for path in pairs(paths) do remove_now(path) end end
local doomed = setmetatable({}, { __gc = remove_all_now })

local function refuse(status, message) error({ status = status, message = message }, 0) end

local function take_options(options)
  local taken = {}
  for name, value in pairs(DEFAULTS) do taken[name] = value end
  for name, value in pairs(options or {}) do
    local wanted = name == "directory" and "string" or DEFAULTS[name] and "integer"
    if not wanted then error("multipart.read has no option '" .. tostring(name) .. "'", 3) end
    if (math.type(value) or type(value)) ~= wanted then
      error("multipart.read: " .. name .. ": " .. wanted .. " expected, got " .. type(value), 3)
    end
    if wanted == "integer" and value < 0 then
      error("multipart.read: " .. name .. ": 0 or more expected, got " .. value, 3)
    end
    taken[name] = value
  end
  return taken
end

-- Returns read_until(stop, take): it calls take(bytes) with all that comes before the text `stop`, in pieces.
local function reader(req)
  local chunks, state, control = req:chunks()
  local buffer, is_at_end = "\r\n", false

  return function(stop, take)
    while true do
      local first, last = find(buffer, stop, 1, true)
      local length = first and first - 1 or max(0, #buffer - #stop + 1)

      if length > 0 then take(sub(buffer, 1, length)) end
      buffer = sub(buffer, (last or length) + 1)
      if first then return end
      control = chunks(state, control)
      if not control and is_at_end then refuse(400, "the form ends too early") end
      is_at_end = not control
      buffer = buffer .. (control or "\r\n") -- clients may leave the end of the last line out
    end
  end
end

-- Read a text of at most `most` bytes.
local function read_text(read_until, stop, most, what)
  local parts, size = {}, 0

  read_until(stop, function(bytes)
    size = size + #bytes
    if size > most then refuse(413, format("%s: more than %d bytes", what, most)) end
    parts[#parts + 1] = bytes
  end)
  return concat(parts)
end

-- The lines of a part's head, each between "\r\n".
local function read_head(read_until)
  local what, head = "the head of a part", "\r\n"

  while true do
    local line = read_text(read_until, "\r\n", HEAD_MAX, what)

    if line == "" then return head end
    head = head .. line .. "\r\n"
    if #head > HEAD_MAX + 4 then refuse(413, format("%s: more than %d bytes", what, HEAD_MAX)) end
  end
end

-- The text in quotes that begins at `at`, and where it ends. \" and \\ are escapes, but \" at the very end is not: some
-- clients escape nothing.
local function quoted_text(value, at)
  local last = find(value, '[\\"]', at + 1)

  while last and sub(value, last, last) == "\\" do
    local follows = sub(value, last + 1, last + 1)
    local is_escape = follows == "\\" or follows == '"' and find(value, '"', last + 2, true)

    last = find(value, '[\\"]', last + (is_escape and 2 or 1))
  end
  if not last then return nil, #value end
  return gsub(sub(value, at + 1, last - 1), '\\([\\"])', "%1"), last
end

-- The parameters of a field, by their names in lower case. The first of each name counts.
local function parameters_of(value)
  local found, at = {}, find(value, ";", 1, true)

  while at do
    local _, last, name = find(value, '^[ \t]*([^=;"]-)[ \t]*=[ \t]*', at + 1)

    if name then
      local text

      name = lower(name)
      if sub(value, last + 1, last + 1) == '"' then
        text, last = quoted_text(value, last + 1)
      else
        text = match(value, "^[^; \t]*", last + 1)
      end
      found[name] = found[name] or text
    end
    at = find(value, ";", (last or at) + 1, true)
  end
  return found
end

-- Undo the escapes of browsers, which are of three bytes.
local function unescape_name(value)
  return value and gsub(value, "%%(%x%x)", function(hex)
    if hex == "22" or hex == "0D" or hex == "0A" then return char(tonumber(hex, 16)) end
  end)
end

-- The text of filename* (RFC 8187). RFC 7578 forbids it in forms, so filename comes first.
local function extended_name(value)
  local text = value and match(value, "^[uU][tT][fF]%-8'[^']*'(.*)")

  if value and not text then refuse(400, "filename* of a part is not UTF-8''...") end
  return text and gsub(text, "%%(%x%x)", function(hex) return char(tonumber(hex, 16)) end)
end

-- The fields of a part's head: name, file's name (nil: a text), type.
local function fields_of(head)
  local fields = {}

  for name, value in head:gmatch "\r\n([^:\r]+):[ \t]*([^\r]*)" do fields[lower(name)] = value end
  local disposition = fields["content-disposition"] or ""
  local parameters = match(lower(disposition), "^form%-data[ \t]*;") and parameters_of(disposition) or {}
  if not parameters.name then refuse(400, "a part of the form has no name") end
  return unescape_name(parameters.name), unescape_name(parameters.filename) or extended_name(parameters["filename*"]),
    fields["content-type"] or "text/plain"
end

-- Read the bytes of a file to the directory, or to memory. `left` is how many bytes the form may still have.
local function read_file(form, read_until, stop, options, left, part)
  local pieces, output = {}, nil

  if options.directory then
    part.path = format("%s/%s", options.directory, encoding.uuid4())
    -- Before the file is open: if the client leaves meanwhile, the file may be made all the same.
    paths_of[form][#paths_of[form] + 1] = part.path
    doomed[part.path] = true
    output = assert(file.open(part.path, "w", { mode = 384 })) -- 0600
  end
  local _closed <close> = output
  read_until(stop, function(bytes)
    part.size = part.size + #bytes
    if part.size > left then refuse(413, format("files: more than %d bytes", options.file_max)) end
    if #part.head < 16 then part.head = sub(part.head .. bytes, 1, 16) end
    if output then assert(output:write(bytes)) else pieces[#pieces + 1] = bytes end
  end)
  if output then assert(output:close()) else part.bytes = concat(pieces) end
end

-- Read a part. Returns how many bytes of files and of texts the form may still have.
local function read_part(form, read_until, stop, options, files_left, texts_left)
  local name, label, kind = fields_of(read_head(read_until))
  local part = { field = name, name = label, type = kind }

  if label == "" then -- browsers send this when no file was chosen
    read_text(read_until, stop, 0, "a file without a name")
    return files_left, texts_left
  elseif label then
    part.size, part.head = 0, ""
    read_file(form, read_until, stop, options, files_left, part)
    form.files[name] = form.files[name] or part
  else
    part.value = read_text(read_until, stop, texts_left, "texts")
    form.texts[name] = form.texts[name] or part.value
  end
  form.parts[#form.parts + 1] = part
  return files_left - (part.size or 0), texts_left - #(part.value or "")
end

local function read_parts(form, read_until, boundary, options)
  local stop = "\r\n--" .. boundary
  local files_left, texts_left = options.file_max, options.text_max

  read_text(read_until, stop, HEAD_MAX, "the text before the form")
  for _ = 1, options.parts_max + 1 do
    if sub(read_text(read_until, "\r\n", 128, "a boundary"), 1, 2) == "--" then return end
    files_left, texts_left = read_part(form, read_until, stop, options, files_left, texts_left)
  end
  refuse(413, format("the form has more than %d parts", options.parts_max))
end

-- The files of a form belong to its user from now on.
local function give_files(form)
  for _, path in ipairs(paths_of[form]) do doomed[path] = nil end
end

local Unfinished = {}

function Unfinished:__close()
  if self.form then self.form:__close() end
end

function multipart.read(req, options)
  local kind = req.headers["content-type"] or ""
  local taken = take_options(options)

  if not match(lower(kind), "^multipart/form%-data[ \t]*;") then
    refuse(415, "a form of multipart/form-data is expected")
  end
  local boundary = parameters_of(kind).boundary or ""
  if boundary == "" or #boundary > BOUNDARY_MAX then refuse(400, "the form has no boundary") end
  if type(req) == "userdata" and not is_unread(req) then -- tests have tables
    error("multipart.read: the body was read, or is being read: read it once", 2)
  end
  local form = setmetatable({ texts = {}, files = {}, parts = {} }, Form)
  paths_of[form] = {}
  local unfinished <close> = setmetatable({ form = form }, Unfinished)
  read_parts(form, reader(req), boundary, taken)
  unfinished.form = nil
  give_files(form)
  return form
end

function Form:keep()
  if not paths_of[self] then error("form:keep: the form has ended, and its files are removed", 2) end
  paths_of[self] = {}
end

-- A file whose opening was given up may be made after the first try.
local function remove_later(path)
  for try = 1, 3 do
    if file.remove(path) then break end
    task.sleep(try / 4)
  end
  doomed[path] = nil
end

-- If the client is gone, this task may not wait, so others remove the files; without a task, or when the state ends, the
-- thread of the loop does.
function Form:__close()
  local paths = paths_of[self] or {}

  paths_of[self] = nil
  for _, path in ipairs(paths) do doomed[path] = true end
  for _, path in ipairs(paths) do
    local is_good, is_removed = pcall(file.remove, path)

    if is_good and is_removed then
      doomed[path] = nil
    elseif not task.start(remove_later, path) then
      remove_now(path)
    end
  end
end

return multipart
