---@meta sxe.sketch
-- SPDX-License-Identifier: MIT

---Different things counted, things known again, and the most frequent keys: with a known error, shared by processes.
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

---Merge the other sketch into this one; the other may be more precise.
---@param other sxe.Hll
---@return true? done, sxe.error? why, integer? code
function Hll:merge(other) end

---Remove all that was added.
function Hll:clear() end

---The string in which Redis keeps a HyperLogLog; the precision must be at least 14.
---@return string? string, sxe.error? why, integer? code
function Hll:export() end

---Merge a HyperLogLog of Redis, as its GET returns it; the precision must be at most 14.
---@param string string
---@return true? done, sxe.error? why, integer? code
function Hll:import(string) end

---Write the sketch to the disk, and wait for the disk.
---@return true? done, sxe.error? why, integer? code
function Hll:sync() end

---Close the sketch: each later call raises an error. A <close> variable does so at the end of its scope.
function Hll:close() end

---@class sxe.sketch.bloom.opening
---@field name? string may be left out for a file that is there
---@field capacity? integer different things that the error is for
---@field error? number the share of things that were not added for which it says yes by error: 0.01
---@field file? string a path; without a '/', a name in /dev/shm
---@field shared? boolean in memory, with those that this process forks
---@field repair? boolean open it although it was in use when the machine stopped

---@class sxe.Bloom
---@field name string
---@field found "created"|"joined"|"closed"|"completed"|"rebuilt"
---@field bits integer
---@field hashes integer
local Bloom = {}

---Add a string; true: it was not there.
---@param thing string
---@return boolean is_new
function Bloom:add(thing) end

---Whether a string was added. False is certain; true may be wrong.
---@param thing string
---@return boolean has
function Bloom:has(thing) end

---About how many different strings were added.
---@return number count
function Bloom:count() end

---The share of strings that were not added, but for which has() returns true at present.
---@return number share
function Bloom:error_rate() end

---Merge the other filter into this one; it must have the same capacity and error.
---@param other sxe.Bloom
---@return true? done, sxe.error? why, integer? code
function Bloom:merge(other) end

---Remove all that was added.
function Bloom:clear() end

---Write the sketch to the disk, and wait for the disk.
---@return true? done, sxe.error? why, integer? code
function Bloom:sync() end

---Close the sketch: each later call raises an error. A <close> variable does so at the end of its scope.
function Bloom:close() end

---@class sxe.sketch.topk.opening
---@field name? string may be left out for a file that is there
---@field number? integer of keys in a list: 1 to 1000
---@field error? number the share of all that a count may be too high: 0.001
---@field key_size? integer bytes of the longest key, a multiple of 8 up to 256: 64
---@field file? string a path; without a '/', a name in /dev/shm
---@field shared? boolean in memory, with those that this process forks
---@field repair? boolean open it although it was in use when the machine stopped

---@class sxe.sketch.topk.entry
---@field key string
---@field count integer

---@class sxe.TopK
---@field name string
---@field found "created"|"joined"|"closed"|"completed"|"rebuilt"
---@field number integer
---@field key_size integer
local TopK = {}

---Add a key, once or as often as times says.
---@param key string
---@param times? integer 1
function TopK:add(key, times) end

---How often a key was added, or a little more.
---@param key string
---@return integer count
function TopK:count(key) end

---How often all keys were added.
---@return integer total
function TopK:total() end

---The keys with the highest counts, the highest first.
---@param max? integer all that it lists
---@return sxe.sketch.topk.entry[] entries
function TopK:list(max) end

---Add the counts and keys of the other; it must have the same error and key_size.
---@param other sxe.TopK
---@return true? done, sxe.error? why, integer? code
function TopK:merge(other) end

---Remove all that was added.
function TopK:clear() end

---Write the sketch to the disk, and wait for the disk.
---@return true? done, sxe.error? why, integer? code
function TopK:sync() end

---Close the sketch: each later call raises an error. A <close> variable does so at the end of its scope.
function TopK:close() end

---Make a HyperLogLog, or open the one that is there.
---@param options sxe.sketch.hll.opening
---@return sxe.Hll? hll, sxe.error? why, integer? code
function sketch.hll(options) end

---Make a Bloom filter, or open the one that is there.
---@param options sxe.sketch.bloom.opening
---@return sxe.Bloom? bloom, sxe.error? why, integer? code
function sketch.bloom(options) end

---Make a sketch of the most frequent keys, or open the one that is there.
---@param options sxe.sketch.topk.opening
---@return sxe.TopK? topk, sxe.error? why, integer? code
function sketch.topk(options) end

return sketch
