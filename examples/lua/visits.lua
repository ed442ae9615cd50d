-- SPDX-License-Identifier: MIT
-- Counts the requests for each path in PostgreSQL, which PGHOST, PGUSER and so on name:
--   sxe-httpd --lua examples/lua/visits.lua

local postgres, task = require "sxe.postgres", require "sxe.task"
local db = postgres.new{ timeout = 5 }

task.start(function()
  local ok, why = db:exec "CREATE TABLE IF NOT EXISTS visits (page text PRIMARY KEY, number bigint NOT NULL)"

  if not ok then require "sxe.log".warn("no table: " .. why) end
end)

return function(req)
  local rows, why = db:query([[INSERT INTO visits VALUES ($1, 1)
    ON CONFLICT (page) DO UPDATE SET number = visits.number + 1 RETURNING *]], req.path)

  if not rows then error{ status = 503, message = "no PostgreSQL: " .. why } end
  return rows[1]
end
