---@meta sxe.json
-- SPDX-License-Identifier: MIT

---@class sxe.json
---@field null lightuserdata null, in both directions
local json = {}

---Raises where a value has no JSON.
---@param value any
---@return string
function json.encode(value) end

---@param text string
---@return any value, string? why
function json.decode(text) end

return json
