-- SPDX-License-Identifier: MIT
--
-- TLS of single listeners, by docs/tls.md and docs/operations.md, with openssl and curl as clients.

local cli = require "cli"
local httpd = require "httpd"

if cli.run("sxe-httpd", "--tls-dev", "--check").status ~= 0 then
    print "skipped: TLS of single listeners, because sxe-httpd was built without OpenSSL 3"
    return
end
for _, program in ipairs{"openssl", "curl"} do
    if not wire.has(program) then
        print(("skipped: TLS of single listeners, because %s is not installed"):format(program))
        return
    end
end

local DIRECTORY <const> = os.tmpname() .. ".d"

-- Run a command of the shell in DIRECTORY. Returns its output and status.
local function run(command)
    local proc <close> = wire.spawn{"sh", "-c", "cd " .. DIRECTORY .. " && " .. command}
    local said = proc:output()
    return said, proc:wait(60)
end

assert(os.execute("mkdir " .. DIRECTORY))
local _, made = run [[
    new="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9" &&
    openssl req -x509 $new -keyout ca.key -out ca.pem -subj /CN=authority -addext basicConstraints=critical,CA:TRUE &&
    openssl req -x509 $new -keyout server.key -out server.pem -subj /CN=a.example -addext subjectAltName=DNS:a.example &&
    openssl req $new -keyout client.key -out client.csr -subj /CN=client &&
    openssl x509 -req -in client.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 9 -out client.pem]]
equal(made, 0)

-- Start sxe-httpd with that certificate. Returns the server and its places, in the order of the options.
local function start(...)
    local proc = wire.spawn{wire.program "sxe-httpd", "--tls-cert", DIRECTORY .. "/server.pem", "--tls-key",
                            DIRECTORY .. "/server.key", "--tls-client-ca", DIRECTORY .. "/ca.pem", ...}
    local places, count = {}, 0
    for _, word in ipairs{...} do
        count = count + (word == "--listen" and 1 or 0)
    end
    for i = 1, count do
        local line = proc:line(60)
        places[i] = line and line:match "^listening on (.+)$" or error(("%q and %q"):format(line, proc:errors()))
    end
    return setmetatable({proc = proc, pid = proc:pid()}, httpd), places
end

local OWN <const> = "--cert client.pem --key client.key"

-- The body of a reply to curl, "" if there is none.
local function ask(place, arguments)
    local path = place:match "^unix:(.*), with TLS$"
    return (run(("curl -sk %s %s"):format(arguments or "",
                                          path and "--unix-socket " .. path .. " https://localhost/" or place)))
end

-- promise: docs/tls.md: `--listen PLACE,client=off`, `client=optional` and `client=required` replace `--tls-client`
-- for one listener.
test("listeners differ in the certificates of clients that they demand", function()
    local server <close>, places = start("--listen", "0,client=off", "--listen", "0,client=optional", "--listen",
                                         "0,client=required", "--listen", "0")
    for i, is_open in ipairs{true, true, false, false} do
        check(places[i]:find "^https:", places[i])
        equal(ask(places[i]), is_open and httpd.BODY or "", places[i])
        equal(ask(places[i], OWN), httpd.BODY, places[i])
    end
end)

-- promise: docs/tls.md: A session that began at a listener with another `client` is not resumed.
test("a session without a certificate opens no listener that demands one", function()
    local server <close>, places = start("--listen", "0,client=off", "--listen", "0,client=required")
    local ports = {places[1]:match ":(%d+)/", places[2]:match ":(%d+)/"}
    for _, version in ipairs{"-tls1_2", "-tls1_3"} do
        local function connect(port, arguments)
            return run(("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | openssl s_client -ign_eof %s -connect 127.0.0.1:%s %s 2>&1")
                :format(version, port, arguments))
        end
        local first = connect(ports[1], "-sess_out session.pem")
        check(first:find(httpd.BODY, 1, true), first)
        local again = connect(ports[1], "-sess_in session.pem")
        check(again:find("Reused, TLS", 1, true) and again:find(httpd.BODY, 1, true), again)
        local other = connect(ports[2], "-sess_in session.pem")
        check(not other:find(httpd.BODY, 1, true), other)
    end
end)

-- promise: docs/tls.md: with `--listen PATH,tls` a unix socket speaks TLS.
test("a unix socket speaks TLS if its place says so", function()
    local path = DIRECTORY .. "/a.sock"
    local server <close>, places = start("--listen", path .. ",tls", "--listen", path .. "2,client=off", "--listen",
                                         path .. "3")
    equal(places[1], "unix:" .. path .. ", with TLS")
    equal(ask(places[1]), "")
    equal(ask(places[1], OWN), httpd.BODY)
    equal(ask(places[2]), httpd.BODY)
    equal(places[3], "unix:" .. path .. "3")
    equal(run(("curl -s --unix-socket %s3 http://localhost/"):format(path)), httpd.BODY)
end)

os.execute("rm -r " .. DIRECTORY)
