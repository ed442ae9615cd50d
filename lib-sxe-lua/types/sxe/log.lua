---@meta sxe.log
-- SPDX-License-Identifier: MIT

---Lines in the log of the program, with the script's file and line number.
---@class sxe.log
---@field level "fatal"|"error"|"warn"|"info"|"debug"|"trace"|"none" the least important that is shown
local log = {}

---Log a line at the most important level. The program continues. The format is that of string.format; a single argument
---is the text itself.
---@param format any
---@param ... any
function log.fatal(format, ...) end

---Log a line about an error. The format is that of string.format; a single argument is the text itself.
---@param format any
---@param ... any
function log.error(format, ...) end

---Log a warning. The format is that of string.format; a single argument is the text itself.
---@param format any
---@param ... any
function log.warn(format, ...) end

---Log a line of information. A line of a level that is not shown is not formatted.
---@param format any
---@param ... any
function log.info(format, ...) end

---Log a line for debugging. A line of a level that is not shown is not formatted.
---@param format any
---@param ... any
function log.debug(format, ...) end

---Log a line at the least important level. A line of a level that is not shown is not formatted.
---@param format any
---@param ... any
function log.trace(format, ...) end

return log
