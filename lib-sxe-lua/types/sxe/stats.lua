---@meta sxe.stats
-- SPDX-License-Identifier: MIT

---@class sxe.stats.names
---@field [integer] string
---@field name? string of the group

---The counters are its fields; called, it is a table of them.
---@class sxe.Counters
---@field [string] integer
---@operator call: table<string, integer>
local Counters = {}

---Add to a counter, and return its new value, which stops at the largest integer. An unknown name raises an error.
---@param name string
---@param n? integer 1
---@return integer
function Counters:inc(name, n) end

---Subtract from a counter, and return its new value, which stops at the smallest integer. An unknown name raises an
---error.
---@param name string
---@param n? integer 1
---@return integer
function Counters:dec(name, n) end

---Set all counters of the group to 0.
function Counters:reset() end

---Return the seconds since the group was made or reset.
---@return number
function Counters:uptime() end

---Counters of a script, which sxe-httpd --stats shows. A call makes a group of them, all 0, as in stats{"hits", name =
---"cache"}. There can be 64 groups, whose names differ.
---@class sxe.stats
---@overload fun(names: sxe.stats.names): sxe.Counters
local stats = {}

return stats
