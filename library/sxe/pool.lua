---@meta sxe.pool
-- SPDX-License-Identifier: MIT

---Records with states and typed fields.
---@class sxe.pool
local pool = {}

---@class sxe.pool.opening
---@field name string
---@field count integer elements
---@field states string[] the first is that of free ones
---@field fields? table<string, string> types: u8 to u64, i8 to i64, f32, f64, bool, char[n]
---@field timeouts? table<string, sxe.seconds> of states
---@field on_timeout? fun(element: sxe.Element) otherwise back to the first state

---@class sxe.Pool
---@field name string
---@operator len: integer
local Pool = {}

---The oldest in a state, which goes to another; nil: there is none.
---@param from string
---@param to string
---@return sxe.Element?
function Pool:take(from, to) end

---@param element sxe.Element|integer
---@param to string
---@return sxe.Element? element, sxe.error? why
function Pool:move(element, to) end

---Make it the youngest.
---@param element sxe.Element|integer
---@return sxe.Element? element, sxe.error? why
function Pool:touch(element) end

---@param state string
---@return integer
function Pool:count(state) end

---@param state string
---@return sxe.Element?
function Pool:oldest(state) end

---Seconds since the oldest came there.
---@param state string
---@return number?
function Pool:age(state) end

---@param index integer
---@return sxe.Element
function Pool:at(index) end

---for element in p:each(state) do
---@param state string
---@return fun(): sxe.Element?
function Pool:each(state) end

---The sum.
---@param element sxe.Element|integer
---@param field string
---@param n? number 1
---@return number? sum, sxe.error? why
function Pool:add(element, field, n) end

---Its other fields are those of the pool; nil when it is gone.
---@class sxe.Element
---@field index integer 0 to count - 1
---@field state string
---@field age number seconds since it came to its state or was touched
---@field [string] any

---@param options sxe.pool.opening
---@return sxe.Pool
function pool.open(options) end

return pool
