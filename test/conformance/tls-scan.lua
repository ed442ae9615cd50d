-- SPDX-License-Identifier: MIT
--
-- The scanners that administrators use, testssl.sh and sslyze, look at sxe-httpd with its defaults.

local httpd = require "httpd"
local tls_site = require "tls-site"

-- What testssl.sh finds that is no matter of TLS: a site's own fields, which `--header` adds.
local OF_THE_SITE <const> = {security_headers = true}
local GRAVE <const> = {MEDIUM = true, HIGH = true, CRITICAL = true, FATAL = true}
-- Findings of a scan that has looked at everything.
local LOOKED_AT <const> = {"TLS1_3", "cipher_order", "cert_trust", "heartbleed", "BREACH", "LUCKY13"}

-- docs/tls.md: testssl.sh finds nothing graver than LOW in a server with the defaults.
local testssl = tls_site.peer("testssl", "testssl.sh", "a scan by testssl.sh")
if testssl then
    test("testssl.sh finds nothing above LOW", function()
        local site <close> = tls_site.new()
        local server <close> = httpd.start_tls(site:options())
        local report = site:path "report.json"
        local _, said = tls_site.run(testssl, "--quiet", "--color", "0", "--warnings", "off", "--ip", "one", "--add-ca",
            site:path "ca.pem", "--jsonfile", report, "127.0.0.1:" .. server.port)
        local file <close> = assert(io.open(report), said)
        local found, grave = {}, {}
        for id, severity, finding in file:read "a":gmatch
            '"id"%s*:%s*"(.-)".-"severity"%s*:%s*"(.-)",%s*"finding"%s*:%s*"(.-)"\n' do
            found[id:match "^%S+"] = severity
            if GRAVE[severity] and not OF_THE_SITE[id] then
                grave[#grave + 1] = ("%s %s: %s"):format(severity, id, finding)
            end
        end
        for _, id in ipairs(LOOKED_AT) do
            check(found[id], ("no finding %q, so the scan was cut short: %s"):format(id, said))
        end
        equal(table.concat(grave, "\n"), "")
    end)
end

-- docs/tls.md: sslyze finds it compliant with Mozilla's intermediate profile
local python = tls_site.python("sslyze", "sslyze", "a scan by sslyze")
if python then
    test("sslyze finds the server compliant with Mozilla's profiles", function()
        local site <close> = tls_site.new()
        for _, profile in ipairs{"intermediate", "modern"} do
            local cert, key = site:path "curve.pem", site:path "curve.key"
            local server <close> = profile == "intermediate" and httpd.start_tls(site:options())
                or httpd.start_tls("--tls-profile", "modern", "--tls-cert", cert, "--tls-key", key)
            local _, said = tls_site.run(python, "-m", "sslyze", "--certinfo_ca_file", site:path "ca.pem",
                "--mozilla_config=" .. profile, "127.0.0.1:" .. server.port)
            check(said:find("127.0.0.1:" .. server.port .. ": OK - Compliant.", 1, true), said)
        end
    end)
end
