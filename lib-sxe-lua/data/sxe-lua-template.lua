-- SPDX-License-Identifier: MIT
--
-- Templates: text with expressions and statements of Lua, which becomes a function of Lua (docs/templates.md).
--
--   Hello {{ name }}!          local _ENV,__f,__p,__e,__r,__b=...;__p(__f,"Hello ");__e(__f,1,( name ));__p(__f,"!\
--   {% if old then %}          "); if old then
--   welcome back               __p(__f,"welcome back\
--   {% end %}                  "); end
--
-- Each line of a template is the same line of its function, so that messages of Lua name the right one. A frame is one
-- run of such a function: where its text goes, the values that it sees, and the frame that includes it.
local concat, error, find, format, gsub, match, sub = table.concat, error, string.find, string.format, string.gsub, string.match, string.sub
local info_of, ipairs, load, metatable_of, pairs, pcall = debug.getinfo, ipairs, load, debug.getmetatable, pairs, pcall
local rawget, require = rawget, require
local select, setmetatable, tostring, type = select, setmetatable, tostring, type
local is_dev = ...

local HEAD <const> = "local _ENV,__f,__p,__e,__r,__b=...;"
local BYTES_MAX <const> = 1 << 20 -- the most bytes of a template
local DEPTH_MAX <const> = 50 -- the most templates that include each other
local EINVAL <const> = 22

local Views = { __name = "sxe.views", __metatable = false }
Views.__index = Views

-- Options, which scripts must not change, by object.
local configs = setmetatable({}, { __mode = "k" })

-- ---- From text to Lua ----

-- The index after a string of Lua that begins at `at` with the given quote; nil: the string does not end.
local function skip_string(text, at, quote)
  while true do
    at = find(text, "[\\\n" .. quote .. "]", at + 1)
    if not at then return nil end
    local byte = sub(text, at, at)

    if byte == quote then return at + 1 end
    if byte == "\n" then return nil end
    at = at + 1
  end
end

-- The index after a long bracket whose level, as in "==", is given; nil: it does not end.
local function skip_long(text, at, level)
  local _, last = find(text, "]" .. level .. "]", at, true)

  return last and last + 1
end

-- The index after a comment, which the tag's end or the line's end closes, or a long bracket.
local function skip_comment(text, at, closer)
  local level = match(text, "^%-%-%[(=*)%[", at)

  if level then return skip_long(text, at, level) end
  local ends, line = find(text, closer, at, true), find(text, "\n", at, true)

  return line and ends and line < ends and line or ends
end

local function newlines_of(text) return (gsub(text, "[^\n]+", "")) end

