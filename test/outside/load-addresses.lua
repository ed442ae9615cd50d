-- SPDX-License-Identifier: MIT
--
-- Names with several addresses, by docs/load-generator.md. Each run has its own hosts file, in its own mount namespace.

local cli = require "cli"

local HOSTS = [[
::1 localhost
127.0.0.1 localhost
127.0.0.2 two.example
127.0.0.3 two.example
127.0.0.3 first.example
127.0.0.2 first.example
::1 three.example
127.0.0.1 three.example
127.0.0.2 three.example
]]
for i = 2, 10 do HOSTS = HOSTS .. ("127.0.0.%d nine.example\n"):format(i) end
local MOUNT <const> = 'mount --bind "$0" /etc/hosts && exec "$@"'

local can_mount = os.execute "unshare --mount true 2>/dev/null"

-- A test with a server at each address. `run` gets the servers' port, and a function that runs sxe-http.
local function test_at(name, addresses, run)
    test(name, function()
        if not can_mount then
            print("skipped: " .. name .. ", because only root may make a mount namespace here")
            return
        end
        local port, servers, path = wire.free_port(), {}, os.tmpname()
        local file <close> = assert(io.open(path, "w"))
        file:write(HOSTS)
        file:flush()
        for i, address in ipairs(addresses) do
            servers[i] = wire.spawn{wire.program("sxe-httpd"), "-i", address, "-p", tostring(port)}
            servers[i]:line(20)
        end
        run(port, function(...)
            local json = os.tmpname()
            local proc <close> = wire.spawn{"unshare", "--mount", "sh", "-c", MOUNT, path,
                                            wire.program("sxe-http"), "--timeout", "60", "--json", json, ...}
            local summary = proc:output()
            local ran = {status = proc:wait(120), errors = summary .. proc:errors()}
            local result <close> = assert(io.open(json))
            ran.output = result:read "a"
            os.remove(json)
            return ran
        end)
        for _, server in ipairs(servers) do
            server:signal("TERM")
            server:wait(120)
        end
        os.remove(path)
    end)
end

-- The addresses of the JSON's "total" as "ip opened failed", in order.
local function addresses_of(ran)
    local list = {}
    local total = ran.output:match '\n  "total": (%b{})'
    check(total, ran.errors)
    for one in total:match('"addresses": (%b[])'):sub(2, -2):gmatch "%b{}" do
        list[#list + 1] = ("%s %s %s"):format(one:match '"ip": "(.-)"', one:match '"opened": (%d+)',
                                              one:match '"failed": (%d+)')
    end
    return table.concat(list, ", ")
end

-- promise: docs/load-generator.md: New connections use the addresses of a name in turn, IPv4 and IPv6, also in each
-- worker; up to 16 addresses are used.
test_at("all addresses are used, of both families", {"::1", "127.0.0.1", "127.0.0.2"}, function(port, load)
    local ran = load("-c", "6", "--requests", "60", ("http://three.example:%d/"):format(port))
    for address in ("::1 127.0.0.1 127.0.0.2"):gmatch "%S+" do
        check((", " .. addresses_of(ran) .. ","):find(", " .. address .. " 2 0,", 1, true), addresses_of(ran))
    end
    ran = load("-c", "12", "-t", "2", "--requests", "60", ("http://two.example:%d/"):format(port))
    equal(addresses_of(ran), "127.0.0.2 6 0, 127.0.0.3 0 6")
end)

-- promise: docs/load-generator.md: A connection that an address refuses is counted as that connection's error,
--   and the exit status is 1: the load is not moved to the other addresses.
test_at("an address that refuses is an error", {"127.0.0.2"}, function(port, load)
    local ran = load("-c", "8", "--requests", "80", ("http://two.example:%d/"):format(port))
    equal(ran.status, 1, ran.errors)
    equal(addresses_of(ran), "127.0.0.2 4 0, 127.0.0.3 0 4")
    equal(ran.output:match '"refused": (%d+)', "4")
end)

-- promise: docs/load-generator.md: The report has a row for each address: its connections, and how many failed, with
-- the first reason.
test_at("the report names an address that refuses", {"127.0.0.2"}, function(port, load)
    local ran = load("-c", "8", "--requests", "80", ("http://two.example:%d/"):format(port))
    check(ran.errors:find "127%.0%.0%.2 +4 +0", ran.errors)
    check(ran.errors:find "127%.0%.0%.3 +0 +4  Connection refused", ran.errors)
end)

