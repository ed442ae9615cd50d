-- SPDX-License-Identifier: MIT
-- JSON in sxe-lua: numbers at the limits of integers and floats, random numbers, and tables that are not lists.

local cli = require "cli"

-- Run a script in sxe-lua; it must exit with 0. Returns what it prints.
local function run(text)
    return cli.output_of(200, {wire.program "sxe-lua", "-e", 'local json = require "sxe.json"\n' .. text,
                                    env = {SXE_LOG_LEVEL = "error"}})
end

-- promise: docs/lua-handlers.md: Decoding returns the same numbers: integers are written with all digits, floats with
-- as many digits as necessary.
test("integers near the borders and random floats come back", function()
    equal(run [[
        local function check(value)
            local text = json.encode(value)
            assert(json.decode(text) == value, text)
            if math.type(value) == "integer" then
                assert(text == ("%d"):format(value) and math.type(json.decode(text)) == "integer", text)
            end
        end
        for _, middle in ipairs{0, 1 << 31, 1 << 32, 1 << 53, -(1 << 53), 10^15 // 1 | 0, 10^18 // 1 | 0, math.maxinteger} do
            for distance = -1000, 1000 do check(middle + distance) end
        end
        math.randomseed(16)
        for _ = 1, 50000 do
            local float = string.unpack("d", string.pack("j", math.random(0)))
            if float == float and math.abs(float) ~= math.huge then check(float) end
        end
        for _, float in ipairs{2.0 ^ 53, 2.0 ^ 53 + 2, 2.0 ^ 63, -2.0 ^ 63, 2.0 ^ 64, 5e-324, 0x1p-1022, 0x1.fffffffffffffp1023} do
            check(float) check(-float)
        end
        print(json.encode(-0.0), 1 / json.decode "-0", 1 / json.decode "-0.0")
    ]], "-0\t-inf\t-inf\n")
end)

-- promise: docs/lua-handlers.md: Integers beyond 64 bits, and whole numbers from 2^53 on that are written with a
-- fraction or an exponent, become floats.
test("an integer beyond 64 bits becomes a float", function()
    equal(run [[
        for _, text in ipairs{"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
                              "9007199254740991.0", "9007199254740993.0", "1e15", "1e16", "18446744073709551615"} do
            print(math.type(json.decode(text)))
        end
    ]], "integer\nfloat\ninteger\nfloat\ninteger\nfloat\ninteger\nfloat\nfloat\n")
end)

-- promise: docs/lua-handlers.md: A string that is not UTF-8 is refused, and the message names the byte.
test("a string that is not UTF-8 is refused, with the position", function()
    equal(run [[
        for _, text in ipairs{'"ab\xff"', '"\xc3\x28"', '["ok", "\xed\xa0\x80"]', '{"\xc0\xaf":1}', '"\xe2\x82"'} do
            local value, message = json.decode(text)
            print(value, message:match "at byte %d+$")
        end
        print(json.decode '"\u{e9}\u{20ac}\u{10ffff}"' == "\u{e9}\u{20ac}\u{10ffff}", #json.encode "\xff")
    ]], "nil\tat byte 4\nnil\tat byte 2\nnil\tat byte 9\nnil\tat byte 3\nnil\tat byte 2\ntrue\t3\n")
end)

-- promise: docs/lua-handlers.md: It raises an error for a function, a coroutine, a cycle, values nested more than
-- 1000 deep, a key that is neither a string nor a number, NaN, and infinity. Holes in a list become null. A list of
-- more than 10 items that has more holes than values raises an error.
test("a value that JSON does not have raises, and the next call works", function()
    equal(run [[
        local cycle, deep = {}, {}
        cycle[1] = { cycle }
        for _ = 1, 100000 do deep = { deep } end
        for _, value in ipairs{print, {print}, cycle, 0 / 0, {a = 1 / 0}, -1 / 0, deep, {[1] = 1, [11] = 1},
                               coroutine.create(print), {[true] = 1}} do
            assert(not pcall(json.encode, value))
            assert(json.encode{ 1 } == "[1]")
        end
        local shared = { 1 }
        print(json.encode{ shared, { shared } }, json.encode{[1] = 1, [10] = 1})
    ]], "[[1],[[1]]]\t[1,null,null,null,null,null,null,null,null,1]\n")
end)

-- promise: docs/lua-handlers.md: **`json.null`** is null in both directions.
test("null is json.null at every depth", function()
    equal(run [[
        print(json.encode(json.decode '[null,[null],1,null]'), json.encode(json.null), json.decode "null" == json.null)
    ]], "[null,[null],1,null]\tnull\ttrue\n")
end)
