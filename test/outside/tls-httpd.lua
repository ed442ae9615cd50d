-- SPDX-License-Identifier: MIT
-- HTTPS of sxe-httpd, by docs/tls.md, with curl, openssl and Python as clients.

local cli = require "cli"
local httpd = require "httpd"

if cli.run("sxe-httpd", "--tls-dev", "--check").status ~= 0 then
    print("skipped: HTTPS of sxe-httpd, because it was built without OpenSSL 3")
    return
end

local function is_installed(command)
    local proc <close> = wire.spawn{"sh", "-c", command .. " >/dev/null 2>&1"}
    return proc:wait(60) == 0
end

local clients = {
    curl = {"curl --version", "curl -sk https://127.0.0.1:PORT/"},
    openssl = {"openssl version", "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | openssl s_client -quiet -ign_eof "
        .. "-connect 127.0.0.1:PORT 2>/dev/null"},
    python3 = {"python3 -c 'import ssl'", "python3 -c 'import ssl, urllib.request as r; "
        .. "c = ssl._create_unverified_context(); "
        .. "print(r.urlopen(\"https://127.0.0.1:PORT/\", context=c).read().decode())'"},
}

-- promise: docs/tls.md: With `--tls-cert` and `--tls-key`, or with `--tls-dev`, `sxe-httpd` speaks HTTPS at its
-- address and port.
test("curl, openssl and Python get a reply over TLS", function()
    local server <close> = httpd.start_tls("--tls-dev")
    for name, client in pairs(clients) do
        if is_installed(client[1]) then
            local proc <close> = wire.spawn{"sh", "-c", (client[2]:gsub("PORT", server.port))}
            local said = proc:output()
            proc:wait(60)
            check(said:find("Hello, World!", 1, true), name .. " got " .. said .. proc:errors())
        else
            print("skipped: HTTPS with " .. name .. ", because it is not installed")
        end
    end
end)

-- promise: docs/tls.md: A client that speaks plain HTTP there gets 400.
test("a client without TLS is told what the port speaks", function()
    local server <close> = httpd.start_tls("--tls-dev")
    local sock <close> = server:connect()
    sock:send(httpd.GET)
    local said = sock:recv_all()
    check(said:find("^HTTP/1.1 400 Bad Request\r\n"), said)
    check(said:find("This port speaks HTTPS.\n", 1, true), said)
end)

-- The head of a reply that curl gets with these arguments.
local function head_by_curl(server, ...)
    local proc <close> = wire.spawn{"curl", "-ski", ("https://127.0.0.1:%d/"):format(server.port), ...}
    local said = proc:output()
    proc:wait(60)
    return said
end

local function has_curl()
    local has = is_installed(clients.curl[1])
    if not has then
        print("skipped: HSTS and profiles of HTTPS, because curl is not installed")
    end
    return has
end

-- promise: docs/tls.md: adds `Strict-Transport-Security: max-age=SECONDS` to replies: browsers then use HTTPS only
test("browsers are told to use HTTPS only", function()
    if has_curl() then
        local server <close> = httpd.start_tls("--tls-dev", "--hsts", "2m")
        local said = head_by_curl(server)
        check(said:find("\nStrict%-Transport%-Security: max%-age=120\r\n"), said)
    end
end)

-- promise: docs/observability.md: `$ssl_protocol` | the version of TLS, `TLSv1.3`
test("the access log has the version of TLS", function()
    if not has_curl() then return end
    local log = os.tmpname()
    do
        local server <close> = httpd.start_tls("--tls-dev", "--access-log", log,
                                                        "--access-log-format", "$ssl_protocol $scheme $status")
        head_by_curl(server)
        head_by_curl(server, "--tls-max", "1.2")
    end
    local file <close> = assert(io.open(log))
    os.remove(log)
    equal(file:read "a", "TLSv1.3 https 200\nTLSv1.2 https 200\n")
end)

-- promise: docs/tls.md: With ALPN the server offers `http/1.1` and `http/1.0`
test("a client of HTTP/1.0 may say so by ALPN", function()
    if has_curl() then
        local server <close> = httpd.start_tls("--tls-dev")
        check(head_by_curl(server, "-0"):find("^HTTP/1.1 200 "))
    end
end)

-- promise: docs/tls.md: serves TLS 1.3 only
test("the modern profile serves TLS 1.3 only", function()
    if has_curl() then
        local server <close> = httpd.start_tls("--tls-dev", "--tls-profile", "modern")
        check(head_by_curl(server):find("^HTTP/1.1 200 "))
        equal(head_by_curl(server, "--tls-max", "1.2"), "")
    end
end)

-- promise: docs/tls.md: A redirect leads to the host of the request if a certificate has that name, and otherwise to
--   the first name of the first certificate: a client cannot choose another host.
test("plain HTTP is redirected to HTTPS at a host of the certificate", function()
    local server <close> = httpd.start_tls("--tls-dev", "--http-redirect", "0")
    local line = server.proc:line(60)
    local port = line:match("^listening on http://127%.0%.0%.1:(%d+)/, to redirect to HTTPS$")
    local plain = setmetatable({ip = server.ip, port = tonumber(port)}, httpd)
    for _, host in ipairs{"localhost", "LOCALHOST:80", "evil.example", "evil.example#localhost"} do
        local sock <close> = plain:connect()
        sock:send(("GET /a?b HTTP/1.1\r\nHost: %s\r\n\r\n"):format(host))
        local said = sock:recv_all()
        local status, location = said:match("^HTTP/1.1 (%d+) .-\r\nLocation: (%C+)\r\n")
        if host:find("#", 1, true) then
            check(said:find("^HTTP/1.1 400 "), said)
        else
            equal(status, "308")
            equal(location:lower(), ("https://localhost:%d/a?b"):format(server.port))
        end
    end
end)

-- promise: docs/tls.md: answers requests of plain HTTP at `[IP:]PORT` with 308, and the same path and query by HTTPS
test("a request of plain HTTP is answered with the same path and query by HTTPS", function()
    local server <close> = httpd.start_tls("--tls-dev", "--http-redirect", "127.0.0.1:0")
    local port = server.proc:line(60):match("^listening on http://127%.0%.0%.1:(%d+)/")
    local plain = setmetatable({ip = server.ip, port = tonumber(port)}, httpd)
    local sock <close> = plain:connect()
    sock:send("GET /path/of%20it?q=1&r HTTP/1.1\r\nHost: localhost\r\n\r\n")
    local said = sock:recv_all()
    check(said:find("^HTTP/1.1 308 "), said)
    check(said:find(("\r\nLocation: https://localhost:%d/path/of%%20it?q=1&r\r\n"):format(server.port), 1, true), said)
end)

-- promise: docs/tls.md: --proxy-from cannot be combined with TLS.
test("PROXY headers and TLS are refused together", function()
    local proc <close> = wire.spawn{wire.program("sxe-httpd"), "--tls-dev", "--proxy-from", "::1"}
    equal(proc:wait(60), 2)
    check(proc:errors():find("--proxy-from does not go with TLS", 1, true), proc:errors())
end)

-- promise: docs/tls.md: a program that does not use it does not link OpenSSL.
test("sxe-pool links no OpenSSL", function()
    local proc <close> = wire.spawn{"ldd", wire.program("sxe-pool")}
    local said = proc:output()
    equal(proc:wait(60), 0)
    check(not said:find("libssl", 1, true), said)
end)
