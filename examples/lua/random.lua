-- SPDX-License-Identifier: MIT
-- A random number after a second, for any number of clients at once:
--     sxe-httpd --lua examples/lua/random.lua      curl localhost:8000/random?number=50

local sleep, random = require "sxe.task".sleep, math.random

return function(req)
  local number = tonumber(req.query.number) or 0

  sleep(1)
  return tostring(math.floor(random() * number + 0.5))
end
