---@meta sxe.multipart
-- SPDX-License-Identifier: MIT

---Forms with files, read as they arrive, to files or to memory.
---@class sxe.multipart
local multipart = {}

---@class sxe.multipart.options
---@field directory? string where files are written; without it they are kept in memory
---@field file_max? integer bytes of all files; 10 MiB
---@field text_max? integer bytes of all texts; 64 KiB
---@field parts_max? integer 100

---@class sxe.multipart.part
---@field field string the name in the form
---@field value? string of a text
---@field name? string of a file: its name at the client; never use it as a path
---@field type string as the client says
---@field size? integer
---@field head? string the first 16 bytes of a file
---@field path? string
---@field bytes? string without a directory

---Read a form with files as it comes, and return it when it has ended. The task waits for the client. A form that is
---too large becomes the reply 413, a damaged one 400, and another type of body 415. Keep the form in a <close>
---variable, which removes its files.
---@param req sxe.Request
---@param options? sxe.multipart.options
---@return sxe.Form
function multipart.read(req, options) end

---A <close> variable removes its files, except after keep.
---@class sxe.Form
---@field texts table<string, string> the first text of each name
---@field files table<string, sxe.multipart.part> the first file of each name
---@field parts sxe.multipart.part[] all, in their order
local Form = {}

---Keep the files of the form after its end. After the end of the form this raises an error.
function Form:keep() end

return multipart
