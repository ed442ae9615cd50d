-- SPDX-License-Identifier: MIT
-- For test-lua-template.c: at the end `done` is true, or an error.
local client, file, http, task, template =
  require "sxe.client", require "sxe.file", require "sxe.http", require "sxe.task", require "sxe.template"
done = false

local root = os.tmpname()
os.remove(root)
assert(os.execute("mkdir -p " .. root .. "/parts"))

local function write(name, text) assert(file.write(root .. "/" .. name, text)) end

local function equal(got, wanted)
  if got ~= wanted then error(("got %q, wanted %q"):format(tostring(got), tostring(wanted)), 2) end
end

-- The text of a template.
local function is(text, context, wanted)
  local got = template.compile(text)(context)

  if got ~= wanted then error(("%q: got %q, wanted %q"):format(text, got, wanted), 2) end
end

-- A template that cannot be compiled, or whose function fails; the message is whole.
local function fails(text, context, wanted)
  local is_good, why = pcall(function() return template.compile(text, "t.html")(context) end)

  if is_good or why ~= wanted then error(("%q: got %q, wanted %q"):format(text, tostring(why), wanted), 2) end
end

local function raises(wanted, fn, ...)
  local is_good, why = pcall(fn, ...)

  why = tostring(why):gsub("^[^ ]*lua%-template%.lua:%d+: ", "")
  if is_good or why ~= wanted then error(("got %q, wanted %q"):format(why, wanted), 2) end
end

local function check_expressions()
  is("", nil, "")
  is("plain\n{ text } }} %} #}", nil, "plain\n{ text } }} %} #}")
  is("a\0b\r\n\\ \"q\" \xff", nil, "a\0b\r\n\\ \"q\" \xff")
  is("{{ x }}", { x = "<a href=\"b\" c='d'>&amp;" }, "&lt;a href=&quot;b&quot; c=&#39;d&#39;&gt;&amp;amp;")
  is("{{{ x }}}", { x = "<b>" }, "<b>")
  is("{{x}}{{{x}}}{{ x }}", { x = 1 }, "111")
  is("{{ 1.5 }} {{ 1 // 1 }} {{ true }} {{ false }}", nil, "1.5 1 true false")
  is("{{ x }}", { x = setmetatable({}, { __tostring = function() return "<t>" end }) }, "&lt;t&gt;")
  is("{{ ({ a = { b = '}}' } }).a.b }}|{{ #{{1}} }}", nil, "}}|1")
  is("{{#x}}", { x = { 1, 2 } }, "2")
  is("{{{ ({1})[1] }}}", nil, "1")
  is([[{{ "}}\"" .. '}}\'' .. "\\" }}]], nil, "}}&quot;}}&#39;\\")
  is("{{ [[}}]] .. [==[]]}}]==] }}", nil, "}}]]}}")
  is("{{ x[1] - 1 }}", { x = { 3 } }, "2")
  is("{{ x -- the first }}{{ -x --[[ }} ]] + 1 }}", { x = 1 }, "10")
  is("{{ x -- a\n + 1 -- b\n }}", { x = 1 }, "2")
  is("{{ x --[==[ \n ]==] }}", { x = 1 }, "1")
  is("{{ (f()) }}", { f = function() return 1, 2 end }, "1")
  is("{{ x or '-' }}{{ y and 1 or 2 }}", nil, "-2")

  fails("a\n{{ x }}", {}, 't.html:2: {{ x }} is nil; if it may be missing, write {{ x or "" }}')
  fails("{{{ x }}}", {}, 't.html:1: {{ x }} is nil; if it may be missing, write {{ x or "" }}')
  fails("{{ x }}", { x = {} }, "t.html:1: {{ x }} is a table, which has no text")
  fails("{{ x }}", { x = setmetatable({}, {}) }, "t.html:1: {{ x }} is a table, which has no text")
  fails("{{ x }}", { x = print }, "t.html:1: {{ x }} is a function, which has no text")
  fails("\n\n{{ user.name }}", {}, "t.html:3: attempt to index a nil value (global 'user')")
  fails("{{ -- only\n }}", nil, "t.html:1: an expression of Lua expected between the braces")
  fails("x\n{% return %}after", nil, "t.html:2: <eof> expected near what follows the tag")
  fails("x\n{% local y = %}{{ 1 }}", nil, "t.html:2: unexpected symbol near the tag's end")
  fails(("{% if x then %}"):rep(300), nil, "t.html: its tags are nested too deeply: at most some 190 statements and parentheses " ..
    "in each other")
  fails("x\n{{ 1, 2 }}", nil, "t.html:2: ')' expected near ','")
  for _, text in ipairs{ "{{ x", "{{ '}}", "{{ '\n' }}", '{{ "\\', "{{ [[ }}", "{{ --[[ }}", "{{ -- }", "{{ { }}", "{{ } }}" } do
    fails("\n" .. text, nil, "t.html:2: '{{' has no '}}'")
  end
  fails("{{{ x }}", nil, "t.html:1: '{{{' has no '}}}'")
  fails("{% x", nil, "t.html:1: '{%' has no '%}'")
  fails("\n\n{# x", nil, "t.html:3: '{#' has no '#}'")
