-- SPDX-License-Identifier: MIT
--
-- Routes of sxe-httpd to applications that speak FastCGI, by docs/fastcgi.md: with an application that this test plays
-- record by record, and with php-fpm.

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
local root = directory .. "/www"
run(("chmod 755 %s; mkdir -p %s/upload %s/shop"):format(directory, root, root))
write(root .. "/index.php", "<?php echo 'index ', $_SERVER['REQUEST_URI'];")
write(root .. "/upload/picture.jpg", "<?php echo 'EVIL';")
write(root .. "/style.css", "p {}")
write(root .. "/shop/cart.php", "<?php header('Content-Type: text/plain');"
    .. "foreach (['SCRIPT_NAME', 'PATH_INFO', 'QUERY_STRING', 'REMOTE_ADDR', 'HTTP_X_A', 'HTTP_PROXY', 'HTTPS'] as $k)"
    .. " echo $k, '=', $_SERVER[$k] ?? '-', \"\\n\";"
    .. "echo 'POST=', $_POST['a'] ?? '-', ' ', strlen(file_get_contents('php://input')), \"\\n\";")

-- The body of a reply, whose chunks are put together.
local function body_of(reply)
    if not reply.raw:find("\r\nTransfer%-Encoding: chunked\r\n") then return reply.body end
    local parts, at = {}, 1
    repeat
        local size, after = reply.body:match("^(%x+)\r\n()", at)
        parts[#parts + 1] = reply.body:sub(after, after + tonumber(size, 16) - 1)
        at = after + tonumber(size, 16) + 2
    until size == "0"
    return table.concat(parts)
end

-- ---- An application that the test plays ----

local function start(listener, keys, upstream)
    local route = ('{ fastcgi = "app", %s }'):format(keys or "")
    local path = write(directory .. "/site.lua", ([[
return { upstreams = { app = { servers = "127.0.0.1:%d", fastcgi = true, %s } },
         routes = { ["/{path...}"] = %s } }]]):format(listener:port(), upstream or "", route))
    return httpd.start("--config", path)
end

local function ask(server, target, more)
    local sock = wire.connect("127.0.0.1", server.port)
    sock:send(("%s HTTP/1.1\r\nHost: a.example\r\n%s\r\n"):format(target, more or "Connection: close\r\n"))
    return sock
end

-- Take a request: the first of the next connection, or the next one of this connection.
local function take(listener, sock)
    local app = {sock = sock or listener:accept(20), params = {}, input = ""}
    local params = ""
    while true do
        local version, kind, id, length, padding = string.unpack(">BBI2I2B", app.sock:recv(8))
        equal(version, 1)
        app.id = id
        local content = length + padding > 0 and app.sock:recv(length + padding):sub(1, length) or ""
        if kind == fastcgi.PARAMS then
            params = params .. content
        elseif kind == fastcgi.STDIN then
            app.input = app.input .. content
            if length == 0 then break end
        elseif kind == fastcgi.BEGIN then
            app.keep = content:byte(3) == 1
        end
    end
    local at = 1
    local function size()
        local n = params:byte(at)
        at = at + 1
        if n < 128 then return n end
        n, at = string.unpack(">I4", params, at - 1)
        return n & 0x7fffffff
    end
    while at <= #params do
        local name, value = size(), nil
        value = size()
        app.params[params:sub(at, at + name - 1)] = params:sub(at + name, at + name + value - 1)
        at = at + name + value
    end
    return app
end

local function out(text)
    return fastcgi.record(fastcgi.STDOUT, 1, text, 3)
end

local END = fastcgi.record(fastcgi.END, 1, ("\0"):rep(8))

-- Ask for a page, and answer by these records. Returns the reply; nil: the connection was reset.
local function exchange(listener, server, records, target)
    local sock <close> = ask(server, target or "GET /")
    local app = take(listener)
    app.sock:send(records)
    app.sock:close()
    local good, reply = pcall(sock.read_reply, sock, (target or "GET /"):match("^%S+"))
    return good and reply or nil, app
end

-- promise: docs/fastcgi.md: `Location` without `Status` is 302.
test("the head of a script becomes a head", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(listener)
    local reply = exchange(listener, server, out "Content-Type: a/b\n\nhello" .. END)
    equal(reply.status, 200)
    equal(body_of(reply), "hello")
    reply = exchange(listener, server, out "Status: 404 None\r\nContent-Length: 2\r\n\r\nno" .. END)
    equal(reply.status, 404)
    equal(reply.body, "no")
    equal(exchange(listener, server, out "Location: /b\n\n" .. END).status, 302)
    reply = exchange(listener, server, out "Content-Length: 9\n\n" .. END, "HEAD /")
    equal(reply.status, 200)
    equal(reply.body, "")
end)

-- promise: docs/fastcgi.md: `HTTP_PROXY` never exists: a field `Proxy` is dropped.
test("fields that could be taken for others are dropped", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(listener)
    local sock <close> = ask(server, "GET /x?y=z", "Proxy: evil\r\nX-A: 1\r\nX_A: 2\r\nX-B: 3\r\nX-B: 4\r\n")
    local params = take(listener).params
    equal(params.HTTP_PROXY, nil)
    equal(params.HTTP_X_A, "1")
    equal(params.HTTP_X_B, "3, 4")
    equal(params.PATH_INFO, "/x")
    equal(params.SCRIPT_NAME, "")
    equal(params.QUERY_STRING, "y=z")
    equal(params.SERVER_NAME, "a.example")
    equal(params.SERVER_PORT, "80")
    equal(params.REMOTE_ADDR, "127.0.0.1")
    equal(params.SCRIPT_FILENAME, nil)
end)

-- promise: docs/fastcgi.md: half of a reply never looks whole.
test("a reply that is cut after any of its bytes is a 502, or the client sees that it is cut", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(listener)
    for _, head in ipairs{"A: b\n\n", "Content-Length: 5\n\n"} do
        local whole = out(head .. "hello") .. END
        for length = 0, #whole do
            local reply = exchange(listener, server, whole:sub(1, length))
            if length == #whole then
                equal(reply and body_of(reply), "hello")
            else
                -- With Content-Length the body is whole before END_REQUEST comes.
                check(not reply or reply.status == 502 or reply.raw:find("\r\n\r\nhello$"),
                      ("%d bytes: %s"):format(length, reply and reply.raw))
            end
        end
    end
end)

-- promise: docs/fastcgi.md: A reply with `Content-Length` ends with its last byte, and one without a body with its head.
test("a client does not wait for a script that goes on after its reply", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(listener, nil, 'stall_timeout = "0.5s"')
    local sock <close> = ask(server, "GET /", "")
    local late <close> = take(listener).sock
    late:send(out "Content-Length: 3\n\nabc")
    equal(sock:read_reply().body, "abc")
    sock:send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
    local head <close> = take(listener).sock
    head:send(out "A: b\n\n")
    equal(sock:read_reply("HEAD").status, 200)
    sock:send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    local last <close> = take(listener).sock
    last:send(out "Content-Length: 4\n\nlast" .. END)
    equal(sock:read_reply().body, "last")
    check(late:eof(), "open after stall_timeout")
    check(head:eof(), "open after stall_timeout")
end)

-- promise: docs/fastcgi.md: On a kept connection each request has another id than the one before, so records that come too
-- late are wrong, and in no other client's reply.
test("a record of an earlier request is in no reply", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(listener, nil, "keep = true")
    local sock <close> = ask(server, "GET /", "")
    local app = take(listener)
    app.sock:send(out "Content-Length: 3\n\nabc" .. END)
    equal(sock:read_reply().body, "abc")
    sock:send("GET /b HTTP/1.1\r\nHost: a\r\n\r\n")
    local next_id = take(listener, app.sock).id
    check(next_id ~= app.id, next_id)
    app.sock:send(out "Content-Length: 4\n\nevil" .. END)
    equal(sock:read_reply().status, 502)
    app.sock:close()
end)

-- promise: docs/fastcgi.md: A record that is wrong ends the request with 502:
test("wrong records are a 502", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(listener)
    local head = out "A: b\n\n"
    for number, records in ipairs{
        "\2" .. head:sub(2), fastcgi.record(fastcgi.STDOUT, 2, "A: b\n\n") .. END,
        fastcgi.record(fastcgi.STDOUT, 0, "A: b\n\n") .. END, fastcgi.record(fastcgi.STDIN, 1, "x") .. END,
        fastcgi.record(fastcgi.END, 1, "1234567"), fastcgi.record(12, 1, "x") .. END,
        fastcgi.record(fastcgi.VALUES_RESULT, 0, "") .. END, fastcgi.record(fastcgi.UNKNOWN, 0, ("\0"):rep(8)) .. END,
        fastcgi.record(fastcgi.STDOUT, 1, "") .. head .. END, END, "HTTP/1.1 200 OK\r\n\r\n",
    } do
        local reply = exchange(listener, server, records)
        equal(reply and reply.status, 502, "number " .. number)
    end
end)

-- promise: docs/fastcgi.md: A head that is no valid head is answered 502:
test("a head that is wrong is a 502", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(listener)
    for _, head in ipairs{
        "\n", "Status: 199\n\n", "Status: 600\n\n", "Status: x\n\n", "Status: 2000\n\n", "Status: 200\nStatus: 200\n\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n\r\n", "no colon\n\n", "A: \1\n\n", "A : b\n\n", " A: b\n\n",
        "Content-Length: 1\nContent-Length: 2\n\n", "Content-Length: -1\n\n", "A: " .. ("x"):rep(70000) .. "\n\n",
    } do
        local records = ""
        for at = 1, #head, 60000 do
            records = records .. out(head:sub(at, at + 59999))
        end
        local reply = exchange(listener, server, records .. END)
        equal(reply and reply.status, 502, head:sub(1, 50))
    end
end)

-- promise: docs/fastcgi.md: a request with a chunked body is answered 411.
test("bodies of known length pass, chunked ones do not", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(listener)
    local sock <close> = ask(server, "POST /", "Content-Length: 300000\r\n")
    sock:send(("x"):rep(300000))
    local app = take(listener)
    equal(#app.input, 300000)
    equal(app.params.CONTENT_LENGTH, "300000")
    app.sock:send(out "Content-Length: 2\n\nok" .. END)
    equal(sock:read_reply().body, "ok")
    local other <close> = ask(server, "POST /", "Transfer-Encoding: chunked\r\n")
    other:send("1\r\na\r\n0\r\n\r\n")
    equal(other:read_reply().status, 411)
end)

-- promise: docs/fastcgi.md: If the client leaves, the connection to the application is closed.
test("a client that leaves", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(listener)
    local sock = ask(server, "GET /")
    local app = take(listener)
    sock:close()
    local good, bytes = pcall(app.sock.recv, app.sock, 1)
    check(not good or bytes == nil or bytes == "", bytes)
end)

-- promise: docs/fastcgi.md: By default it is closed after the reply
test("keep = true keeps connections, and without it they are closed", function()
    for _, keep in ipairs{"true", "false"} do
        local listener <close> = wire.listen("127.0.0.1", 0)
        local server <close> = start(listener, nil, "idle_timeout = '1h', keep = " .. keep)
        local sock <close> = ask(server, "GET /", "X-A: 1\r\n")
        local app = take(listener)
        equal(app.keep, keep == "true")
        app.sock:send(out "Content-Length: 2\n\nok" .. END)
        equal(sock:read_reply().body, "ok")
        sock:send("GET /b HTTP/1.1\r\nHost: a\r\n\r\n")
        if keep == "true" then
            equal(app.sock:recv(8):byte(2), fastcgi.BEGIN)
        else
            equal(take(listener).params.PATH_INFO, "/b")
        end
    end
end)

-- promise: docs/fastcgi.md: An address that answers OVERLOADED counts as failed: an idempotent request goes to another
-- address, once; otherwise the client gets 503.
test("an application that is overloaded", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(listener)
    local reply = exchange(listener, server, fastcgi.record(fastcgi.END, 1, "\0\0\0\0\2\0\0\0"))
    equal(reply.status, 503)
end)

-- promise: docs/fastcgi.md: A path with a segment that ends with `suffix` is never sent as a file, so the source of a
-- script is not shown.
test("files, and paths that look like scripts", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(listener, ('root = "%s", files = true'):format(root))
    run(("echo secret >%s/x.PHP; mkdir %s/d.php; echo secret >%s/d.php/a.txt"):format(root, root, root))
    for target, status in pairs{["/style.css"] = 200, ["/x.PHP"] = 404, ["/d.php/a.txt"] = 404, ["/none.php"] = 404,
                                ["/upload/picture.jpg/x.php"] = 404, ["/a%2fb"] = 400, ["/a%00.php"] = 400,
                                ["/none"] = 404} do
        local sock <close> = ask(server, "GET " .. target)
        equal(sock:read_reply().status, status, target)
    end
    local sock <close> = ask(server, "POST /style.css", "Content-Length: 0\r\n")
    equal(sock:read_reply().status, 404)
end)

test("the fallback answers if there is neither a script nor a file", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(listener, ('root = "%s", files = true, fallback = "/index.php"'):format(root))
    for _, target in ipairs{"GET /none", "GET /upload/picture.jpg/x.php", "POST /style.css"} do
        local _, app = exchange(listener, server, out "A: b\n\n" .. END, target)
        equal(app.params.SCRIPT_NAME, "/index.php")
        equal(app.params.SCRIPT_FILENAME, root .. "/index.php")
    end
end)

test("a directory of scripts that cannot be opened is explained", function()
    local path = write(directory .. "/bad.lua", 'return { routes = { ["/"] = { fastcgi = "127.0.0.1:1", root = "/none" } } }')
    local said = run(("%s --config %s -p 0"):format(wire.program("sxe-httpd"), path))
    check(said:find("root: cannot look for scripts in '/none': No such file or directory", 1, true), said)
end)

test("--check does not open a directory of another machine", function()
    local path = write(directory .. "/far.lua",
                       'return { routes = { ["/"] = { fastcgi = "10.0.0.1:1", root = "/none", remote = true } } }')
    local said = run(("%s --config %s --check"):format(wire.program("sxe-httpd"), path))
    check(said:find("the configuration is good", 1, true), said)
    path = write(directory .. "/near.lua", 'return { routes = { ["/"] = { fastcgi = "10.0.0.1:1", root = "/none" } } }')
    said = run(("%s --config %s --check"):format(wire.program("sxe-httpd"), path))
    check(said:find("cannot open the directory '/none'", 1, true), said)
end)

-- promise: docs/fastcgi.md: With `remote` the first segment that ends with `suffix` is the script.
test("scripts on another machine", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(listener, 'root = "/far", remote = true')
    local _, app = exchange(listener, server, out "A: b\n\n" .. END, "GET /a/b.php/c.php")
    equal(app.params.SCRIPT_FILENAME, "/far/a/b.php")
    equal(app.params.PATH_INFO, "/c.php")
end)

-- promise: docs/fastcgi.md: Nothing runs whose path has a segment that begins with a dot, except below `/.well-known`
test("scripts in names that begin with a dot do not run", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    run(("mkdir -p %s/.git %s/.well-known"):format(root, root))
    for _, name in ipairs{"/.git/a.php", "/.well-known/a.php", "/.a.php"} do write(root .. name, "<?php") end
    local server <close> = start(listener, ('root = "%s"'):format(root))
    for _, path in ipairs{"/.git/a.php", "/.a.php", "/upload/../.git/a.php"} do
        local sock <close> = ask(server, "GET " .. path)
        equal(sock:read_reply().status, 404, path)
    end
    local _, app = exchange(listener, server, out "A: b\n\n" .. END, "GET /.well-known/a.php")
    equal(app.params.SCRIPT_NAME, "/.well-known/a.php")
end)

-- promise: docs/fastcgi.md: STDERR of the script is in the log, up to 32 lines for each request, of 512 bytes each.
test("lines of STDERR are logged", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(listener)
    local reply = exchange(listener, server, fastcgi.record(7, 1, "PHP message: oh no\nnext") .. out "A: b\n\n" .. END)
    equal(reply.status, 200)
    httpd.wait_until(function() return server.proc:errors():find("STDERR of /: next", 1, true) end, "the log")
    check(server.proc:errors():find("STDERR of /: PHP message: oh no", 1, true), server.proc:errors())
end)

test("an application that stalls is a 504", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(listener, nil, 'reply_timeout = "200ms"')
    local sock <close> = ask(server, "GET /")
    local app = take(listener)
    app.sock:send(out "A: b\n")
    equal(sock:read_reply().status, 504)
end)

-- ---- php-fpm ----

local function start_php()
    local program = run("ls /usr/sbin/php-fpm* | head -1")
    if program:sub(1, 1) ~= "/" or program:find("cannot access", 1, true) then
        print("skipped: FastCGI to php-fpm, because it is not installed")
        return nil
    end
    local path = directory .. "/php.sock"
    local config = write(directory .. "/fpm.conf", ([[
[global]
daemonize = no
error_log = %s/fpm.log
[www]
listen = %s
pm = static
pm.max_children = 2
user = %s
listen.mode = 0666
]]):format(directory, path, run("id -u") == "0" and "nobody" or run("id -un")))
    local php = wire.spawn{program, "-F", "-R", "-n", "-y", config}
    httpd.wait_until(function() return run("test -S " .. path .. " && echo yes") == "yes" end, "php-fpm listens")
    return php, path
end

-- promise: docs/fastcgi.md: Nothing runs that is not a regular file whose name ends with `suffix`.
test("php-fpm runs scripts, and nothing else", function()
    local php, path = start_php()
    if not php then return end
    local php_end <close> = php
    local site = write(directory .. "/php.lua", ([[
return { routes = {
    ["/{path...}"] = { fastcgi = "%s", root = "%s", fallback = "/index.php", files = true },
    ["/strict/{path...}"] = { fastcgi = "%s", root = "%s" } } }]]):format(path, root, path, root))
    local server <close> = httpd.start("--config", site)
    local function get(target, more)
        local sock <close> = ask(server, "GET " .. target, more)
        local reply = sock:read_reply()
        return {status = reply.status, body = body_of(reply)}
    end
    equal(get("/").body, "index /")
    equal(get("/no/such/page?x").body, "index /no/such/page?x")
    equal(get("/upload/picture.jpg/x.php").body, "index /upload/picture.jpg/x.php")
    equal(get("/upload/picture.jpg").body, "<?php echo 'EVIL';")
    equal(get("/strict/upload/picture.jpg/x.php").status, 404)
    equal(get("/strict/upload/picture.jpg").status, 404)
    equal(get("/style.css").body, "p {}")
    equal(get("/shop/cart.php/items?a=b", "X-A: 1\r\nProxy: x\r\nConnection: close\r\n").body,
          "SCRIPT_NAME=/shop/cart.php\nPATH_INFO=/items\nQUERY_STRING=a=b\nREMOTE_ADDR=127.0.0.1\nHTTP_X_A=1\n"
          .. "HTTP_PROXY=-\nHTTPS=-\nPOST=- 0\n")
    local body = "a=hello&b=" .. ("x"):rep(100000)
    local sock <close> = ask(server, "POST /shop/cart.php", ("Connection: close\r\nContent-Length: %d\r\nContent-Type: "
                             .. "application/x-www-form-urlencoded\r\n"):format(#body))
    sock:send(body)
    equal(body_of(sock:read_reply()):match("POST=.*"), ("POST=hello %d\n"):format(#body))
    php:signal("TERM")
    php:wait(60)
end)

run("rm -r " .. directory)
