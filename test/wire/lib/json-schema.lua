-- SPDX-License-Identifier: MIT
-- Validates JSON, as json-text.lua reads it, against a JSON schema (draft 2020-12). It knows the keywords that our
-- schema uses, and fails on any other, so that none is ignored.
-- schema.load(text) -> s; s:check(value[, "name of a definition"]) -> nil, or what is wrong and where.

local json = require "json-text"

local schema = {}
schema.__index = schema

local check

local function is_integer(value)
    return type(value) == "number" and value % 1 == 0
end

local function has_type(value, name)
    return json.kind(value) == name or (name == "integer" and is_integer(value))
end

-- Whether both are the same JSON value.
local function is_same(a, b)
    if type(a) ~= "table" or type(b) ~= "table" or a == json.null or b == json.null then
        return a == b
    end
    for name, value in pairs(a) do
        if b[name] == nil or not is_same(value, b[name]) then
            return false
        end
    end
    for name in pairs(b) do
        if a[name] == nil then
            return false
        end
    end
    return json.kind(a) == json.kind(b)
end

local function is_among(values, value)
    for _, each in ipairs(values) do
        if is_same(each, value) then
            return true
        end
    end
    return false
end

-- How many of the schemas the value matches, and the problem of the mismatch that lies deepest in the value.
local function count_matches(root, schemas, value, where)
    local matches, why = 0, ""
    for _, each in ipairs(schemas) do
        local problem = check(root, each, value, where)
        matches = matches + (problem and 0 or 1)
        if problem and #problem:match("^[^:]*") >= #why:match("^[^:]*") then
            why = problem
        end
    end
    return matches, why
end

-- Translate a regular expression of digits and plain characters to a Lua pattern.
local function to_pattern(expression)
    assert(not expression:find("[%[%](){}*+?|.]"), "more than this test's regular expressions: " .. expression)
    return (expression:gsub("\\d", "\1"):gsub("%-", "%%-"):gsub("\1", "%%d"))
end

local objects, arrays, numbers = {}, {}, {}
local words = {}

function words.type(_, rule, value)
    for _, name in ipairs(json.kind(rule) == "array" and rule or {rule}) do
        if has_type(value, name) then
            return nil
        end
    end
    return "it is of type " .. json.kind(value)
end

words["$ref"] = function(root, rule, value, where)
    local name = assert(rule:match("^#/%$defs/(%w+)$"), "no such reference: " .. rule)
    return check(root, assert(root["$defs"][name], "no such definition: " .. name), value, where)
end

function words.const(_, rule, value)
    return not is_same(rule, value) and "it is " .. tostring(value) or nil
end

function words.enum(_, rule, value)
    return not is_among(rule, value) and tostring(value) .. " is none of those it may be" or nil
end

function words.anyOf(root, rule, value, where)
    local matches, why = count_matches(root, rule, value, where)
    return matches == 0 and why or nil
end

function words.oneOf(root, rule, value, where)
    local matches, why = count_matches(root, rule, value, where)
    return matches ~= 1 and (matches > 1 and "it is more than one of what it may be" or why) or nil
end

function words.pattern(_, rule, value)
    return type(value) == "string" and not value:find(to_pattern(rule)) and "it is " .. value or nil
end

function numbers.minimum(_, rule, value)
    return value < rule and "it is " .. value or nil
end

function numbers.maximum(_, rule, value)
    return value > rule and "it is " .. value or nil
end

function arrays.minItems(_, rule, value)
    return #value < rule and "it has " .. #value .. " elements" or nil
end

function arrays.maxItems(_, rule, value)
    return #value > rule and "it has " .. #value .. " elements" or nil
end

function arrays.uniqueItems(_, rule, value)
    for i, each in ipairs(value) do
        if rule and is_among(table.move(value, i + 1, #value, 1, {}), each) then
            return tostring(each) .. " is there twice"
        end
    end
    return nil
end

function arrays.prefixItems(root, rule, value, where)
    for i, each in ipairs(rule) do
        local problem = value[i] ~= nil and check(root, each, value[i], where .. "[" .. i - 1 .. "]")
        if problem then
            return problem
        end
    end
    return nil
end

function arrays.items(root, rule, value, where, of)
    for i = #(of.prefixItems or {}) + 1, #value do
        local problem = check(root, rule, value[i], where .. "[" .. i - 1 .. "]")
        if problem then
            return problem
        end
    end
    return nil
end

function objects.required(_, rule, value)
    for _, name in ipairs(rule) do
        if value[name] == nil then
            return name .. " is missing"
        end
    end
    return nil
end

function objects.properties(root, rule, value, where)
    for name, each in pairs(rule) do
        local problem = value[name] ~= nil and check(root, each, value[name], where .. "." .. name)
        if problem then
            return problem
        end
    end
    return nil
end

function objects.additionalProperties(root, rule, value, where, of)
    for name, each in pairs(value) do
        local problem = not (of.properties or {})[name] and check(root, rule, each, where .. "." .. name)
        if problem then
            return problem
        end
    end
    return nil
end

local of_kind = {object = objects, array = arrays, number = numbers}
local ignored = {["$schema"] = true, ["$defs"] = true, title = true, description = true}

-- Check a value against `rule`: a schema, true or false. Returns nil, or the problem and its place.
function check(root, rule, value, where)
    if type(rule) == "boolean" then
        return not rule and where .. ": it may not be there" or nil
    end
    for word, each in pairs(rule) do
        local judge = words[word] or (of_kind[json.kind(value)] or {})[word]
        local problem = judge and judge(root, each, value, where, rule)
        if problem then
            return problem:find("^%$") and problem or where .. ": " .. problem
        end
    end
    return nil
end

-- Check that this module knows all keywords of a schema and of its subschemas.
local function check_words(rule)
    if type(rule) == "boolean" then
        return
    end
    for word, each in pairs(rule) do
        assert(ignored[word] or words[word] or objects[word] or arrays[word] or numbers[word],
               "a word of JSON schema that this test does not know: " .. word)
        if word == "properties" or word == "$defs" or word == "anyOf" or word == "oneOf" or word == "prefixItems" then
            for _, inner in pairs(each) do
                check_words(inner)
            end
        elseif word == "items" or word == "additionalProperties" then
            check_words(each)
        end
    end
end

function schema.load(text)
    local self = setmetatable({root = json.decode(text)}, schema)
    check_words(self.root)
    return self
end

function schema:check(value, name)
    return check(self.root, name and {["$ref"] = "#/$defs/" .. name} or self.root, value, "$")
end

return schema
