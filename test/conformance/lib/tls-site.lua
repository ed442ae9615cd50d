-- SPDX-License-Identifier: MIT
--
-- An authority and certificates of localhost that it signed, as a public authority would make them, in a directory of
-- their own: `local site <close> = tls_site.new()`. It has ca.pem, and curve.pem and rsa.pem with their .key.

local site = {}
site.__index = site

local MAKE = [[
set -e
cd "$1"
curve="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
openssl req -x509 $curve -keyout ca.key -out ca.pem -subj /CN=authority -days 80 \
    -addext keyUsage=critical,keyCertSign,cRLSign
cat >names <<END
subjectAltName=DNS:localhost,IP:127.0.0.1
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
crlDistributionPoints=URI:http://localhost/crl
END
for kind in curve rsa; do
    openssl req $([ $kind = curve ] && echo "$curve" || echo "-newkey rsa:2048 -nodes") -keyout $kind.key -out $kind.csr \
        -subj /CN=localhost
    openssl x509 -req -in $kind.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 80 -extfile names -out $kind.pem
done
]]

-- Whether a command ends well; its output.
function site.run(...)
    local proc <close> = wire.spawn{...}
    local said = proc:output(1200)
    return proc:wait(1200) == 0, said .. proc:errors()
end

-- The path of a program, or nil after a line that says what is skipped without it.
function site.peer(path, package, what)
    local found = path:find("/", 1, true) and site.run("test", "-x", path) and path or wire.has(path)
    if not found then
        print(("skipped: %s, because %s is not installed"):format(what, package))
    end
    return found or nil
end

-- The path of a Python that has this module of requirements.txt, which make conformance installs; or nil after a line
-- that says what is skipped without it.
function site.python(module, package, what)
    local path = "build/conformance/venv/bin/python"
    if site.run("test", "-x", path) and site.run(path, "-c", "import " .. module) then
        return path
    end
    print(("skipped: %s, because %s (PyPI) is not installed in build/conformance/venv"):format(what, package))
end

function site.new()
    local directory = os.tmpname()
    os.remove(directory)
    assert(os.execute("mkdir " .. directory))
    local made, said = site.run("sh", "-c", MAKE, "sh", directory)
    check(made, said)
    return setmetatable({directory = directory}, site)
end

function site:path(name) return self.directory .. "/" .. name end

-- The options of a server that has both certificates.
function site:options()
    return "--tls-cert", self:path "curve.pem", "--tls-key", self:path "curve.key", "--tls-cert", self:path "rsa.pem",
        "--tls-key", self:path "rsa.key"
end

function site:__close() os.execute("rm -r " .. self.directory) end

return site
