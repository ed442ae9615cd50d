-- SPDX-License-Identifier: MIT
-- A clock of server-sent events:   sxe-httpd --lua examples/lua/sse.lua      curl -N localhost:8000/

local sleep = require "sxe.task".sleep

return function(_, res)
  local events = res:sse()

  while events:send{ event = "tick", data = os.date("!%H:%M:%S") } do
    sleep(1)
  end
end
