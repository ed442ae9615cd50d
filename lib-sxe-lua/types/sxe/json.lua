---@meta sxe.json
-- SPDX-License-Identifier: MIT

---@class sxe.json
---@field null lightuserdata null, in both directions
local json = {}

---Raises where a value has no JSON.
---@param value any
---@return string
function json.encode(value) end

---JSON as RFC 8259 has it.
---@param text string
---@return any value, string? why
function json.decode(text) end

---Mark a table as a list, even if it is empty.
---@param table? table
---@return table
function json.array(table) end

return json
