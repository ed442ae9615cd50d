-- SPDX-License-Identifier: MIT
-- Makes a server seem far away: all bytes are delayed, by 0.2 s in each direction.
--     sxe-lua examples/lua/proxy.lua 7002 127.0.0.1 8000 0.2      curl localhost:7002/

local task, tcp = require "sxe.task", require "sxe.tcp"
local port, host, host_port, delay = ...

local function wait()
  task.sleep(tonumber(delay) or 0.2)
end

-- Each chunk waits in a task of its own, so that the next is read meanwhile; the end is delayed, too.
local function pass(from, to)
  local late = task.queue(64)
  local _ <close> = task.start(function()
    for data in from:chunks() do late:put{ data = data, wait = task.start(wait) } end
    wait()
    late:close()
  end)

  for chunk in late:each() do
    chunk.wait:join()
    if not to:write(chunk.data) then return end
  end
  to:shutdown()
end

local function serve(near)
  local far = assert(tcp.connect(host or "127.0.0.1", tonumber(host_port) or 8000))

  task.parallel{ function() pass(near, far) end, function() pass(far, near) end }
  far:close()
end

-- Each client needs two sockets.
server = tcp.serve("127.0.0.1", tonumber(port) or 7002, { handler = serve, connections = 2000 })
