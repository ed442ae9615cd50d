-- SPDX-License-Identifier: MIT
-- Counts the requests for each path in groups of Redis servers, the first of each group its master; /groups shows them:
--   REDIS_GROUPS="red=127.0.0.1:7001,127.0.0.1:7002 blue=127.0.0.1:7003" sxe-httpd --lua examples/lua/sharded-hits.lua

local redis = require "sxe.redis"
local groups = {}

for name, list in (os.getenv "REDIS_GROUPS" or "red=127.0.0.1:7001"):gmatch "(%S+)=(%S+)" do
  local group = { name = name, masters = {}, replicas = {} }

  for address in list:gmatch "[^,]+" do
    table.insert(group.masters[1] and group.replicas or group.masters, address)
  end
  groups[#groups + 1] = group
end

local db = redis.sharded{ groups = groups, timeout = 2 }

return function(req)
  if req.path == "/groups" then return db:state() end

  local hits, why = db:incr("hits:" .. req.path)

  if not hits then error{ status = 503, message = "no Redis: " .. why } end
  return { path = req.path, hits = hits, group = db:group_of("hits:" .. req.path) }
end
