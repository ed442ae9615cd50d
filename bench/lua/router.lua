-- SPDX-License-Identifier: MIT
local r = require "sxe.http".router()

r:get("/users/{id}", function(req, res)
    local headers = res.headers
    headers["Cache-Control"] = "no-store"
    headers["X-Frame-Options"] = "DENY"
    headers["X-Content-Type-Options"] = "nosniff"
    return {id = tonumber(req.params.id), name = "Ann", active = true}
end)

return r
