---@meta sxe.timer
-- SPDX-License-Identifier: MIT

---Calls after a time, or at intervals.
---@class sxe.timer
local timer = {}

---@class sxe.Timer
local Timer = {}

---Stop the timer, so that no further call begins.
function Timer:stop() end

---Call fn(), which may wait, once.
---@param seconds sxe.seconds
---@param fn fun()
---@return sxe.Timer? timer, sxe.error? why
function timer.after(seconds, fn) end

---Call fn(), which may wait, again and again; those that were missed are left out.
---@param seconds sxe.seconds
---@param fn fun()
---@return sxe.Timer? timer, sxe.error? why
function timer.every(seconds, fn) end

return timer
