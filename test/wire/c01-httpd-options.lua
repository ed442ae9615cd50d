-- SPDX-License-Identifier: MIT
-- The command line of sxe-httpd.

local cli = require "cli"
local httpd = require "httpd"

for _, option in ipairs{"-h", "--help"} do
    test(option .. " names every option", function()
        local ran = cli.run("sxe-httpd", option)
        equal(ran.status, 0)
        equal(ran.errors, "")
        for _, name in ipairs{"-i", "-p", "-c", "--plan", "-h", "--help", "--version",
                              "127.0.0.1", "8000"} do
            check(ran.output:find(name, 1, true), name .. " is not in " .. ran.output)
        end
    end)
end

test("--version says the version", function()
    local ran = cli.run("sxe-httpd", "--version")
    equal(ran.status, 0)
    check(ran.output:find("^sxe%-httpd .*%d+%.%d+"), ran.output)
end)

test("--plan says how much memory there will be", function()
    local small = cli.run("sxe-httpd", "-c", "10", "--plan")
    local large = cli.run("sxe-httpd", "-c", "5000", "--plan")
    equal(small.status, 0)
    equal(small.errors, "")
    check(small.output:lower():find("total"), small.output)
    check(small.output:find("%d"), small.output)
    check(small.output ~= large.output, "the same plan for 5,000 connections")
end)

local refused = {
    {"65536", "-p", "65536"},
    {"abc", "-p", "abc"},
    {"-1", "-p", "-1"},
    {"80x", "-p", "80x"},
    {"port", "-p", ""},
    {"99999999999999999999", "-p", "99999999999999999999"},
    {"'p'", "-p"},
    {"-c", "-c", "0"},
    {"abc", "-c", "abc"},
    {"-5", "-c", "-5"},
    {"1.5", "-c", "1.5"},
    {"99999999999999999999", "-c", "99999999999999999999"},
    {"300.1.1.1", "-i", "300.1.1.1"},
    {"localhost", "-i", "localhost"},
    {"address", "-i", ""},
    {"x", "-x"},
    {"--nonsense", "--nonsense"},
    {"more", "more"},
    {"more", "-p", "0", "more"},
}
for _, case in ipairs(refused) do
    local words = table.remove(case, 1)
    test(("refused with status 2: %s"):format(table.concat(case, " ")), function()
        cli.check_refused(words, "sxe-httpd", table.unpack(case))
    end)
end

test("the second server on a port says why it cannot, and ends with status 1", function()
    local server <close> = httpd.start()
    local ran = cli.run("sxe-httpd", "-p", tostring(server.port))
    equal(ran.status, 1)
    equal(ran.output, "")
    check(ran.errors:find("127%.0%.0%.1.*" .. server.port), ran.errors)
    check(ran.errors:find("in use"), ran.errors)
    server:check_answers()
end)

test("an address of another machine says why it cannot, and ends with status 1", function()
    local ran = cli.run("sxe-httpd", "-i", "192.0.2.1", "-p", "0")
    equal(ran.status, 1)
    check(ran.errors:find("192%.0%.2%.1"), ran.errors)
    check(ran.errors:find("[Aa]ssign"), ran.errors)
end)

test("all addresses", function()
    local server <close> = httpd.start("-i", "0.0.0.0")
    check(server.url:find("^http://0%.0%.0%.0:"), server.url)
    server.ip = "127.0.0.1"
    server:check_answers()
end)

if pcall(wire.listen, "::1", 0) then
    test("IPv6", function()
        local server <close> = httpd.start("-i", "::1")
        check(server.url:find("^http://%[::1%]:%d+/$"), server.url)
        server:check_answers()
    end)
end
