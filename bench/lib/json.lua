-- SPDX-License-Identifier: MIT
--
-- What: writes values as JSON that a person can read and a diff can compare: names in order, a list
-- of plain values on one line.
-- Place: result.lua writes the file of a run with it; cjson reads that file.

local json = {}

local escapes = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t"}

local function string_of(text)
    return '"' .. text:gsub('[%c"\\]', function(c)
        return escapes[c] or ("\\u%04x"):format(c:byte())
    end) .. '"'
end

-- Seven digits are more than the precision of any number here.
local function number_of(number)
    if number ~= number or number == math.huge or number == -math.huge then
        return "null"
    end
    return math.type(number) == "integer" and tostring(number)
        or ("%.7g"):format(number)
end

local encode

local function is_plain(list)
    for _, value in ipairs(list) do
        if type(value) == "table" then
            return false
        end
    end
    return true
end

local function list_of(list, indent)
    local parts = {}
    for i, value in ipairs(list) do
        parts[i] = encode(value, indent .. "  ")
    end
    if is_plain(list) then
        return "[" .. table.concat(parts, ", ") .. "]"
    end
    local inner = "\n" .. indent .. "  "
    return "[" .. inner .. table.concat(parts, "," .. inner) .. "\n" .. indent .. "]"
end

local function object_of(object, indent)
    local names, parts = {}, {}
    for name in pairs(object) do
        names[#names + 1] = name
    end
    table.sort(names)
    for i, name in ipairs(names) do
        parts[i] = ("%s  %s: %s"):format(indent, string_of(name),
                                         encode(object[name], indent .. "  "))
    end
    return "{\n" .. table.concat(parts, ",\n") .. "\n" .. indent .. "}"
end

function encode(value, indent)
    if type(value) == "string" then
        return string_of(value)
    elseif type(value) == "number" then
        return number_of(value)
    elseif type(value) ~= "table" then
        return tostring(value)
    elseif next(value) == nil or #value > 0 then
        return list_of(value, indent)
    end
    return object_of(value, indent)
end

-- A table with [1] is a list, and so is an empty table; in other tables the keys are strings.
function json.encode(value)
    return encode(value, "") .. "\n"
end

return json
