-- SPDX-License-Identifier: MIT
-- Every block of docs/configuration.md is run: Lua is written to the file that its first line names, commands print what
-- stands below them. And what that page promises.

local httpd = require "httpd"

local directory = os.tmpname()
os.remove(directory)
assert(os.execute("mkdir -p " .. directory .. "/public"))
local program = wire.program("sxe-httpd")
local inside = 'cd "' .. directory .. '" && PATH="$(dirname "$(cd "$OLDPWD" && realpath ' .. program .. ')"):$PATH"; '

local function write(name, text)
    local file <close> = assert(io.open(directory .. "/" .. name, "w"))
    file:write(text)
end

-- What a command prints, on both outputs.
local function run(command)
    local path = directory .. "/command"
    write("command", command .. "\n")
    local pipe <close> = assert(io.popen(inside .. ". " .. path .. " 2>&1"))
    return pipe:read "a"
end

local blocks = {}
do
    local page <close> = assert(io.open("docs/configuration.md"))
    local kind, text, first
    local number = 0
    for line in page:lines() do
        number = number + 1
        if kind and line == "```" then
            blocks[#blocks + 1] = { kind = kind, text = table.concat(text, "\n") .. "\n", line = first }
            kind = nil
        elseif kind then
            text[#text + 1] = line
        elseif line:sub(1, 3) == "```" then
            kind, text, first = line:sub(4), {}, number + 1
        end
    end
end

-- promise: docs/configuration.md: Every block of this page is run by [test/outside/httpd-config.lua](../test/outside/httpd-config.lua).
test("there are blocks of Lua and of commands, and no others", function()
    local number = { lua = 0, console = 0 }
    for _, block in ipairs(blocks) do
        number[block.kind] = assert(number[block.kind], block.kind) + 1
    end
    check(number.lua >= 4 and number.console >= 4)
end)

for _, block in ipairs(blocks) do
    test("docs/configuration.md:" .. block.line, function()
        if block.kind == "lua" then
            return write(assert(block.text:match "^%-%- ([%w.-]+)\n"), block.text)
        end
        for command, expected in block.text:gmatch "%$ ([^\n]*)\n([^$]*)" do
            equal(run(command), expected)
        end
    end)
end

-- promise: docs/configuration.md: A flag counts before a variable of the environment, that before the file, and that before the default.
test("each origin hides those below it", function()
    write("a.lua", "return { port = 1, max_line = 1000, max_header = 2000 }")
    local said = run("SXE_PORT=2 SXE_MAX_LINE=1001 sxe-httpd --config a.lua -p 3 --print-config")
    for _, line in ipairs{ 'port = "3", -- flag', 'max_line = "1001", -- SXE_MAX_LINE', 'max_header = "2000", -- a.lua:1',
                           '-- max_fields = "100", -- default' } do
        check(said:find(line, 1, true), said)
    end
end)

-- promise: docs/configuration.md: as a file that `--config` reads.
test("what --print-config prints can be read, and says the same", function()
    run("sxe-httpd --config site.lua --header 'X-Quoted: \"a\\b\"' --print-config > printed.lua")
    local once = run("sxe-httpd --config printed.lua --print-config"):gsub(" %-%- [^\n]*", "")
    run("sxe-httpd --config printed.lua --print-config > again.lua")
    local twice = run("sxe-httpd --config again.lua --print-config"):gsub(" %-%- [^\n]*", "")
    equal(twice, once)
    check(once:find('X-Quoted: \\"a\\\\b\\"', 1, true), once)
end)

-- promise: docs/configuration.md: Nothing there reads a file, the environment or the clock.
test("a configuration finds nothing but what computes", function()
    for _, name in ipairs{ "os", "io", "require", "load", "loadstring", "dofile", "loadfile", "debug", "coroutine", "package",
                           "pcall", "setmetatable", "getmetatable", "rawset", "collectgarbage", "print", "string.dump",
                           "string.rep", "string.find", "table.move", "math.random", "('').gsub" } do
        write("n.lua", ("assert(%s == nil) return {}"):format(name))
        equal(run("sxe-httpd --config n.lua --check"), "sxe-httpd: the configuration is good\n", name)
    end
end)

-- promise: docs/configuration.md: A bad file leaves the server as it was, and the log says why.
test("SIGHUP takes a good file and leaves a bad one, again and again, and a client sees no gap", function()
    write("s.lua", "return { header = 'X-N: 0' }")
    local server <close> = httpd.start("--config", directory .. "/s.lua")
    local function ask()
        local sock <close> = server:connect()
        sock:send(httpd.LAST)
        return sock:recv_all():match "X%-N: (%d+)"
    end
    for n = 1, 3 do
        write("s.lua", ("return { header = 'X-N: %d', nosuch = 1 }"):format(n))
        server.proc:signal("HUP")
        httpd.wait_until(function()
            local _, number = server.proc:errors():gsub("there is no such key", "")
            return number == n
        end, "the error")
        equal(ask(), tostring(n - 1))
        write("s.lua", ("return { header = 'X-N: %d' }"):format(n))
        server.proc:signal("HUP")
        httpd.wait_until(function() return assert(ask()) == tostring(n) end, "version " .. n)
    end
end)

test("the directory goes", function() os.execute("rm -r " .. directory) end)
