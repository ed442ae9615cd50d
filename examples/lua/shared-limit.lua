-- SPDX-License-Identifier: MIT
-- Each address has 10 requests in 10 seconds, or arg[2] seconds, at all servers that share the file:
--   sxe-httpd -p 8000 --lua examples/lua/shared-limit.lua -- /dev/shm/limits
--   sxe-httpd -p 8001 --lua examples/lua/shared-limit.lua -- /dev/shm/limits
-- A server may be killed and started again: the counts stay.

local dict = require "sxe.dict"
local limit, period = 10, tonumber(arg[2]) or 10

-- Of more than 10,000 addresses within the period, those not seen for longest are forgotten.
local requests = assert(dict.open{
  name = "limits", cells = 10000, evicts = true, file = arg[1], cell_size = 128, shards = 4,
})

return function(req, res)
  local n = assert(requests:add(req.peer, 1, period))

  if n > limit then
    res.headers["Retry-After"] = math.max(1, math.ceil(requests:ttl(req.peer) or 0))
    return 429
  end
  return string.format("%d left\n", limit - n)
end
