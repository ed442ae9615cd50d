-- SPDX-License-Identifier: MIT
-- For test-lua-tls.c: calls of sxe.client through forward proxies. The ports of servers that speak TLS are in `ports`,
-- their certificates in `directory`. At the end `done` is true, or an error.
local TRUSTED = { ca = directory .. "authority.pem" }
local ESTABLISHED = "HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\n\r\n"

local checks = dofile "test/unit/lib-sxe-lua/lua-checks.lua"
local equal, fails = checks.equal, checks.fails

-- The last request that the proxy got, how many connections, and what it answers; nil: what a proxy has to.
local seen, connections, answer

local function pass_on(from, to)
  for part in from:chunks() do to:write(part) end
  to:close()
end

local function make_tunnel(conn, port)
  local far = assert(tcp.connect("127.0.0.1", tonumber(port)))
  conn:write(ESTABLISHED)
  task.start(function() pass_on(far, conn) end)
  pass_on(conn, far)
end

-- It connects all names to 127.0.0.1, and answers requests that it should forward itself, by their first line.
local proxy = tcp.serve("127.0.0.1", 0, { connections = 10, handler = function(conn)
  connections = connections + 1
  while true do
    local line = conn:read "l"
    if not line then return end
    seen = { line = line, connection = connections }
    for field in conn:lines() do
      if field == "" then break end
      local name, value = field:match "^([^:]+): (.*)$"
      seen[name:lower()] = value
    end
    if line:find "^CONNECT" and not answer then return make_tunnel(conn, line:match ":(%d+) ") end
    conn:write(answer or ("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"):format(#line, line))
    if line:find "^CONNECT" then return conn:read "a" end
  end
end })
connections = 0

local BASE = "http://127.0.0.1:" .. proxy.port
local WITH_LOGIN = ("http://us%%40er:pa:ss@127.0.0.1:%d/"):format(proxy.port)
local LOGIN = "Basic dXNAZXI6cGE6c3M="

local function url(name, path) return "https://127.0.0.1:" .. ports[name] .. (path or "/") end

-- A value that a function uses, or the functions it calls use.
local function value_of(f, name, known)
  known = known or {}
  for i = 1, 250 do
    local key, value = debug.getupvalue(f, i)
    if not key then return nil end
    if key == name then return value end
    local found = type(value) == "function" and not known[value]
    known[value or 0] = true
    found = found and value_of(value, name, known)
    if found then return found end
  end
end

local c, proxies = value_of(client.request, "c"), value_of(client.request, "proxies")

local VARIABLES = { "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy",
  "NO_PROXY" }

-- "host:port" of the proxy for this URL; false: none.
local function chosen(scheme, host, environment, option)
  for _, name in ipairs(VARIABLES) do setenv(name, environment[name]) end
  local found, why = proxies.find({ scheme = scheme, host = host }, option)
  for _, name in ipairs(VARIABLES) do setenv(name, nil) end
  return found and found.name or found == nil and why
end

local cases = {
  function() -- requests of http are forwarded, those for all hosts on one connection
    local a = assert(client.get("http://a.example/x?y", { proxy = WITH_LOGIN }))
    equal(a.body, "GET http://a.example/x?y HTTP/1.1")
    equal(seen["proxy-authorization"], LOGIN)
    equal(seen.host, "a.example")
    equal(assert(client.get("http://b.example:81", { proxy = WITH_LOGIN })).body, "GET http://b.example:81/ HTTP/1.1")
    equal(seen.connection, 1)
    assert(client.get("http://b.example", { proxy = BASE }))
    equal(seen["proxy-authorization"], nil)
    equal(seen.connection, 2)
    assert(client.get("http://b.example", { proxy = BASE, headers = { ["proxy-AUTHORIZATION"] = "own" } }))
    equal(seen["proxy-authorization"], "own")
    equal(seen.connection, 3)
    assert(client.get(BASE, { proxy = false, headers = { ["Proxy-Authorization"] = "not for a host" } }))
    equal(seen["proxy-authorization"], nil)
  end,
  function() -- for https the proxy makes a tunnel, in which the host's certificate is verified
    local options = { tls = TRUSTED, proxy = WITH_LOGIN, headers = { Cookie = "a=1" } }
    equal(assert(client.get(("https://a.example:%d/"):format(ports.good), options)).body, "a.example")
    equal(seen.line, ("CONNECT a.example:%d HTTP/1.1"):format(ports.good))
    equal(seen.host, ("a.example:%d"):format(ports.good))
    equal(seen["proxy-authorization"], LOGIN)
    equal(seen.cookie, nil)
    local last = connections
    assert(client.get(("https://a.example:%d/"):format(ports.good), options))
    equal(connections, last)
    equal(assert(client.get(url "good", { tls = TRUSTED, proxy = BASE, headers = { ["Proxy-Authorization"] = "own" } })).status,
      200) -- 403 if the server sees it
    equal(seen["proxy-authorization"], "own")
    fails("has expired", client.get(url "late", { tls = TRUSTED, proxy = BASE }))
    fails("the certificate is not for c.example", client.get(("https://c.example:%d/"):format(ports.good), options))
    equal(assert(client.get(("https://c.example:%d/"):format(ports.good),
      { tls = { ca = TRUSTED.ca, name = "a.example" }, proxy = BASE })).body, "a.example")
  end,
  function() -- a connection that did not come through the proxy is not used for calls that must
    assert(client.get(url "good", { tls = TRUSTED }))
    answer = "HTTP/1.1 403 Not for you\r\nContent-Length: 0\r\n\r\n"
    fails(("client: the proxy 127.0.0.1:%d does not connect to 127.0.0.1:%d: 403 Not for you"):format(proxy.port, ports.good),
      client.get(url "good", { tls = TRUSTED, proxy = "127.0.0.1:" .. proxy.port }))
    equal(assert(client.get("http://a.example", { proxy = BASE .. "?new" })).status, 403)
    answer = nil
  end,
  function() -- refusals
    local name = "client: the proxy 127.0.0.1:" .. proxy.port
    answer = "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
    for _, target in ipairs{ "http://a.example/", url "good" } do
      fails(name .. " wants a user and a password (407)", client.get(target, { proxy = BASE }))
      fails(name .. " refuses the user or the password (407)", client.get(target, { proxy = WITH_LOGIN }))
    end
    for text, why in pairs{ rubbish = ": the response is not HTTP", [ESTABLISHED .. "more"] = " sent bytes before the handshake",
      ["HTTP/1.1 101 Other\r\n\r\n"] = ": the response is not HTTP: the server switches to another protocol" } do
      answer = text .. "\r\n\r\n"
      fails(name .. why, client.get(url "good", { proxy = BASE }))
    end
    answer = ESTABLISHED
    fails("timeout", client.get(url "good", { proxy = BASE, connect_timeout = 0.01 }))
    answer, seen = "HTTP/1.1 ", {}
    fails("timeout", client.get(url "good", { proxy = BASE, timeout = 0.01 }))
    seen = {}
    local call = task.start(function() return client.get(url "good", { proxy = BASE }) end)
    repeat task.sleep(0) until seen.line ~= nil
    call:cancel()
    fails("cancelled", call:join())
    answer = nil
    fails("the value of this field has a control character",
      client.get(url "good", { proxy = BASE, headers = { ["proxy-authorization"] = "a\r\nb: c" } }))
    fails("client: the proxy 127.0.0.1:1: connect: Connection refused", client.get("http://a.example", { proxy = "127.0.0.1:1" }))
    local closing <close> = tcp.serve("127.0.0.1", 0, function(conn) conn:read() end)
    fails("the connection ended before a response", client.get(url "good", { proxy = "127.0.0.1:" .. closing.port }))
    fails("public_only does not go with a proxy", client.get("http://a.example", { proxy = BASE, public_only = true }))
    fails("the address is not public", client.get(BASE, { proxy = false, public_only = true }))
    fails("a URL or false, not true", pcall(client.get, BASE, { proxy = true }))
    fails("a string or boolean, not a number", pcall(client.get, BASE, { proxy = 1 }))
  end,
  function() -- a redirect leads to a host that is not reached by the proxy
    setenv("http_proxy", BASE)
    setenv("no_proxy", "127.0.0.1")
    local origin <close> = tcp.serve("127.0.0.1", 0, function(conn)
      conn:write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" .. conn:read "l":sub(1, 4))
    end)
    answer = ("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/\r\nContent-Length: 0\r\n\r\n"):format(origin.port)
    equal(assert(client.get "http://a.example/").body, "GET ")
    answer = nil
    setenv("http_proxy", nil)
    setenv("no_proxy", nil)
  end,
  function()
    local all = { http_proxy = "h:1", HTTP_PROXY = "x:2", https_proxy = "http://s:3", HTTPS_PROXY = "S:4", all_proxy = "a:5",
      ALL_PROXY = "A:6" }
    equal(chosen("http", "a", all), "h:1")
    equal(chosen("https", "a", all), "s:3")
    equal(chosen("http", "a", all, false), false)
    equal(chosen("http", "a", all, "[::1]:7"), "[::1]:7")
    all.http_proxy, all.https_proxy = "", nil
    equal(chosen("http", "a", all), "a:5")
    equal(chosen("https", "a", all), "s:4")
    equal(chosen("http", "a", { HTTP_PROXY = "x:2", HTTPS_PROXY = "S:4" }), false)
    equal(chosen("https", "a", { ALL_PROXY = "A:6" }), "a:6")
    equal(chosen("http", "a", { http_proxy = "HTTP://u@a/b" }), "a:1080")
    for _, bad in ipairs{ "a b", "http://", "a:0", "a:65536", "a:x" } do
      fails("client: http_proxy is not the URL of a proxy", false, chosen("http", "a", { http_proxy = bad }))
    end
    fails("client: the option proxy: proxies that speak https are not supported", false, chosen("http", "a", {}, "https://u:p@a"))
  end,
  function() -- no_proxy
    for list, hosts in pairs{
      ["*"] = { a = false, ["127.0.0.1"] = false }, ["b.example, .c.example"] = { ["b.example"] = false, ["a.b.example"] = false,
        ["ab.example"] = "p:1", ["c.example"] = false, ["a.c.example."] = false, example = "p:1" },
      ["B.Example. d"] = { ["b.example"] = false, d = false, ["1.2.3.4"] = "p:1" },
      ["1.2.3.4,10.1.2.3/8,::1/64"] = { ["1.2.3.4"] = false, ["a.1.2.3.4"] = false, ["10.9.9.9"] = false, ["11.0.0.0"] = "p:1",
        ["[::2]"] = false, ["[::1:0:0:0:1]"] = "p:1" },
      ["[2001:db8::]/30"] = { ["[2001:dbb::1]"] = false, ["[2001:dbc::1]"] = "p:1", ["32.1.13.184"] = "p:1" },
      ["3.4,1.2.3.4/33,1.2.3.4/x,a/8"] = { ["1.2.3.4"] = "p:1", ["5.1.3.4"] = "p:1", a = "p:1" },
      ["0.0.0.0/0"] = { ["9.9.9.9"] = false, ["[::1]"] = "p:1" },
    } do
      for host, wanted in pairs(hosts) do
        local got = chosen("http", host, { http_proxy = "p:1", no_proxy = list })
        if got ~= wanted then error(("%s of %s: %s, not %s"):format(host, list, got, wanted)) end
      end
    end
    equal(chosen("http", "a", { http_proxy = "p:1", NO_PROXY = "a" }), false)
    equal(chosen("http", "a", { http_proxy = "p:1", no_proxy = "b", NO_PROXY = "a" }), "p:1")
    equal(chosen("http", "a", { no_proxy = "a" }, "o:1"), "o:1")
  end,
  function() -- TLS on a connection that is of no use for it
    local talking <close> = tcp.serve("127.0.0.1", 0, function(conn) conn:write "first\nsecond" conn:read "a" end)
    local conn = assert(tcp.connect("127.0.0.1", talking.port))
    local insecure = { tls = { insecure = true }, timeout = 5 }
    equal(conn:read "l", "first")
    fails("tls: the peer sent bytes before the handshake", c.start_tls(conn, "a.example", insecure))
    conn:read()
    fails("Invalid argument", c.start_tls(conn, "", insecure))
    conn:close()
    fails("closed", c.start_tls(conn, "a.example", insecure))
    local plain <close> = tcp.serve("127.0.0.1", 0, function(peer) peer:read() peer:write "no TLS\n" peer:read "a" end)
    conn = assert(tcp.connect("127.0.0.1", plain.port))
    fails("tls: ", c.start_tls(conn, "a.example", insecure))
  end,
}

task.start(function()
  local ok, why = xpcall(function() for _, case in ipairs(cases) do case() end end, debug.traceback)
  proxy:close()
  done = ok or why
end)
