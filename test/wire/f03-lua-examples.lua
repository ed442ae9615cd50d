-- SPDX-License-Identifier: MIT
-- The examples in Lua do what their first comment says. The same checks run for their counterparts in Node, with which
-- the benchmarks compare them.

local httpd = require "httpd"
local directory = os.tmpname() -- for the examples that read or write files

-- Connect as soon as the example listens.
local function connect(port)
    local sock
    httpd.wait_until(function()
        local good, result = pcall(wire.connect, "127.0.0.1", port)
        sock = good and result
        return good
    end, "somebody listens on port " .. port)
    return sock
end

-- The reply to one request: "POST /users" "{}"
local function ask(port, line, body)
    local sock <close> = connect(port)
    sock:send(line .. " HTTP/1.1\r\nHost: a\r\n"
              .. (body and "Content-Length: " .. #body .. "\r\n" or "") .. "\r\n" .. (body or ""))
    return sock:read_reply(line:match("^%S+"))
end

local function expect(reply, status, content_type, body)
    equal(reply.status, status, reply.raw)
    equal(reply.headers["content-type"], content_type)
    equal(reply.body, body or reply.body)
    return reply
end

local TEXT = "text/plain; charset=utf-8"

-- The members of a JSON object, sorted, because their order is not defined.
local function members(json)
    local list = {}
    for member in json:match("^{(.*)}$"):gmatch('"%w+":[^,]+') do
        list[#list + 1] = member
    end
    table.sort(list)
    return table.concat(list, ",")
end

-- ---- The checks of each example ----

local function hello(port)
    expect(ask(port, "GET /"), 200, TEXT, "Hello, World!\n")
    expect(ask(port, "GET /any/where?a=b"), 200, TEXT, "Hello, World!\n")
end

local function router(port)
    local reply = expect(ask(port, "GET /users/1"), 404, "application/json")
    check(members(reply.body):find('^"error":"no such user","id":"%x+"$'), reply.body)
    reply = expect(ask(port, "POST /users", '{"name":"Ann"}'), 201, "application/json")
    equal(members(reply.body), '"id":1,"name":"Ann"')
    equal(reply.headers.location, "/users/1")
    equal(#reply.headers["x-request-id"], 16)
    reply = expect(ask(port, "GET /users/1"), 200, "application/json")
    equal(members(reply.body), '"id":1,"name":"Ann"')
    expect(ask(port, "POST /users", "rubbish"), 400, "application/json")
    equal(ask(port, "GET /nowhere").status, 404)
    equal(ask(port, "POST /users/1", "{}").status, 405)
end

-- How many seconds 20 requests at the same time take.
local function seconds_of_20(port)
    local socks, start = {}, wire.time()
    for i = 1, 20 do
        socks[i] = connect(port)
        socks[i]:send("GET /random?number=50 HTTP/1.1\r\nHost: a\r\n\r\n")
    end
    for _, sock in ipairs(socks) do
        local reply = expect(sock:read_reply(), 200, TEXT)
        check(reply.body:find("^%d+$") and tonumber(reply.body) <= 50, reply.body)
        sock:close()
    end
    return wire.time() - start
end

-- Many requests at the same time take as long as one, because the example calls its slow source concurrently. A busy
-- machine may be slow, but not each time.
local function random(port)
    expect(ask(port, "GET /"), 200, TEXT, "0") -- the time that the program takes to start does not count
    local seconds
    for _ = 1, 10 do
        seconds = seconds_of_20(port)
        if seconds < 19 then break end
    end
    check(seconds > 0.99 and seconds < 19, seconds .. " seconds")
end

local function static(port)
    local reply = expect(ask(port, "GET /a.txt"), 200, TEXT, "one\ntwo\n")
    equal(reply.headers["cache-control"], "max-age=60")
    check(reply.headers["last-modified"] and reply.headers.etag, reply.raw)
    equal(expect(ask(port, "HEAD /a.txt"), 200, TEXT, "").headers["content-length"], "8")
    equal(ask(port, "GET /b.txt").status, 404)
    equal(ask(port, "GET /a.txt/b").status, 404)
    check(ask(port, "GET /../../../../../../etc/passwd").status >= 400)
    local sock <close> = connect(port)
    sock:send("GET /a.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: " .. reply.headers.etag
              .. "\r\n\r\n")
    equal(sock:read_reply().status, 304)
end

local function sse(port)
    local sock <close> = connect(port)
    sock:send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    local head = sock:recv_until("\r\n\r\n")
    check(head:find("^HTTP/1.1 200 OK\r\n"), head)
    check(head:find("\r\nContent-Type: text/event-stream\r\n", 1, true), head)
    check(head:find("\r\nCache-Control: no-cache\r\n", 1, true), head)
    for _ = 1, 2 do
        local event = sock:recv_until("event: tick\ndata: ") .. sock:recv_until("\n\n")
        check(event:find("data: [012]%d:[0-5]%d:[0-6]%d\n\n$"), event)
    end
end

local function echo(port)
    local long = ("0123456789"):rep(100000)
    local sock <close> = connect(port)
    sock:send("one")
    equal(sock:recv(3), "one")
    sock:pump(long)
    equal(sock:recv(#long), long)
    sock:send("the end")
    sock:shutdown()
    equal(sock:recv_all(), "the end")
end

local function chat(port)
    local ann <close> = connect(port)
    equal(ann:recv_until("? "), "your name? ")
    ann:send("Ann\n")
    local bob = connect(port)
    bob:recv_until("? ")
    bob:send("Bob\r\n")
    equal(ann:recv_until("\n"), "Bob has come\n")
    ann:send("hello\nthere")
    equal(bob:recv_until("\n"), "Ann: hello\n")
    ann:send("!\n")
    equal(bob:recv_until("\n"), "Ann: there!\n")
    bob:send("bye\n")
    equal(ann:recv_until("\n"), "Bob: bye\n")
    bob:reset()
    equal(ann:recv_until("\n"), "Bob has gone\n")
    local eve <close> = connect(port)
    eve:send("Eve\n")
    equal(ann:recv_until("\n"), "Eve has come\n")
    eve:close()
    equal(ann:recv_until("\n"), "Eve has gone\n")
end

local function read_sort(port)
    equal(ask(port, "GET /fruit").status, 404)
    equal(ask(port, "POST /fruit", "pear,apple,").status, 204)
    equal(ask(port, "POST /fruit", "fig").status, 204)
    expect(ask(port, "GET /fruit"), 200, TEXT, "apple,fig,pear")
    local status = ask(port, "GET /..%2ffruit").status
    check(status == 400 or status == 404, status) -- sxe-httpd gives 404, because no file name has a slash
    assert(os.remove(directory .. "/fruit"))
end

local function counter(port)
    expect(ask(port, "GET /a"), 200, TEXT, "/a: 1\n")
    expect(ask(port, "GET /a?b"), 200, TEXT, "/a: 2\n")
    for i = 1, 1000 do
        expect(ask(port, "GET /" .. i), 200, TEXT, "/" .. i .. ": 1\n")
    end
    expect(ask(port, "GET /2"), 200, TEXT, "/2: 2\n")
    expect(ask(port, "GET /a"), 200, TEXT, "/a: 1\n")
end

local function rate_limit(port)
    local began, good, why
    repeat -- all ten within the period, which is 10 seconds long
        if good == false then wire.sleep(11) end
        began = wire.time()
        good, why = pcall(function()
            for left = 9, 0, -1 do
                expect(ask(port, "GET /"), 200, TEXT, left .. " left\n")
            end
        end)
    until good or wire.time() - began < 10
    check(good, why)
    local seconds = tonumber(expect(ask(port, "GET /"), 429, TEXT).headers["retry-after"])
    check(seconds >= 1 and seconds <= 10, seconds)
    local reply
    httpd.wait_until(function()
        reply = ask(port, "GET /")
        return reply.status == 200
    end, "the period is over")
    equal(reply.body, "9 left\n")
end

local function upload(port)
    local body = ("0123456789"):rep(100000)
    equal(ask(port, "GET /film/progress").status, 404)
    local sock <close> = connect(port)
    sock:send("PUT /film HTTP/1.1\r\nHost: a\r\nContent-Length: " .. #body .. "\r\n\r\n")
    sock:send(body:sub(1, 500000))
    httpd.wait_until(function()
        local reply = ask(port, "GET /film/progress")
        return reply.status == 200 and members(reply.body) == '"got":500000,"size":1000000'
    end, "half of it came")
    sock:send(body:sub(500001))
    equal(sock:read_reply().status, 201)
    equal(ask(port, "GET /film/progress").status, 404)
    local file <close> = assert(io.open(directory .. "/film"))
    equal(file:read("a"), body)
end

-- proxy copies bytes to a server, here `listener`, which replies when its input has ended.
local function proxy(port, listener, pid)
    local sock <close> = connect(port)
    local start = wire.time()
    sock:send("ask")
    local server <close> = listener:accept(20)
    equal(server:recv(3), "ask")
    server:send("answer")
    equal(sock:recv(6), "answer")
    check(wire.time() - start > 0.19, "too early")
    local open = wire.fds(pid)
    sock:shutdown()
    equal(server:recv_all(), "")
    server:send("the end")
    server:shutdown()
    equal(sock:recv_all(), "the end")
    httpd.wait_until(function() return wire.fds(pid) <= open - 2 end, "both connections are closed")
end

local function links(port)
    local link = expect(ask(port, "GET /new?path=/a.pdf"), 200, TEXT).body:match("^(/open/.*)\n$")
    expect(ask(port, "GET " .. link), 200, TEXT, "You may have /a.pdf\n")
    equal(ask(port, "GET /new").status, 400)
    equal(ask(port, "GET /open/x").status, 403)
    equal(ask(port, "GET " .. link:sub(1, -2)).status, 403)
    equal(ask(port, "GET " .. link:gsub("/open/.", "/open/x")).status, 403)
end

local function pages(port)
    local HTML = "text/html; charset=utf-8"
    local sock <close> = connect(port)

    check(expect(ask(port, "GET /"), 200, HTML).body:find("<li>buy &lt;milk&gt;\n", 1, true), "the first note")
    sock:send("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n"
              .. "Content-Length: 8\r\n\r\ntext=a+b")
    equal(sock:read_reply().status, 303)
    check(expect(ask(port, "GET /"), 200, HTML).body:find("<li>a b\n", 1, true), "the second note")
end

local function notes(port)
    equal(ask(port, "PUT /notes/a", "one").status, 204)
    for i = 1, 12 do equal(ask(port, ("PUT /notes/n%02d"):format(i), "x").status, 204) end
    expect(ask(port, "GET /notes/a"), 200, TEXT, "one")
    expect(ask(port, "GET /notes?after=n08"), 200, TEXT, "n09\nn10\nn11\nn12\n")
    check(ask(port, "GET /notes").body:find("^a\nn01\n.*n09\n$"), "ten names")
    equal(ask(port, "DELETE /notes/a").status, 204)
    equal(ask(port, "DELETE /notes/a").status, 404)
    equal(ask(port, "GET /notes/a").status, 404)
end

local function worker(port)
    local slow <close> = connect(port)
    slow:send("GET /fib?n=25 HTTP/1.1\r\nHost: a\r\n\r\n")
    expect(ask(port, "GET /"), 200, TEXT, "not blocked\n")
    equal(members(slow:read_reply().body), '"fib":75025,"n":25')
    expect(ask(port, "GET /fibs"), 200, TEXT, "5 55 610 6765\n")
    equal(ask(port, "GET /fib?n=x").status, 400)
    equal(ask(port, "GET /fib?n=41").status, 400)
end

local function realm(port)
    local rule = "calls = 0 function rule(n) calls = calls + 1 return n * 2, calls end"
    check(expect(ask(port, "POST /rules/twice", rule), 200, TEXT).body:find "^%d+ bytes\n$")
    equal(ask(port, "POST /rules/twice", rule).status, 200)
    equal(members(ask(port, "GET /rules/twice?n=21").body), '"calls":1,"value":42')
    equal(ask(port, "GET /rules/twice?n=x").status, 422)
    equal(ask(port, "GET /rules/none").status, 404)
    equal(ask(port, "POST /rules/bad", "function").status, 422)
    equal(ask(port, "POST /rules/slow", "while true do end").status, 503)
end

-- Like ask, with one more field of the head.
local function ask_with(port, line, field, body)
    return ask(port, line .. " HTTP/1.1\r\n" .. field .. "\r\nX: ", body)
end

local function regex(port)
    local log = '1.2.3.4 - - [1/Dec/2026] "GET /a?b=c HTTP/1.1" 200 5\n' ..
                '1.2.3.4 - ann [1/Dec/2026] "GET /a HTTP/1.1" 200 5\nnonsense\n::1 - - [] "POST /b HTTP/1.1" 404 9\n'
    local reply = expect(ask(port, "PUT /counts", log), 200, "application/json")
    check(reply.body:find('"GET \\/a 200":2', 1, true) and reply.body:find('"POST \\/b 404":1', 1, true), reply.body)
    reply = ask(port, "GET /find?pattern=(%5Cw%2B)@(%5Cw%2B)&text=to+ann@home")
    check(reply.body:find('"text":"ann@home"', 1, true) and reply.body:find('["ann","home"]', 1, true), reply.body)
    equal(ask(port, "GET /find?pattern=x&text=y").body, '{"found":false}')
    equal(ask(port, "GET /find?pattern=(").status, 422)
    equal(ask(port, "GET /find?pattern=(a%2B)%2B%24&text=" .. ("a"):rep(60) .. "b").status, 422)
end

local function zlib(port)
    local text = ("a text that is long "):rep(5000)
    expect(ask(port, "PUT /texts/a", text), 201, "application/json")
    equal(ask(port, "GET /texts/a").body, text)
    local reply = ask_with(port, "GET /texts/a", "Accept-Encoding: br, gzip")
    equal(reply.headers["content-encoding"], "gzip")
    check(#reply.body < 1000)
    equal(ask_with(port, "PUT /texts/b", "Content-Encoding: gzip", reply.body).status, 201)
    equal(ask(port, "GET /texts/b").body, text)
    equal(ask_with(port, "PUT /texts/b", "Content-Encoding: gzip", "no gzip").status, 422)
    equal(ask(port, "PUT /texts/b", ("x"):rep((4 << 20) + 1)).status, 413)
    equal(ask(port, "GET /texts/c").status, 404)
end

local listener = wire.listen("127.0.0.1", 0)
os.remove(directory)
assert(os.execute("mkdir " .. directory .. " && printf 'one\\ntwo\\n' >" .. directory .. "/a.txt"))

-- Name, how it is run (sxe-httpd or sxe-lua), arguments after the port, check function, the check's last argument; true: it
-- has no counterpart in Node.
local examples = {
    {"hello", "httpd", {}, hello},
    {"router", "lua", {}, router},
    {"random", "httpd", {}, random},
    {"static", "lua", {directory}, static},
    {"sse", "httpd", {}, sse},
    {"echo", "lua", {}, echo},
    {"chat", "lua", {}, chat},
    {"read-sort", "lua", {directory}, read_sort},
    {"counter", "httpd", {}, counter},
    {"rate-limit", "httpd", {}, rate_limit},
    {"links", "httpd", {}, links, nil, true},
    {"upload", "lua", {directory}, upload},
    {"worker", "lua", {}, worker, nil, true},
    {"realm", "lua", {}, realm, nil, true},
    {"zlib", "httpd", {}, zlib, nil, true},
    {"pages", "httpd", {}, pages, nil, true},
    {"proxy", "lua", {"127.0.0.1", tostring(listener:port()), "0.1"}, proxy, listener},
}

if wire.spawn{wire.program "sxe-lua", "-e", "require 'sxe.store'"}:wait(120) == 0 then
    examples[#examples + 1] = {"notes", "lua", {directory .. "/notes"}, notes, nil, true}
end

if wire.spawn{wire.program "sxe-lua", "-e", "require 'sxe.regex'"}:wait(120) == 0 then
    examples[#examples + 1] = {"regex", "httpd", {}, regex, nil, true}
end

-- In the coverage flavour, scripts write the lines that ran to the folder that tools/coverage.sh reads.
local build = os.getenv("SXE_BUILD") or "build/release"
local counts = build:find("coverage", 1, true) and os.execute("mkdir -p " .. build .. "/lua")

local function command_of(how, name, port)
    local script, counted = "examples/lua/" .. name .. ".lua", build .. "/lua/" .. name .. ".info"
    if how == "node" then
        return {wire.has("node"), "bench/peers/node/" .. name .. ".js", port}
    elseif how == "httpd" then
        return {wire.program("sxe-httpd"), "-p", port, "--lua", script,
                counts and "--lua-coverage=" .. counted or nil}
    end
    local command = {wire.program("sxe-lua"), script, port}
    if counts then table.insert(command, 2, "--coverage=" .. counted) end
    return command
end

-- The exit status after SIGTERM: sxe-httpd stops gracefully.
local ENDS = {httpd = 0, lua = 128 + 15, node = "signal TERM"}

local function run(how, name, arguments, examine, argument)
    local port = wire.free_port()
    local command = command_of(how, name, tostring(port))
    table.move(arguments, 1, #arguments, #command + 1, command)
    local server <close> = wire.spawn(command)
    local good, message = pcall(examine, port, argument, server:pid())
    check(good, good or message .. "\n" .. server:errors())
    server:signal("TERM")
    equal(server:wait(20), ENDS[how], server:errors())
    check(not server:errors():find("Sanitizer"), server:errors())
end

for _, example in ipairs(examples) do
    local name, how, arguments, examine, argument, is_alone = table.unpack(example, 1, 6)
    test("the example " .. name, function() run(how, name, arguments, examine, argument) end)
    if wire.has("node") and not is_alone then
        test("its counterpart in Node, " .. name, function()
            run("node", name, arguments, examine, argument)
        end)
    end
end
if not wire.has("node") then
    print("skipped: the twins of the examples in Lua, because node is not installed")
end

os.execute("rm -r " .. directory)
