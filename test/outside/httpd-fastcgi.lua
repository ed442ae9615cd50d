-- SPDX-License-Identifier: MIT
--
-- sxe-httpd answers FastCGI: what docs/fastcgi.md promises, with raw records, and as a backend of nginx and lighttpd.

local fastcgi = require "fastcgi"
local httpd = require "httpd"

local function run(command)
    local pipe <close> = io.popen(command .. " 2>&1")
    return (pipe:read("a"):gsub("%s+$", ""))
end

local function write(path, text)
    local file <close> = assert(io.open(path, "w"))
    file:write(text)
    return path
end

local directory = run("mktemp -d")
run("chmod 755 " .. directory)
write(directory .. "/a.txt", "hello")
local app = write(directory .. "/app.lua", [[
local task = require "sxe.task"
return function(req, res)
    if req.path == "/parts" then
        for i = 1, 3 do res:write("part " .. i .. "\n") end
        return
    elseif req.path == "/never" then
        task.sleep(1000)
    end
    return ("%s %s %s %s %s %d"):format(req.method, req.target, req.scheme, req.peer, req.host, #req:body())
end]])

local function is_missing(program)
    local path = wire.has(program)
    if not path then
        print(("skipped: FastCGI to %s, because it is not installed"):format(program))
    end
    return not path
end

-- ---- Raw records ----

-- promise: docs/fastcgi.md: The same handlers answer: files, a script, routes and sites.
test("files are answered", function()
    local server <close> = fastcgi.start("-r", directory)
    local link <close> = server:dial()
    link:send(fastcgi.get(1, "/a.txt"))
    local answer = link:answer()
    equal(answer.status, 200)
    equal(answer.body, "hello")
    link:send(fastcgi.get(1, "/none"))
    equal(link:answer().status, 404)
    link:send(fastcgi.get(2, "/a.txt", {HTTP_RANGE = "bytes=1-2"}))
    equal(link:answer().body, "el")
end)

-- promise: docs/fastcgi.md: A reply begins with the line `Status: 200 OK`; its fields and its body follow.
test("a script sees the web server's client", function()
    local server <close> = fastcgi.start("--lua", app)
    local link <close> = server:dial()
    link:send(fastcgi.get(1, "/x?y=z", {HTTPS = "on"}))
    local answer = link:answer()
    equal(answer.text:match("^[^\r]*"), "Status: 200 OK")
    equal(answer.body, "GET /x?y=z https 192.0.2.7 a 0")
    check(not answer.head:find("Connection:", 1, true), answer.head)
    link:send(fastcgi.post(7, "/", ("x"):rep(60000)))
    equal(link:answer().body, "POST / http 192.0.2.7 a 60000")
    link:send(fastcgi.get(2, "/parts"))
    equal(link:answer().body, "part 1\npart 2\npart 3\n")
end)

-- promise: docs/fastcgi.md: A connection carries any number of requests at a time; `FCGI_MPXS_CONNS` is 1.
test("a hundred requests share a connection", function()
    local server <close> = fastcgi.start("--lua", app)
    local link <close> = server:dial()
    link:send(fastcgi.record(fastcgi.GET_VALUES, 0, fastcgi.pair("FCGI_MPXS_CONNS", "")))
    equal(link:answer().content, fastcgi.pair("FCGI_MPXS_CONNS", "1"))
    link:send(fastcgi.begin(200, {REQUEST_URI = "/never"}) .. fastcgi.record(fastcgi.STDIN, 200, ""))
    local all, seen = {}, 0
    for id = 1, 100 do
        all[#all + 1] = fastcgi.get(id, "/" .. id)
    end
    link:send(table.concat(all))
    for _ = 1, 100 do
        local answer = link:answer()
        equal(answer.body, ("GET /%d http 192.0.2.7 a 0"):format(answer.id))
        seen = seen + answer.id
    end
    equal(seen, 5050)
    link:send(fastcgi.record(fastcgi.ABORT, 200, ""))
    equal(link:answer().id, 200)
end)

-- promise: docs/fastcgi.md: ABORT_REQUEST, and the end of the connection, end requests as a client that leaves does.
test("the access log has what FastCGI asked", function()
    local log = directory .. "/log"
    local server <close> = fastcgi.start("--lua", app, "--access-log", log, "--access-log-format",
                                          "$remote_addr $request_method $request_uri $status")
    do
        local link <close> = server:dial()
        link:send(fastcgi.get(1, "/a") .. fastcgi.get(2, "/never"))
        equal(link:answer().status, 200)
        link:send(fastcgi.record(fastcgi.ABORT, 2, ""))
        equal(link:answer().application, 1)
        link:send(fastcgi.get(3, "/b", {HTTP_X = "a\r\nb"}))
        equal(link:answer().status, 400)
    end
    server:stop()
    server.stop = function() end
    local file <close> = assert(io.open(log))
    equal(file:read("a"), "192.0.2.7 GET /a 200\n192.0.2.7 GET /never 499\n192.0.2.7 GET /b 400\n")
end)

-- promise: docs/fastcgi.md: A request whose parameters are wrong is answered 400, and logged:
test("wrong parameters are answered 400, and the connection goes on", function()
    local server <close> = fastcgi.start("--lua", app)
    local link <close> = server:dial()
    local wrong = {
        {HTTP_X = "a\r\nb"}, {HTTP_X = "a\nb"}, {HTTP_X = "a\0b"}, {["HTTP_X-Y"] = "a"}, {HTTP_HOST = "a b"},
        {REQUEST_METHOD = ""}, {REQUEST_METHOD = "GE T"}, {REQUEST_METHOD = "GET\r\n"},
        {REQUEST_URI = ""}, {REQUEST_URI = "/a b"}, {REQUEST_URI = "/a\r\nX: b"}, {REQUEST_URI = "a"},
        {SERVER_PROTOCOL = "GET"}, {REMOTE_ADDR = "localhost"}, {REMOTE_PORT = "65536"},
        {CONTENT_LENGTH = "x"}, {CONTENT_LENGTH = "-1"}, {CONTENT_LENGTH = "9999999999999999999"},
        {CONTENT_LENGTH = "1", HTTP_CONTENT_LENGTH = "2"}, {HTTP_CONTENT_LENGTH = "2"},
        {CONTENT_TYPE = "a/b", HTTP_CONTENT_TYPE = "a/c"}, {CONTENT_TYPE = "a\r\nb"},
    }
    for id, params in ipairs(wrong) do
        link:send(fastcgi.begin(id, params) .. fastcgi.record(fastcgi.STDIN, id, ""))
        local answer = link:answer()
        equal(answer.status, 400, ("number %d: %s"):format(id, answer.text))
    end
    local twice = fastcgi.pair("REQUEST_METHOD", "GET") .. fastcgi.pair("REQUEST_METHOD", "GET")
        .. fastcgi.pair("REQUEST_URI", "/")
    local cut = fastcgi.pair("REQUEST_METHOD", "GET") .. fastcgi.pair("REQUEST_URI", "/") .. "\6\127HTTP_X"
    local huge = fastcgi.pair("REQUEST_METHOD", "GET") .. fastcgi.pair("REQUEST_URI", "/") .. "\xff\xff\xff\xff\1HTTP_X"
    for _, params in ipairs{twice, cut, huge} do
        link:send(fastcgi.record(fastcgi.BEGIN, 1, "\0\1\1\0\0\0\0\0") .. fastcgi.record(fastcgi.PARAMS, 1, params)
                  .. fastcgi.record(fastcgi.PARAMS, 1, "") .. fastcgi.record(fastcgi.STDIN, 1, ""))
        equal(link:answer().status, 400)
    end
    link:send(fastcgi.record(fastcgi.BEGIN, 1, "\0\1\1\0\0\0\0\0")
              .. fastcgi.record(fastcgi.PARAMS, 1, ("x"):rep(60000)) .. fastcgi.record(fastcgi.PARAMS, 1, "")
              .. fastcgi.record(fastcgi.STDIN, 1, ""))
    equal(link:answer().status, 431)
    link:send(fastcgi.get(1, "/"))
    equal(link:answer().status, 200)
end)

-- promise: docs/fastcgi.md: A record that is wrong ends the connection, because where the next record begins cannot be
-- trusted:
test("wrong records end the connection", function()
    local server <close> = fastcgi.start("--lua", app)
    local begun = fastcgi.begin(1)
    local wrong = {
        "GET / HTTP/1.1\r\n\r\n", "\2\1\0\1\0\8\0\0\0\1\1\0\0\0\0\0",
        fastcgi.record(fastcgi.BEGIN, 1, "\0\1\1\0\0\0\0"),
        fastcgi.record(fastcgi.BEGIN, 0, "\0\1\1\0\0\0\0\0"), fastcgi.record(fastcgi.STDOUT, 1, "x"),
        fastcgi.record(fastcgi.GET_VALUES, 0, "\5"), fastcgi.record(fastcgi.GET_VALUES, 0, ("x"):rep(1025)),
        fastcgi.record(12, 1, ""), fastcgi.record(fastcgi.ABORT, 1, "x"),
        begun .. fastcgi.record(fastcgi.BEGIN, 1, "\0\1\1\0\0\0\0\0"),
        begun .. fastcgi.record(fastcgi.PARAMS, 1, "x"),
        fastcgi.record(fastcgi.BEGIN, 1, "\0\1\1\0\0\0\0\0") .. fastcgi.record(fastcgi.STDIN, 1, "x"),
    }
    for number, bytes in ipairs(wrong) do
        local link <close> = server:dial()
        link:send(bytes)
        equal(link:answer(), nil, "number " .. number)
    end
    local link <close> = server:dial()
    link:send(fastcgi.get(1, "/"))
    equal(link:answer().status, 200)
end)

-- promise: docs/fastcgi.md: a body that is shorter or longer than `CONTENT_LENGTH`
test("a body of another length than CONTENT_LENGTH is answered 400", function()
    local server <close> = fastcgi.start("--lua", app)
    local link <close> = server:dial()
    for _, body in ipairs{"hell", "hello!", ""} do
        link:send(fastcgi.begin(1, {REQUEST_METHOD = "POST", CONTENT_LENGTH = "5"})
                  .. (body == "" and "" or fastcgi.record(fastcgi.STDIN, 1, body))
                  .. fastcgi.record(fastcgi.STDIN, 1, ""))
        equal(link:answer().status, 400)
    end
    link:send(fastcgi.post(1, "/", "hello"))
    equal(link:answer().status, 200)
end)

-- ---- Listeners ----

-- promise: docs/fastcgi.md: If no other place is given, the server does not listen for HTTP.
test("--fastcgi alone, at a unix socket, with workers", function()
    local path = directory .. "/socket"
    local proc <close> = wire.spawn{wire.program("sxe-httpd"), "-r", directory, "-w", "2", "--fastcgi", path,
                                    "--socket-mode", "600"}
    equal(proc:line(60), "answering FastCGI on unix:" .. path, proc:errors())
    equal(run("stat -c %a " .. path), "600")
    for _ = 1, 20 do
        local link <close> = fastcgi.connect(path, 0)
        link:send(fastcgi.get(1, "/a.txt"))
        equal(link:answer().body, "hello")
    end
    proc:signal("TERM")
    equal(proc:wait(60), 0, proc:errors())
end)

-- promise: docs/fastcgi.md: The key of a [configuration file](configuration.md) is `fastcgi`, the environment variable
-- `SXE_FASTCGI`.
test("the place may come from a file or the environment", function()
    local file = write(directory .. "/httpd.conf", 'return { fastcgi = "127.0.0.1:9001" }')
    local program = wire.program("sxe-httpd")
    check(run(("%s --config %s --print-config"):format(program, file)):find("127.0.0.1:9001", 1, true))
    check(run(("SXE_FASTCGI=9002 %s --print-config"):format(program)):find("9002", 1, true))
end)

test("places that cannot be opened are explained", function()
    local program = wire.program("sxe-httpd")
    local taken <close> = wire.listen("127.0.0.1", 0)
    for _, place in ipairs{"127.0.0.1:" .. taken:port(), "/no/such/directory/socket"} do
        local said = run(("%s --fastcgi %s"):format(program, place))
        check(said:find("choose another address, port or path with --fastcgi", 1, true), said)
    end
    for _, place in ipairs{"x", "70000", "/" .. ("x"):rep(200)} do
        local said = run(("%s --fastcgi %s"):format(program, place))
        check(said:find("the address of FastCGI (--fastcgi) is", 1, true), said)
    end
    for _, place in ipairs{"8000 -p 8000", "/tmp/s --unix /tmp/s"} do
        local said = run(("%s --fastcgi %s"):format(program, place))
        check(said:find("are the same place", 1, true), said)
    end
    local proc <close> = wire.spawn{program, "--fastcgi", "[::1]:0"}
    local line = proc:line(60)
    check((line or ""):find("FastCGI on [::1]:", 1, true) or proc:errors():find("with --fastcgi", 1, true), line)
end)

-- ---- As a backend of web servers ----

local function adapt(name, changes)
    local from <close> = assert(io.open("examples/deploy/" .. name))
    local text = from:read("a")
    for pattern, replacement in pairs(changes) do
        local count
        text, count = text:gsub(pattern, replacement)
        equal(count, 1, pattern .. " in " .. name)
    end
    return write(directory .. "/" .. name, text)
end

local function ask(port, path)
    local sock <close> = wire.connect("127.0.0.1", port)
    sock:send("GET " .. (path or "/") .. " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    return sock:read_reply()
end

local function start_at(path)
    local proc = wire.spawn{wire.program("sxe-httpd"), "--lua", app, "--fastcgi", path}
    equal(proc:line(60), "answering FastCGI on unix:" .. path, proc:errors())
    return proc
end

-- promise: docs/fastcgi.md: You can restart the servers one after the other: no GET fails.
test("nginx-fastcgi.conf: three servers, each restarted, and each request is answered", function()
    if is_missing "nginx" then return end
    local front <close> = wire.listen("127.0.0.1", 0)
    local changes = {["listen 8080;"] = ("listen 127.0.0.1:%d;"):format(front:port()),
                     ["pid nginx%.pid;"] = ("pid %s/nginx.pid;"):format(directory)}
    local servers, paths = {}, {}
    for i = 1, 3 do
        paths[i] = ("%s/%d.sock"):format(directory, i)
        changes[("unix:/run/sxe/%d%%.sock max"):format(i)] = ("unix:%s max"):format(paths[i])
        servers[i] = start_at(paths[i])
        run("chmod 777 " .. paths[i])
    end
    local proxy <close> = wire.spawn{wire.has "nginx", "-c", adapt("nginx-fastcgi.conf", changes), "-g", "daemon off;",
                                     pass = {front}, env = {NGINX = "3;"}}
    local function check_answers(number)
        for i = 1, number do
            local reply = ask(front:port(), "/x?" .. i)
            equal(reply.status, 200, ("request %d: %s"):format(i, proxy:errors()))
            equal(reply.body, ("GET /x?%d http 127.0.0.1 a 0"):format(i))
        end
    end
    check_answers(30)
    local sock <close> = wire.connect("127.0.0.1", front:port())
    sock:send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" .. ("x"):rep(100000))
    equal(sock:read_reply().body, "POST / http 127.0.0.1 a 100000")
    sock:send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    equal(sock:read_reply().body, "POST / http 127.0.0.1 a 5")
    for i = 1, 3 do
        servers[i]:signal("TERM")
        check_answers(30)
        equal(servers[i]:wait(60), 0)
        check_answers(30)
        servers[i] = start_at(paths[i])
        run("chmod 777 " .. paths[i])
        check_answers(30)
    end
    proxy:signal("TERM")
    proxy:wait(60)
    for i = 1, 3 do
        servers[i]:signal("TERM")
        equal(servers[i]:wait(60), 0)
    end
end)

test("lighttpd.conf: replies, bodies, many requests", function()
    if is_missing "lighttpd" then return end
    local server <close> = fastcgi.start("--lua", app)
    local port = wire.free_port()
    local path = adapt("lighttpd.conf", {
        ["server%.port = 8080"] = "server.port = " .. port,
        ["\"port\" => 9000"] = "\"port\" => " .. server.fastcgi_port})
    local proxy <close> = wire.spawn{wire.has "lighttpd", "-D", "-f", path}
    httpd.wait_until(function() return pcall(ask, port) end, "lighttpd listens")
    for i = 1, 30 do
        equal(ask(port, "/x?" .. i).body, ("GET /x?%d http 127.0.0.1 a 0"):format(i))
    end
    local sock <close> = wire.connect("127.0.0.1", port)
    sock:send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" .. ("x"):rep(100000))
    equal(sock:read_reply().body, "POST / http 127.0.0.1 a 100000")
    proxy:signal("TERM")
    proxy:wait(60)
end)

run("rm -r " .. directory)
