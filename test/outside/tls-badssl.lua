-- SPDX-License-Identifier: MIT
--
-- The cases of badssl.com, by docs/tls.md, with authorities of our own: a server has a certificate for each case, and
-- sxe-http, sxe.client and a proxy must refuse all but the good ones, and say why.

local cli = require "cli"
local httpd = require "httpd"

if cli.run("sxe-httpd", "--tls-dev", "--check").status ~= 0 or not wire.has "openssl" then
    print("skipped: certificates that are wrong, because OpenSSL 3 or the openssl command is not there")
    return
end

-- Make NAME.pem and NAME.key for each case; revoked.der and good.der are staples.
local MAKE <const> = [[
set -e
cd "$1"
new="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
authority() {
    openssl req $new -subj /CN=$1 -keyout $1.key -out $1.csr
    : >$1.index
    cat >$1.cnf <<END
[ca]
default_ca=a
[a]
database=$1.index
serial=$1.serial
rand_serial=yes
new_certs_dir=.
certificate=$1.pem
private_key=$1.key
default_md=sha256
default_days=9
policy=p
unique_subject=no
[p]
commonName=supplied
[root]
basicConstraints=critical,CA:TRUE
keyUsage=critical,keyCertSign
END
}
sign() { # sign AUTHORITY NAME argument...
    by=$1 of=$2
    shift 2
    openssl ca -batch -notext -config $by.cnf -in $of.csr -out $of.pem "$@"
}
leaf() { # leaf AUTHORITY NAME ALTERNATIVE argument...
    by=$1 of=$2
    openssl req $new -subj /CN=$of -keyout $of.key -out $of.csr
    printf 'subjectAltName=%s\nbasicConstraints=CA:FALSE\n' "$3" >$of.ext
    shift 3
    sign $by $of -extfile $of.ext "$@"
}
authority root
openssl req -x509 -key root.key -subj /CN=root -days 9 -out root.pem -addext keyUsage=critical,keyCertSign
authority between
sign root between -config root.cnf -extensions root
leaf root good DNS:good.example
leaf root expired DNS:expired.example -startdate 200101000000Z -enddate 200201000000Z
leaf root early DNS:early.example -startdate 490101000000Z -enddate 490201000000Z
leaf root wildcard DNS:*.wild.example
leaf root revoked DNS:revoked.example
leaf between incomplete DNS:incomplete.example
openssl req -x509 $new -subj /CN=self -days 9 -keyout self.key -out self.pem -addext subjectAltName=DNS:self.example
openssl ca -config root.cnf -revoke revoked.pem
for name in good revoked; do
    openssl ocsp -index root.index -CA root.pem -rsigner root.pem -rkey root.key -issuer root.pem -cert $name.pem \
        -ndays 2 -respout $name.der
done
]]

local CASES <const> = {
    {"good.example"},
    {"www.wild.example"},
    {"expired.example", 'the certificate of "expired" has expired: it was valid until 2020-02-01 00:00:00 UTC'},
    {"early.example", 'the certificate of "early" is not yet valid: it will be from 2049-01-01 00:00:00 UTC'},
    {"wrong.example", "the certificate is not for wrong.example, but for good.example"},
    {"a.www.wild.example", "the certificate is not for a.www.wild.example, but for good.example"},
    {"self.example", 'self-signed: no trusted authority stands for the certificate of "self"'},
    {"incomplete.example", 'incomplete chain: the certificate of the issuer "between" was not sent, and is not trusted'},
    {"revoked.example", 'the certificate of "revoked" was revoked on 20'},
}

local directory = os.tmpname()
os.remove(directory)
assert(os.execute("mkdir " .. directory))
local maker <close> = wire.spawn{"sh", "-c", MAKE, "sh", directory}
maker:output(120)
check(maker:wait(120) == 0, maker:errors())
local function file(name) return directory .. "/" .. name end

local options = {}
for _, name in ipairs{"good", "revoked", "expired", "early", "wildcard", "self", "incomplete"} do
    for _, word in ipairs{"--tls-cert", file(name .. ".pem"), "--tls-key", file(name .. ".key")} do
        options[#options + 1] = word
    end
end
local server <close> = httpd.start_tls("--tls-staple", file "good.der", "--tls-staple", file "revoked.der",
    table.unpack(options))
local url <const> = ("https://127.0.0.1:%d/"):format(server.port)

-- promise: docs/load-generator.md: The server's certificate must lead to a trusted authority, be valid at this time,
test("sxe-http refuses certificates that are wrong, and says why", function()
    for _, case in ipairs(CASES) do
        local ran = cli.run("sxe-http", "-q", "-c", "1", "-n", "1", "--timeout", "120", "--tls-ca", file "root.pem",
            "--tls-name", case[1], url)
        local said = ran.output .. ran.errors
        check(said:find(case[2] or "requests  1  ok 1  errors 0", 1, true), case[1] .. ": " .. said)
    end
end)

-- promise: docs/http-client.md: The client verifies the server's certificate: it must lead to an authority of the
-- system, be valid at this time, and have the host's name or address.
test("sxe.client refuses certificates that are wrong, and says why", function()
    for _, case in ipairs(CASES) do
        local ran = cli.run("sxe-lua", "-e", ([[
            local a, why = require "sxe.client".get("%s", { timeout = 120, tls = { ca = "%s", name = "%s" } })
            print(a and a.body or why)]]):format(url, file "root.pem", case[1]))
        local said = ran.output .. ran.errors
        check(said:find(case[2] and "tls: " .. case[2] or "Hello, World!", 1, true), case[1] .. ": " .. said)
    end
end)

-- promise: docs/proxy.md: A refused server gets no byte of the request, and the line in the log says why:
test("a proxy refuses upstreams whose certificates are wrong, and says why", function()
    for _, case in ipairs(CASES) do
        local proxy <close> = httpd.start("--proxy", "/=" .. url, "--proxy-tls-ca", file "root.pem", "--proxy-tls-name", case[1])
        local sock <close> = proxy:connect()
        sock:send(httpd.LAST)
        local said = sock:recv_all()
        check(said:find(case[2] and "^HTTP/1.1 502 " or "^HTTP/1.1 200 "), case[1] .. ": " .. said)
        if case[2] then
            httpd.wait_until(function() return proxy.proc:errors():find(case[2], 1, true) end, case[2])
        end
    end
end)

os.execute("rm -r " .. directory)
