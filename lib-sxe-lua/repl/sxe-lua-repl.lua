-- SPDX-License-Identifier: MIT
--
-- The parts of the shell that are easier to write in Lua: lines become chunks, values become text, names are completed.
-- It gets functions of C, and returns the functions that C calls; later changes of globals do not affect them.
--
--   say(text)          writes to the terminal, above the line that is being typed
--   methods_of(value)  the methods of a handle; nil: it is none
--   ours               the names of libsxe's modules, as keys
local say, methods_of, ours = ...
local concat, move, pack, sort = table.concat, table.move, table.pack, table.sort
local find, format, gmatch, gsub = string.find, string.format, string.gmatch, string.gsub
local match, rep, sub = string.match, string.rep, string.sub
local max, min = math.max, math.min
local getmetatable, load, next, pcall, rawget, rawset = debug.getmetatable, load, next, pcall, rawget, rawset
local rawlen, require, select, tostring, type = rawlen, require, select, tostring, type
local mathtype = math.type
local globals, loaded, preload, strings = _G, package.loaded, package.preload, string

local WIDTH <const> = 78    -- the widest table that is shown on one line
local ENTRIES <const> = 100 -- the most entries of a table that are shown
local TEXT <const> = 200    -- the most bytes of a string in a table that are shown
local LISTED <const> = 200  -- the most names that are listed

-- ---- Lines ----

local pending -- the lines of a chunk that is not complete

local function compile(text)
    local chunk = load("return " .. text, "=stdin")
    local why, why_else

    if chunk then return chunk end
    why_else = select(2, load("return " .. text, "=stdin"))
    chunk, why = load(text, "=stdin")
    if chunk then return chunk end
    return nil, why, find(why, "near '?<eof>'?$") or find(why_else, "near '?<eof>'?$")
end

-- The chunk that ends with this line; true: the chunk is not complete; nothing: it has an error, which was printed.
local function take(line)
    local text = pending and pending .. "\n" .. line or gsub(line, "^%s*=", "")
    local chunk, why, is_open = compile(text)

    pending = is_open and text or nil
    if chunk then return chunk end
    if is_open then return true end
    say(why .. "\n")
end

local function forget()
    pending = nil
end

-- ---- Values ----

local function quote(text, most)
    local cut = most and #text > most and format(" ... %d bytes", #text) or ""

    return gsub(format("%q", sub(text, 1, most or -1)), "\\\n", "\\n") .. cut
end

local function has_text(value)
    local meta = getmetatable(value)

    return type(meta) == "table" and (rawget(meta, "__tostring") or rawget(meta, "__name")) ~= nil
end

local function shown_inside(value)
    if type(value) == "string" then return quote(value, TEXT) end
    if type(value) ~= "table" or has_text(value) then return tostring(value) end
    return next(value) == nil and "{}" or "{...}"
end

-- The order of keys: numbers, then text, then all others.
local function goes_before(a, b)
    local a_type, b_type = type(a), type(b)

    if a_type == b_type and (a_type == "number" or a_type == "string") then return a < b end
    if a_type == b_type then return tostring(a) < tostring(b) end
    if a_type == "number" or b_type == "number" then return a_type == "number" end
    if a_type == "string" or b_type == "string" then return a_type == "string" end
    return a_type < b_type
end

local function shown_key(key)
    if type(key) == "string" and find(key, "^[%a_][%w_]*$") then return key end
    return "[" .. shown_inside(key) .. "]"
end

