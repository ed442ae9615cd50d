-- SPDX-License-Identifier: MIT
--
-- sxe-http's defaults: the help without arguments, the Content-Type of a HAR's body, the comparison of two runs.

local cli = require "cli"
local httpd = require "httpd"
local load = require "load"

-- promise: docs/load-generator.md: Without arguments it prints the help of `-h`, and exits with status 2, because it
-- measured nothing.
test("without arguments there is help, and exit status 2", function()
    local none = cli.run("sxe-http")
    equal(none.status, 2)
    equal(none.output, cli.run("sxe-http", "-h").output)
    equal(none.errors, "")
end)

-- promise: docs/load-generator.md: The `mimeType` of a HAR's body is sent as its Content-Type,
--   unless the entry's fields have one.
test("a HAR's mimeType is sent as Content-Type", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local path = os.tmpname()
    local file <close> = io.open(path, "w")
    local entry = [[{"startedDateTime": "2026-01-02T03:04:05.678Z", "request": {"method": "POST",
        "url": "http://h/%s", "headers": [%s],
        "postData": {"mimeType": "text/x-one", "text": "1"}}}]]
    file:write('{"log": {"entries": [', entry:format("a", ""), ",",
               entry:format("b", '{"name": "content-type", "value": "text/x-two"}'), "]}}")
    file:close()
    local client = load.start(listener, "-c", "1", "--replay", path)
    local sock = load.accept(listener, 1)[1]
    local first = sock:recv_until("\r\n\r\n1")
    check(first:find("\r\nContent-Type: text/x-one\r\n", 1, true), first)
    sock:send(load.reply("hello"))
    local second = sock:recv_until("\r\n\r\n1")
    check(second:find("\r\ncontent-type: text/x-two\r\n", 1, true), second)
    check(not second:find("text/x-one", 1, true), second)
    sock:send(load.reply("hello"))
    client:finish()
    os.remove(path)
end)

-- promise: docs/load-generator.md: `sxe-http html a.json b.json > page.html` plots several runs over one another.
-- Their lines are numbered in the order of the command line, and the page has the words of `compare` for the first
-- run and each other one.
test("the page of two runs has their comparison", function()
    local server <close> = httpd.start()
    local a, b = os.tmpname(), os.tmpname()
    for _, path in ipairs{a, b} do
        cli.run("sxe-http", "-q", "-c", "2", "--requests", "200", "--trials", "6", "--json", path,
                server.url)
    end
    local page = cli.run("sxe-http", "html", a, b)
    equal(page.status, 0, page.errors)
    local compared = cli.run("sxe-http", "compare", a, b).output
    check(page.output:find('"comparison":', 1, true))
    -- A line of the comparison. JSON escapes only quotes and non-ASCII characters, of which this line has none.
    local line = compared:match("\n(rate a second [^\n]*)")
    check(line and page.output:find(line, 1, true), compared)
    os.remove(a)
    os.remove(b)
end)
