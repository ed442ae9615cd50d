-- SPDX-License-Identifier: MIT
-- For test-zlib-module.c: what sxe.zlib makes, takes and refuses.

local zlib = require "sxe.zlib"

local function fails(text, f, ...)
  local good, why = pcall(f, ...)
  assert(not good and why:find(text, 1, true), why)
end

local function refuses(wanted, ...)
  local text, why = zlib.decompress(...)
  assert(text == nil and why == "zlib: " .. wanted, why)
end

-- ---- Whole texts, in all formats ----

local numbers = {}
for i = 1, 15000 do numbers[i] = i * i end
local long = table.concat(numbers, " ")
local noise = {}
for i = 1, 70000 do noise[i] = string.char(math.random(0, 255)) end
noise = table.concat(noise)

for _, format in ipairs{ "gzip", "zlib", "raw" } do
  for _, text in ipairs{ "", "a", ("a"):rep(65536), long, noise } do
    for level = 0, 9, text == long and 3 or 9 do
      local data = zlib.compress(text, { format = format, level = level })
      assert(zlib.decompress(data, { format = format }) == text)
      local back, why = zlib.decompress(data .. "x", { format = format })
      assert(back == nil and why == "zlib: " .. (format == "gzip" and "the data ends too early" or
                                                 "bytes follow the end of the data"), why)
      back, why = zlib.decompress(data:sub(1, -2), { format = format })
      assert(back == nil and (why == "zlib: the data ends too early"), why)
    end
  end
end
assert(zlib.decompress(zlib.compress "one " .. zlib.compress "two") == "one two")
assert(zlib.decompress("x\x9cK\4\0\0b\0b", { format = "zlib" }) == "a")
refuses("the data ends too early", "")
refuses("incorrect header check", "no gzip")
refuses("incorrect header check", zlib.compress "a" .. "no gzip")
refuses("incorrect data check", zlib.compress(long):sub(1, -9) .. "\0\0\0\0\0\0\0\0")
refuses("the data needs a dictionary", "x\xbb\0\0\0\1", { format = "zlib" })
refuses("invalid stored block lengths", "\0\1\1\1\1", { format = "raw" })

-- ---- The limit of the output ----

