-- SPDX-License-Identifier: MIT
--
-- Packages of others in tasks, by docs/lua.md: Debian's, where they are installed. Each is required and used by several
-- tasks at once, in coroutines that wait in between, and its errors are caught.

local project = require "project"

-- The tasks of each package: `use(i)` is what they do, and `fail(i)` raises an error that contains `why`.
local TASKS = [[
local task = require "sxe.task"
local use, fail, why = ...
local function work(i)
  task.sleep(0) -- the loop runs, so this is no longer the script's top level
  local co = coroutine.wrap(function()
    local first = use(i)
    coroutine.yield(first)
    task.sleep(0.001 * (5 - i))
    return use(i)
  end)
  local first = co()
  local good, message = pcall(fail, i)
  assert(not good and tostring(type(message) == "table" and message.message or message):find(why, 1, true), message)
  local second = co()
  assert(first == second, tostring(first) .. " is not " .. tostring(second))
  return first
end
local results = task.parallel({ 1, 2, 3, 4 }, work)
print(table.concat(results, " ", 1, 4))
]]


-- Module, the function use, the function fail with a part of its message, the results of four tasks.
local ROCKS = {
    {"argparse", [[function(i)
        local parser = require "argparse"("program"):add_help(false)
        parser:option "-n --number":convert(tonumber)
        return parser:parse{ "-n", tostring(i) }.number + 1
     end, function() return require "argparse"("p"):parse(3) end, "attempt to index"]], "2 3 4 5"},
    {"cjson", [[function(i) return require "cjson".decode(require "cjson".encode{ a = { i, 2 } }).a[1] // 1 | 0 end,
     function() require "cjson".decode "{" end, "Expected object key"]], "1 2 3 4"},
    {"cliargs", [[function(i)
        local cli = require "cliargs.core"()
        cli:set_name "p"
        cli:option("-n, --number=N", "a number")
        return cli:parse{ "-n", tostring(i) }.n
     end, function() require "cliargs.core"():option(nil, nil) end, ""]], "1 2 3 4"},
    {"dkjson", [[function(i) return require "dkjson".decode(require "dkjson".encode{ i, { b = 1 } })[1] end,
     function() require "dkjson".encode{ f = print } end, "type 'function' is not supported"]], "1 2 3 4"},
    {"lfs", [[function(i)
        local lfs = require "lfs"
        local path = ("folder-%d-%s"):format(i, tostring(coroutine.running()):match "%w+$")
        assert(lfs.mkdir(path))
        local mode = lfs.attributes(path, "mode")
        for name in lfs.dir "." do mode = name == path and mode .. i or mode end
        assert(lfs.rmdir(path))
        return mode
     end, function() for _ in require "lfs".dir "/no/such" do error "found" end end, "cannot open"]],
     "directory1 directory2 directory3 directory4"},
    {"lpeg", [[function(i)
        local lpeg = require "lpeg"
        local number = lpeg.R "09" ^ 1 / tonumber
        return lpeg.match(lpeg.Cf(number * (lpeg.P "+" * number) ^ 0, math.max), i .. "+" .. i + 3)
     end, function() require "re".compile "'a' (" end, "pattern error"]], "4 5 6 7"},
    {"luassert", [[function(i)
        local assert = require "luassert"
        assert.are.same({ i, { 2 } }, { i, { 2 } })
        assert.has_error(function() error("no", 0) end, "no")
        return i
     end, function(i) require "luassert".are.equal(i, i + 1) end, "Expected objects to be equal"]], "1 2 3 4"},
    {"luaunit", [[function(i) require "luaunit".assertEquals({ i }, { i }) return i end,
     function(i) require "luaunit".assertEquals({ i }, { 0 }) end, ""]], "1 2 3 4"},
    {"lxp", [[function(i)
        local names = {}
        local parser = require "lxp".new{ StartElement = function(_, name) names[#names + 1] = name .. i end }
        assert(parser:parse "<a><b/></a>")
        parser:parse()
        parser:close()
        return table.concat(names)
     end, function() require "lxp".new{ Nonsense = print } end, "invalid option"]], "a1b1 a2b2 a3b3 a4b4"},
    {"lyaml", [[function(i) return require "lyaml".load(require "lyaml".dump{ { n = i, list = { 1, 2 } } }).n end,
     function() require "lyaml".load "a: [" end, ""]], "1 2 3 4"},
    {"mediator", [[function(i)
        local mediator, sum = require "mediator"(), 0
        mediator:subscribe({ "a" }, function(n) sum = sum + n end)
        mediator:publish({ "a" }, i)
        return sum
     end, function() require "mediator"():publish({ "a" }, error) error "end" end, "end"]], "1 2 3 4"},
    {"mime", [[function(i)
        local ltn12, mime, parts = require "ltn12", require "mime", {}
        local source = ltn12.source.chain(ltn12.source.string("text " .. i), mime.encode "base64")
        ltn12.pump.all(source, (ltn12.sink.table(parts)))
        return mime.unb64(table.concat(parts))
     end, function() require "mime".encode "nonsense" end, "unknown key"]], "text 1 text 2 text 3 text 4"},
    {"openssl", [[function(i)
        local text = require "openssl.digest".new "sha256":final("abc" .. i)
        return ("%02x"):format(text:byte()) .. i
     end, function() require "openssl.digest".new "nonsense" end, "invalid digest type"]], "db1 4b2 853 7b4"},
    {"pl", [[function(i)
        local List, pretty = require "pl.List", require "pl.pretty"
        local stringx, tablex = require "pl.stringx", require "pl.tablex"
        assert(tablex.deepcompare(pretty.read(pretty.write{ i, { a = 1 } }), { i, { a = 1 } }))
        return stringx.join("-", List{ i, 1 }:map(function(n) return 2 * n end))
     end, function() require "pl.utils".assert_string(1, 5) end, "expected a 'string'"]], "2-2 4-2 6-2 8-2"},
    {"rex_pcre2", [[function(i) return (require "rex_pcre2".gsub("a" .. i, "(\\d)", "<%1>")) end,
     function() require "rex_pcre2".new "(" end, "missing"]], "a<1> a<2> a<3> a<4>"},
    {"say", [[function(i) require "say":set("key" .. i, "said %s") return require "say"("key" .. i, { i }) end,
     function() require "say"(5, 6) end, "expected"]], "said 1 said 2 said 3 said 4"},
    {"socket", [[function(i)
        local socket = require "socket"
        local server = assert(socket.bind("127.0.0.1", 0))
        local client = assert(socket.connect("127.0.0.1", (select(2, server:getsockname()))))
        local other = server:accept()
        client:send("line " .. i .. "\n")
        local line = other:receive "*l"
        for _, sock in ipairs{ server, client, other } do sock:close() end
        return line
     end, function() require "socket".bind({}, 0) end, "expected"]], "line 1 line 2 line 3 line 4"},
    {"system", [[function(i) return require "system".monotime() > 0 and i end,
     function() require "system".sleep "long" end, "expected"]], "1 2 3 4"},
    {"term", [[function(i) return #require "term".colors.red(("x"):rep(i)) - #tostring(require "term".colors.red "") end,
     function() require "term".isatty(5) end, "expected"]], "1 2 3 4"},
    {"zlib", [[function(i)
        local zlib = require "zlib"
        local packed = zlib.deflate()(("text"):rep(1000) .. i, "finish")
        return (zlib.inflate()(packed):sub(-1))
     end, function() require "zlib".inflate() "no zlib" end, "InvalidInput"]], "1 2 3 4"},
}

local function is_missing(name)
    local ran = os.execute(("%s --rocks /dev/stdin >/dev/null 2>&1 <<'end'\nrequire '%s'\nend"):format(
                           project.program "sxe-lua", name))
    if not ran then print(("skipped: the package %s, because it is not installed"):format(name)) end
    return not ran
end

-- promise: docs/lua.md: test this with LuaRocks and with these packages of Debian 12, each in several tasks at once
for _, rock in ipairs(ROCKS) do
    if not is_missing(rock[1]) then
        test("tasks use " .. rock[1], function()
            local work <close> = project.start()
            work:write("tasks.lua", TASKS)
            work:write("app.lua", "loadfile 'tasks.lua'(" .. rock[2] .. ")")
            local status, output, errors = work:sh "$SXE_LUA app.lua"
            equal(errors, "")
            equal(output, rock[3] .. "\n")
            equal(status, 0)
        end)
    end
end

-- ---- busted ----

local SPEC = [[
local client, http, task = require "sxe.client", require "sxe.http", require "sxe.task"

local server = http.serve{ ip = "127.0.0.1", port = 0, handler = function(req) task.sleep(0.01) return req.path end }

describe("a server", function()
  setup(function() task.sleep(0) end)

  it("is called by tasks of a test", function()
    local bodies = task.parallel({ "/a", "/b", "/c" }, function(path)
      return client.get(("http://127.0.0.1:%d%s"):format(server.port, path)).body
    end)
    assert.same({ "/a", "/b", "/c", n = 3 }, bodies)
  end)

  it("fails", function() assert.equal(1, 2) end)
  it("has an error after a wait", function() task.sleep(0) error "broken" end)
end)
]]

-- promise: docs/lua-handlers.md: Tests, `before_each`, `after_each` and `finally` may wait, serve and connect; the exit
-- status comes from busted.
if not is_missing "busted" then
    test("busted runs tests that serve, wait and start tasks", function()
        local work <close> = project.start()
        work:write("spec/server_spec.lua", SPEC)
        work:write("busted.lua.txt", "require 'busted.runner'({ standalone = false })")
        local status, output, errors = work:sh "$SXE_LUA busted.lua.txt -o TAP"
        check(output:find("^ok 1 %- a server is called by tasks of a test\n"), output .. errors)
        check(output:find("\nnot ok 2 - a server fails\n", 1, true), output)
        check(output:find("\nnot ok 3 - a server has an error after a wait\n", 1, true), output)
        equal(status, 1)
    end)
end
