-- SPDX-License-Identifier: MIT
--
-- https of sxe.client and req.tls, by docs/http-client.md and docs/tls.md, with certificates made by the openssl
-- command.

local cli = require "cli"
local httpd = require "httpd"

local function is_installed(command)
    local proc <close> = wire.spawn{"sh", "-c", command .. " >/dev/null 2>&1"}
    return proc:wait(60) == 0
end

if cli.run("sxe-httpd", "--tls-dev", "--check").status ~= 0 then
    print("skipped: https of sxe.client, because sxe-lua was built without OpenSSL 3")
    return
end
if not is_installed "openssl version" then
    print("skipped: https of sxe.client, because the openssl command is not installed")
    return
end

-- Make an authority and certificates that it signs, in a temporary directory.
local MAKE = [[
set -e
cd "$1"
new="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
openssl req -x509 $new -keyout ca.key -out ca.pem -subj /CN=authority -days 9 -addext basicConstraints=critical,CA:TRUE
openssl req -x509 $new -keyout stranger.key -out stranger.pem -subj /CN=stranger -days 9 -addext subjectAltName=IP:127.0.0.1
for name in good=IP:127.0.0.1,DNS:a.example other=DNS:b.example client=DNS:client.example,URI:spiffe://a/b \
    admin=DNS:admin.example; do
    openssl req $new -keyout ${name%=*}.key -out ${name%=*}.csr -subj /CN=${name%=*}
    echo subjectAltName=${name#*=} >${name%=*}.names
    openssl x509 -req -in ${name%=*}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 9 -extfile ${name%=*}.names \
        -out ${name%=*}.pem
done
]]

local site = {}
site.__index = site

local function make_site()
    local directory = os.tmpname()
    os.remove(directory)
    assert(os.execute("mkdir " .. directory))
    local proc <close> = wire.spawn{"sh", "-c", MAKE, "sh", directory}
    proc:output()
    equal(proc:wait(60), 0, proc:errors())
    return setmetatable({directory = directory}, site)
end

function site:__close() os.execute("rm -r " .. self.directory) end

function site:serve(name, ...)
    local path = self.directory .. "/" .. name
    local proc = wire.spawn{wire.program("sxe-httpd"), "-p", "0", "--tls-cert", path .. ".pem", "--tls-key", path .. ".key",
        ...}
    local first = proc:line(60)
    local port = first and first:match("^listening on https://127%.0%.0%.1:(%d+)/$")
    check(port, ("%q and %q"):format(first, proc:errors()))
    return setmetatable({proc = proc, pid = proc:pid(), ip = "127.0.0.1", port = tonumber(port)}, httpd)
end

-- The output of a script that calls that server; `options` is the text of a Lua table.
function site:get(server, options)
    local script = ([[
local a, why = require "sxe.client".get("https://127.0.0.1:%d/", %s)
print(a and a.status or why)]]):format(server.port, (options or "{}"):gsub("DIR", self.directory))
    local ran = cli.run("sxe-lua", "-e", script)
    return ran.output .. ran.errors
end

local TRUSTED <const> = '{ tls = { ca = "DIR/ca.pem" } }'

-- promise: docs/http-client.md: The client verifies the server's certificate: it must lead to an authority of the
-- system, be valid at this time, and have the host's name or address.
test("a server's certificate is verified", function()
    local made <close> = make_site()
    for name, why in pairs{good = "200", other = "is not for 127.0.0.1, but for b.example", stranger = "self-signed"} do
        local server <close> = made:serve(name)
        local said = made:get(server, TRUSTED)
        check(said:find(why, 1, true), said)
        check(not made:get(server):find("200", 1, true), "the system trusts " .. name)
    end
end)

-- promise: docs/http-client.md: | `insecure` | any certificate is accepted: an attacker between client and server can
-- read and change everything | false |
test("an insecure call trusts every server", function()
    local made <close> = make_site()
    local server <close> = made:serve("stranger")
    equal(made:get(server, "{ tls = { insecure = true } }"), "200\n")
end)

-- promise: docs/http-client.md: | `name` | the name that is sent to the server (SNI), and that its certificate must
-- have | the host of the URL |
test("tls.name sets the name that the certificate must have", function()
    local made <close> = make_site()
    local server <close> = made:serve("other")
    equal(made:get(server, '{ tls = { ca = "DIR/ca.pem", name = "b.example" } }'), "200\n")
end)

-- promise: docs/http-client.md: Idle connections are kept for 15 seconds: 8 for each scheme, host, port and options of TLS
test("a call that verifies uses no connection of one that does not", function()
    local made <close> = make_site()
    local server <close> = made:serve("good")
    local script = ([[
local client = require "sxe.client"
local function try(tls)
  local a, why = client.get("https://127.0.0.1:%d/", { tls = tls })
  print(a and a.status or why)
end
try{ insecure = true }
try{ insecure = true }
try(nil)
try{ ca = "DIR/stranger.pem" }
try{ ca = "DIR/ca.pem" }
try{ ca = "DIR/ca.pem", name = "b.example" }]]):format(server.port):gsub("DIR", made.directory)
    local ran = cli.run("sxe-lua", "-e", script)
    local lines = {}
    for line in (ran.output .. ran.errors):gmatch "[^\n]+" do lines[#lines + 1] = line end
    for i, expected in ipairs{"^200$", "^200$", "^tls: incomplete chain", "^tls: incomplete chain", "^200$",
                              "^tls: the certificate is not for b.example"} do
        check(lines[i] and lines[i]:find(expected), ("%d: %s%s"):format(i, ran.output, ran.errors))
    end
end)

-- promise: docs/http-client.md: | `cert`, `key` | files in PEM with a client certificate and its key, for servers
-- that ask for one | none |
test("a client can send its own certificate", function()
    local made <close> = make_site()
    local server <close> = made:serve("good", "--tls-client-ca", made.directory .. "/ca.pem")
    equal(made:get(server, '{ tls = { ca = "DIR/ca.pem", cert = "DIR/client.pem", key = "DIR/client.key" } }'), "200\n")
    check(not made:get(server, TRUSTED):find("200", 1, true))
end)

-- A server whose handler this text returns; clients may have certificates.
local function serve_handler(made, text)
    local path = made.directory .. "/handler.lua"
    local file <close> = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    return made:serve("good", "--tls-client-ca", made.directory .. "/ca.pem", "--tls-client", "optional", "--lua", path)
end

-- The status and body of that server's reply to a client with this certificate, nil: with none.
local function ask(made, server, name)
    local own = name and (', cert = "DIR/%s.pem", key = "DIR/%s.key"'):format(name, name) or ""
    local script = ([[
local a = assert(require "sxe.client".get("https://127.0.0.1:%d/", {
  tls = { ca = "DIR/ca.pem", name = "a.example"%s } }))
print(a.status, a.body)]]):format(server.port, own):gsub("DIR", made.directory)
    local ran = cli.run("sxe-lua", "-e", script)
    return ran.output .. ran.errors
end

-- promise: docs/tls.md: `req.tls.client` exists only if the certificate leads to an authority of `--tls-client-ca` and
--   was valid in the handshake
test("a handler knows version, names and certificate of its connection", function()
    local made <close> = make_site()
    local server <close> = serve_handler(made, [[
return function(req)
  local t, c = req.tls, req.tls.client
  return table.concat({ t.version, t.sni, t.alpn, tostring(t.resumed), c and c.subject or "-", c and c.issuer or "-",
    c and table.concat(c.names, "+") or "-", c and (c.not_after - c.not_before) // 86400 or "-",
    c and #c.fingerprint or "-" }, " ")
end]])
    equal(ask(made, server), "200\tTLSv1.3 a.example http/1.1 false - - - - -\n")
    equal(ask(made, server, "client"),
          "200\tTLSv1.3 a.example http/1.1 false CN=client CN=authority DNS:client.example+URI:spiffe://a/b 9 64\n")
end)

-- promise: docs/tls.md: a missing name proves nothing; admit only clients whose certificate has an expected name
test("the example lets in clients by their names", function()
    local made <close> = make_site()
    local page <close> = assert(io.open("docs/tls.md"))
    local server <close> = serve_handler(made, page:read("a"):match("\n### In scripts\n.-\n```lua\n(.-)\n```"))
    equal(ask(made, server, "admin"), "200\tHello, CN=admin\n\n")
    for _, name in ipairs{"client", "none"} do
        local said = ask(made, server, name ~= "none" and name or nil)
        equal(said, "403\tyour certificate has no name of an administrator\n\n")
    end
end)
