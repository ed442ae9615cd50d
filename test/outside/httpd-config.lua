-- SPDX-License-Identifier: MIT
-- Runs every block of docs/configuration.md: a block of Lua is written to the file that its first line names, commands
-- must print what stands below them. Then tests of that page's promises.

local httpd = require "httpd"

local directory = os.tmpname()
os.remove(directory)
assert(os.execute("mkdir -p " .. directory .. "/public " .. directory .. "/private"))
local program = wire.program("sxe-httpd")
local inside = 'cd "' .. directory .. '" && PATH="$(dirname "$(cd "$OLDPWD" && realpath ' .. program .. ')"):$PATH"; '

local function write(name, text)
    local file <close> = assert(io.open(directory .. "/" .. name, "w"))
    file:write(text)
end

-- The output of a command, standard error included.
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

-- promise: docs/configuration.md: [test/outside/httpd-config.lua](../test/outside/httpd-config.lua) runs every block
-- of this page.
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

-- promise: docs/configuration.md: A flag overrides an environment variable, a variable overrides the file, and the
-- file overrides the default.
test("flag, environment, file, default: each hides the later ones", function()
    write("a.lua", "return { port = 1, max_line = 1000, max_header = 2000 }")
    local said = run("SXE_PORT=2 SXE_MAX_LINE=1001 sxe-httpd --config a.lua -p 3 --print-config")
    for _, line in ipairs{ 'port = "3", -- flag', 'max_line = "1001", -- SXE_MAX_LINE', 'max_header = "2000", -- a.lua:1',
                           '-- max_fields = "100", -- default' } do
        check(said:find(line, 1, true), said)
    end
end)

-- promise: docs/configuration.md: as a file that `--config` reads.
test("the output of --print-config can be read by --config, and has the same meaning", function()
    run("sxe-httpd --config site.lua --header 'X-Quoted: \"a\\b\"' --print-config > printed.lua")
    local once = run("sxe-httpd --config printed.lua --print-config"):gsub(" %-%- [^\n]*", "")
    run("sxe-httpd --config printed.lua --print-config > again.lua")
    local twice = run("sxe-httpd --config again.lua --print-config"):gsub(" %-%- [^\n]*", "")
    equal(twice, once)
    check(once:find('X-Quoted: \\"a\\\\b\\"', 1, true), once)
end)

-- promise: docs/configuration.md: It cannot read a file, the environment or the clock.
test("a configuration has only functions that compute", function()
    for _, name in ipairs{ "os", "io", "require", "load", "loadstring", "dofile", "loadfile", "debug", "coroutine", "package",
                           "pcall", "setmetatable", "getmetatable", "rawset", "collectgarbage", "print", "string.dump",
                           "string.rep", "string.find", "table.move", "math.random", "('').gsub" } do
        write("n.lua", ("assert(%s == nil) return {}"):format(name))
        equal(run("sxe-httpd --config n.lua --check"), "sxe-httpd: the configuration is good\n", name)
    end
end)

