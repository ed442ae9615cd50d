-- SPDX-License-Identifier: MIT
-- sxe.zlib as docs/zlib.md promises it, by processes of sxe-lua, beside the program gzip.

local cli = require "cli"

local function run(text, ...)
    return cli.output_of(120, {wire.program "sxe-lua", "-e", "local zlib = require 'sxe.zlib'\n" .. text, ...})
end

-- promise: docs/zlib.md: Data of gzip may be several files of gzip, one after the other.
test("gzip reads what sxe.zlib writes, and the other way round", function()
    local proc <close> = wire.spawn{"sh", "-c", [[
dir=$(mktemp -d) && seq 1 20000 >"$dir/numbers" &&
gzip -9 -c "$dir/numbers" >"$dir/theirs.gz" && gzip -1 -c "$dir/numbers" >>"$dir/theirs.gz" &&
DIR=$dir "$1" -e 'local zlib, dir = require "sxe.zlib", os.getenv "DIR"
local function read(name) local f <close> = assert(io.open(dir .. name, "rb")) return f:read "a" end
local numbers = read "/numbers"
assert(zlib.decompress(read "/theirs.gz") == numbers .. numbers)
local f <close> = assert(io.open(dir .. "/ours.gz", "wb"))
f:write(zlib.compress(numbers))' && gzip -t "$dir/ours.gz" && gzip -dc "$dir/ours.gz" | cmp - "$dir/numbers" &&
echo same
rm -r "$dir"]], "sh", wire.program "sxe-lua"}
    equal(proc:output(120), "same\n")
    equal(proc:errors(), "")
end)

-- promise: docs/zlib.md: So a small text that stands for gigabytes takes no memory.
test("a bomb ends at its limit", function()
    equal(run[[
local zeros, out, parts = ("\0"):rep(1 << 20), zlib.compressor{level = 9}, {}
for i = 1, 64 do parts[i] = out:add(zeros) end
local bomb = zlib.compress(table.concat(parts) .. out:finish())
print(#bomb < 2000, zlib.decompress(zlib.decompress(bomb), {max = 1 << 20}))
local into = zlib.decompressor{max = 1 << 26}
print(#into:finish(zlib.decompress(bomb)) == 1 << 26)
print(zlib.decompress(zlib.decompress(bomb)))]],
        "true\tnil\tzlib: the text is longer than max\ntrue\nnil\tzlib: the text is longer than max\n")
end)

-- promise: docs/zlib.md: or `nil, message` if the data is damaged, ends too early, is followed by other bytes, or
-- stands for more than `max` bytes, 16,777,216 by default.
test("each damaged byte and each shorter text is refused, or is no damage", function()
    equal(run[[
local text = ("a text that is not long "):rep(20)
for _, format in ipairs{"gzip", "zlib"} do
  local data, options = zlib.compress(text, {format = format}), {format = format}
  for at = 1, #data do
    local bad = data:sub(1, at - 1) .. string.char(data:byte(at) ~ 255) .. data:sub(at + 1)
    local got, why = zlib.decompress(bad, options)
    -- time, operating system and the like in gzip's head are no part of the text
    local is_wrong = got ~= nil and (got ~= text or format == "zlib") or got == nil and type(why) ~= "string"
    if is_wrong then print(format, at) end
    got, why = zlib.decompress(data:sub(1, at - 1), options)
    if got ~= nil or why ~= "zlib: the data ends too early" then print(format, at, why) end
  end
  print((zlib.decompress(data .. "\0", options)))
end]], "nil\nnil\n")
end)

-- promise: docs/zlib.md: A stream that was dropped without `close` keeps its memory until the collector finds it, which
-- it does before memory is missing for a stream.
test("streams that are garbage do not take the memory", function()
    local make = 'require "sxe.task".sleep(0) for i = 1, 1000 do zlib.compressor():add "x" end print(zlib.crc32 "")'
    for _, memory in ipairs{"2m", "4m", "8m", "40m"} do
        local proc <close> = wire.spawn{wire.program "sxe-lua", "--memory", memory, "-e",
            'local zlib = require "sxe.zlib"\n' .. make}
        equal(proc:output(120), "0\n")
        equal(proc:wait(120), 0)
    end
end)

-- promise: docs/zlib.md: It works in pieces of 64 KiB, at the levels 7, 8 and 9 in pieces of 32, 8 and 2 KiB, and
-- between two pieces other tasks run if the call has computed for `slice_ms`.
test("other tasks run while a large text is compressed", function()
    equal(run[[
local task, turns, ended = require "sxe.task", 0, false
local ticker = task.start(function() while not ended do task.sleep(0) turns = turns + 1 end end)
local numbers = {}
for i = 1, 1000000 do numbers[i] = i * i end
local text = table.concat(numbers)
local before = turns
local data = zlib.compress(text, {level = 9})
print(turns > before, zlib.decompress(data, {max = #text}) == text)
ended = true]], "true\ttrue\n")
end)

-- promise: docs/zlib.md: A stream is for one task at a time: a call while another task's call has not ended raises an
-- error, too. A call that a limit of its task ends closes the stream.
test("two tasks cannot mix their texts in a stream", function()
    equal(run[[
local task = require "sxe.task"
local text, out, data = ("0123456789abcdef"):rep(4 << 20), zlib.compressor{ level = 9 }, nil
task.start(function() local head = out:add(text) data = head .. out:finish() end)
task.start(function()
  repeat
    local good, why = pcall(out.add, out, "other")
    if good then print "mixed" break end
    task.sleep(0)
  until why:find("another task uses the stream", 1, true)
  while not data do task.sleep(0.01) end
  print(zlib.decompress(data, { max = #text }) == text)
end)]], "true\n")
    local limited <close> = wire.spawn{wire.program "sxe-lua", "--cpu", "200ms", "-e", [[
local zlib, task = require "sxe.zlib", require "sxe.task"
local part, out = ("0123456789abcdef"):rep(1 << 16), zlib.compressor{ level = 9 }
local text = part:rep(16)
local adding = task.start(function() while out:add(text) do end end)
pcall(adding.join, adding)
print((select(2, pcall(out.add, out, "")):match "closed"))]]}
    equal(limited:output(120), "closed\n")
    check(limited:errors():find("exceeded 200 ms of CPU", 1, true))
    limited:wait(120)
end)

-- promise: docs/zlib.md: A call on a closed stream raises an error.
test("a stream ends once", function()
    equal(run[[
for _, make in ipairs{zlib.compressor, zlib.decompressor} do
  local stream = make()
  stream:close()
  print((pcall(stream.add, stream, "")), (pcall(stream.finish, stream)), stream:close())
end]], "false\tfalse\nfalse\tfalse\n")
end)

-- promise: docs/zlib.md: A `crc` or `sum` that is no number of 32 bits raises an error.
test("a checksum of earlier parts has 32 bits", function()
    equal(run[[
local text = ("some text"):rep(1000)
for _, name in ipairs{"crc32", "adler32"} do
  local good = true
  for at = 0, #text, 777 do good = good and zlib[name](text:sub(at + 1), zlib[name](text:sub(1, at))) == zlib[name](text) end
  print(good, (pcall(zlib[name], "", -1)), (pcall(zlib[name], "", 1 << 32)), (pcall(zlib[name], "", 0.5)))
end]], ("true\tfalse\tfalse\tfalse\n"):rep(2))
end)
