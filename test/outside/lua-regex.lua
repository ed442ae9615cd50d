-- SPDX-License-Identifier: MIT
-- sxe.regex as docs/regex.md promises it, by processes of sxe-lua and sxe-httpd.

local cli = require "cli"

local function run(text)
    return cli.output_of(120, {wire.program "sxe-lua", "-e",
        "local regex = require 'sxe.regex'\n" .. text})
end

local has_regex = wire.spawn{wire.program "sxe-lua", "-e", "require 'sxe.regex'"}:wait(120) == 0
if not has_regex then
    print("skipped: sxe.regex, because sxe-lua was built without PCRE2")
    test("a program without PCRE2 says so", function() check(not has_regex) end)
    return
end

-- promise: docs/regex.md: `sxe-lua` and `sxe-httpd` have the module unless they were built without PCRE2, and the
-- sandbox has it, too.
test("the sandbox has sxe.regex", function()
    local script, http = require "script", require "http"
    for _, option in ipairs{"--dev", "--lua-sandbox"} do
        local server <close> = script.start(
            'return function(req) return require "sxe.regex".match("a-b", "-(.)")[1] end', option)
        equal(http.ask(server, http.request "GET /").body, "b")
    end
end)

-- promise: docs/regex.md: Beyond the limit the call returns `nil, "match limit: ..."`, and `gmatch` raises that error.
test("patterns that explode end with a match limit, and the next call works", function()
    equal(run[[
local slow = ("a"):rep(5000) .. "!"
local explosive = {"^(a+)+$", "^(a|aa)+$", "^(a|a?)+$", "^(\\w+\\s?)+$", "(x+x+)+y|(a*a*)*b"}
for _, pattern in ipairs(explosive) do
  local found, why = regex.find(slow, pattern)
  if found or not (why or "none"):find "^match limit" then print(pattern, found, why) end
end
print(pcall(regex.gmatch(slow, "^(a|aa)+$")))
print(regex.find(slow, "!"))]], "false\tmatch limit: the pattern takes too many steps in this text\n5001\t5001\n")
end)

-- promise: docs/regex.md: Texts are searched in windows, so the limit holds for a search as a whole; without that,
-- PCRE2's own limit would begin again at each byte.
test("a limit holds for a search as a whole, and not for each byte", function()
    equal(run[[
local found, why = regex.find(("ab"):rep(200000), "(?:a|b|ab){1,16}[cd]")
print(found, why)
print(regex.find(("ab"):rep(200000) .. "c", "c"))]],
        "nil\tmatch limit: the pattern takes too many steps in this text\n400001\t400001\n")
end)

-- promise: docs/regex.md: So the CPU budget counts while a pattern matches, and a search exceeds it by at most one
-- window.
test("a handler in a sandbox whose pattern computes for ever is ended", function()
    local script, http = require "script", require "http"
    local server <close> = script.start([[
        local regex = require "sxe.regex"
        return function(req)
            if req.path == "/well" then return "well" end
            while true do regex.gsub(("ab"):rep(5000), "(?:a|b|ab){1,6}c|a", "b") end
        end]], "--lua-sandbox")
    equal(http.ask(server, http.request "GET /").status, 500)
    equal(http.ask(server, http.request "GET /well").body, "well")
end)

-- The CPU seconds of the slowest of these calls, at most; a sanitizer makes each step slower.
local CPU_MAX <const> = ("%.1f"):format(os.getenv("SXE_BUILD"):find "release" and 1 or 10)

