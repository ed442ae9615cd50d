-- SPDX-License-Identifier: MIT
-- JSON, by docs/lua-handlers.md, with a handler that sends back what it decoded.

local http = require "http"
local script = require "script"

local server <close> = script.start([[
local json = require "sxe.json"
local function what(value) return math.type(value) or type(value) end
return function(req)
  if req.path == "/echo" then return json.encode(req:json()) end
  if req.path == "/type" then return what(req:json()) end
  if req.path == "/empty" then return { notes = {}, list = json.array() } end
  if req.path == "/emptied" then
    local list = req:json()
    while #list > 0 do table.remove(list) end
    return json.encode { list, list }
  end
end
]])

local function post(path, text)
    return http.ask(server, http.request("POST " .. path, "Content-Length: " .. #text) .. text)
end

-- promise: docs/lua-handlers.md: Decoding returns the same numbers: integers are written with all digits, floats with
-- as many digits as necessary.
test("numbers come back unchanged", function()
    for _, text in ipairs{"9007199254740992", "9007199254740993", "9223372036854775807",
                          "-9223372036854775808", "1700000000.123456", "0.1", "1e+300", "-0",
                          "0.30000000000000004", "2.5"} do
        equal(post("/echo", text).body, text)
        equal(post("/echo", "[" .. text .. "]").body, "[" .. text .. "]")
    end
end)

-- promise: docs/lua-handlers.md: NaN, Infinity, `0x10`, numbers that no float can hold, and values nested more than
-- 1000 deep are refused.
test("text that is not JSON is refused", function()
    for _, text in ipairs{"NaN", "nan", "[NaN]", "Infinity", "-Infinity", "inf", "0x10", "[0x1p3]", "1e400",
                          "010", "1.", ".5", "+1", "[1,]", "{\"a\":1,}", "'a'", "// c\n1", "1 2", ""} do
        equal(post("/echo", text).status, 400)
    end
end)

-- promise: docs/lua-handlers.md: values nested more than 1000 deep are refused
test("the depth of nesting is limited", function()
    equal(post("/echo", ("["):rep(1000) .. ("]"):rep(1000)).status, 200)
    equal(post("/echo", ("["):rep(1001) .. ("]"):rep(1001)).status, 400)
    equal(post("/echo", ("["):rep(500000)).status, 400)
    equal(post("/echo", "1").body, "1")
end)

-- promise: docs/lua-handlers.md: Whole numbers become integers
test("whole numbers are integers", function()
    equal(post("/type", "1").body, "integer")
    equal(post("/type", "1.0").body, "integer")
    equal(post("/type", "1e3").body, "integer")
    equal(post("/type", "1.5").body, "float")
end)

-- promise: docs/lua-handlers.md: decoded lists are such tables, too
test("lists stay lists", function()
    equal(post("/echo", "[]").body, "[]")
    equal(post("/echo", '{"a":[[],{}]}').body, '{"a":[[],{}]}')
    equal(post("/emptied", "[1,2,3]").body, "[[],[]]")
end)

-- promise: docs/lua-handlers.md: `json.array([table])` returns the table, or a new one, that is a list even when it
-- is empty
test("an empty table of json.array is a list", function()
    local body = post("/empty", "").body
    check(body:find('"list":[]', 1, true) and body:find('"notes":{}', 1, true), body)
end)
