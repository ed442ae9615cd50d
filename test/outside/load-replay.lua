-- SPDX-License-Identifier: MIT
--
-- Logs that sxe-http replays (--replay): which entries are sent, and how it reports the others.

local cli = require "cli"

local function replay(text)
    local port, path = wire.free_port(), os.tmpname()
    local server <close> = wire.spawn{wire.program("sxe-httpd"), "-p", tostring(port)}
    server:line(20)
    do
        local file <close> = io.open(path, "w")
        file:write(text)
    end
    local ran = cli.run("sxe-http", "-p", tostring(port), "-c", "2", "--replay", path, "--speed",
                        "1000")
    os.remove(path)
    return ran
end

local LINE = '::1 - - [10/Oct/2026:13:55:%02d +0000] "%s" %d 0\n'

-- promise: docs/load-generator.md: Lines and entries that sent no request to a server are not counted among these: a
-- log's `"-"` or `""` with status 408 or 400, for a client that sent nothing, and a HAR's URLs of `data:`, `blob:`,
-- `ws:` and the like. They are skipped, and the report says how many.
test("entries without a request are left out and counted", function()
    local ran = replay(LINE:format(1, "-", 408) .. LINE:format(2, "GET / HTTP/1.1", 200) ..
                       LINE:format(3, "", 400) .. LINE:format(4, "-", 408))
    check(ran.output:find("requests  1  ok 1  errors 0", 1, true), ran.output .. ran.errors)
    check(ran.errors:find("3 lines cannot be replayed and are left out", 1, true), ran.errors)

    local entries = {}
    for i, url in ipairs{"data:text/plain,a", "http://www/", "blob:http://www/a", "ws://www/a"} do
        entries[i] = ('{"startedDateTime": "2026-01-02T03:04:05Z", "request": {"method": "GET", ' ..
                      '"url": "%s"}}'):format(url)
    end
    ran = replay('{"log": {"entries": [' .. table.concat(entries, ", ") .. "]}}")
    check(ran.output:find("requests  1  ok 1  errors 0", 1, true), ran.output .. ran.errors)
    check(ran.errors:find("3 entries cannot be replayed and are left out", 1, true), ran.errors)
end)

-- promise: docs/load-generator.md: For log and HAR files these rules hold: A line or entry that is no request, for
-- example one whose URL is not http:// or https:// with a host, is counted, and the first one is named. If more than
-- a tenth are no requests, the file is refused with exit status 2.
test("malformed entries are named, or the file is refused", function()
    local entry = '{"startedDateTime": "2026-01-02T03:04:05Z", "request": {"method": "GET", ' ..
                  '"url": "%s"}}'
    for _, bad in ipairs{"", "/a", "htp://www/", "http://", "http:///a", "https://?b"} do
        for good = 8, 9 do
            local entries = {entry:format(bad)}
            for i = 1, good do
                entries[i + 1] = entry:format "http://www/"
            end
            local ran = replay('{"log": {"entries": [' .. table.concat(entries, ", ") .. "]}}")
            check(ran.errors:find(("1 of %d entries are not requests"):format(good + 1), 1, true),
                  ran.errors)
            check(ran.errors:find("the first is number 1: its url is none", 1, true), ran.errors)
            if good == 8 then
                equal(ran.status, 2, bad)
            else
                check(ran.output:find("requests  9  ok 9  errors 0", 1, true), ran.output)
            end
        end
    end
end)

-- promise: docs/load-generator.md: A body of `params` without `text` is sent like an HTML form; if its type is
-- another one, such as `multipart/form-data`, the entry is no request.
test("params of a HAR are sent as a form, and other params are named", function()
    local server <close> = require "script".start [[
return function(req)
  local form = req:form()
  return form and form.name == "Ann & Bob" and form.note == "1+1=2 %" and 200 or 400
end]]
    local entry = '{"startedDateTime": "2026-01-02T03:04:05Z", "request": {"method": "POST", "url": "http://h/", ' ..
        '"postData": {"mimeType": "%s", "params": [{"name": "name", "value": "Ann & Bob"}, ' ..
        '{"name": "note", "value": "1+1=2 %%"}]}}}'
    local entries, path = {entry:format "multipart/form-data"}, os.tmpname()
    for i = 2, 12 do entries[i] = entry:format "application/x-www-form-urlencoded" end
    do
        local file <close> = io.open(path, "w")
        file:write('{"log": {"entries": [', table.concat(entries, ", "), "]}}")
    end
    local ran = cli.run("sxe-http", "-p", tostring(server.port), "-c", "2", "--replay", path)
    os.remove(path)
    check(ran.output:find("requests  11  ok 11  errors 0", 1, true), ran.output .. ran.errors)
    check(ran.errors:find("the first is number 1: its body is params that are no HTML form's", 1, true), ran.errors)
end)
