-- SPDX-License-Identifier: MIT
-- The files of a directory:   sxe-lua examples/lua/static.lua 8000 ./public

local http = require "sxe.http"
local root = arg[2] or "."

http.serve{
  port = tonumber(arg[1]) or 8000,
  handler = http.static(root, { cache_control = "max-age=60" }),
}