local bomb = zlib.compress(("\0"):rep(1 << 20))
refuses("the text is longer than max", bomb, { max = (1 << 20) - 1 })
assert(#zlib.decompress(bomb, { max = 1 << 20 }) == 1 << 20)
refuses("the text is longer than max", zlib.compress(bomb:rep(2000)), { max = 100000 })
refuses("the text is longer than max", bomb:rep(17))
assert(#zlib.decompress(bomb:rep(16)) == 1 << 24)
refuses("the text is longer than max", zlib.compress "a", { max = 0 })
assert(zlib.decompress(zlib.compress "", { max = 0 }) == "")

-- ---- Streams ----

for _, size in ipairs{ 1, 7, 1000, 65536, 65537, #long } do
  local out, into, all = zlib.compressor(), zlib.decompressor(), {}
  for at = 1, size < 7 and 2000 or #long, size do
    all[#all + 1] = into:add(out:add(long:sub(at, at + size - 1)))
  end
  all[#all + 1] = into:finish(out:finish())
  assert(table.concat(all) == long:sub(1, size < 7 and 2000 or nil))
  fails("the stream is closed", out.add, out, "")
  fails("the stream is closed", into.finish, into)
end
do
  local out <close> = zlib.compressor{ level = 1 }
  local into <close> = zlib.decompressor()
  assert(into:add(out:add "one") == "" and into:add(out:flush()) == "one" and into:add(out:flush()) == "")
  assert(into:finish(out:finish " two") == " two")
end
local into = zlib.decompressor()
for i = 1, #bomb - 1 do assert(into:add(bomb:sub(i, i))) end
local output, why = into:finish()
assert(output == nil and why == "zlib: the data ends too early")
into = zlib.decompressor()
assert(into:add(bomb) and into:finish() == "")
into = zlib.decompressor{ max = 10 }
output, why = into:add(bomb)
assert(output == nil and why == "zlib: the text is longer than max")
fails("the stream is closed", into.add, into, "")
into:close()
into:close()
fails("a stream that compresses expected", zlib.decompressor().flush, zlib.decompressor())
fails("zlib: add: a string expected, got number", zlib.compressor().add, zlib.compressor(), 12)
fails("zlib: finish: a string expected, got boolean", zlib.compressor().finish, zlib.compressor(), false)
fails("zlib.compress: a string expected, got nil", zlib.compress)
fails("zlib.decompress: a string expected, got nil", zlib.decompress)
for _, call in ipairs{ "add", "flush", "finish" } do
  fails("zlib: " .. call .. ": a stream of sxe.zlib expected, got string", zlib.compressor()[call], "a", "b")
  fails("zlib: " .. call .. ": the stream is closed", into[call], into, "b")
end

-- Errors name the line of the caller.
do
  local line = debug.getinfo(1, "l").currentline
  for i, f in ipairs{
    function() return (into:add "") end,
    function() return (into:finish "") end,
    function() return (into:flush()) end,
    function() return (zlib.compress()) end,
    function() return (zlib.compress("", { level = 10 })) end,
    function() return (zlib.decompress("", { size = 10 })) end,
    function() return (zlib.compressor{ format = "zip" }) end,
    function() return (zlib.decompressor{ max = -1 }) end,
  } do
    fails(("zlib-values.lua:%d: zlib"):format(line + 1 + i), f)
  end
end

-- ---- Steps: high levels take small pieces ----

local function upvalue(f, wanted)
  for i = 1, math.huge do
    local name, value = debug.getupvalue(f, i)
    if name == wanted then return value, i end
    assert(name, wanted)
  end
end

local text_64k = long:sub(1, 65536)
local run = upvalue(zlib.compressor().add, "run")
local step, place = upvalue(run, "step")
fails("zlib: the stream is closed", step, into, "", 0, 0) -- as after a finalizer that ran in the step
for level, pieces in pairs{ [1] = 1, [6] = 1, [7] = 2, [8] = 8, [9] = 32 } do
  local steps, out <const> = 0, zlib.compressor{ level = level, format = "raw" }
  debug.setupvalue(run, place, function(...)
    steps = steps + 1
    return step(...)
  end)
  local data = out:add(text_64k)
  debug.setupvalue(run, place, step)
  assert(steps == pieces, level .. ": " .. steps)
  assert(zlib.decompress(data .. out:finish(), { format = "raw" }) == text_64k)
end

-- ---- Options ----

fails("zlib.compress has no option 'max'", zlib.compress, "a", { max = 1 })
fails("zlib.decompress has no option 'level'", zlib.decompress, "a", { level = 1 })
for _, level in ipairs{ -1, 10, 1.5, "1" } do
  fails("zlib.compressor: level: an integer from 0 to 9 expected", zlib.compressor, { level = level })
end
fails("zlib.decompressor: max: an integer from 0 expected", zlib.decompressor, { max = -1 })
for _, format in ipairs{ "deflate", true, "" } do
  fails('zlib.compress: format: "gzip", "zlib" or "raw" expected', zlib.compress, "a", { format = format })
end

-- ---- Checksums ----

assert(zlib.crc32 "123456789" == 0xcbf43926 and zlib.crc32 "" == 0 and zlib.adler32 "" == 1)
assert(zlib.crc32("6789", zlib.crc32 "12345") == 0xcbf43926)
assert(zlib.adler32 "Wikipedia" == 0x11e60398 and zlib.adler32("pedia", zlib.adler32 "Wiki") == 0x11e60398)
fails("string expected", zlib.crc32)
assert(zlib.crc32("", 0xffffffff) == 0xffffffff and zlib.crc32("", 0) == 0)
for _, sum in ipairs{ -1, 1 << 32, math.maxinteger, math.mininteger } do
  fails("a checksum expected: an integer from 0 to 4294967295", zlib.crc32, "a", sum)
  fails("a checksum expected: an integer from 0 to 4294967295", zlib.adler32, "a", sum)
end
