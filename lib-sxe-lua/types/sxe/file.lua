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

---Read a whole file, or a part of it. The task waits for a thread; up to 64 KiB that the kernel has in its caches are
---read at once. A file that is longer than `max` fails with the code 27, one that needs more memory than the state may
---have with the code 12.
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

---Read the next bytes of an open file, fewer of them near its end, and nil at its end. The task waits. A closed file is
---nil, "closed".
---@param bytes integer fewer come at the end
---@param options? sxe.options
---@return string? data nil at the end, sxe.error? why, sxe.code? code
function File:read(bytes, options) end

---Write data to an open file. The task waits for a thread. After nil, "timeout" the data may still be written.
---@param data string
---@param options? sxe.options
---@return true? ok, sxe.error? why, sxe.code? code
function File:write(data, options) end

---Close the file, after the calls on it that other tasks made before. Returns the errors that the system reports only
---then; a closed file is nil, "closed".
---@param options? sxe.options
---@return true? ok, sxe.error? why, sxe.code? code
function File:close(options) end

---Replace the contents of a file, or create it. The task waits for a thread. With `atomic` another program sees the old
---contents or the new, never a part; with `sync` the call returns when the data is on the disk.
---@param path string
---@param data string
---@param options? sxe.file.writing
---@return true? ok, sxe.error? why, sxe.code? code
function file.write(path, data, options) end

---Add data to the end of a file, or create it. The data of two calls is never mixed, whichever tasks or processes make
---them. The task waits for a thread.
---@param path string
---@param data string
---@param options? sxe.file.writing
---@return true? ok, sxe.error? why, sxe.code? code
function file.append(path, data, options) end

---Return the names in a directory, sorted byte by byte, without . and .. The task waits for a thread. More than `max`
---bytes of names fail with the code 27.
---@param path string
---@param options? sxe.file.reading
---@return string[]? names, sxe.error? why, sxe.code? code
function file.list(path, options) end

---Return the type, size, permissions and time of change of a file. A symbolic link is followed unless `link` is true. A
---missing file is nil, message, 2.
---@param path string
---@param options? sxe.file.looking
---@return sxe.file.status? status, sxe.error? why, sxe.code? code
function file.stat(path, options) end

---Remove a file or an empty directory. A missing file is nil, message, 2.
---@param path string of a file or an empty directory
---@param options? sxe.options
---@return true? ok, sxe.error? why, sxe.code? code
function file.remove(path, options) end

---Move a file or a directory within one file system. A file that is there under the new name is replaced.
---@param from string
---@param to string
---@param options? sxe.options
---@return true? ok, sxe.error? why, sxe.code? code
function file.rename(from, to, options) end

---Create a directory. With `parents` the directories above are created, too, and a directory that exists is no error.
---@param path string
---@param options? sxe.file.making
---@return true? ok, sxe.error? why, sxe.code? code
function file.mkdir(path, options) end

return file
