-- SPDX-License-Identifier: MIT
-- For test-regex-module.c: what sxe.regex finds, replaces and refuses.

local regex = require "sxe.regex"

local function fails(text, f, ...)
  local good, why = pcall(f, ...)
  assert(not good and why:find(text, 1, true), why)
end

local function same(wanted, ...)
  local all = table.pack(...)
  for i = 1, all.n do all[i] = tostring(all[i]) end
  local got = table.concat(all, " ")
  assert(got == wanted, got .. " is not " .. wanted)
end

-- ---- Compiling ----

same("nil regex: missing closing parenthesis, at byte 3 3", regex.compile "(a")
same("nil regex: quantifier does not follow a repeatable item, at byte 1 1", regex.compile "*")
same("nil regex: the pattern is longer than 16384 bytes, at byte 16385 16385", regex.compile(("a"):rep(16385)))
assert(regex.compile(("a"):rep(16384)))
for pattern, flags in pairs{ ["[a-z]"] = "ui", ["(?i)[a-z]"] = "u", ["(?xi:[a-z])"] = "u" } do
  assert(regex.compile(pattern:rep(24), flags))
  local value, why = regex.compile(pattern:rep(25), flags)
  assert(not value and why:find("^regex: more than 24 ranges of UTF characters that ignore case, at byte "), why)
  assert(regex.compile(pattern:rep(25), (flags:gsub("u", ""))))
end
assert(regex.compile(("(?x)(?:[a-z])"):rep(25), "u") and regex.compile(("[a-z](?^)(?"):rep(25), "u") == nil)
for _, call in ipairs{ "(?R)", "(?1)", "(?+1)", "(?-1)", "(?&n)", "(?P>n)", "\\g<n>", "\\g'n'" } do
  local pattern = "(?<n>a)" .. (call .. "?"):rep(200) .. "(b)"
  local value, why = regex.compile(pattern .. ("x"):rep(1000))
  assert(not value and why:find("^regex: too many calls of groups for a pattern of its length, at byte "), why)
  assert(regex.compile("(?<n>a)(?:" .. call .. "|b)(b)"))
