-- SPDX-License-Identifier: MIT
-- Counts the requests for each path in a cluster of Redis, and lists the last ones:
--   REDIS_SEEDS=127.0.0.1:7000,127.0.0.1:7001 sxe-httpd --lua examples/lua/cluster-hits.lua

local redis = require "sxe.redis"
local seeds = {}

for seed in (os.getenv "REDIS_SEEDS" or "127.0.0.1:7000"):gmatch "[^,]+" do seeds[#seeds + 1] = seed end

local db = redis.cluster{ seeds = seeds, timeout = 2 }

return function(req)
  local key = "{" .. req.path .. "}" -- one slot for the two keys of a path
  local commands = db:pipeline():incr(key .. "hits"):lpush(key .. "last", os.time()):ltrim(key .. "last", 0, 9)
  local replies, why = commands:exec()

  if not replies then error{ status = 503, message = "no Redis: " .. why } end
  return { path = req.path, hits = replies[1] }
end
