-- SPDX-License-Identifier: MIT
-- For test-lua-client.c: calls of sxe.client to HTTP servers, and to servers that a script plays. At the end `done` is
-- true, or an error.
local client, http, task = require "sxe.client", require "sxe.http", require "sxe.task"
local tcp, udp = require "sxe.tcp", require "sxe.udp"
require "sxe.file"
send_gone = false
local r = http.router()

done = false

local function shown(req)
  local h = req.headers
  return { method = req.method, target = req.target, body = req:body(), type = h["content-type"], auth = h.authorization,
    x = h.x, connection = req.id, coding = h["accept-encoding"],
    cookie = h.cookie, length = h["content-length"] }
end

r:any("/show", shown)
r:any("/a/b/show", shown)
r:get("/go/{where}", function(req, res)
  local to = { near = "../a/./b/../b/show", query = "?x=1", root = "/show#part", far = "http://localhost:" .. other.port ..
    "/show", net = "//127.0.0.1:" .. req.headers.host:match ":(%d+)" .. "/show", loop = "/go/loop", bad = "ftp://a/",
    none = "", part = "#part" }
  res.headers.location = to[req.params.where]
  return 302, "moved"
end)
r:post("/post/{status}", function(req, res)
  res.headers.location = "/show"
  return tonumber(req.params.status), "moved"
end)
r:get("/login", function(_, res)
  res.headers["set-cookie"] = { "id=1; HttpOnly", "new=2; Path=/", "for=another; Domain=b.example" }
  res.headers.location = "/show"
  return 302
end)
r:get("/parts", function(_, res) for i = 1, 3 do res:write("part" .. i) task.sleep(0) end end)
r:get("/json", function() return { n = 1 } end)
r:head("/json", function() return { n = 1 } end)

server = http.serve{ ip = "127.0.0.1", port = 0, connections = 20, handler = r }
many = http.serve{ ip = "0.0.0.0", port = 0, connections = 50, handler = r }
other = http.serve{ ip = "127.0.0.1", port = 0, connections = 5, handler = r }

-- A server that reads something on each connection, and then sends the next of these texts; "": it closes at once.
local function answering(...)
  local texts, at = { ... }, 0
  return tcp.serve("127.0.0.1", 0, { connections = 3, handler = function(conn)
    at = at + 1
    local text = texts[at] or "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlast"
    for part in text:gmatch("[^|]+") do
      conn:read()
      conn:write(part)
    end
  end })
end

local checks = dofile "test/unit/lib-sxe-lua/lua-checks.lua"
local equal, fails = checks.equal, checks.fails

local OK = "HTTP/1.1 200 OK\r\n"

local function bytes(hex) return (hex:gsub("%x%x", function(byte) return string.char(tonumber(byte, 16)) end)) end

-- "hello" as gzip, as zlib ("deflate") and as raw deflate; 100,000 zero bytes as gzip.
local GZIP, ZLIB = bytes "1f8b08000000000002ffcb48cdc9c9070086a6103605000000", bytes "78dacb48cdc9c90700062c0215"
local RAW = bytes "cb48cdc9c90700"
local ZEROS = bytes("1f8b08000000000002ffedc13101000000c2a0f54f6d0d0fa0" .. ("00"):rep(96) .. "8057037d9511d4a0860100")

