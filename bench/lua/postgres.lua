-- SPDX-License-Identifier: MIT
-- A row of PostgreSQL, selected by a random key, as JSON. The argument is the port of PostgreSQL.
local postgres = require "sxe.postgres"
local db = postgres.new{host = "127.0.0.1", port = tonumber(arg[1]), user = "bench", database = "postgres", tls = false,
                        max = 10}

return function()
    local rows, why = db:query("SELECT id, name, price FROM items WHERE id = $1", math.random(10000, 19999))
    return rows and rows[1] or error(why)
end
