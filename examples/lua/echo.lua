-- SPDX-License-Identifier: MIT
-- Sends back what it receives: sxe-lua examples/lua/echo.lua 7000, and then: nc 127.0.0.1 7000
local tcp = require "sxe.tcp"

server = tcp.serve("127.0.0.1", tonumber(arg[1]) or 7000, function(conn)
  for data in conn:chunks() do conn:write(data) end
end)
