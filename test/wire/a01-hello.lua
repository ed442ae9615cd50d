-- SPDX-License-Identifier: MIT
-- One request, one reply.

local httpd = require "httpd"

local function ask(server, request)
    local sock <close> = server:connect()
    sock:send(request)
    return sock:read_reply(request:match("^%S+"))
end

test("the first line says where the server listens", function()
    local server <close> = httpd.start()
    check(server.url:find("^http://127%.0%.0%.1:%d+/$"), server.url)
    check(server.port > 0)
end)

test("the reply is the documented one, byte for byte", function()
    local server <close> = httpd.start()
    equal(httpd.undated(ask(server, httpd.GET).raw), httpd.hello())
end)

test("the Date is the current time as an IMF-fixdate (RFC 9110, 5.6.7)", function()
    local server <close> = httpd.start()
    local date = ask(server, httpd.GET).headers.date
    local day, month, year, hour, min, sec =
        date:match("^%a%a%a, (%d%d) (%a%a%a) (%d%d%d%d) (%d%d):(%d%d):(%d%d) GMT$")
    check(day, date)
    local months = "JanFebMarAprMayJunJulAugSepOctNovDec"
    local now = os.time(os.date("!*t"))
    local said = os.time{year = year, month = (months:find(month) + 2) // 3, day = day,
                         hour = hour, min = min, sec = sec}
    check(math.abs(os.difftime(said, now)) < 600, os.date("%c", said) .. " is not now")
end)

test("HEAD gets the same head and no body", function()
    local server <close> = httpd.start()
    local sock <close> = server:connect()
    sock:send(httpd.HEAD .. httpd.LAST)
    equal(httpd.undated(sock:recv_all()), httpd.hello(nil, "HEAD") .. httpd.hello("close"))
end)

local good = {
    {"another target",
     "GET /a/b/c?d=e&f=%20g HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"a target in absolute form",
     "GET http://a:80/ HTTP/1.1\r\nHost: a:80\r\n\r\n"},
    {"an asterisk as the target",
     "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"POST without a body",
     "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"},
    {"a method nobody knows",
     "BREW / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"an empty Host",
     "GET / HTTP/1.1\r\nHost:\r\n\r\n"},
    {"a Host with a port",
     "GET / HTTP/1.1\r\nHost: www.example.com:8080\r\n\r\n"},
    {"a Host that is an IPv6 address",
     "GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n"},
    {"header names in any case",
     "GET / HTTP/1.1\r\nhOsT: a\r\nACCEPT: */*\r\n\r\n"},
    {"blanks around values",
     "GET / HTTP/1.1\r\nHost: \t a \t \r\nX:\ty\t\r\n\r\n"},
    {"bytes above ASCII in a value",
     "GET / HTTP/1.1\r\nHost: a\r\nX: \xc3\xa9\xff\r\n\r\n"},
    {"an empty value",
     "GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\r\n"},
    {"every character of a token in a name",
     "GET / HTTP/1.1\r\nHost: a\r\n!#$%&'*+-.^_`|~0a: b\r\n\r\n"},
    {"what a browser sends",
     "GET /favicon.ico HTTP/1.1\r\nHost: localhost:8000\r\nConnection: keep-alive\r\n"
        .. "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)\r\n"
        .. "Accept: image/avif,image/webp,*/*;q=0.8\r\nReferer: http://localhost:8000/\r\n"
        .. "Accept-Encoding: gzip, deflate, br\r\nAccept-Language: en-US,en;q=0.9\r\n\r\n"},
    {"what curl sends",
     "GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n"},
}

local server <close> = httpd.start()

for _, case in ipairs(good) do
    local name, request = table.unpack(case)
    test("answered: " .. name, function()
        local reply = ask(server, request)
        equal(reply.status, 200)
        equal(reply.body, httpd.BODY)
    end)
end
