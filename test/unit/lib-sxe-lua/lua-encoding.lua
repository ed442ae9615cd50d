-- SPDX-License-Identifier: MIT
-- For test-lua-encoding.c: sxe.encoding, compared with slow and simple reference implementations. A text is strict
-- base64 if some bytes are encoded to exactly this text; so the reference decodes leniently, encodes the bytes again,
-- and compares.

local encoding = require "sxe.encoding"
local random = math.random
math.randomseed(22)

local STANDARD <const> = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local URL <const> = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

-- ---- References ----

local function to_bits(number, width)
  local bits = ""

  for i = width - 1, 0, -1 do bits = bits .. (number >> i & 1) end
  return bits
end

local function base64_of(bytes, digits, pad)
  local bits, text = "", ""

  for i = 1, #bytes do bits = bits .. to_bits(bytes:byte(i), 8) end
  for i = 1, #bits, 6 do
    local digit = tonumber((bits:sub(i, i + 5) .. "00000"):sub(1, 6), 2)
    text = text .. digits:sub(digit + 1, digit + 1)
  end
  while pad and #text % 4 ~= 0 do text = text .. "=" end
  return text
end

local function bytes_of(text, digits)
  local bits, bytes = "", ""

  for digit in text:gmatch "." do
    local at = digits:find(digit, 1, true)
    bits = bits .. (at and to_bits(at - 1, 6) or "")
  end
  for i = 1, #bits - 7, 8 do bytes = bytes .. string.char(tonumber(bits:sub(i, i + 7), 2)) end
  return bytes
end

local function bytes_of_hex(text)
  if text:find "%X" or #text % 2 ~= 0 then return nil end
  return (text:gsub("..", function(two) return string.char(tonumber(two, 16)) end))
end

local function bytes_of_url(text, form)
  if text:gsub("%%%x%x", ""):find("%", 1, true) then return nil end
  if form then text = text:gsub("+", " ") end
  return (text:gsub("%%(%x%x)", function(two) return string.char(tonumber(two, 16)) end))
end

-- ---- Inputs ----

local function some_bytes()
  local bytes = {}

  for i = 1, random(0, 40) do bytes[i] = string.char(random(0, 255)) end
  return table.concat(bytes)
end

-- The text with up to two bytes changed, removed or doubled.
local function spoilt(text, others)
  for _ = 1, random(0, 2) do
    local at, other = random(0, #text), random(#others)
    local mode = random(3)
    text = text:sub(1, at) .. (mode < 3 and others:sub(other, other) or "") .. text:sub(at + mode)
  end
  return text
end

local function check(decode, text, expected, ...)
  local bytes, why, at = decode(text, ...)

  assert(bytes == expected, ("%q: %s"):format(text, why))
  assert(bytes or (math.type(at) == "integer" and at >= 1 and at <= #text + 1 and why:find("at byte " .. at, 1, true)))
end

-- ---- Random inputs ----

for i = 1, 6000 do
  local bytes, url, pad = some_bytes(), i % 2 == 0, i % 4 < 2
  local digits, options = url and URL or STANDARD, { url = url, pad = pad }
  local text = encoding.encode_base64(bytes, options)
  local bad = spoilt(text, digits .. "=== \n\0-+_/\xff")

  assert(text == base64_of(bytes, digits, pad))
  check(encoding.decode_base64, text, bytes, options)
  local found = bytes_of(bad, digits)
  check(encoding.decode_base64, bad, base64_of(found, digits, pad) == bad and found or nil, options)

  text = encoding.encode_hex(bytes)
  assert(text == bytes:gsub(".", function(byte) return ("%02x"):format(byte:byte()) end))
  check(encoding.decode_hex, text, bytes)
  check(encoding.decode_hex, text:upper(), bytes)
  bad = spoilt(text, "0fFgG/:@`\0")
  check(encoding.decode_hex, bad, bytes_of_hex(bad))

  local of_form = { form = url }
  text = encoding.encode_url(bytes, of_form)
  assert(text:find("^[%w%-._~+%%]*$") and (url or not text:find("+", 1, true)))
  assert(text == bytes:gsub("[^%w%-._~]", function(byte)
    return url and byte == " " and "+" or ("%%%02X"):format(byte:byte())
  end))
  check(encoding.decode_url, text, bytes, of_form)
  bad = spoilt(text, "%%%0aF+x ")
  check(encoding.decode_url, bad, bytes_of_url(bad, url), of_form)
end

-- ---- The examples of RFC 4648, section 10, and the positions of wrong bytes ----

for text, expected in pairs{ [""] = "", f = "Zg==", fo = "Zm8=", foo = "Zm9v", foob = "Zm9vYg==", fooba = "Zm9vYmE=",
                             foobar = "Zm9vYmFy" } do
  assert(encoding.encode_base64(text) == expected and encoding.decode_base64(expected) == text)
  assert(encoding.encode_base64(text, { url = true }) == expected:gsub("=", ""))
end
for _, case in ipairs{ { "Zg", 3 }, { "Zg=", 4 }, { "Zg===", 5 }, { "Z", 2 }, { "Zh==", 2 }, { "Zm9=", 3 }, { "Zg==Zg==", 5 },
                       { "Zm9v\n", 5 }, { "Zm9v=", 5 }, { "====", 1 }, { "Z===", 2 }, { " Zg==", 1 } } do
  assert(select(3, encoding.decode_base64(case[1])) == case[2], case[1])
end
local large = ("x"):rep(3000001)
assert(encoding.decode_base64(encoding.encode_base64(large)) == large)
assert(encoding.decode_hex(encoding.encode_hex(large)) == large)
assert(encoding.decode_url(encoding.encode_url(large)) == large)
assert(encoding.encode_base64(12) == "MTI=" and encoding.encode_hex(1.5) == "312e35")

-- ---- Wrong arguments ----

local function fails(text, f, ...)
  local good, why = pcall(f, ...)
  assert(not good and why:find(text, 1, true), why)
end

for name, f in pairs(encoding) do
  if not name:find "uuid" then
    fails("string expected, got no value", f)
    fails("string expected, got table", f, {})
    if not name:find "hex" then
      fails("encoding." .. name .. " has no option 'x'", f, "", { x = 1 })
      fails("must be true or false, not a number", f, "", { [name:find "url" and "form" or "pad"] = 1 })
      fails("table expected, got boolean", f, "", true)
      assert(f("", nil) == "")
    end
  end
end

-- ---- UUIDs ----

local seen, last = {}, ""
for _ = 1, 5000 do
  local four, seven = encoding.uuid4(), encoding.uuid7()

  assert(four:find "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-4%x%x%x%-[89ab]%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$")
  assert(seven:find "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-7%x%x%x%-[89ab]%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$")
  assert(not seen[four] and seven > last)
  seen[four], last = true, seven
end
