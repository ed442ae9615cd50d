---@meta sxe.json
-- SPDX-License-Identifier: MIT

---JSON in both directions.
---@class sxe.json
---@field null lightuserdata null, in both directions
local json = {}

---Return the JSON text of a value. Functions, cycles, NaN, infinity and more than 1000 levels raise an error.
---@param value any
---@return string
function json.encode(value) end

---Return the value of a JSON text (RFC 8259), or nil and a message. Whole numbers become integers, and null becomes
---json.null.
---@param text string
---@return any value, string? why
function json.decode(text) end

---Mark a table as a list, even if it is empty.
---@param table? table
---@return table
function json.array(table) end

return json
