-- SPDX-License-Identifier: MIT
--
-- sxe-lua --rocks [SCRIPT]: a table of modules, with the rock, its version and the file of each. With a script: the
-- modules that the script and its modules require; these files are read, not run. Otherwise the modules of ./rocks.

local about = ...
local TREE = "./rocks"

local function read(path)
  local file = io.open(path)
  if not file then return nil end
  local text = file:read "a" -- nil for a directory
  file:close()
  return text
end

-- A table of what a file of LuaRocks sets or returns; empty if there is no such file, or if it is no such file.
local function load_table(path)
  local values = {}
  local chunk = load(read(path) or "", path, "t", values)
  local good, returned = pcall(chunk or error)
  return good and (returned or values) or {}
end

local manifests = {} -- by tree

local function manifest_of(tree)
  manifests[tree] = manifests[tree] or load_table(tree .. "/lib/luarocks/rocks-5.4/manifest").modules or {}
  return manifests[tree]
end

-- The rock of a module in a file of a tree, and its version: "greet", "1.2-1". nil: it is in no tree.
local function rock_of(name, path)
  local tree = path:match "^(.*)/share/lua/5%.4/" or path:match "^(.*)/lib/lua/5%.4/"
  local rocks = tree and manifest_of(tree)[name]
  if rocks then return rocks[1]:match "^(.-)/(.*)$" end
end

-- Where require would find a module. Nothing is run: a searcher of Lua's would load a module in C.
local function find(name)
  if package.loaded[name] and not name:find "^sxe" then return { name = name, rock = "lua", file = "built in" } end
  local _, loader = pcall(package.searchers[2], name)
  if type(loader) == "function" then
    return { name = name, rock = "libsxe", version = about.version, file = "built in" }
  end
  local path = package.searchpath(name, package.path) or package.searchpath(name, package.cpath)
    or package.searchpath(name:match "^[^.]*", package.cpath)
  if not path then return { name = name } end
  local rock, version = rock_of(name, path)
  return { name = name, rock = rock, version = version, file = path }
end

local modules, known = {}, {}

-- Add a module, if it is new, and what it requires. A module that pcall(require, name) tries may be missing.
local function add(name, is_optional)
  local module = known[name]
  if module then
    module.is_optional = module.is_optional and is_optional
    return
  end
  module = find(name)
  module.is_optional = is_optional
  known[name] = module
  modules[#modules + 1] = module
  return module.file
end

local function add_required(path)
  local text = path:find "%.so$" and "" or read(path) or ""
  text = ("\n" .. text):gsub("%-%-%[(=*)%[.-%]%1%]", ""):gsub("\n[ \t]*%-%-[^\n]*", "")
  for between, _, name in text:gmatch "%f[%w_]require%s*([%(,]?)%s*([\"'])([%w_.-]+)%2" do
    local file = add(name, between == ",")
    if file then add_required(file) end
  end
end

if arg[-1] then -- there is a script: see begin_script in lua.c
  if not read(arg[0]) then
    io.stderr:write("sxe-lua: --rocks: cannot read ", arg[0], "\n")
    os.exit(1)
  end
  add_required(arg[0])
else
  for name in pairs(manifest_of(TREE)) do add(name) end
end
table.sort(modules, function(a, b) return a.name < b.name end)

-- What is wrong with a module: a text, or nil.
local locked = load_table("luarocks.lock").dependencies or {}

local function fault_of(module)
  if not module.file then
    return not module.is_optional and ("module %s is not found"):format(module.name)
  end
  local wanted = module.version and locked[module.rock]
  if wanted and wanted ~= module.version then
    return ("module %s is of %s %s, but luarocks.lock has %s"):format(module.name, module.rock, module.version, wanted)
  end
end

local rows, widths, faults = { { "MODULE", "ROCK", "VERSION", "FILE" } }, { 0, 0, 0 }, {}

for _, module in ipairs(modules) do
  local file = module.file or module.is_optional and "not found (optional)" or "not found"
  rows[#rows + 1] = { module.name, module.rock or "-", module.version or "-", file }
  faults[#faults + 1] = fault_of(module) or nil
end
for _, row in ipairs(rows) do
  for i = 1, 3 do widths[i] = math.max(widths[i], #row[i]) end
end
for _, row in ipairs(rows) do
  print(("%%-%ds  %%-%ds  %%-%ds  %%s"):format(table.unpack(widths)):format(table.unpack(row)))
end
for _, fault in ipairs(faults) do io.stderr:write("sxe-lua: ", fault, "\n") end
if #faults > 0 then os.exit(1) end
