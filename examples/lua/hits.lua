-- SPDX-License-Identifier: MIT
-- Counts the requests for each path in Redis, for all workers:   sxe-httpd --lua examples/lua/hits.lua

local redis = require "sxe.redis"
local db = redis.new{ port = tonumber(os.getenv "REDIS_PORT") or 6379, timeout = 1 }

return function(req)
  local hits, why = db:hincrby("hits", req.path, 1)

  if not hits then error{ status = 503, message = "no Redis: " .. why } end
  return { path = req.path, hits = hits }
end
