---@meta sxe.encoding
-- SPDX-License-Identifier: MIT

---Bytes as text, and back: base64, hexadecimal digits, escapes of URLs; and UUIDs.
---@class sxe.encoding
local encoding = {}

---@class sxe.encoding.base64
---@field url? boolean the alphabet for URLs, - and _ in place of + and /
---@field pad? boolean whether = fills the last group: true, or with url false

---Encode bytes as base64 (RFC 4648). There are no line breaks; `url` selects the alphabet for URLs and file names,
---without padding.
---@param bytes string
---@param options? sxe.encoding.base64
---@return string text
function encoding.encode_base64(bytes, options) end

---Decode base64. Any text that encode_base64 would not make is refused.
---@param text string
---@param options? sxe.encoding.base64
---@return string? bytes, sxe.error? why, integer? at the byte that is wrong
function encoding.decode_base64(text, options) end

---Encode bytes as hexadecimal digits, in small letters.
---@param bytes string
---@return string text
function encoding.encode_hex(bytes) end

---Decode hexadecimal digits, in small letters or capitals.
---@param text string
---@return string? bytes, sxe.error? why, integer? at the byte that is wrong
function encoding.decode_hex(text) end

---@class sxe.encoding.url
---@field form? boolean a blank is +, as in forms

---Escape all bytes but letters, digits and -._~ for a segment of a path, or a value of a query.
---@param bytes string
---@param options? sxe.encoding.url
---@return string text
function encoding.encode_url(bytes, options) end

---Decode a text of encode_url. A % without two hexadecimal digits is nil, message, and its place in bytes from 1; with
---`form` a + becomes a blank.
---@param text string
---@param options? sxe.encoding.url
---@return string? bytes, sxe.error? why, integer? at the byte that is wrong
function encoding.decode_url(text, options) end

---Return a random UUID, which nobody can guess.
---@return string uuid
function encoding.uuid4() end

---Return a UUID that begins with the time, so that those of one thread grow. It reveals when it was made.
---@return string uuid
function encoding.uuid7() end

return encoding