end

local function check_statements()
  is("{% for i, x in ipairs(list) do %}{{ i }}={{ x }};{% end %}", { list = { "a", "b" } }, "1=a;2=b;")
  is("<ul>\n  {% for _, x in ipairs(list) do %}\n  <li>{{ x }}</li>\n  {% end %}\n</ul>\n", { list = { 1, 2 } },
    "<ul>\n  <li>1</li>\n  <li>2</li>\n</ul>\n")
  is("{% if x then %} \r\nyes\r\n{% else %}\r\nno\r\n{% end %}", { x = 1 }, "yes\r\n")
  is("a {% x = 1 %}\n{% y = 2 %} b\n{% z = {[3]={}} %}\n{% %}{% %}\n{{ x + y }}", nil, "a \n b\n\n3")
  is("{# a comment\n of {{ two }} lines #}\na{# b #}c\n  {# d #}  ", nil, "ac\n")
  is("{% local n = 7 % 4 -- a rest %}\n{{ n }}{% n = '%}' -- x\n m = 2 %}{{ n }}{{ m }}", nil, "3%}2")
  is("a{{% if x then %}b{% end %}}", { x = true }, "a{b}")
  is("{% local function row(x) %}<{{ x }}>{% end %}{% row(1) row(2) %}", nil, "<1><2>")
  is("{% goto done %}a{% ::done:: %}b", nil, "b")
  is("{% do return end %}a", nil, "")

  local context = { x = 1 }
  local text = template.compile "{% x = x + 1 %}{{ x }}"
  equal(text(context), "2")
  equal(text(context), "2")
  equal(context.x, 1)

  fails("{% if x then %}\n\n", nil, "t.html:3: 'end' expected (to close 'if' at line 1) near <eof>")
  fails("a\n{# b\n#}\n{% error 'no' %}", nil, "t.html:4: no")
  fails("{# \n\n #}\n  {%\n\n x = 1 + nil %}", nil, "t.html:6: attempt to perform arithmetic on a nil value")
  fails("a\nb{{ x }}{{{\n y\n}}}", { x = 1 }, 't.html:2: {{ y }} is nil; if it may be missing, write {{ y or "" }}')
  fails("{%\n--[[ a\n ]] -- b\n  -- c %}\n{{ x }}", nil, 't.html:5: {{ x }} is nil; if it may be missing, write {{ x or "" }}')
  local _, why = pcall(template.compile "{% error{ status = 404 } %}")
  equal(why.status, 404)
end

