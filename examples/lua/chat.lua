-- SPDX-License-Identifier: MIT
-- A chat, each line goes to all others: sxe-lua examples/lua/chat.lua 7001, and then: nc 127.0.0.1 7001
local tcp = require "sxe.tcp"
local members = {}

local function say(from, line)
  local others = {} -- writing may wait, and members come and go meanwhile
  for conn in pairs(members) do
    if conn ~= from then others[#others + 1] = conn end
  end
  for _, conn in ipairs(others) do conn:write(line, "\n") end
end

local function talk(conn)
  conn:write("your name? ")
  local name = conn:read("l")
  if not name then return end
  members[conn] = true
  say(conn, name .. " has come")
  for line in conn:lines() do say(conn, name .. ": " .. line) end
  members[conn] = nil
  say(conn, name .. " has gone")
end

-- A client that neither reads nor says anything for 300 s is closed.
server = tcp.serve("127.0.0.1", tonumber(arg[1]) or 7001, { handler = talk, timeout = 300 })
