-- SPDX-License-Identifier: MIT
-- The parts of a reply: RFC 9112 sections 4 and 6, RFC 9110 sections 6.6.1 and 8.

local http = require "http"
local httpd = require "httpd"
local site = require "site"
local request = http.request
local echo <close> = http.echo()
local files <close> = site.start("--header", "X-Extra: one two", "--cache-control", "max-age=60")

local DAYS = {Mon = 1, Tue = 2, Wed = 3, Thu = 4, Fri = 5, Sat = 6, Sun = 7}
local MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"

-- Seconds since 1970 of a date, which must be an IMF-fixdate.
local function seconds_of(date)
    local name, day, month, year, hour, min, sec =
        (date or ""):match("^(%u%l%l), (%d%d) (%u%l%l) (%d%d%d%d) (%d%d):(%d%d):(%d%d) GMT$")
    check(DAYS[name] and MONTHS:find(month, 1, true), ("%q is no IMF-fixdate"):format(date))
    local utc = os.time{year = year, month = (MONTHS:find(month) + 2) // 3, day = day, hour = hour,
                        min = min, sec = sec, isdst = false}
    local offset = os.time() - os.time(os.date("!*t"))
    return utc + offset
end

local many = {
    {"200 of http-echo", echo, request("GET /"), 200},
    {"200 of a POST", echo, http.sized("5", "hello"), 200},
    {"400", echo, http.bare("GET / HTTP/1.1"), 400},
    {"413", echo, http.sized("9999999", ""), 413},
    {"414", echo, request("GET /" .. ("x"):rep(10000)), 414},
    {"417", echo, request("GET /", "Expect: x"), 417},
    {"431", echo, request("GET /", "X: " .. ("y"):rep(20000)), 431},
    {"501", echo, request("CONNECT a:80"), 501},
    {"505", echo, request("GET / HTTP/2.0"), 505},
    {"200 of a file", files, request("GET /hello.txt"), 200},
    {"200 of an empty file", files, request("GET /empty.txt"), 200},
    {"206", files, request("GET /big.bin", "Range: bytes=0-9"), 206},
    {"206 of two ranges", files, request("GET /big.bin", "Range: bytes=0-9, 20-29"), 206},
    {"301", files, request("GET /sub"), 301},
    {"304", files, request("GET /hello.txt", "If-Modified-Since: " .. site.MODIFIED), 304},
    {"403", files, request("GET /bare/"), 403},
    {"404", files, request("GET /missing"), 404},
    {"405", files, request("POST /hello.txt"), 405},
    {"412", files, request("GET /hello.txt", "If-Match: \"x\""), 412},
    {"416", files, request("GET /big.bin", "Range: bytes=1000-"), 416},
}

local phrases = {
    [200] = "OK", [206] = "Partial Content", [301] = "Moved Permanently", [304] = "Not Modified",
    [400] = "Bad Request", [403] = "Forbidden", [404] = "Not Found", [405] = "Method Not Allowed",
    [412] = "Precondition Failed", [413] = "Content Too Large", [414] = "URI Too Long",
    [416] = "Range Not Satisfiable", [417] = "Expectation Failed",
    [431] = "Request Header Fields Too Large", [501] = "Not Implemented",
    [505] = "HTTP Version Not Supported",
}

-- How many lines of a head have this field name.
local function count(head, name)
    local _, times = head:lower():gsub("\r\n" .. name:lower():gsub("%-", "%%-") .. ":", "")
    return times
end

