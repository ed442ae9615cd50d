---@meta sxe.tap
-- SPDX-License-Identifier: MIT

---Tests, in the Test Anything Protocol.
---@class sxe.tap
local tap = {}

---Print how many tests will run. tap.exit_status() compares this with the tests that ran.
---@param n integer
function tap.plan_tests(n) end

---Pass a test if the value is neither false nor nil. Prints the result to standard output, and returns it.
---@param value any
---@param name? string
---@return boolean
function tap.ok(value, name) end

---Pass a test if the value is neither false nor nil, as tap.ok does.
---@param value any
---@param name? string
---@return boolean
function tap.ok1(value, name) end

---Pass a test if two values are equal, as == finds them. If they are not, both are printed, too.
---@param got any
---@param expected any
---@param name? string
---@return boolean
function tap.is(got, expected, name) end

---Pass a test, whose name is printed.
---@param name? string
---@return true
function tap.pass(name) end

---Fail a test. The script continues, and tap.exit_status() becomes 1.
---@param name? string
---@return false
function tap.fail(name) end

---Print a comment, which is no result. Each line of the text becomes a comment.
---@param text any
function tap.diag(text) end

---Return 0 if as many tests as planned ran and none failed, otherwise 1. Pass it to os.exit.
---@return 0|1
function tap.exit_status() end

return tap
