-- SPDX-License-Identifier: MIT
-- The limits of forms, and their kinds, by docs/lua-handlers.md.

local http = require "http"
local script = require "script"

local server <close> = script.start([[
return function(req)
  local names = req.method == "GET" and req.query() or req:form()
  local count = 0
  for _ in pairs(names) do count = count + 1 end
  return tostring(count)
end
]])

local function post(text, ...)
    return http.ask(server, http.request("POST /", "Content-Length: " .. #text, ...) .. text)
end

local function names(count)
    local list = {}
    for i = 1, count do list[i] = i .. "=x" end
    return table.concat(list, "&")
end

-- promise: docs/lua-handlers.md: More than 1000 names make the reply `413`, in `req.query()` `414`.
test("the number of names is limited, however they are written", function()
    equal(post(names(1000)).body, "1000")
    equal(post(names(1001)).status, 413)
    equal(post(("a=1&"):rep(1001)).status, 413)
    equal(post(("&"):rep(100000) .. "a=1").body, "1")
    equal(http.ask(server, http.request("GET /?" .. ("a&"):rep(1000))).body, "1")
    equal(http.ask(server, http.request("GET /?" .. ("a&"):rep(1001))).status, 414)
    equal(post(names(10)).body, "10")
end)

-- promise: docs/lua-handlers.md: A form of the type multipart/form-data makes the reply `415`
test("a multipart form is not parsed as another kind", function()
    local text = '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n'
    equal(post(text, "Content-Type: multipart/form-data; boundary=x").status, 415)
    equal(post("a=1", "Content-Type: application/x-www-form-urlencoded").body, "1")
end)