local function check_names()
  is("{{ type(io) }}{{ type(require) }}{{ type(load) }}{{ type(_G) }}{{ type(setmetatable) }}{{ type(debug) }}", nil, ("nil"):rep(6))
  is("{{ math.max(1, 2) }}{{ string.upper 'a' }}{{ table.concat{'b', 'c'} }}{{ utf8.char(228) }}{{ #os.date('%Y') }}", nil, "2Abcä4")
  is("{{ type(os.execute) }}{{ type(os.time()) }}{{ tonumber '1' }}{{ select('#', 1) }}", nil, "nilnumber11")
  is("{{ _ENV['a-b'] }}", { ["a-b"] = 1 }, "1")
  is("{{ type }}{{ table }}", { type = "t", table = "u" }, "tu")
  is("{{ url '/a b' }}{{{ json{ a = \"</script>&'\" } }}}", nil, "%2Fa%20b" .. '{"a":"\\u003c\\/script\\u003e\\u0026\\u0027"}')
  is("{{{ escape '<' }}}{{ escape(1) }}", nil, "&lt;1")
  is("{{ x }}", setmetatable({}, { __index = function(_, name) return name .. "!" end }), "x!")
  fails("{% string.rep = nil %}", nil, "t.html:1: string cannot be changed by a template")
  fails("\n{{ json(0/0) }}", nil, "t.html:2: Cannot serialise number: must not be NaN or Inf")
  fails("\n{% os.time{} %}", nil, "t.html:2: field 'year' missing in date table")
  fails("\n{% error('x', 2) %}", nil, "t.html:2: x")
  fails("{% local function f()\n error 'x' end f() %}", nil, "t.html:2: x")
  fails("{% error('x', 0) %}", nil, "x")
  fails("\n{{ url(nil) }}", nil, "t.html:2: url: a nil has no text")
  fails("{% escape{} %}", nil, "t.html:1: escape: a table has no text")
  fails("{% include 'a' %}", nil, "t.html:1: include: a template of template.compile has no folder; use template.new")
  equal(template.escape "<&>", "&lt;&amp;&gt;")
  raises("escape: a nil has no text", template.escape)
  raises("template.compile: a text expected, got nil", template.compile)
  raises("template.compile: a template has at most 1 MiB", template.compile, ("a"):rep((1 << 20) + 1))
  raises("template.compile: a name expected, got number", template.compile, "", 1)
  raises("template: a table of variables expected, got string", template.compile "", "x")
end

local function check_files()
  local views = template.new{ root = root, globals = { site = "S", money = function(n) return ("%.2f"):format(n) end } }

  write("page.html", '{% layout "base.html" %}\n{% block "title" %}{{ title }}{% endblock %}\n' ..
    '{% last = "l" %}\n<p>{{ money(price) }}</p>\n{% include("parts/row.html", { n = 1 }) %}\n')
  write("base.html", '<title>{% block("title") %}none{% endblock %} {{ site }}</title>\n{{{ content }}}\n{{ last or "" }}\n' ..
    '{% block "foot" %}foot{% endblock %}\n')
  write("parts/row.html", "{{ n }}{{ title }}{{ last }}")
  equal(views:render("page.html", { title = "<T>", price = 2 }), "<title>&lt;T&gt; S</title>\n\n<p>2.00</p>\n1&lt;T&gt;l\nl\nfoot\n")
  equal(views:render("base.html", { content = "<c>" }), "<title>none S</title>\n<c>\n\nfoot\n")

  -- A layout of a layout; a block in a block.
  write("mid.html", '{% layout "base.html" %}{% block "title" %}mid {% block "part" %}p{% endblock %}{% endblock %}' ..
    '{% block "foot" %}mid foot{% endblock %}[{{{ content }}}]')
  write("leaf.html", '{% layout "mid.html" %}{% block "part" %}leaf{% endblock %}{% block "foot" %}leaf foot{% endblock %}x')
  equal(views:render "leaf.html", "<title>mid leaf S</title>\n[x]\n\nleaf foot\n")
  equal(views:render("mid.html", { content = "" }), "<title>mid p S</title>\n[]\n\nmid foot\n")

  -- A tree, which includes itself, and a loop.
  write("tree.html", "{{ node.name }}{% for _, child in ipairs(node) do %}({% include('tree.html', { node = child }) %}){% end %}")
  equal(views:render("tree.html", { node = { name = "a", { name = "b" }, { name = "c", { name = "d" } } } }), "a(b)(c(d))")
  write("loop.html", "\n{% include 'loop.html' %}")
  local name = root .. "/loop.html"
  raises(("%s:2: include: 50 templates include each other, the last ones %s, %s and %s"):format(name, name, name, name),
    views.render, views, "loop.html")

  -- Errors.
  local function bad(text, wanted)
    write("bad.html", text)
    raises((root .. "/bad.html:" .. wanted):gsub("ROOT", root), function() return template.new{ root = root }:render("bad.html", {}) end)
  end
  bad("\n{% include 'none.html' %}", "2: include: ROOT/none.html: No such file or directory")
  bad("{% include '../x' %}", "1: include: ROOT/../x: a name of a template has no empty part, . or ..")
  bad("{% include(nil) %}", "1: include: the name of a template expected, got nil")
  bad("{% include('base.html', 1) %}", "1: include: a table of values expected, got number")
  bad("{% block 'x' %}{% endblock %}{% layout 'base.html' %}", "1: layout: it comes once, before the blocks")
  bad("{% layout 'base.html' %}\n{% layout 'base.html' %}", "2: layout: it comes once, before the blocks")
  bad("\n{% block x %}", '2: block "name" expected, where the name has letters, digits, _ and -')
  bad("\n{% endblock %}", "2: endblock ends no block")
  bad("\n{% block 'x' %}\n", "2: block has no endblock")
  bad("{% include 'worse.html' %}", "1: include: ROOT/worse.html: No such file or directory")
  write("worse.html", "\n{% end %}")
  raises(root .. "/worse.html:2: <eof> expected near 'end'", views.render, views, "worse.html")
  local text, why, code = views:render "none.html"
  equal(text, nil)
  equal(why, root .. "/none.html: No such file or directory")
  equal(code, 2)
  for _, wrong in ipairs{ "../page.html", "/etc/passwd", "", ".", "parts/../page.html", "parts//row.html", "./page.html", "parts/" } do
    equal(select(3, views:render(wrong)), 22)
  end
  equal(select(3, views:render "page.html\0"), 22)
  equal(select(3, views:render "parts"), 21)
  write("big.html", ("x"):rep((1 << 20) + 1))
  equal(select(3, views:render "big.html"), 27)
  raises("views:render: the name of a template expected, got nil", views.render, views)
  raises("views:render: a table of variables expected, got number", views.render, views, "page.html", 1)

  -- A block that fails leaves the rest as it was.
  local patient = template.new{ root = root, globals = { pcall = pcall } }
  write("calm.html", "{% layout 'plain.html' %}a{% pcall(function() %}b{% block 'x' %}c{% error() %}{% endblock %}{% end) %}d")
  write("plain.html", "{{{ content }}}")
  equal(patient:render "calm.html", "abd")

  for _, case in ipairs{
    { "a table of options expected, got nil" }, { ": root: the folder of the templates expected", {} },
    { ": root: a string expected, got number", { root = 1 } }, { " has no option 'cache'", { root = root, cache = 1 } },
    { ": root: /no/such: No such file or directory", { root = "/no/such" } },
    { (": root: %s/page.html: it is no folder"):format(root), { root = root .. "/page.html" } } } do
    raises("template.new" .. case[1]:gsub("^a ", ": a "), template.new, case[2])
  end
