-- SPDX-License-Identifier: MIT
-- sxe.encoding, by docs/crypto.md, in sxe-lua.

local cli = require "cli"

local function run(text, ...)
    return cli.output_of(120, {wire.program "sxe-lua", "-e", "local e = require 'sxe.encoding'\n" .. text, ...})
end

-- promise: docs/crypto.md: The base64 decoder is strict, in both alphabets: it accepts exactly one text for each
-- value, so two different texts never mean the same token.
test("for each value a decoder accepts exactly one text", function()
    equal(run[[
local alphabet = "AQgwBZaz09+/-_=\n \0"
local function try(decode, options)
  local found, number = {}, 0
  local function extend(text)
    local bytes = decode(text, options)
    if bytes then assert(not found[bytes], text) found[bytes], number = true, number + 1 end
    if #text < 4 then for one in alphabet:gmatch "." do extend(text .. one) end end
  end
  extend ""
  return number > 100
end
print(try(e.decode_base64), try(e.decode_base64, {url = true}), try(e.decode_base64, {pad = false}))]],
        "true\ttrue\ttrue\n")
end)

-- promise: docs/crypto.md: The other decoders accept several texts: `FF` and `ff`, `%61` and `a`.
test("decoders of hexadecimal and URLs accept several texts", function()
    equal(run[[
local form = {form = true}
print(e.decode_hex "FF" == e.decode_hex "ff", e.decode_url "%61", e.decode_url "%2F" .. e.decode_url "%2f",
      e.decode_url("+", form) == e.decode_url("%20", form))]], "true\ta\t//\ttrue\n")
end)

-- promise: docs/crypto.md: A decoder that refuses a text returns `nil, message, at`, where `at` is the position of
-- the first wrong byte, from 1. If a byte is missing, `at` is one more than the length.
test("the result names the position of the wrong byte", function()
    equal(run[[
for _, call in ipairs{{e.decode_base64, "AAAA*"}, {e.decode_base64, "AAA"}, {e.decode_hex, "00zz"}, {e.decode_hex, "000"},
                      {e.decode_url, "ab%2"}, {e.decode_url, "%zz"}} do
  local bytes, why, at = call[1](call[2])
  print(bytes, type(why), at)
end]], "nil\tstring\t5\nnil\tstring\t4\nnil\tstring\t3\nnil\tstring\t4\nnil\tstring\t3\nnil\tstring\t1\n")
end)

-- promise: docs/crypto.md: The decoder refuses line breaks and blanks, the other alphabet, missing or superfluous
-- padding, and bits after the last byte that are not 0.
test("text that is almost base64 is refused", function()
    equal(run[[
for _, text in ipairs{"YQ==\n", "YW Jj", "YW\r\nJj", " YQ==", "-_8=", "YQ", "YQ=", "YWJj=", "YR==", "YWK="} do
  assert(not e.decode_base64(text), text)
end
for _, text in ipairs{"+/8", "YQ==", "YQ=", "YR", "YWK", "Y Q"} do assert(not e.decode_base64(text, {url = true}), text) end
print(e.decode_base64 "YQ==", e.decode_base64("YQ", {url = true}))]], "a\ta\n")
end)

-- promise: docs/crypto.md: `encoding.uuid7()` returns a UUID that begins with the time, so that database keys made
-- one after the other are sorted beside each other. The UUIDs of one thread grow with each call
test("UUIDs grow and begin with the time", function()
    local before = os.time()
    local output = run[[
local last = ""
for i = 1, 100000 do local one = e.uuid7() assert(one > last) last = one end
print(last)]]
    local ms = tonumber(output:sub(1, 8) .. output:sub(10, 13), 16)
    assert(ms >= before * 1000 and ms <= os.time() * 1000 + 61000, output)
end)

-- promise: docs/crypto.md: every Lua state has it, also the sandbox
test("a handler in the sandbox decodes", function()
    local script = require "script"
    local http = require "http"
    local server <close> = script.start([[
local e = require "sxe.encoding"
return function(req) return e.decode_base64(req.query.text) or "refused" end]], "--lua-sandbox")
    equal(http.ask(server, http.request "GET /?text=YWJj").body, "abc")
    equal(http.ask(server, http.request "GET /?text=YWJ").body, "refused")
end)
