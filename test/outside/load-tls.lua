-- SPDX-License-Identifier: MIT
--
-- sxe-http over TLS, by docs/load-generator.md, with sxe-httpd as the server and certificates made by openssl.

local cli = require "cli"

if cli.run("sxe-httpd", "--tls-dev", "--check").status ~= 0 then
    print("skipped: https of sxe-http, because it was built without OpenSSL 3")
    return
end

local function shell(command)
    local proc <close> = wire.spawn{"sh", "-c", command}
    proc:output()
    return proc:wait(60) == 0
end

local has_openssl = shell("openssl version 2>&1")
if not has_openssl then
    print("skipped: certificates of https for sxe-http, because openssl is not installed")
end

-- Start a server; returns the process and its port.
local function start(...)
    local proc = wire.spawn{wire.program("sxe-httpd"), "-p", "0", ...}
    local first = proc:line(60)
    local port = first and first:match("^listening on https://127%.0%.0%.1:(%d+)/$")
    check(port, ("%q and %q"):format(first, proc:errors()))
    return proc, port
end

-- Run two connections with three requests each.
local function run(...)
    local proc <close> = wire.spawn{wire.program("sxe-http"), "-q", "-c", "2", "-n", "3", "--timeout", "60", ...}
    local said = proc:output()
    return {status = proc:wait(60), output = said, errors = proc:errors()}
end

local function url(port)
    return ("https://127.0.0.1:%s/"):format(port)
end

local function has(text, part)
    check(text:find(part, 1, true), text)
end

-- promise: docs/load-generator.md: With `--insecure` the report and a line on standard error say `INSECURE`, and
-- `is_insecure` of the JSON is true.
test("with --insecure any certificate is accepted, and the report says so", function()
    local server <close>, port = start("--tls-dev")
    local ran = run("--insecure", url(port))
    has(ran.output, "INSECURE")
    has(ran.output, "requests  6  ok 6  errors 0")
    has(ran.errors, "--insecure: the server's certificate is not verified")
    ran = run("--insecure", "--json", "-", url(port))
    check(ran.output:find('"is_insecure": ?true'), ran.output)
end)

-- promise: docs/load-generator.md: A connection whose handshake fails counts as not opened: `TLS failed`, with the
-- reason of the first failure in words.
test("a self-signed certificate is refused, and the report says so", function()
    local server <close>, port = start("--tls-dev")
    local ran = run(url(port))
    equal(ran.status, 1)
    has(ran.output, "opened    0/2 connections")
    has(ran.output, "TLS failed 2")
    has(ran.output, "(first: self-signed: ")
end)

-- promise: docs/load-generator.md: The server's certificate must lead to a trusted authority, be valid at this time,
-- and have the URL's host as a name or an address.
test("a certificate is accepted for its own names only", function()
    if not has_openssl then
        return
    end
    local base = os.tmpname()
    local key, cert = base .. ".key", base .. ".pem"
    check(shell(("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout %s -out %s -days 2 "
        .. "-subj /CN=a -addext subjectAltName=DNS:a.example 2>&1"):format(key, cert)))
    do
        local server <close>, port = start("--tls-cert", cert, "--tls-key", key)
        local ran = run("--tls-ca", cert, url(port))
        equal(ran.status, 1)
        has(ran.output, "(first: the certificate is not for 127.0.0.1, but for a.example)")
        ran = run("--tls-ca", cert, "--tls-name", "a.example", url(port))
        has(ran.output, "requests  6  ok 6  errors 0")
    end
    for _, path in ipairs{base, key, cert} do
        os.remove(path)
    end
end)

-- promise: docs/load-generator.md: If a file cannot be used, `sxe-http` says so before the run: the exit status is 2.
test("a missing file of authorities is reported before the run", function()
    local ran = run("--tls-ca", "/none", url(1))
    equal(ran.status, 2)
    has(ran.errors, "/none")
    equal(ran.output, "")
end)

-- promise: docs/load-generator.md: All URLs of a run are either http or https.
test("URLs of http and https are not mixed", function()
    local ran = run(url(1), "http://127.0.0.1:1/")
    equal(ran.status, 2)
    has(ran.errors, "a run has either http or https URLs")
end)

-- promise: docs/load-generator.md: TLS cannot be combined with `--unix`, `--proxy` or a scenario that has `steps`.
test("options that cannot be combined with TLS are refused", function()
    for _, words in ipairs{{"--unix", "/x"}, {"--proxy", "1"}} do
        local ran = run(words[1], words[2], url(1))
        equal(ran.status, 2)
        has(ran.errors, "https cannot be combined with " .. words[1])
    end
    local path = os.tmpname()
    local file = io.open(path, "w")
    file:write('return {steps = {{path = "/"}}}\n')
    file:close()
    local ran = run("--scenario", path, url(1))
    os.remove(path)
    equal(ran.status, 2)
    has(ran.errors, "it cannot be combined with https")
end)

-- promise: docs/load-generator.md: By default each connection makes a full handshake, so `-H 'Connection: close'`
-- measures full handshakes. With `--tls-resume 50` every other connection resumes a session that the server gave to
-- an earlier connection of the same worker.
test("--tls-resume sets the share of connections that resume a session", function()
    local server <close>, port = start("--tls-dev")
    local ran = run("--insecure", "-c", "1", "-n", "8", "-H", "Connection: close", url(port))
    has(ran.output, "TLS       handshakes: 8 full, 0 resumed (0 %)")
    ran = run("--insecure", "-c", "1", "-n", "8", "-H", "Connection: close", "--tls-resume", "50", url(port))
    has(ran.output, "TLS       handshakes: 5 full, 3 resumed (37.5 %)  no session to resume for 1")
    ran = run("--insecure", "-c", "1", "-n", "8", "-H", "Connection: close", "--tls-resume", "100", "--json", "-",
        url(port))
    check(ran.output:find('"tls": ?{%s*"full": ?1,%s*"resumed": ?7,%s*"refused": ?0,%s*"sessionless": ?1%s*}'),
        ran.output)
end)

-- promise: docs/load-generator.md: With a server that gives no tickets the report says `no session to resume`.
test("a server without tickets is reported", function()
    if not has_openssl then
        return
    end
    local base = os.tmpname()
    local key, cert = base .. ".key", base .. ".pem"
    check(shell(("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout %s -out %s -days 2 "
        .. "-subj /CN=a -addext subjectAltName=DNS:a.example 2>&1"):format(key, cert)))
    local peer_port = wire.free_port()
    local peer <close> = wire.spawn{"openssl", "s_server", "-accept", "127.0.0.1:" .. peer_port, "-key", key,
        "-cert", cert, "-www", "-num_tickets", "0", "-naccept", "3"}
    local line
    repeat
        line = peer:line(60)
    until not line or line:match("^ACCEPT")
    check(line, "openssl s_server does not listen")
    local ran = run("--insecure", "-c", "1", "-n", "3", "--tls-resume", "100", url(peer_port))
    has(ran.output, "0 resumed (0 %)  no session to resume for 3")
    for _, path in ipairs{base, key, cert} do
        os.remove(path)
    end
end)
