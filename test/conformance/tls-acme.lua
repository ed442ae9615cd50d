-- SPDX-License-Identifier: MIT
--
-- certbot obtains a certificate from pebble, and renews it, as docs/tls.md says, while clients load sxe-httpd.

local httpd = require "httpd"
local tls_site = require "tls-site"

local WHAT <const> = "certificates from certbot and pebble"
local certbot = tls_site.peer("certbot", "certbot", WHAT)
local pebble = certbot and tls_site.peer("pebble", "pebble", WHAT)
local names = pebble and tls_site.peer("pebble-challtestsrv", "pebble", WHAT)
if not names or not tls_site.peer("openssl", "openssl", WHAT) then
    return
end

local CONFIGURATION <const> = [[
{"pebble": {"listenAddress": "127.0.0.1:%d", "managementListenAddress": "127.0.0.1:%d",
  "certificate": "%s", "privateKey": "%s", "httpPort": %d, "tlsPort": %d}}
]]

local function answers(port)
    local connected, sock = pcall(wire.connect, "127.0.0.1", port)
    if connected then sock:close() end
    return connected
end

-- The authority; its clients are to find a.example at these ports of this machine.
local function start_authority(site, http_port, tls_port)
    local port, dns_port, control = wire.free_port(), wire.free_port(), wire.free_port()
    local path = site:path "pebble.json"
    local file = assert(io.open(path, "w"))
    file:write(CONFIGURATION:format(port, wire.free_port(), site:path "curve.pem", site:path "curve.key", http_port, tls_port))
    file:close()
    local resolver = wire.spawn{names, "-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-dns01", "127.0.0.1:" .. dns_port,
        "-http01", "", "-https01", "", "-tlsalpn01", "", "-management", "127.0.0.1:" .. control}
    local authority = wire.spawn{pebble, "-config", path, "-dnsserver", "127.0.0.1:" .. dns_port,
        env = {PEBBLE_VA_NOSLEEP = "1"}}
    httpd.wait_until(function() return answers(port) and answers(control) end, "pebble listens")
    return port, authority, resolver
end

local function run_certbot(site, ...)
    local words = {"env", "REQUESTS_CA_BUNDLE=" .. site:path "ca.pem", certbot, ...}
    for _, word in ipairs{"--config-dir", site:path "etc", "--work-dir", site:path "lib", "--logs-dir", site:path "log",
                          "--non-interactive"} do
        words[#words + 1] = word
    end
    local is_good, said = tls_site.run(table.unpack(words))
    check(is_good, said)
end

-- Load the server until the block ends; then no request may have failed.
local load = {}
load.__index = load

function load.start(url, ...)
    local proc = wire.spawn{wire.program("sxe-http"), "-q", "-R", "100", "-d", "3600", "--timeout", "60", url,
        ...}
    return setmetatable({proc = proc}, load)
end

function load:__close(failure)
    self.proc:signal("INT")
    local said = self.proc:output(120)
    self.proc:wait(120)
    if failure == nil then
        local ok, errors = said:match "\nrequests  %d+  ok (%d+)  errors (%d+)  in flight"
        equal(errors, "0", said .. self.proc:errors())
        check(tonumber(ok) > 0 and not said:find("not opened", 1, true), said)
    end
end

-- The serial number of the certificate that the server shows.
local function serial(port)
    local _, said = tls_site.run("sh", "-c", ("openssl s_client -connect 127.0.0.1:%d </dev/null 2>/dev/null | "
        .. "openssl x509 -noout -serial"):format(port))
    return said:match "serial=%x+"
end

-- docs/tls.md: No request and no handshake fails while a certificate is renewed.
test("certbot obtains a certificate and renews it under load", function()
    local site <close> = tls_site.new()
    local http_port, tls_port = wire.free_port(), wire.free_port()
    local port, authority, resolver = start_authority(site, http_port, tls_port)
    local first <close> = authority
    local second <close> = resolver
    local www = site:path "www"
    assert(os.execute("mkdir " .. www))
    do
        local file <close> = assert(io.open(www .. "/index.html", "w"))
        file:write "Hello, World!\n"
    end
    local hook = site:path "hook"
    local function set_hook(pid)
        local file <close> = assert(io.open(hook, "w"))
        file:write(("kill -HUP %d\n"):format(pid))
    end
    do
        local server <close> = httpd.start("-p", tostring(http_port), "-r", www)
        set_hook(server.pid)
        local kept <close> = load.start(server.url, "-c", "4")
        local short <close> = load.start(server.url, "-c", "4", "-H", "Connection: close")
        run_certbot(site, "certonly", "--server", ("https://localhost:%d/dir"):format(port), "--agree-tos",
            "--register-unsafely-without-email", "--webroot", "-w", www, "-d", "a.example", "--deploy-hook", "sh " .. hook)
    end
    local live = site:path "etc/live/a.example/"
    local _, user = tls_site.run("id", "-un")
    -- Root's files are read by the supervisor alone.
    user = user:match "%S+" == "root" and "nobody" or user:match "%S+"
    local server <close> = httpd.start_tls("-p", tostring(tls_port), "-w", "4", "-r", www, "--http-redirect",
        tostring(http_port), "--tls-cert", live .. "fullchain.pem", "--tls-key", live .. "privkey.pem", "--user", user)
    set_hook(server.pid)
    local url = ("https://127.0.0.1:%d/"):format(tls_port)
    local kept <close> = load.start(url, "--insecure", "-c", "4")
    local short <close> = load.start(url, "--insecure", "-c", "4", "-H", "Connection: close")
    local resumed <close> = load.start(url, "--insecure", "-c", "4", "-H", "Connection: close", "--tls-resume", "100")
    for _ = 1, 3 do
        local before = serial(tls_port)
        check(before, "no certificate")
        run_certbot(site, "renew", "--force-renewal", "--no-random-sleep-on-renew")
        httpd.wait_until(function()
            local now = serial(tls_port)
            return now and now ~= before
        end, "another certificate")
    end
end)
