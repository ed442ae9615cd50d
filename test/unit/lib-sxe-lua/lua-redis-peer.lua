-- SPDX-License-Identifier: MIT
-- The protocol of Redis, as the servers speak it that scripts of test-lua-redis.c play. Returns a table of functions.
local peer = {}

-- The next command on a connection, as a list; nil: the client has closed it.
function peer.read_command(conn)
  local head = conn:read "l"
  local list = {}

  for i = 1, head and tonumber(head:sub(2)) or 0 do
    list[i] = conn:read(tonumber(conn:read("l"):sub(2)))
    conn:read(2)
  end
  return head and list
end

-- A text as a reply.
function peer.text(value)
  return ("$%d\r\n%s\r\n"):format(#value, value)
end

return peer
