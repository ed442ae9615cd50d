-- SPDX-License-Identifier: MIT
-- Reads JSON strictly (RFC 8259). json.decode(text) -> value. Objects and arrays are both Lua tables; json.kind(value)
-- tells them apart: "object", "array", "string", "number", "boolean" or "null". A name that occurs twice in an object
-- is an error.

local json = {null = setmetatable({}, {__tostring = function() return "null" end})}

local arrays = setmetatable({}, {__mode = "k"})
local escapes = {['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t"}
local words = {["true"] = true, ["false"] = false, null = json.null}
local read_value

local function fail(text, at, why)
    error(("%s at byte %d: %s"):format(why, at, text:sub(at, at + 40)), 0)
end

local function skip_space(text, at)
    return text:match("^[ \t\r\n]*()", at)
end

local function read_string(text, at)
    local parts = {}
    at = at + 1
    while true do
        local plain, byte, after = text:match('^([^"\\\0-\31]*)(.)()', at)
        if not byte then
            fail(text, at, "a string without an end")
        end
        parts[#parts + 1] = plain
        at = after
        if byte == '"' then
            return table.concat(parts), at
        elseif byte ~= "\\" then
            fail(text, at, "a control character in a string")
        end
        local digits = text:match("^u(%x%x%x%x)", at)
        local escaped = escapes[text:sub(at, at)]
        if digits then
            parts[#parts + 1] = utf8.char(tonumber(digits, 16))
            at = at + 5
        elseif escaped then
            parts[#parts + 1] = escaped
            at = at + 1
        else
            fail(text, at, "no such escape")
        end
    end
end

local function read_members(text, at, close, read_one)
    at = skip_space(text, at + 1)
    if text:sub(at, at) == close then
        return at + 1
    end
    while true do
        at = skip_space(text, read_one(skip_space(text, at)))
        local byte = text:sub(at, at)
        if byte == close then
            return at + 1
        elseif byte ~= "," then
            fail(text, at, "neither , nor " .. close)
        end
        at = at + 1
    end
end

local function read_object(text, at)
    local object = {}
    at = read_members(text, at, "}", function(here)
        if text:sub(here, here) ~= '"' then
            fail(text, here, "no name")
        end
        local name, after = read_string(text, here)
        after = skip_space(text, after)
        if text:sub(after, after) ~= ":" then
            fail(text, after, "no :")
        end
        if object[name] ~= nil then
            fail(text, here, "a name that is there twice")
        end
        object[name], after = read_value(text, skip_space(text, after + 1))
        return after
    end)
    return object, at
end

local function read_array(text, at)
    local array = {}
    arrays[array] = true
    at = read_members(text, at, "]", function(here)
        local value, after = read_value(text, here)
        array[#array + 1] = value
        return after
    end)
    return array, at
end

function read_value(text, at)
    local byte = text:sub(at, at)
    if byte == "{" then
        return read_object(text, at)
    elseif byte == "[" then
        return read_array(text, at)
    elseif byte == '"' then
        return read_string(text, at)
    end
    local word = text:match("^%l+", at)
    if word and words[word] ~= nil then
        return words[word], at + #word
    end
    local number = text:match("^-?%d+%.?%d*[eE]?[+-]?%d*", at)
    if not number or number:find("^-?0%d") or number:find("%.$") or number:find("%.[eE]") or not tonumber(number) then
        fail(text, at, "no value")
    end
    return tonumber(number), at + #number
end

function json.decode(text)
    local value, at = read_value(text, skip_space(text, 1))
    at = skip_space(text, at)
    if at <= #text then
        fail(text, at, "something after the value")
    end
    return value
end

function json.kind(value)
    if value == json.null then
        return "null"
    elseif type(value) ~= "table" then
        return type(value)
    end
    return arrays[value] and "array" or "object"
end

return json