-- promise: docs/load-generator.md: If not all rows fit, their heading says how many are missing; up to four rows of
-- failed addresses are kept, unless the reasons of the verdict need their lines.
test_at("the row of an address that refuses is kept", {"127.0.0.5"}, function(port, load)
    local ran = load("-c", "18", "-R", "500", "-d", "1", "--probe", "20", ("http://nine.example:%d/"):format(port))
    local rows = select(2, ran.errors:gsub("127%.0%.0%.%d+ +0 +2  Connection refused", ""))
    -- One reason is always there: refused connections. On a busy machine the verdict has more.
    local reasons = select(2, ran.errors:gsub("%f[%w]SUSPECT: ", ""))
    check(rows == 4 or rows == 8 or reasons > 1, ran.errors)
    check(rows ~= 4 or ran.errors:find "failed  %(%d more: see %-%-json%)", ran.errors)
    equal(select(2, addresses_of(ran):gsub(" 0 2", "")), 8)
end)

-- promise: docs/load-generator.md: `addresses` in the JSON has the counts, with `--find`, too; it is empty if each host
--   has one address.
test_at("a search has the counts of addresses", {"127.0.0.2", "127.0.0.3"}, function(port, load)
    local ran = load("-c", "4", "-d", "0.05", "-R", "1000", "--find", "p50<60s", ("http://two.example:%d/"):format(port))
    equal(addresses_of(ran), "127.0.0.2 2 0, 127.0.0.3 2 0", ran.errors)
end)

-- promise: docs/load-generator.md: `addresses` in the JSON has the counts, with `--find`, too; it is empty if each host
--   has one address.
test_at("a host with one address has no rows", {"127.0.0.2"}, function(port, load)
    local ran = load("-c", "2", "--requests", "8", ("http://127.0.0.2:%d/"):format(port))
    equal(addresses_of(ran), "", ran.errors)
    ran = load("-c", "4", "--requests", "8", ("http://127.0.0.2:%d/"):format(port),
               ("http://three.example:%d/"):format(port))
    check(addresses_of(ran):find("127.0.0.2 1 0", 1, true), addresses_of(ran))
end)

-- promise: docs/load-generator.md: If the addresses of one family accept connections before the start and none of the
-- other family does, the other family is not used, and its rows say so. This happens with `::1` and 127.0.0.1 of
-- `localhost` and a server that listens at one of them.
test_at("localhost is IPv4 for a server that listens there alone", {"127.0.0.1"}, function(port, load)
    local ran = load("-c", "4", "--requests", "20", ("http://localhost:%d/"):format(port))
    equal(addresses_of(ran), "127.0.0.1 4 0, ::1 0 0")
    check(ran.errors:find "::1 +0 +0  not used: it accepted no connection at the start", ran.errors)
    check(ran.status == 0 or ran.status == 4, ran.errors)
end)

-- promise: docs/load-generator.md: `--source` uses the addresses of its own family, and rows say so, too. `--server-cmd`
--   uses the first address, because nothing listens yet.
test_at("--source and --server-cmd choose addresses", {"127.0.0.1", "::1"}, function(port, load)
    local ran = load("-c", "4", "--requests", "20", "--source", "::1", ("http://localhost:%d/"):format(port))
    equal(addresses_of(ran):match "::1 %d+ %d+", "::1 4 0", ran.errors)
    check(ran.errors:find "127.0.0.1 +0 +0  not used: it is not of the family of %-%-source", ran.errors)
    local command = ("exec %s -i 127.0.0.3 -p %d"):format(wire.program("sxe-httpd"), port)
    ran = load("-c", "4", "--requests", "20", "--server-cmd", command, ("http://first.example:%d/"):format(port))
    equal(addresses_of(ran), "", ran.errors)
    check(ran.status == 0 or ran.status == 4, ran.errors)
end)

test("names that cannot be looked up are refused", function()
    cli.check_refused("the URL is 'http://no-such-host.invalid/'", "sxe-http", "http://no-such-host.invalid/")
end)
