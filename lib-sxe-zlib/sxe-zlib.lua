-- SPDX-License-Identifier: MIT
--
-- The module sxe.zlib (docs/zlib.md), on the functions of sxe-zlib.c. A step takes and makes at most 64 KiB; the loop
-- over steps is here, so that other tasks run between them.
local native, methods = ...
local close, kind_of, new, settings, step = native.close, native.kind, native.new, native.settings, native.step
local concat, error, format, pcall, setmetatable, type = table.concat, error, string.format, pcall, setmetatable, type

local NO_FLUSH <const>, SYNC_FLUSH <const>, FINISH <const> = 0, 2, 4

local is_busy = setmetatable({}, { __mode = "k" }) -- the streams whose call has done some of its steps

-- The end of such a call. After an error, of a limit of the task for example, the stream lacks a part of the text.
local Use = {}

function Use:__close(why)
  is_busy[self.stream] = nil
  if why ~= nil then close(self.stream) end
end

-- Errors name the line that called the module, two levels above these functions.

local function check_text(text, call)
  if type(text) ~= "string" then error(format("%s: a string expected, got %s", call, type(text)), 3) end
end

-- Returns the kind of the stream.
local function check_stream(stream, call)
  local kind = kind_of(stream)

  if kind == nil then error(format("%s: a stream of sxe.zlib expected, got %s", call, type(stream)), 3) end
  if not kind then error(format("%s: the stream is closed", call), 3) end
  if is_busy[stream] then error("zlib: another task uses the stream", 3) end
  return kind
end

local function check_options(options, is_compressor, call)
  local good, bits, number = pcall(settings, options, is_compressor, call)

  if not good then error(bits, 3) end
  return bits, number
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
    if part ~= "" then
      count = count + 1
      parts[count] = part
    end
  until at == #text and not is_full
  return concat(parts)
end

-- ---- Streams ----

methods.close = close

function methods.add(stream, text)
  check_stream(stream, "zlib: add")
  check_text(text, "zlib: add")
  return run(stream, text, NO_FLUSH)
end

function methods.flush(stream)
  if check_stream(stream, "zlib: flush") ~= "compressor" then
    error("zlib: flush: a stream that compresses expected", 2)
  end
  return run(stream, "", SYNC_FLUSH)
end

function methods.finish(stream, text)
  check_stream(stream, "zlib: finish")
  if text == nil then text = "" end
  check_text(text, "zlib: finish")
  local output, why = run(stream, text, FINISH)

  close(stream)
  if not output then return nil, why end
  return output
end

-- ---- The module ----

local zlib = { crc32 = native.crc32, adler32 = native.adler32 }

function zlib.compressor(options)
  local bits, level = check_options(options, true, "zlib.compressor")

  return new(true, bits, level, true)
end

function zlib.decompressor(options)
  local bits, max = check_options(options, false, "zlib.decompressor")

  return new(false, bits, max, true)
end

function zlib.compress(text, options)
  check_text(text, "zlib.compress")
  local stream <close> = new(true, check_options(options, true, "zlib.compress"))

  return run(stream, text, FINISH)
end

function zlib.decompress(data, options)
  check_text(data, "zlib.decompress")
  local stream <close> = new(false, check_options(options, false, "zlib.decompress"))

  return run(stream, data, FINISH)
end

return zlib
