-- SPDX-License-Identifier: MIT
-- A client that sends its body only after 100 (Continue), and a Lua handler that replies while one of its tasks reads.

local http = require "http"
local script = require "script"

local server <close> = script.start([[
local task = require "sxe.task"
return function(req, res)
  local reads = task.event()
  local reader = task.start(function() reads:set() return req:body() end)
  reads:wait()
  res:write "got: "
  res:write(reader:join())
end
]])

-- promise: docs/http.md: The library sends `100 (Continue)` when you ask for the body, and never after the head of a
-- reply.
test("100 is sent when a task reads before the reply begins, on a connection that is kept open", function()
    local sock <close> = server:connect()
    for _ = 1, 3 do
        sock:send(http.request("POST /", "Expect: 100-continue", "Content-Length: 5"))
        equal(sock:read_reply().status, 100)
        sock:send("hello")
        local reply = sock:recv_until("\r\n0\r\n\r\n")
        check(reply:find("^HTTP/1.1 200 ") and reply:find("hello", 1, true), reply)
        check(not reply:find("\r\nConnection: close", 1, true), reply)
    end
end)
