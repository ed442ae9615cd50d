-- SPDX-License-Identifier: MIT
-- Counts the requests for each path in PostgreSQL, which PGHOST, PGUSER and so on name:
--   sxe-httpd --lua examples/lua/visits.lua

local postgres = require "sxe.postgres"
local db = postgres.new{ timeout = 5 }
local NO_TABLE <const> = "42P01"

local function count(path)
  return db:query([[INSERT INTO visits VALUES ($1, 1)
    ON CONFLICT (page) DO UPDATE SET number = visits.number + 1 RETURNING *]], path)
end

return function(req)
  local rows, why, code = count(req.path)

  if code == NO_TABLE then -- if several requests create it at the same time, all but one fail to
    db:exec "CREATE TABLE IF NOT EXISTS visits (page text PRIMARY KEY, number bigint NOT NULL)"
    rows, why = count(req.path)
  end
  if not rows then error{ status = 503, message = "no PostgreSQL: " .. why } end
  return rows[1]
end
