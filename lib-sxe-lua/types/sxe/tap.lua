---@meta sxe.tap
-- SPDX-License-Identifier: MIT

---Tests, in the Test Anything Protocol.
---@class sxe.tap
local tap = {}

---@param n integer
function tap.plan_tests(n) end

---@param value any
---@param name? string
---@return boolean
function tap.ok(value, name) end

---@param value any
---@param name? string
---@return boolean
function tap.ok1(value, name) end

---@param got any
---@param expected any
---@param name? string
---@return boolean
function tap.is(got, expected, name) end

---@param name? string
---@return true
function tap.pass(name) end

---@param name? string
---@return false
function tap.fail(name) end

---@param text any
function tap.diag(text) end

---What the process is to exit with.
---@return 0|1
function tap.exit_status() end

return tap
