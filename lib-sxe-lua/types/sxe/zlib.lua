---@meta sxe.zlib
-- SPDX-License-Identifier: MIT

---Compressed data: gzip, zlib and raw deflate.
---@class sxe.zlib
local zlib = {}

---@class sxe.zlib.compressing
---@field format? "gzip"|"zlib"|"raw" "gzip"
---@field level? integer 0 to 9: 6

---@class sxe.zlib.decompressing
---@field format? "gzip"|"zlib"|"raw" "gzip"
---@field max? integer the most bytes of output: 16777216

---Compress a text, and return the result. A long text lets other tasks run between its pieces.
---@param text string
---@param options? sxe.zlib.compressing
---@return string data
function zlib.compress(text, options) end

---Decompress a whole text. Data that is damaged, ends too early, is followed by other bytes, or stands for more than
---`max` bytes is nil and a message.
---@param data string
---@param options? sxe.zlib.decompressing
---@return string? text
---@return string? message
function zlib.decompress(data, options) end

---Make a stream that compresses a text in parts. It takes some 270 KiB of memory until ZlibStream:finish or close.
---@param options? sxe.zlib.compressing
---@return sxe.ZlibStream
function zlib.compressor(options) end

---Make a stream that decompresses data in parts. All parts together stand for at most `max` bytes; it takes some 40 KiB
---of memory until ZlibStream:finish or close.
---@param options? sxe.zlib.decompressing
---@return sxe.ZlibStream
function zlib.decompressor(options) end

---Return the CRC-32 of a text, or of a text whose earlier parts have the given one.
---@param text string
---@param crc? integer of the text before: 0
---@return integer
function zlib.crc32(text, crc) end

---Return the Adler-32 of a text, or of a text whose earlier parts have the given one.
---@param text string
---@param sum? integer of the text before: 1
---@return integer
function zlib.adler32(text, sum) end

---@class sxe.ZlibStream
local ZlibStream = {}

---Add the next part of the input, and return the output that there is. Damaged data is nil and a message, and closes
---the stream.
---@param text string
---@return string? output perhaps ""
---@return string? message
function ZlibStream:add(text) end

---Return output of a compressor from which all that was added can be decompressed.
---@return string output
function ZlibStream:flush() end

---Add the last part of the input, return the last output, and close the stream. Damaged data, and data that ends too
---early, are nil and a message.
---@param text? string
---@return string? output
---@return string? message
function ZlibStream:finish(text) end

---Close the stream; a <close> variable does so at the end of its scope.
function ZlibStream:close() end

return zlib
