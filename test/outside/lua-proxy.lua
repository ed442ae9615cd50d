-- SPDX-License-Identifier: MIT
--
-- Forward proxies of sxe.client, by docs/http-client.md. The proxy is a script in the same process: it answers requests
-- itself, and connects tunnels to 127.0.0.1, whatever host they are for.

local cli = require "cli"
local httpd = require "httpd"

local PROXY = [[
local client, task, tcp = require "sxe.client", require "sxe.task", require "sxe.tcp"
local refusal  -- the whole reply to the next requests
local silent   -- no reply comes
local function pass_on(from, to)
  for part in from:chunks() do to:write(part) end
  to:close()
end
local heads = {}
local connections = 0
-- What it heard, in lower case, as a host would: method, target, and the value of Proxy-Authorization.
local proxy = tcp.serve("127.0.0.1", 0, {connections = 20, handler = function(conn)
  connections = connections + 1
  while true do
    local line = conn:read "l"
    local login = "-"
    if not line then return end
    for field in conn:lines() do
      if field == "" then break end
      login = field:lower():match "^proxy%-authorization: (.*)" or login
    end
    heads[#heads + 1] = line .. " " .. login
    if silent then return conn:read "a" end
    if refusal then conn:write(refusal) return end
    local port = line:match "^CONNECT [^ ]*:(%d+) "
    if port then
      local far = assert(tcp.connect("127.0.0.1", tonumber(port)))
      conn:write "HTTP/1.1 200 OK\r\n\r\n"
      task.start(function() pass_on(far, conn) end)
      return pass_on(conn, far)
    end
    local body = line:match " (.*) " .. " " .. login
    conn:write(("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"):format(#body, body))
  end
end})
local P -- the proxy's URL
local function refuse(text) refusal = text end
local function ask(url, options)
  local a, why = client.get(url, options)
  print(a and a.status .. " " .. a.body or why)
end
task.start(function()
  task.sleep(0)
  P = "http://127.0.0.1:" .. proxy.port
  local ok, why = pcall(function()
    %s
  end)
  if not ok then print(why) end
  os.exit(0) -- idle connections of the client keep the proxy busy
end)
]]

-- What a script prints that has the proxy above.
local function run(script, env)
    local proc <close> = wire.spawn{wire.program("sxe-lua"), "-e", (PROXY:gsub("%%s\n", function() return script .. "\n" end)),
        env = env}
    local said = proc:output()
    equal(proc:wait(60), 0, proc:errors())
    return said
end

-- promise: docs/http-client.md: For http the client sends the request to the proxy with its whole URL.
test("a proxy gets the whole URL", function()
    equal(run[[ask("http://a.example/b?c", {proxy = P})]], "200 http://a.example/b?c -\n")
end)

-- promise: docs/http-client.md: User and password go to the proxy only, in `Proxy-Authorization`; so does a header
-- `Proxy-Authorization` of the call. No host gets that header.
test("credentials of a proxy go to the proxy only", function()
    equal(run[[ask("http://a.example/", {proxy = P:gsub("//", "//u:p@")})]], "200 http://a.example/ basic dtpw\n")
    equal(run[[ask("http://a.example/", {proxy = P, headers = {["Proxy-Authorization"] = "own"}})]],
          "200 http://a.example/ own\n")
    equal(run[[ask(P, {headers = {["Proxy-Authorization"] = "own"}})]], "200 / -\n")
end)

-- promise: docs/http-client.md: A call uses the forward proxy of its option `proxy`, or else the proxy of the
-- environment.
test("the environment names a proxy", function()
    local env = {http_proxy = "127.0.0.1:1"}
    check(run([[ask("http://a.example/")]], env):find("the proxy 127.0.0.1:1: connect: ", 1, true))
    equal(run([[ask("http://a.example/", {proxy = P})]], env), "200 http://a.example/ -\n")
end)

-- promise: docs/http-client.md: `HTTP_PROXY` in capitals is not read
test("HTTP_PROXY is not read", function()
    equal(run([[ask(P .. "/direct")]], {HTTP_PROXY = "127.0.0.1:1"}), "200 /direct -\n")
end)

-- promise: docs/http-client.md: `proxy = false` calls the host directly. A proxy that the call itself names is used
-- even if `no_proxy` has the host.
test("a call decides before the environment", function()
    equal(run([[ask(P .. "/direct", {proxy = false})]], {http_proxy = "127.0.0.1:1"}), "200 /direct -\n")
    equal(run([[ask("http://a.example", {proxy = P})]], {no_proxy = "*"}), "200 http://a.example/ -\n")
end)

-- promise: docs/http-client.md: The target of a redirect is compared with `no_proxy`, too.
test("a redirect may lead past the proxy", function()
    -- The port of this proxy is not known before it runs, so the environment names one that does not exist.
    equal(run([[
        refuse("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:" .. proxy.port .. "/direct\r\nContent-Length: 0\r\n\r\n")
        ask("http://127.0.0.1:" .. proxy.port .. "/", {on_redirect = function() refuse(nil) end})
        refuse("HTTP/1.1 302 Found\r\nLocation: http://a.example/\r\nContent-Length: 0\r\n\r\n")
        ask("http://127.0.0.1:" .. proxy.port .. "/")
    ]], {http_proxy = "127.0.0.1:1", no_proxy = "127.0.0.0/8"}), "200 /direct -\n" ..
        "client: the proxy 127.0.0.1:1: connect: Connection refused\n")
end)

-- promise: docs/http-client.md: If a proxy asks for a user and a password, or refuses those of the call (407), the
-- call fails. It also fails if the proxy refuses a tunnel
test("a proxy's refusal is an error in words", function()
    local said = run[[
        refuse("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
        ask("http://a.example/", {proxy = P})
        ask("https://a.example/", {proxy = P:gsub("//", "//u:p@")})
        refuse("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        ask("https://a.example/", {proxy = P})
        ask("http://a.example/", {proxy = P})]]
    check(said:find("^client: the proxy 127.0.0.1:%d+ wants a user and a password %(407%)\n" ..
        "client: the proxy 127.0.0.1:%d+ refuses the user or the password %(407%)\n" ..
        "client: the proxy 127.0.0.1:%d+ does not connect to a.example:443: 403 Forbidden\n403 \n$"), said)
end)

-- promise: docs/http-client.md: `connect_timeout` bounds the connection to the proxy, its reply to `CONNECT` and the
-- handshake together.
test("a proxy that does not reply is a timeout", function()
    equal(run[[silent = true ask("https://a.example/", {proxy = P, connect_timeout = 0.01})]], "timeout\n")
end)

-- promise: docs/http-client.md: A kept connection is used again only by calls with the same proxy, user and password.
test("connections through a proxy are kept for calls with the same credentials", function()
    equal(run[[
        ask("http://a.example/", {proxy = P})
        ask("http://b.example/", {proxy = P})
        print(connections)
        ask("http://b.example/", {proxy = P:gsub("//", "//u:p@")})
        print(connections)]], "200 http://a.example/ -\n200 http://b.example/ -\n1\n200 http://b.example/ basic dtpw\n2\n")
end)

-- promise: docs/http-client.md: `public_only` with a proxy is an error: the proxy looks the name up, so the client
-- cannot know the address.
test("public_only does not go with a proxy", function()
    check(run[[ask("http://a.example/", {proxy = P, public_only = true})]]:find "^client: public_only does not go with a proxy")
end)

-- promise: docs/http-client.md: The client speaks plain http with proxies. A proxy URL that begins with `https://` or
-- `socks5://` is an error.
test("other kinds of proxies are refused, and their passwords not shown", function()
    for _, scheme in ipairs{"https", "socks5"} do
        local said = run([[ask("http://a.example/")]], {all_proxy = scheme .. "://u:secret@127.0.0.1:1"})
        equal(said, ("client: all_proxy: proxies that speak %s are not supported, only those that speak http\n"):format(scheme))
    end
end)

if cli.run("sxe-httpd", "--tls-dev", "--check").status ~= 0 then
    print("skipped: tunnels of https, because sxe-lua was built without OpenSSL 3")
    return
end

-- promise: docs/http-client.md: For https the proxy makes a tunnel (`CONNECT`), and the client speaks TLS with the
-- host through the tunnel. The proxy learns the host's name and port; the certificate is verified as without a proxy.
test("https goes through a tunnel", function()
    local proc <close> = wire.spawn{wire.program("sxe-httpd"), "-p", "0", "--tls-dev"}
    local port = proc:line(60):match("^listening on https://127%.0%.0%.1:(%d+)/$")
    local server = setmetatable({proc = proc, pid = proc:pid(), ip = "127.0.0.1", port = tonumber(port)}, httpd)
    local said = run(([[
        local url = "https://a.example:%d/none"
        local options = {proxy = P:gsub("//", "//u:p@"), tls = {insecure = true}}
        print(client.get(url, options).status, client.get(url, options).status, connections, heads[1], #heads)
        ask(url, {proxy = P})]]):format(server.port))
    equal(said:match "^[^\n]*", ("200\t200\t1\tCONNECT a.example:%d HTTP/1.1 basic dtpw\t1"):format(server.port))
    check(said:find "\ntls: self%-signed", said)
end)
