-- SPDX-License-Identifier: MIT
--
-- Upstreams that ask the proxy for a certificate, by docs/proxy.md: nginx, and openssl s_server with TLS 1.2 and 1.3.

local cli = require "cli"
local http = require "http"
local httpd = require "httpd"

local request = http.request

if cli.run("sxe-httpd", "--tls-dev", "--check").status ~= 0 or not wire.has "openssl" then
    print "skipped: upstreams that ask for certificates, because OpenSSL 3 or the openssl command is not there"
    return
end

-- root signs server and proxy; other signs itself.
local MAKE <const> = [[
set -e
cd "$1"
new="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9"
openssl req -x509 $new -subj /CN=root -keyout root.key -out root.pem
openssl req -x509 $new -subj /CN=other -keyout other.key -out other.pem
for name in server proxy; do
    openssl req $new -subj /CN=$name -keyout $name.key -out $name.csr
    printf 'subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n' >$name.ext
    openssl x509 -req -in $name.csr -CA root.pem -CAkey root.key -CAcreateserial -days 9 -extfile $name.ext -out $name.pem
done
]]

local directory = os.tmpname()
os.remove(directory)
assert(os.execute("mkdir " .. directory))
local maker <close> = wire.spawn{"sh", "-c", MAKE, "sh", directory}
maker:output(120)
check(maker:wait(120) == 0, maker:errors())
local function file(name) return directory .. "/" .. name end

local function write(name, text)
    local to <close> = assert(io.open(file(name), "w"))
    to:write(text)
    return file(name)
end

-- The reply to a GET through a proxy with these options; the log must have `says`. Each GET is the last of its
-- connection: s_server tells no length, so the reply is read until the proxy closes, else after an idle minute.
local function ask(port, status, says, ...)
    local proxy <close> = httpd.start("--proxy", "/=https://127.0.0.1:" .. port, "--proxy-tls-ca", file "root.pem", ...)
    local reply = http.ask(proxy, request("GET /a", "Connection: close"))
    equal(reply.status, status, proxy.proc:errors())
    if says then
        httpd.wait_until(function() return proxy.proc:errors():find(says) end, says)
    end
    return reply
end

local function pair(name) return "--proxy-tls-cert", file(name .. ".pem"), "--proxy-tls-key", file(name .. ".key") end

-- promise: docs/proxy.md: If the server refuses the certificate, or asks for one and there is none, the client gets 502.
--   The line in the log has the alert of the server, or the status of its reply if it answers over HTTP (nginx answers 400):
test("openssl s_server with TLS 1.2 and 1.3 gets the certificate; without it, or with another one, 502 and a line", function()
    for _, version in ipairs{"-tls1_2", "-tls1_3"} do
        local port = wire.free_port()
        local app <close> = wire.spawn{"openssl", "s_server", "-accept", "127.0.0.1:" .. port, "-key", file "server.key",
            "-cert", file "server.pem", "-CAfile", file "root.pem", "-Verify", "2", "-verify_return_error", "-www", version}
        local line
        repeat line = app:line(60) until not line or line:match "^ACCEPT"
        check(line, "openssl s_server does not listen")
        check(ask(port, 200, nil, pair "proxy").body:find("Subject: CN ?= ?proxy"), "the server has the certificate")
        ask(port, 502, version == "-tls1_3" and ": tlsv13 alert certificate required: GET /a is answered 502"
            or ": [^:]*alert handshake failure: GET /a is answered 502")
        ask(port, 502, ": [^:]*alert [^:]*: GET /a is answered 502", pair "other")
    end
end)

-- promise: docs/proxy.md: `tls_cert` is a file in PEM with the certificate, which may be followed by those of its issuers.
test("nginx with ssl_verify_client gets the certificate of an upstream in a configuration file", function()
    if not wire.has "nginx" then
        print "skipped: nginx that asks for certificates, because it is not installed"
        return
    end
    local front <close> = wire.listen("127.0.0.1", 0)
    local app <close> = wire.spawn{wire.has "nginx", "-g", "daemon off;", "-c", write("nginx.conf", ([[
        error_log stderr crit;
        pid DIR/nginx.pid;
        events { }
        http {
            access_log off;
            client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi;
            uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
            server {
                listen 127.0.0.1:PORT ssl;
                ssl_certificate DIR/server.pem; ssl_certificate_key DIR/server.key;
                ssl_verify_client on; ssl_client_certificate DIR/root.pem;
                return 200 "$ssl_client_s_dn";
            }
        }]]):gsub("DIR", directory):gsub("PORT", front:port())), pass = {front}, env = {NGINX = "3;"}}
    local function with(text)
        return "--config", write("site.lua", ([[return { upstreams = { app = { servers = "https://127.0.0.1:%d",
            tls_ca = %q %s } }, routes = { ["/{rest...}"] = { proxy = "app" } } }]]):format(front:port(), file "root.pem", text))
    end
    local function keys(name) return (", tls_cert = %q, tls_key = %q"):format(file(name .. ".pem"), file(name .. ".key")) end
    do
        local proxy <close> = httpd.start(with(keys "proxy"))
        equal(http.ask(proxy, request "GET /a").body, "CN=proxy")
        local client <close> = proxy:connect()
        client:send(request("POST /a", "Content-Length: 3") .. "abc")
        equal(client:read_reply().body, "CN=proxy")
    end
    for _, text in ipairs{"", keys "other"} do
        local proxy <close> = httpd.start(with(text))
        equal(http.ask(proxy, request "GET /a").status, 400)
    end
    app:signal("TERM")
    app:wait(60)
end)

-- promise: docs/proxy.md: `tls_key` is the file of its key, in PEM, without a password.
test("files that are missing, that do not belong together, or only one of them, are found by --check", function()
    local function refused(says, ...)
        cli.check_refused(says, "sxe-httpd", "--proxy", "/a=https://127.0.0.1:1", "--check", ...)
    end
    refused("cannot speak TLS with an upstream", pair "none")
    refused("cannot speak TLS with an upstream", "--proxy-tls-cert", file "proxy.pem", "--proxy-tls-key", file "other.key")
    refused("--proxy-tls-cert and --proxy-tls-key need each other", "--proxy-tls-cert", file "proxy.pem")
    refused("--proxy-tls-cert and --proxy-tls-key need each other", "--proxy-tls-key", file "proxy.key")
    check(os.execute(("openssl pkey -in %s -aes256 -passout pass:secret -out %s"):format(file "proxy.key", file "closed.key")))
    refused("cannot speak TLS with an upstream", "--proxy-tls-cert", file "proxy.pem", "--proxy-tls-key", file "closed.key")
end)

os.execute("rm -r " .. directory)