end
assert(regex.compile("(?<n>a)" .. ("(?=a)(?<=a)\\g1(?(n)a)(?-i)(?#)"):rep(400)) and regex.compile("(?R") == nil)
same("nil regex: more than 200 groups, at byte 1 1", regex.compile(("()"):rep(201)))
assert(#regex.match("", ("()"):rep(200)) == 200 and select("#", regex.find("", ("()"):rep(200))) == 202)
for _, refused in ipairs{ [[\Ga]], [[a\G]], "(*UTF)a", "a(*SKIP)b", "(*:name)a", "[(*A]", [[\\\Ga]] } do
  local re, why = regex.compile(refused)
  assert(not re and why:find("are not supported", 1, true))
end
for pattern, subject in pairs{ [ [[\\G]] ] = [[\G]], [ [[\(*A]] ] = "A", ["(*atomic:a)"] = "a", ["a(*"] = "", ["\\"] = "",
                               [ [[\Q\G(*A]] ] = "\\G(*A", [ [[\Q(*A\E\Q\G]] ] = "(*A\\G" } do
  local re = regex.compile(pattern)
  assert(re == nil or re:find(subject) == 1)
end
local re, why = regex.compile [[\C]]
assert(not re and why:find "\\C")
fails("no flag 'q'", regex.compile, "a", "iq")
fails("string expected", regex.compile)
fails("string expected", regex.compile, "a", {})

-- ---- Flags ----

same("1 1", regex.find("A", "a", "i"))
same("3 3", regex.find("b\na", "^a", "m"))
same("1 2", regex.find("a\n", "a.", "s"))
same("1 1", regex.find("a", "a # the letter\n", "x"))
same("1 2", regex.find("ä", "^.$", "u"))
same("1 2", regex.find("ä", [[^\w$]], "u"))
same("1 2", regex.find("Ä", "ä", "ui"))
same("1 1", regex.find("aa", "a+", "U"))
same("nil", regex.find("ba", "a", "a"))
same("2 2", regex.find("ba", "a", "a", 2))
same("nil", regex.find("a\n", "a$", "D"))
same("1 1", regex.find("a\n", "a$", "jo"))
same("1 1", regex.find("a", "(a)", "n"))
local m = regex.match("b", "(?<x>a)|(?<x>b)", "J")
same("b false b", m.x, m[1], m[2])
m = regex.match("a", "(?<x>a)|(?<x>b)", "J")
same("a a false", m.x, m[1], m[2])
m = regex.match("c", "(?<x>a)?(?<x>b)?c", "J")
same("false false false c", m.x, m[1], m[2], m[0])

-- ---- Finding ----

same("2 3 b false c", regex.find("abcd", "(b)(x)?(c)"))
same("nil", regex.find("abc", "x"))
same("nil", regex.match("abc", "x"))
same("1 0", regex.find("", ""))
same("4 3", regex.find("abc", "", nil, 4))
same("nil", regex.find("abc", "", nil, 5))
same("3 3", regex.find("abc", "c", nil, -1))
same("1 1", regex.find("abc", "a", nil, -10))
same("1 1", regex.find("abc", "a", nil, 0))
same("nil", regex.find("abc", "^b", nil, 2))
same("2 2", regex.find("abc", "(?<=a)b", nil, 2))
same("2 2", regex.find("a\0b", "\0"))
same("2 1", regex.find("ab", [[a\K]]))
m = regex.match("key=value", [[(?<key>\w+)=(?<value>\w+)]])
same("key=value key value key value", m[0], m[1], m[2], m.key, m.value)
for _, call in ipairs{ "find", "match" } do
  fails("regex: " .. call .. ": a text expected, got nil", regex[call], nil, "a")
  fails("regex: " .. call .. ": init: an integer expected", regex[call], "a", "a", "", {})
  fails("regex: " .. call .. ": init: an integer expected", regex[call], "a", "a", nil, 1.5)
end
do
  local line = debug.getinfo(1, "l").currentline
  fails(("regex-values.lua:%d: regex: find"):format(line + 1), function() return (regex.find(nil, "a")) end)
end
same("1 1", regex.find(12, "1", nil, "1"))
same("2 2", regex.find("12", 2))
fails("sxe.regex expected", regex.compile "a".find, "a", "a")
fails("has its flags already", regex.find, "a", regex.compile "a", "i")
same("1 1", regex.find("a", regex.compile "a"))
same("12 1 2", regex.find(12, 12) + 11, regex.find(12, 12))

-- ---- UTF-8 ----

same("nil regex: the text is not UTF-8, at byte 3 3", regex.find("ab\xff", "a", "u"))
same("nil regex: the text is not UTF-8, at byte 3 3", regex.match("ab\xe4b", "x", "u"))
same("nil regex: the search starts inside of a character of UTF-8", regex.find("ä", "", "u", 2))
same("nil regex: the text is not UTF-8, at byte 2 2", regex.gsub("a\xff", "a", "b", "u"))
same("nil regex: the text is not UTF-8, at byte 2 2", regex.split("a\xff", "a", "u"))
fails("not UTF-8, at byte 2", function() for _ in regex.gmatch("a\xff", "a", "u") do error "no match" end end)
same("-ä-ö- 3", regex.gsub("äö", "", "-", "u"))

-- ---- Matches one after the other ----

local function all(subject, pattern, flags)
  local texts = {}
  for one in regex.gmatch(subject, pattern, flags) do texts[#texts + 1] = one[0] end
  return #texts .. ":" .. table.concat(texts, ",")
end

same("3:a,b,c", all("a b c", [[\w]]))
same("4:,,,", all("abc", "x*"))
same("4:,bb,,", all("abbc", "b*"))
same("2:aa,", all("aa", "a*"))
same("3:,a,", all("a", "|a"))
same("0:", all("", "a"))
same("3:,,", all("aaa", [[a\K|^]]))
fails("missing closing parenthesis", regex.gmatch, "a", "(")
fails("a text expected, got nil", regex.gmatch, nil, "a")

local function split(...)
  local parts = regex.split(...)
  return #parts .. ":" .. table.concat(parts, "|")
end

same("3:a|b|c", split("a,b,c", ","))
same("4:|a||", split(",a,,", ","))
same("1:", split("", ","))
same("1:", split("", ""))
same("3:a|b|c", split("abc", ""))
same("2:a|b", split("a,b", ",*"))
same("2:a|b,c", split("a,b,c", ",", nil, 2))
same("1:a,b", split("a,b", ",", nil, 1))
same("1:a,b", split("a,b", ",", nil, 0))
same("2:ä|ö", split("äö", "", "u"))
same("nil regex: missing closing parenthesis, at byte 2 2", regex.split("a", "("))
fails("an integer from 0 expected", regex.split, "a", "b", nil, -1)
fails("an integer from 0 expected", regex.split, "a", "b", nil, 1.5)
fails("a text expected", regex.split, {}, "b")

-- ---- Replacing ----

same("b-a 1", regex.gsub("a-b", "(.)-(.)", "$2-$1"))
same("[a-b]$ 1", regex.gsub("a-b", "a-b", "[$0]$$"))
same("10 1", regex.gsub("1", "(1)", "${1}0"))
same("x=a 1", regex.gsub("a", "(?<name>a)", "x=${name}"))
same("()b 1", regex.gsub("b", "(a)?b", "($1)b"))
same("xbxb 2", regex.gsub("abab", "a", "x"))
same("xbab 1", regex.gsub("abab", "a", "x", nil, 1))
same("abab 0", regex.gsub("abab", "a", "x", nil, 0))
same("abab 0", regex.gsub("abab", "c", "x"))
same("-a-b-c- 4", regex.gsub("abc", "x*", "-"))
same("1 2 2", regex.gsub("one two", [[\w+]], { one = 1, two = 2 }))
same("1 two 2", regex.gsub("one two", [[(\w)\w+]], { o = "1" }))
same("ONE two 2", regex.gsub("one two", [[\w+]], function(one) return one[0] == "one" and one[0]:upper() end))
fails("after $ in the replacement", regex.gsub, "a", "a", "$")
fails("after $ in the replacement", regex.gsub, "a", "a", "${a")
fails("the pattern has no group '2'", regex.gsub, "a", "(a)", "$2")
fails("the pattern has no group 'b'", regex.gsub, "a", "(?<a>a)", "${b}")
fails("must be a text, a table or a function, not a nil", regex.gsub, "a", "a")
fails("a text expected from the replacement, got a boolean", regex.gsub, "a", "a", function() return true end)
fails("a text expected from the replacement, got a table", regex.gsub, "a", "a", { a = {} })
fails("boom", regex.gsub, "a", "a", function() error "boom" end)
same("nil regex: missing closing parenthesis, at byte 2 2", regex.gsub("a", "(", ""))
same("nil regex: missing closing parenthesis, at byte 2 2", regex.find("a", "("))
same("nil regex: missing closing parenthesis, at byte 2 2", regex.match("a", "("))

-- A function may search with the same pattern meanwhile, also in a finalizer that runs while results are pushed.
local word = regex.compile [[(\w)(\w*)]]
same("o(w2)ne o(w2)two 2", word:gsub("one two", function(one)
  return word:gsub("wxyz", "$1") == "w" and "o(w" .. #word:match "abc" .. ")" .. one[0]:gsub("^o", "") or nil
end))

for i = 0, 255 do
  local character = string.char(i)
  for _, flags in ipairs{ "", "x", i < 128 and "ux" or "i" } do
    same("1 2", regex.find(character .. "z", "^" .. regex.escape(character) .. "z$", flags))
  end
end
for _, text in ipairs{ "", "\\E", "\\\\E", "\\Q\\E\\", "(*SKIP)\\G", "\xc2\x85 \xe2\x80\x8e", "a\0b", "\\E\\E.*" } do
  same("1 " .. #text, regex.find(text, "^" .. regex.escape(text) .. "$", "x"))
  same("1 " .. #text, regex.find(text, "^" .. regex.escape(text) .. "$", "ux"))
end
fails("a text expected", regex.escape, 1)

-- ---- Limits: steps, memory ----

local slow = ("a"):rep(40)
for _, pattern in ipairs{ "^(a|aa)+$", "(a+)+b", "(?:a|a)*b$", "(a*)*b" } do
  local from, message = regex.find(slow .. "c", pattern)
  assert(from == nil and (message == nil or message:find "^match limit: the pattern takes too many steps"), pattern)
end
-- A step of a back reference compares a large text: the time is limited.
for _, pattern in ipairs{ "(a*)\\1[bc]", "(a*)\\1c|d", "(?<w>a+)\\k<w>{2}[bc]", "a(?=a*c)", "(?(?=a*b)x|y)", "a(?!a*a$)",
                          "(?<=a)(?=a*c)", "a{0,60000}[bc]" } do
  local found, why = regex.match(("a"):rep(300000), pattern)
  assert(found == nil and why == "match limit: the pattern takes too many steps in this text", pattern)
end
assert(regex.match(("ab "):rep(1000000) .. "x", "b x"))
assert(regex.match("one two two three", "\\b(\\w+) \\1\\b"))
same("nil match limit: the pattern takes too many steps in this text", regex.match(slow .. "b", "^(a|aa)+$"))
fails("match limit", function() for _ in regex.gmatch(slow .. "b", "^(a|aa)+$") do error "no match" end end)
same("nil match limit: the pattern takes too many steps in this text nil", regex.gsub(slow .. "b", "^(a|aa)+$", ""))
same("nil match limit: the pattern takes too many steps in this text nil", regex.split(slow .. "b", "^(a|aa)+$"))
local deep = regex.compile("^(?:(?=(a))a|b)*$")
local good, message = deep:find(("a"):rep(1 << 20))
assert(good == 1 or message:find "^match limit", message)
same("nil match limit: the pattern takes too much memory in this text", regex.find(("a"):rep(1 << 18), "^((.)(?1)|b)$"))

-- A large pattern has no machine code.
local large = "|(?:abcdefghij){2500}"
same("nil regex: nested recursion at the same subject position", regex.find("a", "((?1))" .. large))
same("nil match limit: the pattern takes too much memory in this text",
     regex.find(("a"):rep(1 << 18), "^(?:(a)|b)*$" .. large))
same("nil match limit: the pattern takes too many steps in this text", regex.find(slow .. "b", "^(a|aa)+$" .. large))
same("3 3", regex.find("xxa", "a" .. large))

-- Many places, each of which takes some steps; and a match that is far away, found in windows of all sizes.
for length = 0, 3 do
  local before = ("ab"):rep(30000) .. ("x"):rep(length)
  same(#before + 1 .. " " .. #before + 1, regex.find(before .. "z", "z"))
  same(#before + 1 .. " " .. #before + 1, regex.find(before .. "z", "(?:z|(?:a|b){3,4}q)"))
end
same("60001 60002", regex.find(("ä"):rep(30000) .. "ö", "[ö]", "u"))
same("60002 60003", regex.find("x" .. ("ä"):rep(30000) .. "ö", "[ö]", "u"))
same("nil", regex.find("x" .. ("ä"):rep(2047) .. "y", "z", "u"))
same("nil", regex.find(("a"):rep(300000), "[bc]"))
local from, steps = regex.find(("ab"):rep(5000), "(?:a|b|ab){1,12}[cd]")
assert(from == nil and (steps == nil or steps:find "^match limit"))
from, steps = regex.find(("ab"):rep(500000), "(?:a|b|ab){1,15}[cd]")
assert(from == nil and steps:find "^match limit")
for most = 4, 10 do
  from, steps = regex.find(("ab"):rep(200000), ("(?:a|b|ab){1,%d}[cd]"):format(most))
  assert(from == nil and (steps == nil or steps:find "^match limit"))
end
-- A place that takes many steps has others after it that take few.
same(12001 .. " " .. 12003, regex.find(("b"):rep(6000) .. ("a"):rep(20) .. ("b"):rep(5980) .. "aac", "(?:a|a)+c"))

-- ---- The cache ----

for i = 1, 600 do same("1 1", regex.find("a", ("a|%d"):format(i), i % 2 == 0 and "i" or nil)) end
for i = 470, 600 do same("1 1", regex.find("a", ("a|%d"):format(i), i % 2 == 0 and "i" or nil)) end
