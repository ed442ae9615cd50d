-- SPDX-License-Identifier: MIT
--
-- Calls of sxe.client to servers in the same process, by docs/http-client.md.

-- GET /try/NAME/PORT calls the function NAME of the script; PORT is the server's own. The reply is the result as text.
local APP = [[
local client, http, task = require "sxe.client", require "sxe.http", require "sxe.task"
local tcp = require "sxe.tcp"
local other = http.serve{ip = "127.0.0.1", port = 0, connections = 5, handler = function(req)
  return (req.headers.authorization or "-") .. (req.headers.cookie or "-") .. (req.headers.x or "-")
end}
local asked = 0 -- the number of connections of the server below
local closing = tcp.serve("127.0.0.1", 0, {connections = 20, handler = function(conn)
  asked = asked + 1
  local line = conn:read("l")
  conn:read()
  if asked == 1 then conn:write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") conn:read() return end
  conn:write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n" .. line:match("^%u+"):rep(2):sub(1, 6))
end})
local half = tcp.serve("127.0.0.1", 0, {connections = 5, handler = function(conn)
  conn:read()
  conn:write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
end})
local silent = tcp.serve("127.0.0.1", 0, {connections = 200, handler = function(conn) conn:read("a") end})
local endless = tcp.serve("127.0.0.1", 0, {connections = 5, handler = function(conn)
  local path = conn:read("l")
  if path:find "interim" then repeat until not conn:write("HTTP/1.1 100 Continue\r\n\r\n") end
  conn:write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
  repeat until not conn:write("1\r\nx\r\n")
end})
local parts = tcp.serve("127.0.0.1", 0, {connections = 5, handler = function(conn)
  for line in conn:lines() do
    if line:find "^GET /long" then
      conn:write("HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n" .. ("x"):rep(10000))
      task.sleep(0.05)
      conn:write(("x"):rep(10000))
    elseif line:find "^GET" then
      conn:write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    end
  end
end})
local r = http.router()
local base
local tries = {}

function tries.status() return client.get(base .. "/nothing").status end
function tries.half() return client.get("http://127.0.0.1:" .. half.port) end
function tries.readers()
  local at = "http://127.0.0.1:" .. parts.port
  local response = client.get(at .. "/long", {stream = true})
  local sums = task.parallel({1, 2}, function()
    local sum = 0
    for part in response:chunks() do sum = sum + #part end
    return sum
  end)
  return sums[1] + sums[2] .. " " .. tostring(response:read()) .. " " .. client.get(at, {timeout = 60}).body
end
function tries.half_in_parts()
  return pcall(function()
    for _ in client.get("http://127.0.0.1:" .. half.port, {stream = true}):chunks() do end
  end)
end
function tries.closed()
  local response = client.get("http://127.0.0.1:" .. half.port, {stream = true})
  response:close()
  return tostring(select(2, response:read())) .. " " .. tostring(select(2, pcall(response:chunks())))
end
function tries.interim() return client.get("http://127.0.0.1:" .. endless.port .. "/interim") end
function tries.endless()
  return client.get("http://127.0.0.1:" .. endless.port .. "/", {timeout = 0.1, body_max = 1 << 50})
end
function tries.silent()
  for i = 1, 150 do client.get("http://127.0.0.1:" .. silent.port, {timeout = 0.001}) end
  return client.get(base .. "/hello").body
end
function tries.far()
  return client.get(base .. "/far", {auth = {"u", "p"}, headers = {Cookie = "a=1", X = "x"}}).body
end
function tries.see_other() return client.post(base .. "/303", {json = {1}}).body end
function tries.again() return client.post(base .. "/307", {json = {1}}).body end
function tries.private() return client.get(base .. "/hello", {public_only = true}) end
function tries.typo() return pcall(client.get, base, {tiemout = 1}) end
function tries.cancelled()
  local t = task.start(function() return client.get(base .. "/slow") end)
  task.sleep(0.01)
  t:cancel()
  return t:join()
end
function tries.whole() return client.get(base .. "/big", {body_max = 1000}) end
function tries.stream()
  local length, parts = 0, 0
  for part in client.get(base .. "/big", {stream = true}):chunks() do length, parts = length + #part, parts + 1 end
  return length .. (parts > 1 and " in parts" or " whole")
end
function tries.kept()
  local first = client.get("http://127.0.0.1:" .. closing.port).body
  task.sleep(0)
  return first .. client.get("http://127.0.0.1:" .. closing.port).body
end
local seconds = 0 -- requests after a first one on a connection of the server below
local rude = tcp.serve("127.0.0.1", 0, {connections = 20, handler = function(conn)
  repeat local line = conn:read("l") until line == "\r" or line == "" or not line
  conn:write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
  if conn:read() then seconds = seconds + 1 end
end})
function tries.last()
  local got = {}
  for i, value in ipairs{"close", "Close", "te , close", {"te", "close"}} do
    local call = i % 2 == 0 and client.post or client.get
    local response, why = call("http://127.0.0.1:" .. rude.port, {headers = {connection = value}})
    got[i] = response and response.body or why
  end
  return table.concat(got, " "), seconds
end
function tries.fields()
  local got = {}
  for i, name in ipairs{"Host", "content-length", "Transfer-Encoding", "a b", ""} do
    got[i] = select(2, client.get(base .. "/hello", {headers = {[name] = "x"}}))
  end
  got[#got + 1] = select(2, client.get(base .. "/hello", {headers = {a = "b\r\nc: d"}}))
  return table.concat(got, "\n") .. "\n" .. client.get(base .. "/hello", {headers = {a = "b"}}).status
end
function tries.empty_parts()
  return client.post(base .. "/show", {timeout = 0.1, body = function() return "" end})
end
function tries.waiting_parts()
  return client.post(base .. "/show", {timeout = 0.05, body = function() task.sleep(0.1) return "x" end})
end
function tries.half_parts()
  return client.post(base .. "/show", {body = function() return nil, "no more" end})
end
function tries.odd_parts()
  return pcall(client.post, base .. "/show", {body = function() return {} end})
end
function tries.passed_on()
  return client.post(base .. "/pass", {body = ("0123456789"):rep(30000)}).body
end
function tries.lists()
    local raised = 0
    for _, options in ipairs{
        {multipart = {title = "A cat"}}, {multipart = {{name = "a", value = "b"}, nil, {name = "c", value = "d"}}},
        {headers = {X = {"a", nil, "b"}}}, {query = {"a", "b"}}, {form = {a = {"b", x = 1}}}, {auth = {"u:v", "p"}},
    } do
        if not pcall(client.post, base, options) then raised = raised + 1 end
    end
    return raised
end
function tries.negative()
  local told = {}
  for name, value in pairs{timeout = -1, body_max = -1, redirects = 1.5, method = "POST"} do
    local ok, why = pcall(client.get, base .. "/hello", {[name] = value})
    told[#told + 1] = not ok and why:match("^client[^ ]* ")
  end
  return #told
end
function tries.json_of_stream()
  local response <close> = client.get(base .. "/hello", {stream = true})
  return pcall(response.json, response)
end

local function bytes(hex) return (hex:gsub("%x%x", function(byte) return string.char(tonumber(byte, 16)) end)) end
local hello = bytes "1f8b08000000000002ffcb48cdc9c9070086a6103605000000" -- in gzip, as are 100,000 zeros:
local zeros = bytes("1f8b08000000000002ffedc13101000000c2a0f54f6d0d0fa0" .. ("00"):rep(96) .. "8057037d9511d4a0860100")
local bodies = {hello = hello, bomb = zeros:rep(1000), damaged = hello:sub(1, -4) .. "xyz", early = hello:sub(1, -4),
  late = hello .. "more"}
r:any("/packed/{what}", function(req, res)
  res.headers["content-encoding"] = "gzip"
  return bodies[req.params.what]
end)
r:get("/coding", function(req) return req.headers["accept-encoding"] or "none" end)
function tries.packed()
  local a = client.get(base .. "/packed/hello")
  return a.body .. a.decoded .. a.headers["content-length"]
end
function tries.coding()
  local a, b = {decode = false}, {headers = {["Accept-Encoding"] = "br"}}
  return client.get(base .. "/coding").body .. client.get(base .. "/coding", a).body .. client.get(base .. "/coding", b).body
end
function tries.as_it_comes() return #client.get(base .. "/packed/hello", {decode = false}).body end
function tries.bomb() return client.get(base .. "/packed/bomb") end
function tries.bomb_in_parts()
  local length, longest = 0, 0
  for part in client.get(base .. "/packed/bomb", {stream = true}):chunks() do
    length, longest = length + #part, math.max(longest, #part)
  end
  return length, longest <= 65536
end
function tries.bad()
  local codes = {}
  for i, what in ipairs{"damaged", "early", "late"} do codes[i] = select(3, client.get(base .. "/packed/" .. what)) end
  return table.concat(codes, " ")
end

require "sxe.file"
local function send(parts)
  local a = client.post(base .. "/parts", {multipart = parts})
  return a.body
end
local function file_of(text)
  local path = os.tmpname()
  local f <close> = io.open(path, "w")
  f:write(text)
  return path
end
r:post("/parts", function(req)
  local body = req:body()
  return (body:gsub("%-%-%-%-sxe%x+", "B") .. (#body == tonumber(req.headers["content-length"]) and "" or "other length"))
end)
r:post("/again", function(req, res) res.headers.location = "/parts" return 307 end)
function tries.names() return send{{name = 'a"b\r\nc', value = "v"}} end
function tries.files()
  local path = file_of(("x"):rep(200000))
  local body = send{{name = "f", file = path, filename = "n", type = "a/b"}}
  os.remove(path)
  return body:gsub("x+", function(all) return #all end)
end
function tries.parts_again() return client.post(base .. "/again", {multipart = {{name = "n", value = "v"}}}).body end
function tries.boundary()
  local seen, number = {}, 0
  for i = 1, 20 do
    client.post(base .. "/boundary", {multipart = {}})
    local boundary = last
    if not seen[boundary] then seen[boundary], number = true, number + 1 end
  end
  return number, #last >= 32
end
last = ""
r:post("/boundary", function(req) last = req.headers["content-type"]:match("boundary=(%S+)$") return "" end)
r:get("/cookie", function(req) return req.headers.cookie or "none" end)
r:get("/login", function(req, res)
  res.headers["set-cookie"] = {"id=1; HttpOnly", "other=2; Domain=b.example"}
  res.headers.location = "/cookie"
  return 302
end)
local function header(from, text, to)
  local jar = client.jar()
  local ok, why = jar:set(from, text)
  return (jar:header(to) or "none") .. " " .. tostring(ok or why)
end
function tries.jar()
  local jar = client.jar()
  local seen = {client.get(base .. "/login", {cookies = jar}).body, client.get(base .. "/cookie", {cookies = jar}).body,
    client.get(base .. "/cookie").body, client.get(base .. "/cookie", {cookies = jar, headers = {Cookie = "own=1"}}).body}
  return table.concat(seen, " ")
end
function tries.host_only() return header("http://a.example/", "n=1", "http://b.a.example/") end
function tries.suffix()
  return header("http://a.example/", "n=1; Domain=example", "http://example/") ..
    header("http://a.co.uk/", "n=1; Domain=co.uk", "http://b.co.uk/") ..
    header("http://1.2.3.4/", "n=1; Domain=3.4", "http://2.2.3.4/")
end
function tries.secure()
  local jar = client.jar()
  jar:set("https://a.example/", "n=1; Secure")
  jar:set("http://a.example/", "n=2")
  return jar:header("http://a.example/") or "none", jar:header("https://a.example/")
end
function tries.flood()
  local jar = client.jar()
  jar:set("https://a.example/", "id=1; Secure; Path=/")
  for i = 1, 2000 do jar:set("http://a.example/", "n" .. i .. "=1") end
  for i = 1, 2000 do jar:set("http://a" .. i .. ".example/", "n=1") end
  jar:set("http://a.example/", "id=evil; Path=/")
  return jar:header("https://a.example/"):match("id=%w+"), #jar:list()
end
function tries.prefixes()
  local set = 0
  for _, name in ipairs{"__Secure-n", "__secure-n", "__SECURE-n", "__SeCuRe-n", "__Host-n", "__host-n", "__HOST-n"} do
    if client.jar():set("http://a.example/", name .. "=1; Path=/") then set = set + 1 end
    if client.jar():set("https://a.example/", name .. "=1; Path=/") then set = set + 1 end
    if not client.jar():set("https://a.example/", name .. "=1; Path=/; Secure") then set = set + 1 end
  end
  return set
end
function tries.many()
  local jar = client.jar()
  for i = 1, 60 do jar:set("http://a.example/", "n" .. i .. "=1") end
  local same = #jar:list()
  for i = 1, 2000 do jar:set("http://a" .. i .. ".example/", "n=1") end
  return same, #jar:list()
end

r:post("/pass", function(req)
  return client.post(base .. "/length", {body = req:chunks()}).body
end)
r:post("/length", function(req) return tostring(#req:body()) end)
r:any("/show", function(req) return req.method .. (req:body() or "") end)
r:get("/far", function(req, res) res:redirect("http://127.0.0.1:" .. other.port .. "/") end)
r:post("/303", function(req, res) res.headers.location = "/show" return 303 end)
r:post("/307", function(req, res) res.headers.location = "/show" return 307 end)
r:get("/slow", function() task.sleep(60) end)
r:get("/hello", function() return "hello" end)
r:get("/big", function() return ("x"):rep(200000) end)
r:get("/try/{name}/{port}", function(req)
  base = "http://127.0.0.1:" .. req.params.port
  local a, b = tries[req.params.name]()
  return tostring(a) .. (b == nil and "" or " " .. tostring(b))
end)
return r
]]

local function try(name)
    local server <close> = require "script".start(APP)
    return server:ask("/try/" .. name .. "/" .. server.port)
end

-- promise: docs/http-client.md: A call with one of them in `headers`, or with a name or a value that no field can have,
-- returns nil and a message that names the field.
test("a field that cannot be sent is named", function()
    equal(try "fields", "client: headers: 'Host': the client writes this field itself: leave it out\n" ..
        "client: headers: 'content-length': the client writes this field itself: leave it out\n" ..
        "client: headers: 'Transfer-Encoding': the client writes this field itself: leave it out\n" ..
        "client: headers: 'a b': the name of a field has a character that none may have\n" ..
        "client: headers: '': the name of a field has a character that none may have\n" ..
        "client: headers: 'a': the value of this field has a control character\n200")
end)

-- promise: docs/http-client.md: A status of 404 or 500 is a response, and no error.
test("a response of any status is a response", function() equal(try "status", "404") end)

-- promise: docs/http-client.md: If `response:read()` would return nil and a message, `response:chunks()` raises the
-- message. So a loop that ends without an error has read the whole body.
test("a loop over a body that is cut short raises", function()
    check(try("half_in_parts"):find("false client: the connection ended", 1, true))
end)

-- promise: docs/http-client.md: After `response:close()` a body that was not read to its end gives `nil, "closed"`.
test("a body that was closed never looks complete", function()
    equal(try("closed"), "closed closed")
end)

-- promise: docs/http-client.md: `timeout` also ends a call whose server keeps sending.
test("a body without end is a timeout", function()
    check(try("endless"):find("^nil .*time")) -- a slow machine may not even connect in time
end)

-- promise: docs/http-client.md: the call checks `timeout` after each part that the function returns.
test("a body of empty parts without end is a timeout", function()
    check(try("empty_parts"):find("^nil .*time")) -- a slow machine may not even connect in time
end)

-- promise: docs/http-client.md: the call checks `timeout` after each part that the function returns.
test("a body whose parts wait is a timeout", function()
    check(try("waiting_parts"):find("^nil .*time")) -- a slow machine may not even connect in time
end)

-- promise: docs/http-client.md: if it returns `nil, why`, the call fails
test("a body whose function fails never looks complete", function() equal(try "half_parts", "nil no more") end)

-- promise: docs/http-client.md: so does a part of a body that is not a string.
test("a part that is a table raises", function()
    check(try("odd_parts"):find("false client: the body's function must return a string or nil, not a table", 1, true))
end)

-- promise: docs/http-client.md: `body = req:chunks()` passes the body of a handler's request on while it arrives.
test("a request's body is passed on", function() equal(try "passed_on", "300000") end)

-- promise: docs/http-client.md: After more than 100 interim responses (1xx) a call fails.
test("interim responses without end are an error", function()
    check(try("interim"):find("nil client: more than 100 interim", 1, true))
end)

-- promise: docs/http-client.md: The connection of a call that failed is reset at once
test("calls that failed free their sockets for the next call", function() equal(try "silent", "hello") end)

-- promise: docs/http-client.md: half a body never looks complete.
test("half a body is an error", function() check(try("half"):find("nil client: the connection ended", 1, true)) end)

-- promise: docs/http-client.md: A redirect to another scheme, host or port goes without `Authorization`, `Cookie` and
-- `Proxy-Authorization`.
test("a redirect to another host carries no secrets", function() equal(try "far", "--x") end)

-- promise: docs/http-client.md: 303, and 301 or 302 after a POST, are followed by a GET without the body.
test("a 303 after a POST is followed by a GET", function() equal(try "see_other", "GET") end)

-- promise: docs/http-client.md: 307 and 308 repeat method and body.
test("a temporary redirect repeats the POST", function() equal(try "again", "POST[1]") end)

-- promise: docs/http-client.md: With `public_only` each address is checked after the look-up and before the connect,
-- after each redirect, too. Loopback, private and link-local addresses, and IPv4 addresses inside IPv6 addresses, are
-- refused.
test("private addresses are refused", function()
    check(try("private"):find("the address is not public", 1, true))
end)

-- promise: docs/http-client.md: An unknown option, a value of the wrong type and a negative number raise an error
test("numbers below 0, and a second method, raise", function() equal(try "negative", "4") end)

-- promise: docs/lua-handlers.md: `response:json()` decodes the body as JSON. For a response with `stream = true` it
-- raises an error.
test("the JSON of a stream raises", function()
    check(try("json_of_stream"):find("false client: the body of a stream", 1, true))
end)

-- promise: docs/http-client.md: An unknown option, a value of the wrong type and a negative number raise an error
test("a misspelt option raises", function() check(try("typo"):find("false client: there is no option", 1, true)) end)

-- promise: docs/http-client.md: When its task is cancelled, a call returns `nil, "cancelled"`, and its connection is
-- closed.
test("a call ends when its task is cancelled", function() equal(try "cancelled", "nil cancelled") end)

-- promise: docs/http-client.md: | `body_max` | bytes of a body that the call returns whole | 8 MiB |
test("a body is limited", function() check(try("whole"):find("nil client: the body has more than 1000", 1, true)) end)

-- promise: docs/http-client.md: | `stream` | the call returns after the head of the response, and the body is read in
-- parts | false |
test("a stream is not limited by body_max", function() equal(try "stream", "200000 in parts") end)

-- promise: docs/http-client.md: A call is sent again, once, if its kept connection closed before a byte came and its
-- method is idempotent.
test("a call on a kept connection that has closed is repeated", function() equal(try "kept", "okGETGET") end)

-- promise: docs/http-client.md: A call with a header `Connection: close` is the last one on its connection, for any
-- reply.
test("a call that asks for the close is its connection's last", function() equal(try "last", "ok ok ok ok 0") end)

-- promise: docs/http-client.md: A call sends `Accept-Encoding: gzip, deflate`, and decodes the body of a reply that has
-- one of these codings.
test("a compressed reply is decoded", function() equal(try "packed", "hellogzip25") end)

-- promise: docs/http-client.md: `body_max` counts decoded bytes, so a small reply that decodes to gigabytes is an error.
test("a decompression bomb is an error", function()
    check(try("bomb"):find("nil client: the body has more than 8388608", 1, true))
end)

-- promise: docs/http-client.md: A stream has at most 64 KiB of decoded data in each part.
test("parts of a bomb are limited", function() equal(try "bomb_in_parts", "100000000 true") end)

-- promise: docs/http-client.md: A compressed body that is damaged, ends early or has bytes after its end is an error,
-- with code 74.
test("a damaged compressed body is an error", function() equal(try "bad", "74 74 74") end)

-- promise: docs/http-client.md: A call with `decode = false`, with a header `Accept-Encoding` or `Range`, or with the
-- method HEAD asks for no coding, and gets the body unchanged.
test("a script may decode itself", function()
    equal(try "coding", "gzip, deflatenonebr")
    equal(try "as_it_comes", "25")
end)

-- promise: docs/http-client.md: Redirects set cookies, and get those of their own host.
test("a jar keeps cookies, a call without a jar sends none", function() check(try("jar"):find("^id=1 id=1 none ")) end)

-- promise: docs/http-client.md: A call with a header `Cookie` sends only that header.
test("a call may set its own Cookie header", function() check(try("jar"):find(" own=1$")) end)

-- promise: docs/http-client.md: A cookie without `Domain` is for its host only.
test("a cookie without Domain is sent to its host only", function() equal(try "host_only", "none true") end)

-- promise: docs/http-client.md: A `Domain` of one label (`com`), or of two such as `co.uk` or
-- `com.au`, is refused, and so is a `Domain` that is a part of an IP address.
test("a cookie for a public suffix is refused", function()
    check(try("suffix"):find("^none client: .*none client: .*none client: "))
 end)

-- promise: docs/http-client.md: A secure cookie is accepted and sent by https only; a cookie received by http does not
-- replace it.
test("a secure cookie is safe from http", function() equal(try "secure", "none n=1") end)

-- promise: docs/http-client.md: a cookie received by http never replaces a secure cookie.
test("a flood of cookies over http does not drive out a secure one", function() equal(try "flood", "id=1 1000") end)

-- promise: docs/http-client.md: The rules of the prefixes `__Secure-` and `__Host-` are enforced, in capital and
-- small letters.
test("prefixes of cookies mean the same in capital letters", function() equal(try "prefixes", "0") end)

-- promise: docs/http-client.md: A jar holds 1,000 cookies, 50 of one domain
test("the number of cookies in a jar is limited", function() equal(try "many", "50 1000") end)

-- promise: docs/http-client.md: Quotation marks and line ends in names are escaped as in browsers: `%22`, `%0D` and
-- `%0A`.
test("names of parts are escaped", function()
    equal(try "names", '--B\r\nContent-Disposition: form-data; name="a%22b%0D%0Ac"\r\n\r\nv\r\n--B--\r\n')
end)

-- promise: docs/http-client.md: Files are read while they are sent, 64 KiB at a time.
test("a file can be a part of a multipart body", function()
    equal(try "files", '--B\r\nContent-Disposition: form-data; name="f"; filename="n"\r\nContent-Type: a/b\r\n\r\n200000\r\n' ..
        "--B--\r\n 1")
end)

-- promise: docs/http-client.md: The boundary has 128 random bits, so it does not occur in a file by chance, and no
-- file's author can guess it.
test("each boundary is different", function() equal(try "boundary", "20 true") end)

-- promise: docs/http-client.md: A redirect with 307 or 308 sends the parts again.
test("a 307 sends the parts again", function()
    equal(try "parts_again", '--B\r\nContent-Disposition: form-data; name="n"\r\n\r\nv\r\n--B--\r\n')
end)

-- promise: docs/http-client.md: A list with holes or with other keys, a name that is not a string, and a colon in the
-- user of `auth` also raise an error.
test("a list of which a part would not be sent raises", function() equal(try "lists", "6") end)

-- promise: docs/lua-handlers.md: If several tasks read one response, each part goes to one of them, and each of them
-- gets nil at the end.
test("several tasks read one response, and the next one of the connection", function()
    equal(try "readers", "20000 nil ok")
end)
