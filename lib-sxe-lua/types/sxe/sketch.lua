---@meta sxe.sketch
-- SPDX-License-Identifier: MIT

---Counts of different things, in a few kilobytes and with a known error, which processes share.
---@class sxe.sketch
local sketch = {}

---@class sxe.sketch.hll.opening
---@field name? string may be left out for a file that is there
---@field precision? integer 4 to 18, for 2^precision bytes: 14
---@field file? string a path; without a '/', a name in /dev/shm
---@field shared? boolean in memory, with those that this process forks
---@field repair? boolean set registers that are damaged to 0

---@class sxe.Hll
---@field name string
---@field found "created"|"joined"|"closed"|"completed"|"rebuilt"
---@field precision integer
local Hll = {}

---Add strings; true: the count may have grown.
---@param ... string
---@return boolean grown
function Hll:add(...) end

---About how many different strings were added.
---@return number? count, sxe.error? why, integer? code
function Hll:count() end

---Count what the other counts, too; it may be more precise.
---@param other sxe.Hll
---@return true? done, sxe.error? why, integer? code
function Hll:merge(other) end

---Forget all.
function Hll:clear() end

---The string in which Redis keeps a HyperLogLog; the precision must be at least 14.
---@return string? string, sxe.error? why, integer? code
function Hll:export() end

---Merge what GET of Redis returns; the precision must be at most 14.
---@param string string
---@return true? done, sxe.error? why, integer? code
function Hll:import(string) end

---Write it to its disk, and wait for that.
---@return true? done, sxe.error? why, integer? code
function Hll:sync() end

---Close it: each later call raises. A <close> variable does so at the end of its scope.
function Hll:close() end

---Make a HyperLogLog, or open the one that is there.
---@param options sxe.sketch.hll.opening
---@return sxe.Hll? hll, sxe.error? why, integer? code
function sketch.hll(options) end

return sketch