local function other_keys(value, length)
    local keys = {}

    for key in next, value do
        if mathtype(key) ~= "integer" or key < 1 or key > length then keys[#keys + 1] = key end
    end
    sort(keys, goes_before)
    return keys
end

local function shown_table(value)
    local length, parts, size = rawlen(value), {}, 0
    local keys = other_keys(value, length)
    local left = length + #keys - ENTRIES

    for i = 1, min(length, ENTRIES) do parts[i] = shown_inside(rawget(value, i)) end
    for i = 1, min(#keys, ENTRIES - #parts) do
        parts[#parts + 1] = shown_key(keys[i]) .. " = " .. shown_inside(rawget(value, keys[i]))
    end
    if left > 0 then parts[#parts + 1] = format("... %d more", left) end
    for i = 1, #parts do size = size + #parts[i] + 2 end
    if size > WIDTH then return "{\n    " .. concat(parts, ",\n    ") .. "\n}" end
    return "{" .. concat(parts, ", ") .. "}"
end

local function shown(value)
    if type(value) == "string" then return quote(value) end
    if type(value) == "table" and not has_text(value) then return shown_table(value) end
    return tostring(value)
end

local function show(...)
    local values = pack(...)

    for i = 1, values.n do values[i] = shown(values[i]) end
    if values.n > 0 then say(concat(values, "  ") .. "\n") end
end

-- ---- Names ----

local KEYWORDS <const> = {
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local", "nil", "not",
    "or", "repeat", "return", "then", "true", "until", "while",
}

-- The tables with the names that may follow the dot: the value's own, and those that it inherits from.
local function fields_of(value)
    local tables = {}

    if type(value) == "string" then return { strings } end
    if type(value) == "userdata" then tables[1] = methods_of(value) end
    while (type(value) == "table" or type(value) == "userdata") and #tables < 8 do
        local meta = getmetatable(value)

        if type(value) == "table" then tables[#tables + 1] = value end
        value = type(meta) == "table" and rawget(meta, "__index")
    end
    return tables
end

local function field_of(value, name)
    for _, fields in next, fields_of(value) do
        local field = rawget(fields, name)

        if field ~= nil then return field end
    end
end

local function names_behind(chain, prefix, found)
    local value = globals

    for name in gmatch(chain, "[%w_]+") do value = field_of(value, name) end
    for _, fields in next, fields_of(value) do
        for name in next, fields do
            if type(name) == "string" and find(name, "^[%a_][%w_]*$") and sub(name, 1, #prefix) == prefix then
                found[name] = true
            end
        end
    end
end

local function modules(prefix, found)
    for _, names in next, { loaded, preload, ours } do
        for name in next, names do
            if sub(name, 1, #prefix) == prefix then found[name] = true end
        end
    end
end

local function candidates(text)
    local found = {}
    local prefix = match(text, "require%s*%(?%s*[\"']([%w_.-]*)$")
    local chain

    if prefix then
        modules(prefix, found)
    else
        chain, prefix = match(text, "([%w_.:]-)([%w_]*)$")
        if chain == "" or find(chain, "^[%a_][%w_.:]*[.:]$") then names_behind(chain, prefix, found) end
        for _, word in next, chain == "" and KEYWORDS or {} do
            if sub(word, 1, #prefix) == prefix then found[word] = true end
        end
    end
    return found, prefix
end

-- The names as a text in columns, from left to right.
local function listed(names)
    local width, lines = 0, {}
    local columns

    for i = 1, #names do width = max(width, #names[i] + 2) end
    columns = max(1, WIDTH // width)
    for i = 1, #names, columns do
        local row = move(names, i, min(i + columns - 1, #names), 1, {})

        for j = 1, #row - 1 do row[j] = row[j] .. rep(" ", width - #row[j]) end
        lines[#lines + 1] = concat(row)
    end
    return concat(lines, "\n") .. "\n"
end

local function common(names)
    local text = names[1]

    for i = 2, #names do
        while sub(names[i], 1, #text) ~= text do text = sub(text, 1, -2) end
    end
    return text
end

-- Complete the text before the cursor: returns text to insert, or nil, and then names to list, or nil.
local function complete(text)
    local found, prefix = candidates(text)
    local names = {}
    local rest

    if find(text, "^%s*$") then return "    " end
    for name in next, found do names[#names + 1] = name end
    if #names == 0 then return end
    sort(names)
    rest = sub(common(names), #prefix + 1)
    if rest ~= "" then return rest end
    if #names > LISTED then return nil, format("%d names\n", #names) end
    if #names > 1 then return nil, listed(names) end
end

-- ---- Names that only the prompt has ----

for name in next, ours do
    local short = match(name, "^sxe%.(%w+)$")

    if rawget(globals, short) == nil then
        local is_there, module = pcall(require, name)

        if is_there then rawset(globals, short, module) end
    end
end

rawset(globals, "print", function(...)
    local values = pack(...)

    for i = 1, values.n do values[i] = tostring(values[i]) end
    say(concat(values, "\t") .. "\n")
end)

return take, forget, show, complete
