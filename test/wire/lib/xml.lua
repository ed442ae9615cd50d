-- SPDX-License-Identifier: MIT
-- Reads XML strictly, as far as JUnit's files need it: elements, attributes, text; no DTD, no namespaces.
-- xml.parse(text) -> {name, attributes = {}, text = "...", child element, child element, ...}, or an error.

local xml = {}

local named = {lt = "<", gt = ">", amp = "&", quot = '"', apos = "'"}

-- The characters that XML 1.0 allows: no other control characters, no surrogates, nor U+FFFE and
-- U+FFFF.
local function is_character(code)
    return code == 9 or code == 10 or code == 13 or (code >= 32 and code <= 0xd7ff)
           or (code >= 0xe000 and code <= 0xfffd) or (code >= 0x10000 and code <= 0x10ffff)
end

local function check_characters(text)
    assert(utf8.len(text), "it is no UTF-8")
    for _, code in utf8.codes(text) do
        assert(is_character(code), ("U+%04X is no character of XML"):format(code))
    end
end

local function unescape(text)
    assert(not text:find("&[^;]*$") and not text:find("&[^;]*&"), "an & that begins no reference: " .. text)
    return (text:gsub("&(.-);", function(name)
        local code = tonumber(name:match("^#(%d+)$")) or tonumber(name:match("^#x(%x+)$") or "", 16)
        assert(named[name] or code, "no such reference: &" .. name .. ";")
        assert(named[name] or is_character(code), "a reference to what is no character: " .. name)
        return named[name] or utf8.char(code)
    end))
end

local function attributes_of(text)
    local found = {}
    local rest = text:gsub("%s+([%w:_.-]+)=\"([^\"<]*)\"", function(name, value)
        assert(not found[name], name .. " is there twice")
        found[name] = unescape(value)
        return ""
    end)
    assert(rest:match("^%s*$"), "no attributes: " .. rest)
    return found
end

local function parse_element(text, at)
    local name, attributes, close, after = text:match("^<([%w:_-]+)([^<>]-)(/?)>()", at)
    assert(name, "no element at " .. text:sub(at, at + 40))
    local element = {name = name, attributes = attributes_of(attributes), text = ""}
    at = after
    while close == "" do
        local between, next_at = text:match("^([^<]*)()", at)
        assert(not between:find("]]>", 1, true), "]]> in a text")
        element.text = element.text .. unescape(between)
        at = next_at
        if text:sub(at, at + 1) == "</" then
            local ended, end_at = text:match("^</([%w:_-]+)>()", at)
            assert(ended == name, ("<%s> ends with </%s>"):format(name, tostring(ended)))
            return element, end_at
        end
        element[#element + 1], at = parse_element(text, at)
    end
    return element, at
end

function xml.parse(text)
    check_characters(text)
    local at = text:match('^<%?xml version="1%.0" encoding="UTF%-8"%?>\n()')
    assert(at, "no declaration: " .. text:sub(1, 60))
    local root, after = parse_element(text, at)
    assert(text:match("^%s*$", after), "something after the root: " .. text:sub(after, after + 40))
    return root
end

return xml
