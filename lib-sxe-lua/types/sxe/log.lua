---@meta sxe.log
-- SPDX-License-Identifier: MIT

---@class sxe.log
---@field level "fatal"|"error"|"warn"|"info"|"debug"|"trace"|"none" the least important that is shown
local log = {}

---@param format any
---@param ... any
function log.fatal(format, ...) end

---@param format any
---@param ... any
function log.error(format, ...) end

---@param format any
---@param ... any
function log.warn(format, ...) end

---@param format any
---@param ... any
function log.info(format, ...) end

---@param format any
---@param ... any
function log.debug(format, ...) end

---@param format any
---@param ... any
function log.trace(format, ...) end

return log
