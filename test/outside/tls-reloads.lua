-- SPDX-License-Identifier: MIT
--
-- Sessions and certificates of TLS across workers and reloads, by docs/tls.md, under the load of sxe-http.

local cli = require "cli"
local httpd = require "httpd"

if cli.run("sxe-httpd", "--tls-dev", "--check").status ~= 0 then
    print("skipped: TLS across reloads, because sxe-httpd was built without OpenSSL 3")
    return
end

-- Requests on short connections, until finish() ends them; then the report, of which no request has failed.
local load = {}
load.__index = load

function load.start(server, ...)
    local proc = wire.spawn{wire.program("sxe-http"), "-q", "--insecure", "-c", "4", "-R", "100", "-d", "3600", "--timeout",
        "120", "-H", "Connection: close", ("https://127.0.0.1:%d/"):format(server.port), ...}
    return setmetatable({proc = proc}, load)
end

function load:finish()
    self.proc:signal("INT")
    local said = self.proc:output(120)
    self.proc:wait(120)
    local ok, errors = said:match "\nrequests  %d+  ok (%d+)  errors (%d+)  in flight"
    equal(errors, "0", said .. self.proc:errors())
    check(tonumber(ok) > 0 and not said:find("not opened", 1, true), said)
    return said
end

local function count(text, part)
    local found = 0
    for _ in text:gmatch(part) do found = found + 1 end
    return found
end

-- Send SIGHUP, and wait until the log says for the n-th time that this was done.
local function reload(server, n, line)
    server.proc:signal("HUP")
    httpd.wait_until(function() return count(server.proc:errors(), line) >= n end, n .. " times: " .. line)
end

-- promise: docs/tls.md: With `-w` all workers accept each other's tickets, before and after a reload.
test("each session is resumed by any of four workers, while the server is loaded again 20 times", function()
    local log = os.tmpname()
    local said
    do
        local server <close> = httpd.start_tls("--tls-dev", "-w", "4", "--access-log", log, "--access-log-format",
            "worker $worker;")
        local running = load.start(server, "--tls-resume", "100")
        for i = 1, 20 do reload(server, i, "the server was loaded again, into 4 processes") end
        httpd.wait_until(function()
            local file <close> = assert(io.open(log))
            local text = file:read "a"
            for worker = 0, 3 do
                if count(text, ("worker %d;"):format(worker)) < 10 then return false end
            end
            return true
        end, "ten requests at each worker")
        said = running:finish()
    end
    os.remove(log)
    local resumed = tonumber(said:match "\nTLS       handshakes: %d+ full, (%d+) resumed")
    check(resumed and resumed > 0 and not said:find("refused to resume", 1, true), said)
end)

local has_openssl = wire.has "openssl"
if not has_openssl then
    print("skipped: certificates that are replaced under load, because the openssl command is not installed")
    return
end

local MAKE <const> = [[
cd "$1" && for name in 0 1; do
    mkdir $name && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $name/key -out $name/cert \
        -days 2 -subj /CN=$name || exit 1
done && ln -s 0 live]]

local function run(...)
    local proc <close> = wire.spawn{...}
    local said = proc:output(120)
    check(proc:wait(120) == 0, said .. proc:errors())
    return said
end

-- promise: docs/tls.md: No request and no handshake fails while a certificate is renewed.
test("certificates are replaced 100 times under load, and no handshake fails", function()
    local directory = os.tmpname()
    os.remove(directory)
    run("mkdir", directory)
    run("sh", "-c", MAKE, "sh", directory)
    local live = directory .. "/live"
    do
        local server <close> = httpd.start_tls("--tls-cert", live .. "/cert", "--tls-key", live .. "/key")
        local full, resumed = load.start(server), load.start(server, "--tls-resume", "100")
        for i = 1, 100 do
            run("sh", "-c", 'ln -s $2 "$1/next" && mv -T "$1/next" "$1/live"', "sh", directory, tostring(i % 2))
            reload(server, i, "the certificates were loaded again")
        end
        full:finish()
        check(not resumed:finish():find("refused to resume", 1, true))
        run("sh", "-c", 'ln -s 1 "$1/next" && mv -T "$1/next" "$1/live"', "sh", directory)
        reload(server, 101, "the certificates were loaded again")
        local said = run("sh", "-c", ("openssl s_client -connect 127.0.0.1:%d </dev/null 2>/dev/null | "
            .. "openssl x509 -noout -subject"):format(server.port))
        check(said:find "CN ?= ?1", said)
    end
    run("rm", "-r", directory)
end)