-- promise: docs/regex.md: The calls of groups, such as `(?R)`, `(?1)` or `(?&name)`, times the bytes of the pattern are
-- at most 65,536, so a pattern of 1,000 bytes has at most 65 calls: PCRE2 looks at much of the pattern for each.
test("a pattern whose compilation would take seconds is refused", function()
    equal(run([[
local function compile(pattern, flags)
  local began = os.clock()
  local re, why = regex.compile(pattern, flags)
  if os.clock() - began > ]] .. CPU_MAX .. [[ then print(#pattern, os.clock() - began, why) end
  return re
end
for _, call in ipairs{"(?+1)?", "(?+1)?(?R)?", "(?1)*", "(?+1){2}", "(?=(?R)?)"} do
  for _, count in ipairs{1, 5, 12} do compile((call:rep(count) .. "(a"):rep(190) .. (")"):rep(190)) end
  compile(call:rep(2000) .. "(a)")
end
compile(("[!-\u{10FFFF}]"):rep(1000), "ui")
print(compile("^(\\((?:[^()]|(?1))*\\))$"):match("(a(b)c)")[1])]]), "(a(b)c)\n")
end)

-- promise: docs/regex.md: So the bytes of the text, times the bytes of the pattern from its first `[` to its last `]`,
-- are at most 4 billion, or half a billion if the pattern is interpreted.
test("a class with many items does not read a large text", function()
    equal(run([[
local items = "[^" .. ("\\p{Greek}\\p{Sc}"):rep(800) .. "]++$"
local texts = {("a"):rep(4 * 1024 * 1024), "ab!"}
local began = os.clock()
print(regex.match(texts[1], items, "u"))
print(regex.match(texts[2], items, "u")[0], (regex.find(texts[1], "[^-]++$", "u")))
if os.clock() - began > ]] .. CPU_MAX .. [[ then print(os.clock() - began) end]]),
"nil\tmatch limit: the pattern takes too many steps in this text\nab!\t1\n")
end)

-- promise: docs/regex.md: `\X` is refused because PCRE2 takes quadratic time for it in a text of regional indicators
-- (the halves of flags).
test("\\X is refused", function()
    equal(run([[print(regex.compile("a\\X", "u"))
print(regex.compile("\\\\X\\Q\\X\\E", "u"):find("\\X\\X"))]]),
          "nil\tregex: \\G, \\X and verbs such as (*SKIP) are not supported, at byte 2\t2\n1\t4\n")
end)

-- promise: docs/regex.md: So a search for a pattern that has one also ends after 0.1 s of CPU time.
test("a search with back references ends in time", function()
    equal(run([[
for _, pattern in ipairs{"(a*)\\1(?:b|c)", "(a+)(a+)\\1\\2(?:b|c)", "(?=(a*))\\1(?:b|c)", "(a|aa)+\\1(?:b|c)"} do
  local began = os.clock()
  local found, why = regex.match(("a"):rep(200000), pattern)
  if found or not (why or "none"):find "^match limit" then print(pattern, found, why) end
  if os.clock() - began > ]] .. CPU_MAX .. [[ then print(pattern, os.clock() - began) end
end]]), "")
end)

-- promise: docs/regex.md: After an empty match the next match is not empty, or starts later, as in Perl.
test("empty matches are those of Perl", function()
    equal(run[[
-- perl -E 'say s/$ARGV[1]/[$&]/gr for $ARGV[0]' TEXT PATTERN
for _, case in ipairs{
  {"abc", "x*", "[]a[]b[]c[]"}, {"abbc", "b*", "[]a[bb][]c[]"}, {"aaa", "a*?", "[][a][][a][][a][]"},
  {"", "^|$", "[]"}, {"ab", "|a", "[][a][]b[]"}, {"a\nb", "(?m)^", "[]a\n[]b"}, {"aaa", "a\\K", "a[]a[]a[]"},
} do
  local text = regex.gsub(case[1], case[2], "[$0]")
  if text ~= case[3] then print(case[2], text, case[3]) end
end]], "")
end)

-- promise: docs/regex.md: It may wait, as any function of a task, and it may raise an error.
test("a replacement waits, raises, and searches with the same pattern", function()
    equal(run[[
local task, word = require "sxe.task", regex.compile "(\\w)(\\w*)"
local slow = task.start(function()
  print((word:gsub("one two", function(m) task.sleep(0.01) return m[2] .. m[1] end)))
end)
print((word:gsub("three", function(m) return (word:gsub(m[2], "$2$1")) end)))
slow:join()
print(select(2, pcall(word.gsub, word, "a", function() error("boom", 0) end)))
print(word:find "x")]], "reeh\nneo wot\nboom\n1\t1\tx\t\n")
end)

-- promise: docs/regex.md: **`regex.escape(text)`** returns a pattern that matches this text, whatever the flags are.
test("an escaped text matches itself and nothing else", function()
    equal(run[[
for i = 0, 255 do
  local text = "a" .. string.char(i) .. " #z"
  for _, flags in ipairs{"", "x", "xi", "m", i < 128 and "u" or "s"} do
    local from, to = regex.find("-" .. text .. "-", regex.escape(text), flags)
    if from ~= 2 or to ~= #text + 1 or regex.find("a??#z", "^" .. regex.escape "a.?#z", flags) then print(i, flags) end
  end
end]], "")
end)

-- promise: docs/regex.md: It keeps fewer if they are large: with their texts, the patterns have at most 512 KiB
test("the cache of large patterns leaves memory to others", function()
    for _, memory in ipairs{"1m", "2m", "4m", "8m"} do
        local proc <close> = wire.spawn{wire.program "sxe-lua", "--memory", memory, "-e", [[
local regex = require "sxe.regex"
for i = 1, 400 do assert(not regex.find("zz", i .. ("(?:[a-z]+\\d|[^x])"):rep(800))) end
collectgarbage() collectgarbage()
print(#("x"):rep(200000))]]}
        equal(proc:output(120), "200000\n")
        equal(proc:wait(120), 0)
    end
end)

-- promise: docs/regex.md: The cache is emptied when memory is missing for a pattern or for a search.
test("in a realm the cache leaves memory to others, and a lack of memory is one", function()
    for _, memory in ipairs{"384K", "1M", "4M"} do
        equal(run(([[
local realm = require "sxe.realm"
local r <close> = assert(realm.new{ memory_max = "%s", time_max_ms = 60000, require = { "sxe.regex" }, code = [=[
local regex, i = require "sxe.regex", 0
function find(subject, pattern, times) i = i + 1 return regex.find(subject, i .. pattern:rep(times)) end
function again(subject, pattern) return regex.find(subject, pattern) end
function long() return #("x"):rep(60000) end]=] })
for _, case in ipairs{ { "aaa", "(?:a{1,100}b){1,20}", 1 }, { "zz", "(?:[a-z]+\\d|[^x])", 800 } } do
  for i = 1, 300 do
    local found, why, kind = r:call("find", table.unpack(case))
    if found or kind then print(case[2], i, why, kind) break end
  end
  print(r:call "long")
end
local result, _, kind = r:call("again", ("a"):rep(60000), "^(?:(a)|b)*$|(?:abcdefghij){2500}")
print(result, kind or result)
print(r:call "long")
]]):format(memory)), "60000\n60000\nnil\tmemory\n60000\n")
    end
end)

-- promise: docs/regex.md: So in a realm of any size, searches for ever new patterns do not use up its memory.
test("searches for ever new patterns never lack memory, in a realm of any size", function()
    for _, memory in ipairs{"64K", "80K", "100K", "150K", "200K", "204K", "1M"} do
        equal(run(([[
local realm = require "sxe.realm"
local r <close> = assert(realm.new{ memory_max = "%s", time_max_ms = 60000, require = { "sxe.regex" }, code = [=[
local regex, n = require "sxe.regex", 0
function find() n = n + 1 return regex.find("hello 123 world", "(\\d+) wor" .. n .. "|l+o") end]=] })
for i = 1, 1000 do
  local from, past = r:call "find"
  if from ~= 3 then error(i .. ": " .. past) end
end
]]):format(memory)), "")
    end
end)

-- promise: docs/regex.md: A state makes at most 16 MiB of it: further patterns are interpreted until earlier ones are
-- collected.
if not (os.getenv("SXE_BUILD") or ""):find("coverage", 1, true) then
    -- The allocator of the coverage flavour takes more memory for each block.
    test("the machine code of many patterns is limited", function()
        equal(run[[
local function resident() -- in MiB
  local file <close> = io.open "/proc/self/statm"
  return tonumber(file:read "a":match "%d+ (%d+)") / 256
end
local before, kept = resident(), {}
for i = 1, 3000 do kept[i] = assert(regex.compile(("(a|b|c)*x1"):rep(50) .. i)) end
print((select(2, kept[1]:find(("ax1"):rep(50) .. "1"))), (select(2, kept[3000]:find(("ax1"):rep(50) .. "3000"))))
print(resident() - before < 60)
]], "151\t154\ntrue\n")
    end)
end
