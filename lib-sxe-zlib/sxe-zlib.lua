-- SPDX-License-Identifier: MIT
--
-- The module sxe.zlib (docs/zlib.md), on the functions of sxe-zlib.c. A step takes and makes at most 64 KiB; the loop
-- over steps is here, so that other tasks run between them.
local native, methods = ...
local close, is_compressor, new = native.close, native.is_compressor, native.new
local concat, error, setmetatable, settings, step = table.concat, error, setmetatable, native.settings, native.step

local NO_FLUSH <const>, SYNC_FLUSH <const>, FINISH <const> = 0, 2, 4

local is_busy = setmetatable({}, { __mode = "k" }) -- the streams whose call has done some of its steps

-- The end of such a call. After an error, of a limit of the task for example, the stream lacks a part of the text.
local Use = {}

function Use:__close(why)
  is_busy[self.stream] = nil
  if why ~= nil then close(self.stream) end
end

local function check_free(stream)
  if is_busy[stream] then error("zlib: another task uses the stream", 3) end
end

-- Compress or decompress a text: the output; or nil, why, and the stream is closed.
local function run(stream, text, flush)
  local part, at, is_full = step(stream, text, 0, flush)

  if not part then return nil, at end
  if at == #text and not is_full then return part end
  local _use <close> = setmetatable({ stream = stream }, Use)
  local parts, count = { part }, 1

  is_busy[stream] = true
  repeat
    part, at, is_full = step(stream, text, at, flush)
    if not part then return nil, at end
    count = count + 1
    parts[count] = part
  until at == #text and not is_full
  return concat(parts)
end

-- ---- Streams ----

methods.close = close

function methods.add(stream, text)
  check_free(stream)
  return run(stream, text, NO_FLUSH)
end

function methods.flush(stream)
  if not is_compressor(stream) then error("zlib: flush: a stream that compresses expected", 2) end
  check_free(stream)
  return run(stream, "", SYNC_FLUSH)
end

function methods.finish(stream, text)
  check_free(stream)
  local output, why = run(stream, text or "", FINISH)

  close(stream)
  if not output then return nil, why end
  return output
end

-- ---- The module ----

local zlib = { crc32 = native.crc32, adler32 = native.adler32 }

function zlib.compressor(options)
  return new(true, settings(options, true, "zlib.compressor"))
end

function zlib.decompressor(options)
  return new(false, settings(options, false, "zlib.decompressor"))
end

function zlib.compress(text, options)
  local stream <close> = new(true, settings(options, true, "zlib.compress"))

  return run(stream, text, FINISH)
end

function zlib.decompress(text, options)
  local stream <close> = new(false, settings(options, false, "zlib.decompress"))

  return run(stream, text, FINISH)
end

return zlib
