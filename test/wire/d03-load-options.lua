-- SPDX-License-Identifier: MIT
-- The command line of sxe-http.

local cli = require "cli"
local load = require "load"

local common = {"-p", "-n", "-d", "-c", "-t", "-R", "-m", "-H", "-b", "-s", "--help", "8000",
                "1000"}
local others = {"-i", "--timeout", "--version", "--open", "--trials", "--server-cmd", "--find",
                "--threshold", "--baseline", "--json", "--hdr", "--fanout", "--selftest",
                "127.0.0.1"}

test("-h lists the common options, on one screen", function()
    local ran = cli.run("sxe-http", "-h")
    local _, lines = ran.output:gsub("\n", "")
    equal(ran.status, 0)
    equal(ran.errors, "")
    check(lines <= 50, ran.output)
    for _, name in ipairs(common) do
        check(ran.output:find(name, 1, true), name .. " is not in " .. ran.output)
    end
end)

test("--help names every option", function()
    local ran = cli.run("sxe-http", "--help")
    equal(ran.status, 0)
    equal(ran.errors, "")
    for _, names in ipairs{common, others} do
        for _, name in ipairs(names) do
            check(ran.output:find(name, 1, true), name .. " is not in " .. ran.output)
        end
    end
end)

test("--help has three examples first, and the options in groups", function()
    local ran = cli.run("sxe-http", "--help")
    local examples, options = ran.output:match("^usage: .-\n\nExamples:\n(.-)\n\n(.*)$")
    local _, number = ("\n" .. examples):gsub("\n  sxe%-http ", "")
    equal(number, 3, "examples")
    for _, group in ipairs{"Server and addresses", "Amount of load", "About"} do
        check(options:find("\n?" .. group .. "[^\n]*:\n  "), group .. " is not in " .. options)
    end
end)

test("--version prints the version", function()
    local ran = cli.run("sxe-http", "--version")
    equal(ran.status, 0)
    check(ran.output:find("^sxe%-http .*%d+%.%d+"), ran.output)
end)

local refused = {
    {"65536", "-p", "65536"},
    {"-p", "-p", "0"},
    {"abc", "-p", "abc"},
    {"-1", "-p", "-1"},
    {"option -p requires an argument: -p PORT", "-p"},
    {"-c", "-c", "0"},
    {"many", "-c", "many"},
    {"-5", "-c", "-5"},
    {"-n", "-n", "0"},
    {"1e3", "-n", "1e3"},
    {"99999999999999999999", "-n", "99999999999999999999"},
    {"300.1.1.1", "-i", "300.1.1.1"},
    {"localhost", "-i", "localhost"},
    {"soon", "--timeout", "soon"},
    {"-1", "--timeout", "-1"},
    {"unknown option -x", "-x"},
    {"unknown option --nonsense", "--nonsense"},
    {"did you mean --sockets?", "--sokcets"},
    {"more", "more"},
}
for _, case in ipairs(refused) do
    local words = table.remove(case, 1)
    test(("refused with status 2: %s"):format(table.concat(case, " ")), function()
        cli.check_refused(words, "sxe-http", table.unpack(case))
    end)
end

if pcall(wire.listen, "::1", 0) then
    test("a server at an IPv6 address", function()
        local listener <close> = wire.listen("::1", 0)
        local client = load.start(listener, "-i", "::1", "-c", "1")
        local sock <close> = listener:accept(20)
        local request = sock:recv_until("\r\n\r\n")
        check(request:find("\r\nHost: [::1]:" .. listener:port() .. "\r\n", 1, true), request)
        sock:send(load.reply("hello"))
        client:finish():check_report{status = 0, ok = 1}
    end)
end
