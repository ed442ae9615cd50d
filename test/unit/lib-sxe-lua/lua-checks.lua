-- SPDX-License-Identifier: MIT
-- What the scripts of unit tests check. Returns a table of functions.
local checks = {}

function checks.equal(got, wanted)
  if got ~= wanted then error(("%s, not %s"):format(got, wanted), 2) end
end

-- A call that failed for this reason: its results are given, nil and a message, or those of pcall.
function checks.fails(why, ...)
  local ok, got = ...
  if ok or not tostring(got):find(why, 1, true) then error(("%s, not %s"):format(got, why), 2) end
end

return checks