for _, case in ipairs(many) do
    local name, server, bytes, status = table.unpack(case)
    test(("RFC 9112 4: the first line of a %s"):format(name), function()
        local reply = http.ask(server, bytes)
        equal(reply.status, status)
        equal(reply.raw:match("^[^\r]*"), ("HTTP/1.1 %d %s"):format(status, phrases[status]))
    end)
    test(("RFC 9112 5: the fields of a %s"):format(name), function()
        local head = http.ask(server, bytes).raw:match("^.-\r\n\r\n")
        check(not head:gsub("\r\n", ""):find("[%c\127-\255]"), "a byte that is none of a field's")
        for line in head:gmatch("\n([^\r]+)\r") do
            check(line:find("^[%w%-]+: %g") and not line:find("%s$"), "not name: value: " .. line)
        end
        for _, once in ipairs{"Date", "Content-Length", "Content-Type", "Connection", "ETag",
                              "Last-Modified", "Location", "Content-Range", "Cache-Control"} do
            check(count(head, once) <= 1, once .. " more than once in " .. head)
        end
        equal(count(head, "Transfer-Encoding"), 0, "Transfer-Encoding of a known length")
    end)
    test(("RFC 9110 6.6.1: the date of a %s is the current time"):format(name), function()
        local said = seconds_of(http.ask(server, bytes).headers.date)
        check(math.abs(said - os.time()) < 60, "not now")
    end)
    test(("RFC 9110 8.6: the length of a %s"):format(name), function()
        local reply = http.ask(server, bytes)
        if status == 304 then
            equal(reply.body, "")
        else
            equal(reply.headers["content-length"], tostring(#reply.body))
        end
    end)
end

test("RFC 9110 6.6.1: the day name of a date fits the date", function()
    local date = http.ask(echo, request("GET /")).headers.date
    equal(date:sub(1, 3), os.date("!%a", seconds_of(date)))
end)

test("RFC 9110 6.6.1: the date advances", function()
    local first = seconds_of(http.ask(echo, request("GET /")).headers.date)
    local sock <close> = echo:connect()
    httpd.wait_until(function()
        sock:send(request("GET /"))
        return seconds_of(sock:read_reply().headers.date) > first
    end, "a later date")
end)

for _, target in ipairs{"/missing", "/sub", "/bare/"} do
    test(("RFC 9110 8.3: the text reply of %s has a Content-Type"):format(target), function()
        local reply = files:get(target)
        check(#reply.body > 0, "no text")
        check((reply.headers["content-type"] or ""):find("^text/"), reply.raw)
    end)
end

for _, case in ipairs{
    {"/hello.txt", "text/plain"}, {"/page.html", "text/html"}, {"/style.css", "text/css"},
    {"/packed.js", "text/javascript"}, {"/data.json", "application/json"},
    {"/image.png", "image/png"}, {"/image.svg", "image/svg+xml"},
    {"/packed.js.gz", "application/gzip"}, {"/noextension", "application/octet-stream"},
    {"/big.bin", "application/octet-stream"}, {"/", "text/html"},
} do
    local target, expected = table.unpack(case)
    test(("RFC 9110 8.3: the type of %s is %s"):format(target, expected), function()
        equal(files:get(target).headers["content-type"]:match("^[^;]*"), expected)
    end)
end

test("RFC 9110 8.4: a .gz file that is requested itself is sent without Content-Encoding", function()
    local reply = files:get("/packed.js.gz")
    equal(reply.headers["content-encoding"], nil)
    equal(reply.body, "as gzip")
end)

for _, target in ipairs{"/hello.txt", "/sub", "/missing", "/bare/"} do
    test(("RFC 9110 5.1: the field of --header is in the reply for %s"):format(target), function()
        equal(files:get(target).headers["x-extra"], "one two")
    end)
end

test("RFC 9111 5.2: the value of --cache-control is in the replies for files", function()
    equal(files:get("/hello.txt").headers["cache-control"], "max-age=60")
    equal(files:get("/hello.txt", "If-Modified-Since: " .. site.MODIFIED).headers["cache-control"],
          "max-age=60")
end)

test("RFC 9110 9.3.8: line ends in an echoed target do not make a field of the reply", function()
    local reply = http.ask(echo, request("GET /%0d%0aX-Evil:%20yes"))
    equal(reply.headers["x-evil"], nil)
    equal(reply.headers["x-echo-target"], "/%0d%0aX-Evil:%20yes")
end)