local function packed(coding, body, head)
  return ("%sContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s"):format(head or OK, coding, #body, body)
end
local servers = {}
for name, texts in pairs{
  rubbish = { "rubbish\r\n\r\n" }, upgrade = { "HTTP/1.1 101 Switching\r\n\r\n" }, empty = { "" },
  chunk = { OK .. "Transfer-Encoding: chunked\r\n\r\nxyz\r\n" }, cut = { OK .. "Content-Length: 9\r\n\r\nhalf" },
  cut_chunk = { OK .. "Transfer-Encoding: chunked\r\n\r\n9\r\nhalf" }, close = { OK .. "\r\nto the end" },
  many_interim = { ("HTTP/1.1 100 Continue\r\n\r\n"):rep(102) }, cut_loop = { OK .. "Content-Length: 9\r\n\r\nhalf" },
  interim = { "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\n\r\n" .. OK .. "A: 1\r\na: 2\r\nContent-Length: 2\r\n\r\nok" },
  more = { OK .. "Content-Length: 2\r\n\r\nok and more" }, gone = { OK .. "Content-Length: 5\r\n\r\nfirst" },
  gzip = { packed("gzip", GZIP), packed("x-GZIP", GZIP:rep(3)), packed("gzip", ""), packed("gzip", ZEROS) },
  deflate = { packed("deflate", ZLIB), packed("deflate", RAW) },
  empty_elements = { packed(", gzip ,", GZIP), packed("\t,,gzip", GZIP), packed("gzip, gzip", GZIP), packed(" , ", GZIP) },
  chunked_gzip = { OK .. "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" ..
    GZIP:gsub(".", "1\r\n%0\r\n") .. "0\r\n\r\n" },
  damaged = { packed("gzip", GZIP:sub(1, -2)), packed("gzip", GZIP .. "more"), packed("deflate", ZLIB .. "x"),
    packed("gzip", "hello"), packed("gzip", GZIP:sub(1, -6) .. "xxxxx") },
  bomb = { packed("gzip", ZEROS:rep(100)), packed("gzip", ZEROS:rep(3)) },
  other_coding = { packed("br", "hello"), packed("gzip", "a part", "HTTP/1.1 206 Partial\r\n"), packed("gzip", GZIP),
    packed("gzip", GZIP), packed("gzip", GZIP) },
  trailer = { OK .. "Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n2;x=y\r\nok\r\n0\r\nT: x\r\n\r\n" },
} do
  servers[name] = answering(table.unpack(texts))
end

local base, try

local cases = {
  function()
    local a = assert(client.get(base .. "/show", { query = { name = "a b&c", list = { 1, 2 } } }))
    equal(a.status, 200)
    equal(a:json().target, "/show?list=1&list=2&name=a%20b%26c")
    equal(a.headers["Content-Type"], "application/json")
    equal(a.headers.nothing, nil)
    equal(a.headers[1], nil)
    equal(a.url, base .. "/show?list=1&list=2&name=a%20b%26c")
    equal(assert(client.get(base .. "/show?x", { query = { y = 1 } })):json().target, "/show?x&y=1")
    equal(assert(client.get(base:upper() .. "/show?a b\"")):json().target, "/show?a%20b%22")
  end,
  function()
    local a = assert(client.post(base .. "/show", { json = { 1 }, headers = { X = { "one" } }, auth = { "u", "p" } })):json()
    equal(a.type .. a.body .. a.x .. a.auth, "application/json[1]oneBasic dTpw")
    a = assert(client.put(base .. "/show", { form = { a = "1=", b = true } })):json()
    equal(a.method .. a.type .. a.body, "PUTapplication/x-www-form-urlencodeda=1%3D&b=true")
    a = assert(client.patch(base:gsub("//", "//us%%65r:@") .. "/show", { body = "x" })):json()
    equal(a.auth, "Basic dXNlcjo=")
    equal(assert(client.delete(base .. "/show", { auth = { user = "ab" } })):json().auth, "Basic YWI6")
    a = assert(client.head(base .. "/json"))
    equal(a.body .. a.headers["content-length"], "7")
  end,
  function()
    local n = 0
    local a = assert(client.request{ method = "post", url = base .. "/show", body = function()
      n = n + 1
      return n < 4 and ("x"):rep(n - 1) or nil
    end })
    equal(a:json().body, "xxx")
  end,
  function() -- fields that cannot be sent are named
    for name, why in pairs{ Host = "'Host': the client writes this field itself", ["a b"] = "'a b': the name of a field",
      ["content-length"] = "'content-length': the client writes", ["Transfer-encoding"] = "'Transfer-encoding': the client writes" } do
      fails("client: headers: " .. why, client.get(base .. "/show", { headers = { [name] = "x" } }))
    end
    fails("client: headers: 'a': the value of this field has a control character",
      client.get(base .. "/show", { headers = { a = "x\0y" } }))
    fails("the method, the URL or a header is not valid HTTP", client.request{ url = base .. "/show", method = "a b" })
  end,
  function()
    for where, target in pairs{ near = "/a/b/show", root = "/show", far = "/show", net = "/show" } do
      local seen
      local a = assert(client.get(base .. "/go/" .. where, { auth = { "u" }, headers = { Cookie = "a=1", X = "y" },
        on_redirect = function(url) seen = url end }))
      equal(a:json().target, target)
      equal(a:json().auth, where ~= "far" and "Basic dTo=" or nil)
      equal(a:json().x, "y")
      equal(a.url, seen)
    end
    equal(assert(client.get(base .. "/go/near", { on_redirect = function() return false end })).body, "moved")
    equal(assert(client.get(base .. "/go/near", { redirects = 0 })).status, 302)
    for where, target in pairs{ none = "/go/none?a=1", part = "/go/part?a=1", query = "/go/query?x=1" } do
      local seen
      assert(client.get(base .. "/go/" .. where .. "?a=1", { on_redirect = function(url) seen = url return false end }))
      equal(seen, base .. target)
    end
    fails("not a URL", client.get(base .. "/go/bad"))
    fails("too many redirects", client.get(base .. "/go/loop"))
    fails("too many redirects", client.get(base .. "/go/query", { redirects = 1 }))
    for status, method in pairs{ [301] = "GET", [303] = "GET", [307] = "POST", [308] = "POST" } do
      local a = assert(client.post(base .. "/post/" .. status, { json = {}, headers = { ["Content-Language"] = "en" } }))
      equal(a:json().method, method)
    end
    fails("body again", client.post(base .. "/post/307", { body = function() end }))
  end,
  function()
    local a, parts = assert(client.get(base .. "/parts", { stream = true })), ""
    for part in a:chunks() do parts = parts .. part end
    equal(parts, "part1part2part3")
    fails("the body of a stream", pcall(a.json, a))
    equal(a:read(), nil)
    a:close()
    do local b <close> = assert(client.get(base .. "/parts", { stream = true })) end
    fails("more than 5 bytes", client.get(base .. "/parts", { body_max = 5 }))
  end,
  function()
    local stalled <close> = tcp.serve("127.0.0.1", 0, { connections = 2, handler = function(conn)
      conn:read()
      conn:write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
      conn:read "a"
    end })
    local a = assert(client.get("http://127.0.0.1:" .. stalled.port, { stream = true }))
    equal(a:read(), "half")
    local reader = task.start(a.read, a)
    task.sleep(0)
    a:close()
    fails("closed", reader:join())
    fails("closed", a:read())
    fails("closed", pcall(a:chunks()))
    a:close()
  end,
  function()
    local a = assert(client.get("http://127.0.0.1:" .. servers.cut_loop.port, { stream = true }))

    fails("ended before the body", pcall(function() for _ in a:chunks() do end end))
    fails("more than 100 interim", try "many_interim")
  end,
  function()
    fails("not HTTP: ", try "rubbish")
    fails("another protocol", try "upgrade")
    fails("before a response", try "empty")
    fails("a chunk's size", try "chunk")
    fails("ended before the body", try "cut")
    fails("ended before the body", try "cut_chunk")
    equal(assert(try "close").body, "to the end")
    local a = assert(try "interim")
    equal(a.body .. a.headers.a, "ok1, 2")
    equal(a.fields[1] .. a.fields[4], "A2")
    equal(assert(try "more").body, "ok")
    equal(assert(try "trailer").body, "oneok")
  end,
  function()
    local a = assert(try "gzip")
    equal(a.body .. a.decoded .. a.headers["content-encoding"], "hellogzipgzip")
    equal(assert(try "gzip").body, "hellohellohello")
    equal(assert(try "gzip").body, "")
    equal(assert(try "gzip").body, ("\0"):rep(100000))
    for _ = 1, 2 do equal(assert(try "empty_elements").body, "hello") end
    for _ = 1, 2 do equal(assert(try "empty_elements").body, GZIP) end
    a = assert(try "deflate")
    equal(a.body .. a.decoded, "hellodeflate")
    equal(assert(try "deflate").body, "hello")
    equal(assert(try "chunked_gzip").body, "hello")
  end,
  function()
    fails("incomplete, or bytes follow it", try "damaged")
    for _ = 2, 5 do fails("the compressed body is damaged", try "damaged") end
    local _, _, code = client.get("http://127.0.0.1:" .. servers.bomb.port, { body_max = 9999999 })
    equal(code, 90)
    local length, parts, longest = 0, 0, 0
    local a <close> = assert(client.get("http://127.0.0.1:" .. servers.bomb.port, { stream = true }))
    for part in a:chunks() do length, parts, longest = length + #part, parts + 1, math.max(longest, #part) end
    equal(length, 300000)
    equal(parts >= 5 and longest <= 65536, true)
  end,
  function() -- a body in a coding that was not asked for, or that cannot be decoded, is returned unchanged
    local url = "http://127.0.0.1:" .. servers.other_coding.port
    local function is_raw(a, body)
      equal(a.body, body)
      equal(a.decoded, nil)
    end
    is_raw(assert(try "other_coding"), "hello")
    is_raw(assert(try "other_coding"), "a part")
    is_raw(assert(client.get(url, { decode = false })), GZIP)
    is_raw(assert(client.get(url, { headers = { ["ACCEPT-encoding"] = "gzip" } })), GZIP)
    is_raw(assert(client.get(url, { headers = { Range = "bytes=0-" } })), GZIP)
    equal(assert(client.get(base .. "/show")):json().coding, "gzip, deflate")
    equal(assert(client.get(base .. "/show", { decode = false })):json().coding, nil)
  end,
  dofile "test/unit/lib-sxe-lua/lua-cookies.lua",
  function() -- multipart
    local file = require "sxe.file"
    local path = os.tmpname()
    assert(file.write(path, ("x"):rep(100000) .. "end"))
    local function send(parts, to)
      return client.post(base .. (to or "/show"), { multipart = parts })
    end
    local parts = { { name = 'a"\r\n', value = "1" }, { name = "n", value = 5, type = "text/plain" },
      { name = "f", file = path, filename = "b.txt" }, { name = "g", file = path, type = "a/b" } }
    local boundary = "------sxe" .. ("%x"):rep(32)
    local pattern = "^" .. boundary .. '\r\nContent%-Disposition: form%-data; name="a%%22%%0D%%0A"\r\n\r\n1\r\n' ..
      boundary .. '\r\nContent%-Disposition: form%-data; name="n"\r\nContent%-Type: text/plain\r\n\r\n5\r\n' ..
      boundary .. '\r\nContent%-Disposition: form%-data; name="f"; filename="b.txt"\r\n' ..
      "Content%-Type: application/octet%-stream\r\n\r\nx+end\r\n" .. boundary ..
      '\r\nContent%-Disposition: form%-data; name="g"; filename="[^/]-"\r\nContent%-Type: a/b\r\n\r\nx+end\r\n' ..
      boundary .. "%-%-\r\n$"
    local a = assert(send(parts)):json()
    equal(a.body:find(pattern:gsub("%-%-%-%-%-%-sxe", "%%-%%-%%-%%-%%-%%-sxe"):gsub("^%^%-%-", "^%%-%%-")) ~= nil, true)
    equal(a.length, tostring(#a.body))
    equal(a.type:find("^multipart/form%-data; boundary=%-%-%-%-sxe" .. ("%x"):rep(32) .. "$") ~= nil, true)
    equal(assert(send(parts, "/post/307")):json().length, a.length) -- sent again by the redirect
    equal(assert(send(parts, "/post/303")):json().body, "")
    equal(assert(send{}):json().body:sub(1, 8), "------sx")
    fails("No such file", send{ { name = "f", file = "/none" } })
    fails("not a file: /dev", send{ { name = "f", file = "/dev" } })
    fails("a name, and a value or a file", pcall(send, { { name = "f" } }))
    fails("must be a table", pcall(send, { 1 }))
    fails("has no 'x'", pcall(send, { { name = "f", x = 1 } }))
    fails("name of a part must be a string", pcall(send, { { name = 1, value = 1 } }))
    fails("a control character", pcall(send, { { name = "f", value = 1, type = "a\r\nb" } }))
    fails("one of body", pcall(client.post, base, { body = "", multipart = {} }))
    local stat = file.stat
    file.stat = function(...) -- the file changes after its size was read
      local status = stat(...)
      if send_gone then os.remove(path) else assert(file.write(path, "short")) end
      return status
    end
    fails("became shorter", send{ { name = "f", file = path } })
    send_gone = true
    fails("No such file", send{ { name = "f", file = path } })
    file.stat, send_gone = stat, nil
  end,
  function() -- a jar is used in redirects, with its own cookies for each host
    local jar = client.jar()
    local a = assert(client.get(base .. "/login", { cookies = jar }))
    equal(a:json().cookie, "id=1; new=2")
    equal(assert(client.get(base .. "/show", { cookies = jar })):json().cookie, "id=1; new=2")
    equal(assert(client.get(base .. "/show", { cookies = jar, headers = { cookie = "x=y" } })):json().cookie, "x=y")
    equal(assert(client.get(base .. "/go/far", { cookies = jar })):json().cookie, nil)
    equal(assert(client.get(base .. "/show")):json().cookie, nil)
    fails("must come from client.jar()", pcall(client.get, base, { cookies = {} }))
  end,
  function() -- the server closes after its first reply
    equal(assert(try "gone").body, "first")
    equal(assert(try "gone").body, "last")
    equal(assert(try "gone").body, "last")
  end,
  function()
    fails("refused", client.get("http://127.0.0.1:1/"))
    fails("not a URL", client.get("nonsense"))
    fails("not a host", client.get("http://a b/"))
    fails("not a host", client.get("http://a:0/"))
    fails("this program has no TLS", client.get("https://127.0.0.1:1/"))
    fails("the name of a field has a character that none may have", client.get(base, { headers = { ["a b"] = "c" } }))
    fails("larger than", client.get(base, { headers = { a = ("b"):rep(70000) } }))
    local many = {}
    for i = 1, 101 do many["x" .. i] = i end
    fails("too many fields", client.get(base, { headers = many }))
    fails("no option 'tiemout'", pcall(client.get, base, { tiemout = 1 }))
    fails("timeout must be a number", pcall(client.get, base, { timeout = "1" }))
    fails("timeout must be 0 or more, not -1", pcall(client.get, base, { timeout = -1 }))
    local holes = { "a", nil, "b" }
    fails("the header X is a list with holes", pcall(client.get, base, { headers = { X = holes } }))
    fails("a name of headers must be a string, not '1'", pcall(client.get, base, { headers = { "A: b" } }))
    fails("a name of query must be a string, not '1'", pcall(client.get, base, { query = { "a", "b" } }))
    fails("q is a list with holes", pcall(client.get, base, { query = { q = holes } }))
    fails("f must be a list, and has the key 'x'", pcall(client.post, base, { form = { f = { x = 1 } } }))
    fails("multipart must be a list, and has the key 'title'", pcall(client.post, base, { multipart = { title = "A" } }))
    fails("multipart is a list with holes",
      pcall(client.post, base, { multipart = { { name = "a", value = 1 }, nil, { name = "b", value = 2 } } }))
    fails("the user of auth has a colon", pcall(client.get, base, { auth = { "u:v", "p" } }))
    fails("auth needs a user", pcall(client.get, base, { auth = {} }))
    fails("the password of auth must be a string", pcall(client.get, base, { auth = { "u", {} } }))
    fails("a colon in the user's name", client.get("http://u%3Av:p@127.0.0.1:1/"))
    fails("a whole number, not 1.5", pcall(client.get, base, { redirects = 1.5 }))
    fails("use client.request", pcall(client.get, base, { method = "POST" }))
    fails("a string or nil, not a table", pcall(client.post, base, { body = function() return {} end }))
    fails("no more", client.post(base, { body = function() return nil, "no more" end }))
    fails("time", client.post(base, { timeout = 0.001, body = function() task.sleep(0.002) return "" end }))
    fails("one of body", pcall(client.get, base, { body = "1", json = 1 }))
    fails("needs its url", pcall(client.request, {}))
    fails("the header proxy-authorization must be one value, not a table",
      pcall(client.get, "http://127.0.0.1/", { headers = { ["proxy-authorization"] = { "a", "b" } } }))
    fails("a table of options", pcall(client.request, "x"))
  end,
  function()
    fails("not public", client.get(base .. "/show", { public_only = true }))
    local silent <close> = tcp.serve("127.0.0.1", 0, { connections = 3, handler = function(conn) conn:read "a" end })
    local url = "http://127.0.0.1:" .. silent.port
    fails("timeout", client.get(url, { timeout = 0.01 }))
    fails("timeout", client.get(url, { first_byte_timeout = 0.01 }))
    local t = task.start(function() return client.get(url) end)
    task.sleep(0.01)
    t:cancel()
    fails("cancelled", t:join())
  end,
  function() -- a call that asks for the close is the last one on its connection (RFC 9112, 9.6)
    local server <close> = answering()
    for _, value in ipairs{ "close", "TE , Close", { "te", "close" } } do
      equal(client.post(("http://127.0.0.1:%d/"):format(server.port), { headers = { connection = value } }).body, "last")
    end
  end,
  function() -- more idle connections than the client keeps
    local waiting = {}
    for i = 1, 12 do waiting[i] = task.start(function() return client.get(base .. "/parts") end) end
    for i = 1, 12 do assert(waiting[i]:join()) end
    equal(assert(client.get(base .. "/json")).body, '{"n":1}')
  end,
  function() -- all sockets are in use: idle connections are closed to make room
    local held = {}
    equal(assert(client.get(base .. "/json")).body, '{"n":1}')
    repeat
      local socket = udp.open("127.0.0.1", 0)
      held[#held + 1] = socket
    until not socket
    equal(assert(client.get(("http://127.0.0.1:%d/json"):format(many.port))).body, '{"n":1}')
    for _, socket in ipairs(held) do socket:close() end
  end,
  function() -- the limit of connections counts those to all hosts
    for i = 1, 40 do
      equal(assert(client.get(("http://127.0.0.%d:%d/json"):format(i, many.port))).body, '{"n":1}')
    end
  end,
}

task.start(function()
  task.sleep(0)
  base = "http://127.0.0.1:" .. server.port
  function try(name) return client.get("http://127.0.0.1:" .. servers[name].port .. "/") end
  local ok, why = xpcall(function() for _, case in ipairs(cases) do case() end end, debug.traceback)
  for _, one in pairs(servers) do one:close() end
  done = ok or why
end)
