-- SPDX-License-Identifier: MIT
-- Sessions and authorities of TLS, by docs/tls.md, with the openssl command as the client of sxe-httpd.

local cli = require "cli"
local httpd = require "httpd"

local function run(command)
    local proc <close> = wire.spawn{"sh", "-c", command .. " 2>&1"}
    local said = proc:output(120)
    return proc:wait(120) == 0, said
end

if cli.run("sxe-httpd", "--tls-dev", "--check").status ~= 0 or not run "openssl version" then
    print("skipped: sessions of TLS, because OpenSSL 3 or the openssl command is not there")
    return
end

local directory = os.tmpname()
os.remove(directory)
assert(os.execute("mkdir " .. directory))

-- Run openssl in the directory.
local function openssl(...)
    local is_good, said = run(("cd %s && openssl %s"):format(directory, string.format(...)))
    check(is_good, said)
end

-- What openssl s_client says of a connection on which it sends a request.
local function connect(server, options)
    local _, said = run(("cd %s && printf 'GET / HTTP/1.0\\r\\n\\r\\n' | openssl s_client -ign_eof -connect 127.0.0.1:%d %s")
        :format(directory, server.port, options))
    return said
end

-- promise: docs/tls.md: A session of TLS 1.2 is resumed for its own server name only.
test("a session of TLS 1.2 is resumed for its own name", function()
    local server <close> = httpd.start_tls("--tls-dev")
    check(connect(server, "-tls1_2 -servername a.example -sess_out session"):find("\nNew, TLSv1.2", 1, true), "the first")
    local again = connect(server, "-tls1_2 -servername a.example -sess_in session")
    check(again:find("\nReused, TLSv1.2", 1, true), again)
    for _, name in ipairs{"-servername b.example", "-noservername"} do
        local other = connect(server, "-tls1_2 " .. name .. " -sess_in session")
        check(other:find("\nNew, TLSv1.2", 1, true), other)
        check(other:find("HTTP/1.1 200", 1, true), other)
    end
end)

-- promise: docs/tls.md: requires a client certificate that one of these authorities, in PEM, signed; they need not be
-- roots
test("an authority of clients that is no root counts, and its root's other children do not", function()
    openssl "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=root -keyout root.key -out root.pem"
    local function make(name, by, extensions)
        openssl("req -newkey rsa:2048 -nodes -subj /CN=%s -keyout %s.key -out %s.csr", name, name, name)
        openssl("x509 -req -in %s.csr -CA %s.pem -CAkey %s.key -CAcreateserial -days 2 -out %s.pem -extfile %s", name, by, by,
                name, extensions)
    end
    for file, text in pairs{ca = "basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign\n",
                            leaf = "basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth\n"} do
        local out <close> = assert(io.open(directory .. "/" .. file, "w"))
        out:write(text)
    end
    make("team", "root", "ca")
    make("others", "root", "ca")
    make("ann", "team", "leaf")
    make("eve", "others", "leaf")
    local server <close> = httpd.start_tls("--tls-dev", "--tls-client-ca", directory .. "/team.pem")
    local ann = connect(server, "-cert ann.pem -key ann.key")
    check(ann:find("HTTP/1.1 200", 1, true), ann)
    for _, options in ipairs{"-cert eve.pem -key eve.key", "-cert eve.pem -key eve.key -cert_chain others.pem", ""} do
        local refused = connect(server, options)
        check(not refused:find("HTTP/1.1 200", 1, true), refused)
    end
end)

-- promise: docs/tls.md: A session ends one lifetime of a key after its full handshake, however often it was resumed,
-- and when the certificate of the peer expires. Then the next handshake is a full one again.
test("a session ends with the client's certificate", function()
    openssl "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout authority.key -out authority.pem"
    openssl "req -newkey rsa:2048 -nodes -subj /CN=bob -keyout bob.key -out bob.csr"
    do
        local out <close> = assert(io.open(directory .. "/ca.cnf", "w"))
        out:write "[ca]\ndefault_ca=a\n[a]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ncertificate=authority.pem\n"
        out:write "private_key=authority.key\ndefault_md=sha256\npolicy=p\nunique_subject=no\n[p]\ncommonName=supplied\n"
    end
    check(os.execute(("cd %s && : > index && echo 01 > serial"):format(directory)))
    local server <close> = httpd.start_tls("--tls-dev", "--tls-client-ca", directory .. "/authority.pem")

    -- A certificate of so many seconds; false: the machine was too slow for it.
    local function try(seconds)
        local finish = os.time() + seconds
        openssl("ca -batch -notext -config ca.cnf -in bob.csr -out bob.pem -startdate %s -enddate %s",
                os.date("!%y%m%d%H%M%SZ", finish - 86400), os.date("!%y%m%d%H%M%SZ", finish))
        for _, version in ipairs{"-tls1_2", "-tls1_3"} do
            local first = connect(server, version .. " -cert bob.pem -key bob.key -sess_out session" .. version)
            local again = connect(server, version .. " -cert bob.pem -key bob.key -sess_in session" .. version)
            if os.time() >= finish then return false end
            check(first:find("\nNew, TLSv1", 1, true) and first:find("HTTP/1.1 200", 1, true), first)
            check(again:find("\nReused, TLSv1", 1, true) and again:find("HTTP/1.1 200", 1, true), again)
        end
        repeat wire.sleep(0.2) until os.time() > finish + 1
        for _, version in ipairs{"-tls1_2", "-tls1_3"} do
            local late = connect(server, version .. " -cert bob.pem -key bob.key -sess_in session" .. version)
            check(not late:find("HTTP/1.1 200", 1, true), late)
        end
        return true
    end

    local seconds = 3
    while not try(seconds) do seconds = 2 * seconds end
end)

os.execute("rm -r " .. directory)