end

local function check_changes()
  local kept, fresh = template.new{ root = root }, template.new{ root = root, reload = true }

  write("new.html", "one")
  equal(kept:render "new.html" .. fresh:render "new.html" .. fresh:render "new.html", "oneoneone")
  write("new.html", "two")
  equal(kept:render "new.html" .. fresh:render "new.html", "onetwo")
  os.remove(root .. "/new.html")
  equal(kept:render "new.html", "one")
  equal(select(3, fresh:render "new.html"), 2)
end

local server_views = template.new{ root = root }
local server = http.serve{ ip = "127.0.0.1", port = 0, handler = function(req, res)
  if req.path == "/text" then res.headers["Content-Type"] = "text/plain" end
  if req.path == "/none" then return server_views:send(res, "none.html") end
  return server_views:send(res, "slow.html", { sleep = function() task.sleep(0.001) return "slept" end }, req.path == "/new" and 201 or nil)
end }

local function check_replies()
  write("slow.html", "<p>{{ sleep() }}")
  local function ask(path) return assert(client.get("http://127.0.0.1:" .. server.port .. path)) end
  local response = ask "/"

  equal(response.status, 200)
  equal(response.headers["Content-Type"], "text/html; charset=utf-8")
  equal(response.body, "<p>slept")
  equal(ask "/text".headers["Content-Type"], "text/plain")
  equal(ask "/new".status, 201)
  equal(ask "/none".status, 500)

  -- Two that wait at the same time do not mix.
  write("wait.html", "{{ x }}{% for _ = 1, 3 do %}{{ wait() }}{{ x }}{% end %}")
  local function wait() task.sleep(0) return "," end
  local function start(x) return task.start(function() return (server_views:render("wait.html", { x = x, wait = wait })) end) end
  local one, two = start "a", start "b"
  equal(one:join() .. two:join(), "a,a,a,ab,b,b,b")
  server:stop()
end

task.start(function()
  local is_good, why = xpcall(function()
    task.sleep(0)
    check_expressions()
    check_statements()
    check_names()
    check_files()
    check_changes()
    check_replies()
  end, debug.traceback)

  os.execute("rm -r " .. root)
  done = is_good or why
end)
