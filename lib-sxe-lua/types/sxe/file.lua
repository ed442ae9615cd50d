---@meta sxe.file
-- SPDX-License-Identifier: MIT

---Files: threads read and write them, so that the loop never waits for a disk.
---@class sxe.file
local file = {}

---@class sxe.file.reading: sxe.options
---@field from? integer byte to begin at, 0 is the first
---@field length? integer bytes
---@field max? integer what is longer fails, 64 MiB

---@class sxe.file.writing: sxe.options
---@field atomic? boolean write another file and rename it
---@field sync? boolean wait for the disk
---@field mode? integer of a new file, 438

---@class sxe.file.opening: sxe.options
---@field mode? integer of a new file, 438

---@class sxe.file.looking: sxe.options
---@field link? boolean a link itself

---@class sxe.file.making: sxe.options
---@field parents? boolean those above, too
---@field mode? integer of new ones, 511

---@class sxe.file.status
---@field type "file"|"directory"|"link"|"other"
---@field size integer
---@field mode integer
---@field mtime number seconds since 1970

---@param path string
---@param options? sxe.file.reading
---@return string? data, sxe.error? why, sxe.code? code
function file.read(path, options) end

---Open a file. It stays open until close, <close> or the collector closes it.
---@param path string
---@param how? "r"|"w"|"a"|"r+"|"w+"|"a+" as io.open has it, "r"
---@param options? sxe.file.opening
---@return sxe.File? handle, sxe.error? why, sxe.code? code
function file.open(path, how, options) end

---@class sxe.File
local File = {}

---@param bytes integer fewer come at the end
---@param options? sxe.options
---@return string? data nil at the end, sxe.error? why, sxe.code? code
function File:read(bytes, options) end

---@param data string
---@param options? sxe.options
---@return true? ok, sxe.error? why, sxe.code? code
function File:write(data, options) end

---@param options? sxe.options
---@return true? ok, sxe.error? why, sxe.code? code
function File:close(options) end

---@param path string
---@param data string
---@param options? sxe.file.writing
---@return true? ok, sxe.error? why, sxe.code? code
function file.write(path, data, options) end

---@param path string
---@param data string
---@param options? sxe.file.writing
---@return true? ok, sxe.error? why, sxe.code? code
function file.append(path, data, options) end

---The names in a directory, sorted.
---@param path string
---@param options? sxe.file.reading
---@return string[]? names, sxe.error? why, sxe.code? code
function file.list(path, options) end

---@param path string
---@param options? sxe.file.looking
---@return sxe.file.status? status, sxe.error? why, sxe.code? code
function file.stat(path, options) end

---@param path string of a file or an empty directory
---@param options? sxe.options
---@return true? ok, sxe.error? why, sxe.code? code
function file.remove(path, options) end

---@param from string
---@param to string
---@param options? sxe.options
---@return true? ok, sxe.error? why, sxe.code? code
function file.rename(from, to, options) end

---@param path string
---@param options? sxe.file.making
---@return true? ok, sxe.error? why, sxe.code? code
function file.mkdir(path, options) end

return file