-- The code from `at` to the closer of its tag, without comments, and the index after the closer. Nil: the tag does not
-- end.
local function take_code(text, at, closer)
  local pieces, from, depth = {}, at, 0

  while at do
    local here = find(text, "[\"'%[{}%%-]", at)
    local byte = here and sub(text, here, here)
    local level = here and match(text, "^%[(=*)%[", here)

    if not here then return nil end
    at = here + 1
    if sub(text, here, here + #closer - 1) == closer and (depth == 0 or closer == "%}") then
      return concat(pieces) .. sub(text, from, here - 1), here + #closer
    elseif byte == '"' or byte == "'" then
      at = skip_string(text, here, byte)
    elseif level then
      at = skip_long(text, here, level)
    elseif find(text, "^%-%-", here) then
      at = skip_comment(text, here, closer)
      pieces[#pieces + 1] = sub(text, from, here - 1) .. " " .. newlines_of(sub(text, here, (at or 0) - 1))
      from = at
    elseif byte == "{" then
      depth = depth + 1
    elseif byte == "}" then
      depth = depth - 1
    end
  end
end

local function line_of(text, at) return 1 + select(2, gsub(sub(text, 1, at - 1), "\n", "")) end

local function refuse(source, at, why) error(format("%s:%d: %s", source.name, line_of(source.text, at), why), 0) end

-- Add an expression of the tag that begins at `at`.
local function add_expression(source, at, code, writer)
  local text = match(code, "^%s*(.-)%s*$")

  if text == "" then refuse(source, at, "an expression of Lua expected between the braces") end
  source.expressions[#source.expressions + 1] = text
  return format("%s(__f,%d,(%s));", writer, #source.expressions, code)
end

-- Add a statement, or the beginning or end of a block.
local function add_statement(source, at, code)
  local word = match(code, "^%s*([%a_][%w_]*)")

  if word == "block" then
    local _, name = match(code, "^%s*block%s*%(?%s*([\"'])([%w_-]+)%1%s*%)?%s*$")

    if not name then refuse(source, at, 'block "name" expected, where the name has letters, digits, _ and -') end
    source.blocks[#source.blocks + 1] = at
    return format("__b(__f,%q,function() ", name) .. newlines_of(code)
  elseif word == "endblock" then
    if #source.blocks == 0 then refuse(source, at, "endblock ends no block") end
    source.blocks[#source.blocks] = nil
    return "end);" .. newlines_of(code)
  end
  return code .. ";" -- what follows the tag is no part of the statement
end

local TAGS <const> = { ["{{{"] = "}}}", ["{{"] = "}}", ["{%"] = "%}", ["{#"] = "#}" }

-- The code in Lua for the tag that begins at `at`, and the index after the tag.
local function take_tag(source, at, opener)
  local text, closer = source.text, TAGS[opener]
  local code, after

  if opener == "{#" then
    local _, last = find(text, closer, at + 2, true)

    code, after = last and newlines_of(sub(text, at, last)), last and last + 1
  else
    code, after = take_code(text, at + #opener, closer)
  end
  if not after then refuse(source, at, format("'%s' has no '%s'", opener, closer)) end
  if opener == "{{" then return add_expression(source, at, code, "__e"), after end
  if opener == "{{{" then return add_expression(source, at, code, "__r"), after end
  if opener == "{%" then return add_statement(source, at, code), after end
  return code, after
end

-- A tag that writes nothing, and is alone in its lines, is removed with them. Returns the text before the tag without
-- its last blanks, and the index after the line; nil: the tag is not such a tag.
local function take_line(text, literal, from, after)
  local before = match(literal, "^(.*\n)[ \t]*$") or
    find(literal, "^[ \t]*$") and (from == 1 or sub(text, from - 1, from - 1) == "\n") and ""
  local _, last = find(text, "^[ \t]*\r?\n", after)

  last = last or find(text, "^[ \t]*$", after) and #text
  if before and last then return before, last + 1 end
end

local function add_text(code, literal)
  if literal ~= "" then code[#code + 1] = format("__p(__f,%q);", literal) end
end

-- Raise the error of Lua's compiler. The one about nesting has no place.
local function refuse_code(name, why)
  if find(why, "C stack overflow", 1, true) then
    error(name .. ": its tags are nested too deeply: at most some 190 statements and parentheses in each other", 0)
  end
  error((gsub(gsub(why, "near '__%a'", "near what follows the tag"), "near ';'", "near the tag's end")), 0)
end

-- A template: its function, and the expressions in it.
local function compile_text(text, name)
  local source = { text = text, name = name, expressions = {}, blocks = {} }
  local code, from = { HEAD }, 1

  while true do
    local at, _, opener = find(text, "({{?[{%%#])", from)

    if not at then break end
    if opener == "{{%" then at, opener = at + 1, "{%" end
    if opener == "{{#" then opener = "{{" end -- "{{#" writes a length
    local literal = sub(text, from, at - 1)
    local lua, after = take_tag(source, at, opener)
    local before, next_line

    if opener == "{%" or opener == "{#" then before, next_line = take_line(text, literal, from, after) end
    add_text(code, before or literal)
    code[#code + 1] = lua
    if next_line then code[#code + 1] = newlines_of(sub(text, after, next_line - 1)) end
    from = next_line or after
  end
  add_text(code, sub(text, from))
  local open = source.blocks[#source.blocks]

  if open then refuse(source, open, "block has no endblock") end
  local fn, why = load(concat(code), "@" .. name, "t")

  if not fn then refuse_code(name, why) end
  return { fn = fn, name = name, expressions = source.expressions }
end

-- ---- Writing ----

local ESCAPES <const> = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }
local IN_SCRIPTS <const> = { ["&"] = "\\u0026", ["<"] = "\\u003c", [">"] = "\\u003e", ["'"] = "\\u0027" }

local function escape_html(text)
  if not find(text, "[&<>\"']") then return text end
  return (gsub(text, "[&<>\"']", ESCAPES))
end

-- The text of a value; or nil, and its type.
local function text_of(value)
  local kind = type(value)

  if kind == "string" then return value end
  if kind == "number" or kind == "boolean" then return tostring(value) end
  local metatable = metatable_of(value)

  if metatable and rawget(metatable, "__tostring") then return tostring(value) end
  return nil, kind
end

local function put(frame, text)
  local out = frame.out
  local n = out.n + 1

  out.n, out[n] = n, text
end

-- The text of an expression's value, for a function that the template calls.
local function check_text(frame, number, value)
  local text, kind = text_of(value)

  if text then return text end
  local source = frame.template.expressions[number]

  if kind == "nil" then
    error(format("{{ %s }} is nil; if it may be missing, write {{ %s or \"\" }}", source, source), 3)
  end
  error(format("{{ %s }} is a %s, which has no text", source, kind), 3)
end

local function put_escaped(frame, number, value)
  local text = check_text(frame, number, value)

  put(frame, escape_html(text))
end

local function put_raw(frame, number, value)
  local text = check_text(frame, number, value)

  put(frame, text)
end

-- The text that a function writes.
local function capture(frame, fn)
  local outer = frame.out
  local _ <close> = setmetatable({}, { __close = function() frame.out, frame.is_capturing = outer, nil end })

  frame.out, frame.is_capturing = { n = 0 }, true
  fn()
  return concat(frame.out, "", 1, frame.out.n)
end

-- Write a block, or keep it. With a layout the block is kept, unless a template that has this one as its layout keeps a
-- block of that name. Without a layout, the kept block is written in place of this one.
local function put_block(frame, name, fn)
  frame.has_blocks = true
  if frame.layout and not frame.is_capturing then
    frame.blocks[name] = frame.blocks[name] or capture(frame, fn)
  elseif frame.blocks[name] then
    put(frame, frame.blocks[name])
  else
    fn()
  end
end

-- ---- Names that templates see ----

local function copy_of(from, names)
  local copy = {}

  for _, name in ipairs(names) do copy[name] = from[name] end
  return copy
end

local OWN <const> = info_of(1, "S").source

-- The position of the running line outside of this file, such as "page.html:3: "; "": no such line runs.
local function line_that_runs()
  local level, info = 2, info_of(2, "Sl")

  while info and (info.currentline < 0 or info.source == OWN) do
    level = level + 1
    info = info_of(level, "Sl")
  end
  return info and format("%s:%d: ", info.short_src, info.currentline) or ""
end

local function check_result(label, is_good, value, ...)
  if is_good then return value, ... end
  if type(value) ~= "string" then error(value, 0) end
  -- The message may begin with a line of this file, which called the function, and has no name for the function.
  value = gsub(gsub(value, "^[^\n]-:%d+: ", "", 1), "'%?'", "'" .. label .. "'")
  error(line_that_runs() .. value, 0)
end

-- Wrap a function whose errors do not say where they come from: they get the template's line.
local function with_line(label, fn)
  return function(...) return check_result(label, pcall(fn, ...)) end
end

-- A module that templates cannot change.
local function read_only(module, label)
  return setmetatable({}, { __index = module, __metatable = false, __newindex = function()
    error(line_that_runs() .. label .. " cannot be changed by a template", 0)
  end })
end

local function all_of(module)
  local names = {}

  for name in pairs(module) do names[#names + 1] = name end
  return copy_of(module, names)
end

local builtins = copy_of(_G, { "assert", "error", "ipairs", "next", "pairs", "select", "tonumber", "tostring", "type" })

for name, module in pairs{ math = math, string = string, table = table, utf8 = utf8 } do
  builtins[name] = read_only(all_of(module), name)
end
builtins.os = read_only({ date = with_line("date", os.date), time = with_line("time", os.time) }, "os")
builtins.next = with_line("next", next)

-- Level 2 of an error in a template's own text is this file, so the template's line is used instead.
function builtins.error(value, level)
  level = level or 1
  if type(value) ~= "string" or level == 0 then error(value, 0) end
  local info = info_of(level + 1, "Sl")

  if info and info.currentline > 0 and info.source ~= OWN then error(value, level + 1) end
  error(line_that_runs() .. value, 0)
end

function builtins.escape(value)
  local text, kind = text_of(value)

  if not text then error("escape: a " .. kind .. " has no text", 2) end
  return escape_html(text)
end

builtins.json = with_line("json", function(value) return (gsub(require "sxe.json".encode(value), "[&<>']", IN_SCRIPTS)) end)

function builtins.url(value)
  local text, kind = text_of(value)

  if not text then error("url: a " .. kind .. " has no text", 2) end
  return require "sxe.encoding".encode_url(text)
end

-- The value of a name in a frame: a variable of the frame or of those that include it, or a value that they were given.
local function find_value(frame, name)
  repeat
    local value = rawget(frame.env, name)

    if value == nil then value = frame.values[name] end
    if value ~= nil then return value end
    frame = frame.parent
  until not frame
end

-- ---- Running ----

local run, find_template -- below

-- The template that a frame includes, or that is its layout, for the function `call` of the template.
local function check_template(frame, call, name)
  if frame.depth == DEPTH_MAX then
    error(format("%s: %d templates include each other, the last ones %s, %s and %s", call, DEPTH_MAX, frame.template.name,
      frame.parent.template.name, frame.parent.parent.template.name), 3)
  end
  if not frame.views then error(call .. ": a template of template.compile has no folder; use template.new", 3) end
  if type(name) ~= "string" then error(call .. ": the name of a template expected, got " .. type(name), 3) end
  local found, why = find_template(frame.views, name)

  if not found then error(call .. ": " .. why, 3) end
  return found
end

local function make_include(frame)
  return function(name, values)
    local found = check_template(frame, "include", name)

    if values ~= nil and type(values) ~= "table" then error("include: a table of values expected, got " .. type(values), 2) end
    put(frame, run(found, frame, values or {}, {}))
  end
end

local function make_layout(frame)
  return function(name)
    if frame.layout or frame.has_blocks then error("layout: it comes once, before the blocks", 2) end
    frame.layout = check_template(frame, "layout", name)
  end
end

-- The table of names that the code of a template sees: the frame's variables, the values, and the functions.
local function make_env(frame)
  return setmetatable({}, { __metatable = false, __index = function(_, name)
    local value = find_value(frame, name)

    if value ~= nil then return value end
    if name == "include" then return make_include(frame) end
    if name == "layout" then return make_layout(frame) end
    value = frame.globals and frame.globals[name]
    if value ~= nil then return value end
    return builtins[name]
  end })
end

function run(template, parent, values, blocks)
  local frame = { template = template, parent = parent, values = values, blocks = blocks, out = { n = 0 }, depth = parent.depth + 1,
    views = parent.views, globals = parent.globals }

  if not parent.env then frame.parent = nil end
  frame.env = make_env(frame)
  template.fn(frame.env, frame, put, put_escaped, put_raw, put_block)
  local text = concat(frame.out, "", 1, frame.out.n)

  if not frame.layout then return text end
  return run(frame.layout, frame, { content = text }, blocks)
end

local function check_context(context, call)
  if context ~= nil and type(context) ~= "table" then
    error(call .. ": a table of variables expected, got " .. type(context), 3)
  end
  return context or {}
end

-- ---- Files ----

local function is_below_root(name)
  for part in (name .. "/"):gmatch("([^/]*)/") do
    if part == "" or part == "." or part == ".." then return false end
  end
  return true
end

-- The template of a name; or nil, why, code. A syntax error raises.
function find_template(views, name)
  local kept = views.templates[name]

  if kept and not views.reload then return kept end
  local path = views.root .. "/" .. name

  if not is_below_root(name) then return nil, path .. ": a name of a template has no empty part, . or ..", EINVAL end
  local text, why, code = views.file.read(path, { max = BYTES_MAX })

  if not text then return nil, why, code end
  if kept and kept.text == text then return kept end
  kept = compile_text(text, path)
  kept.text = views.reload and text
  views.templates[name] = kept
  return kept
end

function Views:render(name, context)
  context = check_context(context, "views:render")
  if type(name) ~= "string" then error("views:render: the name of a template expected, got " .. type(name), 2) end
  local views = configs[self]
  local found, why, code = find_template(views, name)

  if not found then return nil, why, code end
  return run(found, { depth = 0, views = views, globals = views.globals }, context, {})
end

function Views:send(res, name, context, status)
  local text, why, code = self:render(name, context)

  if not text then return nil, why, code end
  if not res.headers["Content-Type"] then res.headers["Content-Type"] = "text/html; charset=utf-8" end
  return res:send(text, status)
end

-- ---- The module ----

local template = { escape = builtins.escape }

function template.compile(text, name)
  if type(text) ~= "string" then error("template.compile: a text expected, got " .. type(text), 2) end
  if #text > BYTES_MAX then error("template.compile: a template has at most 1 MiB", 2) end
  if name ~= nil and type(name) ~= "string" then error("template.compile: a name expected, got " .. type(name), 2) end
  local compiled = compile_text(text, name or "template")

  return function(context) return (run(compiled, { depth = 0 }, check_context(context, compiled.name), {})) end
end

local TYPES <const> = { root = "string", reload = "boolean", globals = "table" }

function template.new(options)
  if type(options) ~= "table" then error("template.new: a table of options expected, got " .. type(options), 2) end
  for name, value in pairs(options) do
    local wanted = TYPES[name]

    if not wanted then error("template.new has no option '" .. tostring(name) .. "'", 2) end
    if type(value) ~= wanted then error("template.new: " .. name .. ": a " .. wanted .. " expected, got " .. type(value), 2) end
  end
  if not options.root then error("template.new: root: the folder of the templates expected", 2) end
  local file = require "sxe.file"
  local status, why = file.stat(options.root)

  if not status or status.type ~= "directory" then error("template.new: root: " .. (why or options.root .. ": it is no folder"), 2) end
  local views, reload = setmetatable({}, Views), options.reload

  if reload == nil then reload = is_dev end
  configs[views] = { root = options.root, reload = reload, globals = options.globals, file = file, templates = {} }
  return views
end

return template
