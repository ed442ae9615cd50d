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

test("--help has three examples first, and the options in groups", function()
    local ran = cli.run("sxe-httpd", "--help")
    local examples, options = ran.output:match("^usage: .-\n\nExamples:\n(.-)\n\n(.*)$")
    local _, number = (examples .. "\n"):gsub("  sxe%-httpd %-.-\n", "")
    equal(number, 3, "examples")
    for _, group in ipairs{"Listeners", "Content", "Logs and counters", "Limits", "Time",
                           "About"} do
        check(("\n" .. options):find("\n" .. group .. "[^\n]*:\n  "),
              group .. " is not in " .. options)
    end
end)

test("--version prints the version", function()
    local ran = cli.run("sxe-httpd", "--version")
    equal(ran.status, 0)
    check(ran.output:find("^sxe%-httpd .*%d+%.%d+"), ran.output)
end)

test("--plan prints how much memory the server will reserve", function()
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
    {"option -p requires an argument: -p PORT", "-p"},
    {"-c", "-c", "0"},
    {"abc", "-c", "abc"},
    {"-5", "-c", "-5"},
    {"1.5", "-c", "1.5"},
    {"99999999999999999999", "-c", "99999999999999999999"},
    {"300.1.1.1", "-i", "300.1.1.1"},
    {"localhost", "-i", "localhost"},
    {"address", "-i", ""},
    {"unknown option -x", "-x"},
    {"unknown option --nonsense", "--nonsense"},
    {"did you mean --port?", "--prot"},
    {"more", "more"},
    {"more", "-p", "0", "more"},
    {"did you mean --listing?", "--list-ing"},
    {"'Name: value'", "--header", "bad"},
    {"'Name: value'", "--header", "Content-Length: 5"},
    {"neither common, combined nor json", "--access-log", "-", "--access-log-format", "xml"},
    {"86400 seconds", "--idle-timeout", "0"},
    {"86400 seconds", "--idle-timeout", "soon"},
    {"60k", "--max-header", "1m"},
    {"does not fit", "--max-header", "1k", "--max-line", "2k"},
    {"add -r DIR", "--listing"},
    {"type/subtype", "-r", ".", "--type", "md"},
    {"10.0.0.0/8", "--proxy-from", "everybody"},
    {"107", "--unix", ("x"):rep(108)},
}
for _, case in ipairs(refused) do
    local words = table.remove(case, 1)
    test(("refused with status 2: %s"):format(table.concat(case, " ")), function()
        cli.check_refused(words, "sxe-httpd", table.unpack(case))
    end)
end

test("the second server on a port names the process that listens there, and exits with status 1", function()
    local server <close> = httpd.start()
    local ran = cli.run("sxe-httpd", "-p", tostring(server.port))
    equal(ran.status, 1)
    equal(ran.output, "")
    check(ran.errors:find("127%.0%.0%.1.*" .. server.port), ran.errors)
    check(ran.errors:find(("in use by sxe-httpd (pid %d)"):format(server.pid), 1, true), ran.errors)
    check(ran.errors:find("-p\n", 1, true), ran.errors)
    server:check_answers()
end)

-- Options that cannot be fulfilled, and patterns that the message must match: the reason, and what to change.
local impossible = {
    {"an address of another machine", {"192.0.2.1", "[Aa]ssign", "%-i\n"}, "-i", "192.0.2.1"},
    {"a root that is not there", {"'/nonexistent'", "No such file", "%-r"}, "-r", "/nonexistent"},
    {"a root that is a file", {"'/etc/passwd'", "Not a directory", "%-r"}, "-r", "/etc/passwd"},
    {"a root without a name", {"''", "No such file", "%-r"}, "-r", ""},
    {"a log in no directory", {"'/nonexistent/log'", "No such file", "%-%-access%-log"},
     "--access-log", "/nonexistent/log"},
    {"a log that is a directory", {"'/'", "directory", "%-%-access%-log"}, "--access-log", "/"},
    {"a socket in no directory", {"/nonexistent/socket", "No such file", "%-%-unix"},
     "--unix", "/nonexistent/socket"},
    {"a socket where a file is", {"/etc/passwd", "not a socket", "%-%-unix"}, "--unix", "/etc/passwd"},
}
for _, case in ipairs(impossible) do
    local name, words = table.remove(case, 1), table.remove(case, 1)
    test(name .. " says why, and what to do, and ends it with status 1", function()
        local ran = cli.run("sxe-httpd", "-p", "0", table.unpack(case))
        equal(ran.status, 1)
        equal(ran.output, "", "said that it listens")
        for _, word in ipairs(words) do
            check(ran.errors:find(word), word .. " is not in " .. ran.errors)
        end
    end)
end

test("listening at all addresses", function()
    local server <close> = httpd.start("-i", "0.0.0.0")
    check(server.url:find("^http://0%.0%.0%.0:"), server.url)
    server.ip = "127.0.0.1"
    server:check_answers()
end)

if pcall(wire.listen, "::1", 0) then
    test("listening at an IPv6 address", function()
        local server <close> = httpd.start("-i", "::1")
        check(server.url:find("^http://%[::1%]:%d+/$"), server.url)
        server:check_answers()
    end)
end
