-- SPDX-License-Identifier: MIT
-- What ../cache.c keeps:   sxe-lua examples/lua/cache.lua FILE
local cache = assert(require "sxe.dict".open{ name = "cache", file = arg[1] })

for command, text, seconds in cache:each() do
  print(("%s: %d bytes, for %.0f s more"):format(command, #text, seconds))
end
local stats = cache:stats()
print(("%d hits, %d misses"):format(stats.hits, stats.misses))
