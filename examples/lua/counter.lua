-- SPDX-License-Identifier: MIT
-- How often each page was asked for:   sxe-httpd --lua examples/lua/counter.lua
-- Counts the thousand pages that were requested last, in memory that is allocated at the start.

local pool = require "sxe.pool"
local pages = pool.open{
  name = "pages", count = 1000, states = { "free", "used" },
  fields = { path = "char[64]", hits = "u64" },
}
local page_of = {}

local function new_page(path)
  if pages:count "free" == 0 then
    local oldest = pages:oldest "used"

    page_of[oldest.path] = nil
    pages:move(oldest, "free")
  end
  local page = pages:take("free", "used")

  page.path, page_of[path] = path, page
  return page
end

return function(req)
  local path = req.path:sub(1, 64)
  local page = pages:touch(page_of[path] or new_page(path))

  return string.format("%s: %d\n", path, pages:add(page, "hits"))
end
