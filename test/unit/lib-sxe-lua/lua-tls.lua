-- SPDX-License-Identifier: MIT
-- For test-lua-tls.c: connections of sxe.tcp and calls of sxe.client over TLS. The servers' ports are in `ports`, their
-- certificates in `directory`. At the end `done` is true, or an error.
local CA = directory .. "authority.pem"
local TRUSTED = { ca = CA }

local function url(name, path)
  return "https://127.0.0.1:" .. ports[name] .. (path or "/")
end

local checks = dofile "test/unit/lib-sxe-lua/lua-checks.lua"
local equal, fails = checks.equal, checks.fails

local function mine(name)
  return { ca = CA, cert = directory .. name .. ".pem", key = directory .. name .. ".key" }
end

local cases = {
  function()
    equal(assert(client.get(url "good", { tls = TRUSTED })).status, 200)
    equal(assert(client.get(url "good", { tls = { ca = CA, name = "a.example" } })).body, "a.example")
    equal(assert(client.get(url "late", { tls = { insecure = true } })).status, 200)
    equal(assert(client.get(url "good", { tls = { ca = CA, insecure = false } })).status, 200)
  end,
  function() -- certificates that are wrong in one way each, as those of badssl.com
    for name, why in pairs{ late = "has expired", early = "is not yet valid", other = "is not for 127.0.0.1, but for b.example",
      stranger = "self-signed", chain = "incomplete chain" } do
      fails("tls: ", client.get(url(name), { tls = TRUSTED }))
      fails(why, client.get(url(name), { tls = TRUSTED }))
    end
    fails("incomplete chain", client.get(url "good")) -- the system does not know our authority
    fails("is not for c.example", client.get(url "good", { tls = { ca = CA, name = "c.example" } }))
    fails("cannot read", client.get(url "good", { tls = { ca = directory .. "none.pem" } }))
    fails("cannot read", client.get(url "good", { tls = { ca = directory .. "none.pem" } }))
  end,
  function() -- a connection that was verified otherwise is not used again
    equal(assert(client.get(url "good", { tls = { insecure = true } })).status, 200)
    fails("incomplete chain", client.get(url "good"))
  end,
  function()
    equal(assert(client.get(url "asks", { tls = mine "good" })).status, 200)
    local ok, why = client.get(url "asks", { tls = TRUSTED })
    if ok then error "a server that asks for a certificate let in a client without one" end
    equal(tostring(why):find "closed", nil)
  end,
  function()
    fails("from https to http, which allow_downgrade would permit: http://127.0.0.1:1/",
      client.get(url("good", "/plain"), { tls = TRUSTED }))
    fails("refused", client.get(url("good", "/plain"), { tls = TRUSTED, allow_downgrade = true }))
    -- tls.name applies to the first host only, not to that of the redirect.
    equal(assert(client.get(("https://localhost:%d/far"):format(ports.good), { tls = { ca = CA, name = "a.example" } })).body,
      "")
  end,
  function()
    fails("tls: the server ended without close_notify", client.get(url("good", "/cut"), { tls = TRUSTED }))
    local conn = assert(tcp.connect("127.0.0.1", ports.good, { tls = TRUSTED }))
    conn:write "GET /cut HTTP/1.1\r\n\r\n"
    local _, why, code = conn:read "a"
    equal(why, "tls: the server ended without close_notify: bytes may be missing")
    equal(code, 104)
    -- The whole body came, so that the end of the connection takes nothing from a slow reader.
    local response = assert(client.get(url("good", "/cut-after"), { tls = TRUSTED, stream = true }))
    for _ = 1, 50 do task.sleep(0.001) end
    equal(response:read "a", "all")
  end,
  function()
    fails("not public", client.get(url "good", { tls = TRUSTED, public_only = true }))
    fails("not public", tcp.connect("127.0.0.1", ports.good, { public_only = true }))
    -- It never replies to the handshake
    local listener <close> = tcp.serve("127.0.0.1", 0, function(conn) conn:read "a" end)
    fails("timeout", tcp.connect("127.0.0.1", listener.port, { tls = true, timeout = 0.01 }))
    fails("refused", tcp.connect("127.0.0.1", 1, { tls = true }))
    fails("", tcp.connect("127.0.0.1", ports.good, { tls = { ca = CA, name = "" } }))
  end,
  function()
    local plain = assert(tcp.connect("127.0.0.1", ports.good, { tls = false }))
    plain:close()
    for _, case in ipairs{
      { "tls must be true or a table of options, not a number", 1 }, { "tls has no option 'tiemout'", { tiemout = 1 } },
      { "tls: cert and key go together", { cert = "a" } }, { "tls: ca must be a string", { ca = true } },
      { "tls: name must be a string", { name = 1 } }, { "tls: insecure must be true or false", { insecure = 1 } },
    } do
      fails(case[1], pcall(tcp.connect, "127.0.0.1", 1, { tls = case[2] }))
    end
    fails("tls must be a table", pcall(client.get, url "good", { tls = true }))
    fails("public_only must be true or false", pcall(tcp.connect, "127.0.0.1", 1, { public_only = 1 }))
  end,
  function() -- more clients of TLS than a state may have
    for i = 1, 70 do
      local ok, why = tcp.connect("127.0.0.1", 1, { tls = { insecure = true, alpn = "p" .. i } })
      equal(ok, nil)
      if i == 70 then fails("in 64 ways", ok, why) end
    end
    equal(assert(client.get(url "good", { tls = TRUSTED })).status, 200)
  end,
}

task.start(function()
  local ok, why = xpcall(function() for _, case in ipairs(cases) do case() end end, debug.traceback)
  done = ok or why
end)