-- promise: docs/configuration.md: If the file is bad, the server continues with the earlier configuration, and the
-- log says why.
test("SIGHUP loads a good file and keeps the old one instead of a bad one; no client sees a gap", function()
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

-- Start a server with the routes of routes.lua; ask(path, host, method) returns a whole reply, status line included.
local function start_routes()
    run("echo index > public/index.html; echo page > public/page.txt")
    write("served.lua", (run("cat routes.lua"):gsub('"public"', '"' .. directory .. '/public"')))
    local server = httpd.start("--config", directory .. "/served.lua")
    return server, function(path, host, method)
        local sock <close> = server:connect()
        sock:send(("%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"):format(method or "GET", path, host or "a"))
        return sock:recv_all()
    end
end

-- promise: docs/configuration.md: it is the body of replies that would have none, such as 404 if there is no file or
-- no route. The server reads the file once, so a changed error page is sent after the next SIGHUP.
test("error pages do not change until SIGHUP", function()
    write("sorry.html", "sorry")
    write("404.html", "old")
    write("paged.lua", ('return { root = "%s/public", error_page = { "404 405 %s/404.html" } }'):format(directory, directory))
    local server <close> = httpd.start("--config", directory .. "/paged.lua")
    local function ask(request)
        local sock <close> = server:connect()
        sock:send(request .. " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return sock:recv_all()
    end
    check(ask("GET /nosuch"):find("^HTTP/1.1 404 .*\r\nContent%-Type: text/html; charset=utf%-8\r\n.*\r\n\r\nold$"))
    write("404.html", "new")
    check(ask("DELETE /"):find("^HTTP/1.1 405 .*\r\n\r\nold$"))
    check(ask("HEAD /nosuch"):find("^HTTP/1.1 404 .*\r\nContent%-Length: 3\r\n.*\r\n\r\n$"))
    server.proc:signal("HUP")
    httpd.wait_until(function() return assert(ask("GET /nosuch")):find("\r\n\r\nnew$") end, "the new page")
end)

-- promise: docs/configuration.md: A script's reply with a body keeps its body, and so does the 500 after an error of
-- a script, which contains the error's id.
test("an error page is for a script's replies without a body", function()
    write("404.html", "page")
    write("app.lua", [[return function(req, res)
        if req.path == "/own" then return res:send("own", 404) end
        return req.path == "/none" and 404 or error "no"
    end]])
    local server <close> = httpd.start("--lua", directory .. "/app.lua", "--error-page", "404 500 " .. directory .. "/404.html")
    local function ask(path)
        local sock <close> = server:connect()
        sock:send("GET " .. path .. " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return sock:recv_all()
    end
    local own = ask "/own"
    check(own:find("^HTTP/1.1 404 .*\r\n\r\nown$"), own)
    check(ask("/none"):find("^HTTP/1.1 404 .*\r\n\r\npage$"))
    check(ask("/error"):find("^HTTP/1.1 500 .*\r\n\r\n{.*}\n$"))
end)

-- promise: docs/configuration.md: If several patterns match, the pattern with more literal bytes wins, in any order
-- of the file.
test("each route of the page answers as the page says", function()
    local server <close>, ask = start_routes()
    for _, case in ipairs{
        { "/page.txt", "^HTTP/1.1 200 .*\r\n\r\npage\n$" }, { "/", "\r\n\r\nindex\n$" },
        { "/assets/page.txt", "\r\nCache%-Control: max%-age=3600\r\n" },
        { "/users/7", "^HTTP/1.1 301 .*\r\nLocation: /people/7\r\n" }, { "/health", "^HTTP/1.1 200 .*\r\n\r\nwell\n$" },
        { "/private/page.txt", "^HTTP/1.1 403 " },
    } do
        local reply = ask(case[1])
        check(reply:find(case[2]), case[1] .. ": " .. reply)
    end
end)

-- promise: docs/configuration.md: A route with `root` accepts GET and HEAD; another method is answered 405.
test("a POST to a file is 405, and to a fixed reply is answered", function()
    local server <close>, ask = start_routes()
    check(ask("/page.txt", "a", "POST"):find "^HTTP/1.1 405 ")
    check(ask("/page.txt", "a", "HEAD"):find "^HTTP/1.1 200 ")
    check(ask("/health", "a", "POST"):find "^HTTP/1.1 200 ")
end)

-- promise: docs/configuration.md: A name is compared without its case, port and final dot.
test("a site answers its names; all other names get the routes at the top level", function()
    local server <close>, ask = start_routes()
    for _, name in ipairs{ "api.example.com", "API.Example.COM:80", "api.example.com.", "x.y.api.example.com" } do
        check(ask("/", name):find "\r\n\r\n{}$", name)
    end
    for _, name in ipairs{ "example.com", "evilapi.example.com", "api.example.com.evil.org" } do
        check(ask("/", name):find "\r\n\r\nindex\n$", name)
    end
end)

-- promise: docs/configuration.md: this file is sent if there is no such file, as with `try_files`; 404 if it is
-- missing, too
test("a fallback file is sent each time, never a file above the root; if it is missing, 404", function()
    local server <close>, ask = start_routes()
    for _ = 1, 3 do
        check(ask("/no/such/page"):find "\r\n\r\nindex\n$")
        check(not ask("/../served.lua"):find("routes", 1, true))
        check(not ask("/assets/..%2f..%2fserved.lua"):find("routes", 1, true))
    end
    run("rm public/index.html")
    httpd.wait_until(function() return ask("/no/such/page"):find "^HTTP/1.1 404 " end, "404")
end)

-- promise: docs/configuration.md: A name that occurs twice belongs to the first site.
test("a name that two sites have belongs to the first", function()
    write("twice.lua", [[
local function site(...) return { names = { ... }, routes = { ["/"] = { status = 200, body = ... } } } end
return { port = 0, sites = {
    site("one.example", "*.b.example"), site("two.example", "one.example", "*.b.example", "*.example"), site("*.example"),
    site("two.example", "x.b.example"), site("*", "one.example"), site("last", "*") },
}]])
    local server <close> = httpd.start("--config", directory .. "/twice.lua")
    for host, site in pairs{ ["one.example"] = "one.example", ["y.b.example"] = "one.example", ["two.example"] = "two.example",
        ["x.b.example"] = "two.example", ["z.example"] = "two.example", ["other"] = "*", ["last"] = "last" } do
        local sock <close> = server:connect()
        sock:send(("GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"):format(host))
        equal(sock:recv_all():match "\r\n\r\n(.*)", site, host)
    end
end)

-- promise: docs/configuration.md: A redirect with a `{name}` that its path does not have is refused when the file is read.
test("a redirect with a {name} that its path does not have is refused", function()
    for redirect, is_good in pairs{ ["/{x}"] = false, ["/{ab}/{a}"] = false, ["/{a.}"] = false, ["/{}"] = false,
        ["/{t...}"] = false, ["/{ab}"] = true, ["/{t}/{ab}"] = true, ["/{x"] = true } do
        write("names.lua", ('return { port = 0, routes = { ["/a/{ab}/{t...}"] = { redirect = %q } } }'):format(redirect))
        local said = run("sxe-httpd --config names.lua --check")
        equal(said:find("the configuration is good", 1, true) ~= nil, is_good, redirect .. ": " .. said)
        check(is_good or said:find("names.lua:1: redirect: it is " .. redirect, 1, true), said)
    end
end)

-- promise: docs/configuration.md: A client never chooses the server of a redirect. A `{name}` before the path is
-- refused when the file is read. A redirect that parameters would turn into another server's name, `//host`, is
-- answered 404.
test("a redirect leads only to the server that the file names", function()
    local function check_file(redirect)
        write("redirect.lua", ('return { port = 0, routes = { ["/a/{t...}"] = { redirect = %q } } }'):format(redirect))
        return run("sxe-httpd --config redirect.lua --check")
    end
    for _, redirect in ipairs{ "{t}", "https://example.com{t}", "https:{t}", "//{t}/", "x{t}", "https://{t}.example.com/" } do
        check(check_file(redirect):find("redirect.lua:1: redirect: it is " .. redirect, 1, true), redirect)
    end
    for redirect, location in pairs{
        ["https://example.com/{t}"] = "https://example.com/.evil", ["https://example.com?to={t}"] = "https://example.com?to=.evil",
        ["/{t}"] = "/.evil", ["/b/{t}//c"] = "/b/.evil//c", ["?{t}"] = "?.evil", ["#{t}"] = "#.evil",
    } do
        equal(check_file(redirect), "sxe-httpd: the configuration is good\n")
        local server <close> = httpd.start("--config", directory .. "/redirect.lua")
        local function ask(path)
            local sock <close> = server:connect()
            sock:send(("GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"):format(path))
            return sock:recv_all()
        end
        equal(ask("/a/.evil"):match "\r\nLocation: ([^\r]*)\r\n", location)
        for _, path in ipairs{ "/a//evil.org", "/a/%2fevil.org", "/a/%5cevil.org", "/a/./evil.org", "/a/" } do
            check(redirect ~= "/{t}" or not ask(path):find "\r\nLocation: [/\\][/\\]", path)
        end
    end
end)

-- promise: docs/configuration.md: A name that can never match is refused: one with a port, with an empty label (`a..b`),
-- with a `*` that is not the first byte, or with a byte that no Host has, such as a space or `ä`
test("a site's name that no request can have is refused, and another is not", function()
    for name, is_good in pairs{ ["a b"] = false, ["*.*"] = false, ["a.example:80"] = false, [""] = false, ["a."] = false,
        ["a*b"] = false, ["a/"] = false, ["a\tb"] = false, ["a..b"] = false, [".a"] = false, ["ä"] = false, ["*..a"] = false,
        ["*."] = false, ["*.ä"] = false, ["a%zz"] = false, ["[::1]:80"] = false, ["[::x]"] = false, ["*[::1]"] = false,
        ["::1"] = false, ["xn--4ca"] = true, ["*a"] = true, ["*.example:80"] = false, ["*"] = true, ["*.example"] = true, ["a_b.example"] = true,
        ["[::1]"] = true, ["127.0.0.1"] = true } do
        write("names.lua", ('return { sites = { { names = %q, routes = { ["/"] = { redirect = "/x" } } } } }'):format(name))
        local said = run "sxe-httpd --config names.lua --check; echo $?"
        check(said:find(is_good and "\n0\n$" or "names: it is .*\n[12]\n$"), name .. ": " .. said)
    end
end)

-- promise: docs/configuration.md: A redirect that is empty or has a blank is refused, and so is a `type` that is no media
-- type such as `text/html` or `text/html; charset=utf-8`.
test("a redirect that leads nowhere, and a type that is none, are refused", function()
    for route, says in pairs{
        ['{ redirect = "" }'] = "redirect: it is ;", ['{ redirect = "a b" }'] = "redirect: it is a b;",
        ['{ redirect = " /a" }'] = "redirect: it is  /a;", ['{ status = 200, type = "any thing" }'] = "type: it is any thing;",
        ['{ status = 200, type = "text" }'] = "type: it is text;", ['{ status = 200, type = "" }'] = "type: it is ;",
        ['{ status = 200, type = "a b/c" }'] = "type: it is a b/c;", ['{ status = 200, type = "a/b/c" }'] = "type: it is a/b/c;",
    } do
        write("wrong.lua", 'return { routes = {\n["/"] = ' .. route .. " } }")
        local said = run "sxe-httpd --config wrong.lua --check; echo $?"
        check(said:find("sxe-httpd: wrong.lua:2: " .. says, 1, true) and said:find "\n2\n$", said)
    end
    write("good.lua", [[return { routes = { ["/a"] = { status = 200, type = "text/html ; charset=utf-8" },
        ["/b"] = { status = 200, type = "application/vnd.x+json" }, ["/c"] = { redirect = "https://a.example/b?c=d#e" } } }]])
    equal(run "sxe-httpd --config good.lua --check", "sxe-httpd: the configuration is good\n")
end)

-- promise: docs/configuration.md: If options do not go together, or one needs another, the message names the place of
-- the first of them that the file or the environment has set.
test("options that do not go together are found at their place", function()
    for text, says in pairs{
        ["listing = true"] = "2: listing: options for files (", ["lua_cpu = '1s'"] = "2: lua-cpu: options for a script (",
        ["hsts = 9"] = "2: hsts: --hsts, ", ["tls_profile = 'modern'"] = "2: tls-profile: --hsts, ",
        ["access_log_slow = 1"] = "2: access-log-slow: ", ["socket_mode = '600'"] = "2: socket-mode: ",
        ["workers = 2,\nlua = 'x', repl = true"] = "3: repl: ", ["forwarded = 'forwarded'"] = "2: forwarded: ",
        ["max_line = '32k',\nmax_header = '16k'"] = "2: max-line: a request line of 32768 bytes",
        ["lua = 'x',\nroot = '.'"] = "3: root: -r does not go with --lua", ["proxy_tls_ca = 'x'"] = "2: proxy-tls-ca: ",
    } do
        write("wrong.lua", "return {\n" .. text .. " }")
        local said = run "sxe-httpd --config wrong.lua --check; echo $?"
        check(said:find("sxe-httpd: wrong.lua:" .. says, 1, true) and said:find "\n2\n$", said)
    end
    check(run "SXE_HSTS=9 sxe-httpd --check":find("sxe-httpd: SXE_HSTS: --hsts, ", 1, true))
    check(run "sxe-httpd --hsts 9 --check":find("sxe-httpd: --hsts, ", 1, true))
end)

-- promise: docs/configuration.md: names the file, the line and the key. The server does not start, and its exit
-- status is 2.
test("the error of a path does not name methods, which the file does not have", function()
    write("path.lua", 'return { routes = { ["a"] = { redirect = "/x" } } }')
    equal(run "sxe-httpd --config path.lua --check", "sxe-httpd: path.lua:1: a: no / to begin with, at byte 0\n")
end)

-- promise: docs/httpd.1: The file is read when a process starts, and has at most 64 KiB; a fifo is refused;
test("an error page that is a fifo is refused, and nothing waits for it", function()
    run "mkfifo page"
    for _, last in ipairs{"--check", "-p 0"} do
        check(run("timeout 100 sxe-httpd --error-page '404 page' " .. last .. "; echo $?"):find("'page'.*\n[12]\n$"), last)
    end
end)

test("the directory is removed", function() os.execute("rm -r " .. directory) end)
