-- SPDX-License-Identifier: MIT
--
-- Templates, by docs/templates.md: no value becomes markup, no name leads out of the folder, errors name their place.

local http = require "http"
local script = require "script"

-- A server that compiles each request's body, and renders it with some values.
local COMPILES <const> = [[
local template = require "sxe.template"
secret = "a global"
return function(req)
  local values = {evil = "<script>\"'&", list = {1, 2}, n = 7, missing = nil, fail = function() error{status = 418, message = "teapot"} end}
  local is_good, text = pcall(function() return template.compile(req:body(), "t.html")(values) end)
  if type(text) == "table" then error(text) end
  return is_good and 200 or 400, text
end]]

local function render(server, text)
    local reply = http.ask(server, http.request("POST /", "Content-Length: " .. #text) .. text)
    return reply.body, reply.status
end

-- promise: docs/templates.md: `& < > " '` become `&amp; &lt; &gt; &quot; &#39;`.
test("what an expression yields is text, however it is made", function()
    local server <close> = script.start(COMPILES)
    local escaped <const> = "&lt;script&gt;&quot;&#39;&amp;"
    for _, expression in ipairs{"evil", "evil .. ''", "(evil)", "({evil})[1]", "evil -- x", "string.format('%s', evil)"} do
        equal(render(server, "{{ " .. expression .. "\n}}"), escaped, expression)
    end
    equal(render(server, "{{evil}}{{escape(evil)}}"), escaped .. escaped:gsub("&", "&amp;"))
    equal(render(server, "{{{ evil }}}"), "<script>\"'&")
    equal(render(server, "<script>let x = {{{ json{evil, '</script>'} }}}</script>"):find("</script>", 1, true),
        #render(server, "<script>let x = {{{ json{evil, '</script>'} }}}</script>") - 8)
end)

-- promise: docs/templates.md: a statement ends with its tag
test("no text is a part of a statement", function()
    local server <close> = script.start(COMPILES)
    for _, text in ipairs{"{% return %}after", "{% local y = %}{{ n }}", "{% if n %}a{% end %}", "{% y = n .. %}b"} do
        local why, status = render(server, "a\n" .. text)
        equal(status, 400, text)
        check(why:find "^t%.html:2: " and not why:find("__", 1, true), why)
    end
    equal(render(server, "{% for i = 1, 2 do %}{{ i }}{% end local s = 'x' -- y %}{% if s then %}{{ s }}{% else %}{% end %}"), "12x")
    equal(render(server, "{% local function f() %}<{{ n }}>{% end f() f() %}"), "<7><7>")
end)

-- promise: docs/templates.md: Another value raises an error. So does nil, and the message names the expression, so a
-- misspelt field does not become an empty place.
test("a value that is nil, or has no text, is an error", function()
    local server <close> = script.start(COMPILES)
    for _, name in ipairs{"nmae", "missing", "list[3]", "list", "fail"} do
        local body, status = render(server, "a{{ " .. name .. " }}b")
        equal(status, 400)
        check(body:find("^t%.html:1: {{ " .. name:gsub("%p", "%%%0") .. " }} is "), body)
    end
    equal(render(server, "{{ nmae or '' }}{{ n }}{{ true }}"), "7true")
end)

-- promise: docs/templates.md: Statements and parentheses may be nested some 190 levels deep; a template with more is
-- refused when it is compiled.
test("a template that is nested too deeply is refused, and the message names it", function()
    local server <close> = script.start(COMPILES)
    for before, after in pairs{["{% if n then %}"] = "{% end %}", ["{% do %}"] = "{% end %}"} do
        equal(render(server, before:rep(150) .. "x" .. after:rep(150)), "x")
        for _, depth in ipairs{250, 10000} do
            local text, status = render(server, before:rep(depth) .. "x" .. after:rep(depth))
            check(status == 400 and text:find "^t%.html: its tags are nested too deeply", text)
        end
    end
    equal(render(server, "{{ " .. ("("):rep(150) .. "n" .. (")"):rep(150) .. " }}"), "7")
    local text = render(server, "{{ " .. ("("):rep(1000) .. "n" .. (")"):rep(1000) .. " }}")
    check(text:find "^t%.html: its tags are nested too deeply", text)
end)

-- promise: docs/templates.md: Errors name the template and its line. Syntax errors are raised when a template is
-- compiled, all others when it runs.
test("an error names its line, after tags, comments and texts of many lines", function()
    local server <close> = script.start(COMPILES)
    for _, before in ipairs{"", "a\nb\n", "{# c\nd\n #}\n", "{% x = [[\n\n]] %}\n", "{% -- e\n y = 1\n%}\n\n", "\r\n{{ n }}\r\n",
                            "{% block 'b' %}\n\n{% endblock %}\n", "{%\n--[[\n\n]]%}  \n\n"} do
        local line = select(2, before:gsub("\n", "")) + 1
        for text, wanted in pairs{
            ["{{ list.lenght }}"] = '{{ list.lenght }} is nil; if it may be missing, write {{ list.lenght or "" }}',
            ["{{ list }}"] = "{{ list }} is a table, which has no text", ["{{ n"] = "'{{' has no '}}'",
            ["{% error 'oh' %}"] = "oh", ["{% n( %}"] = "unexpected symbol near the tag's end"} do
            local body, status = render(server, before .. text)
            equal(status, 400)
            equal(body, ("t.html:%d: %s"):format(line, wanted), before .. text)
        end
    end
end)

-- promise: docs/templates.md: Errors name the template and its line. Syntax errors are raised when a template is
-- compiled, all others when it runs.
test("an error of a function that templates have names the template's line", function()
    local server <close> = script.start(COMPILES)
    for text, wanted in pairs{
        ["json(ipairs)"] = "Cannot serialise function", ["json(0/0)"] = "Cannot serialise number",
        ["os.date('%Q')"] = "bad argument #1 to 'date'", ["os.time{}"] = "field 'year' missing", ["next({}, 5)"] = "invalid key",
        ["error('x', 2)"] = "x", ["error('x')"] = "x", ["table.insert(string, 1)"] = "string cannot be changed by a template",
        ["table.concat{{}}"] = "invalid value", ["tonumber()"] = "bad argument"} do
        local body, status = render(server, "a\n\n{% local x = " .. text .. " %}\n")
        equal(status, 400)
        equal(body:sub(1, #wanted + 10), "t.html:3: " .. wanted, text)
    end
    local body = render(server, "{% function f()\n error('x', 2)\n end %}\n\n{% f() %}")
    equal(body, "t.html:5: x")
end)

-- promise: docs/templates.md: a value that has no text is an error, as in `{{ }}`;
test("url of a value that has no text is an error", function()
    local server <close> = script.start(COMPILES)
    for text, kind in pairs{["nmae"] = "nil", ["list"] = "table", ["list.nope"] = "nil", ["ipairs"] = "function"} do
        local body, status = render(server, "\n<a href=/{{ url(" .. text .. ") }}>")
        equal(status, 400)
        equal(body, "t.html:2: url: a " .. kind .. " has no text")
    end
    equal(render(server, "{{ url('a b') }}{{ url(5) }}"), "a%20b5")
end)

-- promise: docs/templates.md: A template has at most 1 MiB
test("a template of more than 1 MiB is refused", function()
    local server <close> = script.start([[
        local template = require "sxe.template"
        return function(req)
          return tostring(pcall(template.compile, ("a"):rep(tonumber(req.query.n)), "t"))
        end
    ]])
    equal(http.ask(server, http.request "GET /?n=1048576").body, "true")
    equal(http.ask(server, http.request "GET /?n=1048577").body, "false")
end)

-- promise: docs/templates.md: A template can use the fields of the table that it is given, but no global of the
-- program.
test("a template neither sees the program nor changes its modules", function()
    local server <close> = script.start(COMPILES)
    for _, name in ipairs{"secret", "io", "require", "load", "_G", "debug", "package", "setmetatable", "getmetatable", "rawset",
                          "os.execute", "os.exit", "os.getenv", "collectgarbage", "dofile", "coroutine", "sxe"} do
        equal(render(server, ("{{ type(%s) }}"):format(name)), "nil", name)
    end
    for _, module in ipairs{"math", "string", "table", "utf8", "os"} do
        local body, status = render(server, ("{%% %s.x = 1 %%}"):format(module))
        equal(status, 400)
        equal(body, ("t.html:1: %s cannot be changed by a template"):format(module))
    end
end)

-- promise: docs/templates.md: An assignment makes a variable for this rendering only, and does not change the table.
test("an assignment is gone with its rendering", function()
    local server <close> = script.start([[
local page = require "sxe.template".compile "{{ n }}{{ type(m) }}{% n = n + 1 m = 1 %}{{ n }}"
local values = {n = 7}
return function() return page(values) .. values.n end]])
    for _ = 1, 2 do equal(server:ask(), "7nil87") end
end)

-- promise: docs/templates.md: An error that the function raises, `{ status = 404 }` for instance, passes through the
-- template.
test("an error with a status passes through", function()
    local server <close> = script.start(COMPILES)
    local body, status = render(server, "a{% fail() %}")
    equal(status, 418)
    check(body:find("teapot", 1, true), body)
end)

local FOLDER <const> = [[
local template = require "sxe.template"
local views = template.new{root = arg[0]:match "(.*)/" .. "/views"OPTIONS}
return function(req, res)
  if req.query.send then return views:send(res, req.query.send, {name = req.query.name}) end
  local text, why, code = views:render(req.query.name, {page = req.query.page})
  return text or tostring(code)
end]]

local function start_folder(options, ...)
    local text = FOLDER:gsub("OPTIONS", options or "")
    local server = script.start("require 'sxe.file'.mkdir(arg[0]:match '(.*)/' .. '/views')\n" .. text, ...)
    server:write("{{ 'in' }}", "views/in.html")
    server:write("out", "out.html")
    server:write("{% include(page) %}", "views/any.html")
    server:write("<p>{{ name }}", "views/page.html")
    return server
end

-- promise: docs/templates.md: A name cannot lead outside the folder: a name with an empty part, `.` or `..` is
-- refused with code 22.
test("no name leads out of the folder, in a call and in include", function()
    local server <close> = start_folder()
    equal(server:ask "/?name=in.html", "in")
    for _, name in ipairs{"../out.html", "..", "./in.html", "x/../../out.html", "/etc/passwd", "//etc/passwd", "", "views//in.html",
                          "in.html/", "in.html%00"} do
        equal(server:ask("/?name=" .. name), "22", name)
        local body = server:ask("/?name=any.html&page=" .. name)
        check(body:find('"error":"internal"', 1, true), body)
    end
    equal(server:ask "/?name=any.html&page=in.html", "in")
end)

-- promise: docs/templates.md: If 50 templates include each other, or are each other's layouts, the error names the
-- last of them.
test("templates that include each other without end are an error, and the server goes on", function()
    local server <close> = start_folder()
    server:write("{% include 'b.html' %}{% include 'b.html' %}", "views/a.html")
    server:write("{% layout 'a.html' %}", "views/b.html")
    for _ = 1, 3 do
        local body = server:ask "/?name=a.html"
        check(body:find('"error":"internal"', 1, true), body)
    end
    equal(server:ask "/?name=in.html", "in")
end)

-- promise: docs/templates.md: | `reload` | false, true with `--dev` | reads a template again at each use, and
-- compiles it when it has changed |
test("a template that changes is read again with reload, and only with it", function()
    for _, case in ipairs{{", reload = true", "new"}, {"", "in"}, {"", "new", "--dev"}, {", reload = false", "in", "--dev"}} do
        local server <close> = start_folder(case[1], case[3])
        local wanted = case[2]
        equal(server:ask "/?name=in.html", "in")
        server:write("new", "views/in.html")
        equal(server:ask "/?name=in.html", wanted)
        equal(server:ask "/?name=any.html&page=in.html", wanted)
    end
end)

-- promise: docs/templates.md: If it fails, nothing was sent.
test("a page that fails half way is an error with its own status and type", function()
    local server <close> = start_folder()
    server:write("<p>begun{% if name then %}{{ nothing }}{% end %}", "views/half.html")
    local reply = http.ask(server, http.request "GET /?send=half.html&name=x")
    equal(reply.status, 500)
    check(not reply.body:find("begun", 1, true), reply.body)
    reply = http.ask(server, http.request "GET /?send=half.html")
    equal(reply.status, 200)
    equal(reply.body, "<p>begun")
    reply = http.ask(server, http.request "GET /?send=page.html&name=%3Cb%3E")
    equal(reply.body, "<p>&lt;b&gt;")
    check(reply.raw:find("Content-Type: text/html; charset=utf-8\r\n", 1, true), reply.raw)
end)
