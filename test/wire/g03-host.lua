-- SPDX-License-Identifier: MIT
-- Host: RFC 9112 section 3.2, RFC 9110 section 7.2, and the hosts of RFC 3986 section 3.2.2.

local http = require "http"
local server <close> = http.echo()

local function host(value)
    return http.request("GET /a", "Host:" .. value)
end

local answered = {
    {"RFC 9112 3.2: an empty Host", host("")},
    {"RFC 9112 3.2: a Host of blanks is empty", host(" \t ")},
    {"RFC 9110 7.2: Host after other fields",
     http.bare("GET / HTTP/1.1", "A: b", "C: d", "Host: a")},
    {"RFC 9110 5.1: HOST in capitals", http.bare("GET / HTTP/1.1", "HOST: a")},
    {"RFC 9112 3.2: no Host in HTTP/1.0", http.bare("GET / HTTP/1.0", "Connection: keep-alive")},
    {"RFC 9112 3.2: a Host in HTTP/1.0",
     http.bare("GET / HTTP/1.0", "Host: a", "Connection: keep-alive")},
}
http.test_answered(server, answered)

local hosts = {
    {"RFC 3986 3.2.2", "a name", "www.example.com"},
    {"RFC 3986 3.2.2", "a name in capitals", "WWW.EXAMPLE.COM"},
    {"RFC 3986 3.2.2", "a name of one label", "localhost"},
    {"RFC 3986 3.2.2", "a name with a dot after it", "www.example.com."},
    {"RFC 3986 3.2.2", "a name with an underscore", "a_b"},
    {"RFC 3986 3.2.2", "a name with an escape", "%C3%A9.example"},
    {"RFC 3986 3.2.2", "an IPv4 address", "127.0.0.1"},
    {"RFC 3986 3.2.2", "an IPv6 address", "[2001:db8::1]"},
    {"RFC 3986 3.2.2", "an IPv6 address with an IPv4 one in it", "[::ffff:127.0.0.1]"},
    {"RFC 3986 3.2.2", "an address of a version to come", "[v1.x]"},
    {"RFC 3986 3.2.2", "all that such an address may have", "[vF.azAZ09-._~!$&'()*+,;=:]"},
    {"RFC 3986 3.2.3", "a port", "a:8080"},
    {"RFC 3986 3.2.3", "an IPv6 address with a port", "[::1]:8080"},
    {"RFC 3986 3.2.3", "an empty port", "a:"},
    {"RFC 3986 3.2.3", "the greatest port", "a:65535"},
    {"RFC 9110 5.5", "a host between blanks", " \ta \t"},
}
for _, case in ipairs(hosts) do
    local section, name, value = table.unpack(case)
    test(("%s: Host with %s"):format(section, name), function()
        http.check_answered(server, host(value), {target = "/a"})
    end)
end

local values = {
    {"RFC 3986 3.2.2", "a blank", "a b"},
    {"RFC 9110 7.2", "two hosts", "a, b"},
    {"RFC 9110 7.2", "a path", "a/b"},
    {"RFC 9110 7.2", "a slash", "a/"},
    {"RFC 9110 7.2", "a query", "a?b"},
    {"RFC 9110 7.2", "a fragment", "a#b"},
    {"RFC 9110 7.2", "a user", "me@a"},
    {"RFC 9110 7.2", "a user and a password", "me:pw@a"},
    {"RFC 9110 7.2", "a scheme", "http://a"},
    {"RFC 3986 3.2.2", "a backslash", "a\\b"},
    {"RFC 3986 3.2.2", "angle brackets", "<a>"},
    {"RFC 3986 3.2.2", "a quotation mark", "\"a\""},
    {"RFC 3986 3.2.2", "braces", "{a}"},
    {"RFC 3986 3.2.2", "a bar", "a|b"},
    {"RFC 3986 3.2.2", "a byte above ASCII", "caf\xc3\xa9"},
    {"RFC 3986 2.1", "half an escape", "a%4"},
    {"RFC 3986 2.1", "a bad escape", "a%zz"},
    {"RFC 3986 3.2.3", "a port of letters", "a:b"},
    {"RFC 3986 3.2.3", "a negative port", "a:-1"},
    {"RFC 3986 3.2.3", "a signed port", "a:+1"},
    {"RFC 3986 3.2.3", "a port that is too large", "a:65536"},
    {"RFC 3986 3.2.3", "a port that is much too large", "a:99999999999999999999"},
    {"RFC 3986 3.2.3", "two ports", "a:80:80"},
    {"RFC 3986 3.2.3", "a blank before the port", "a: 80"},
    {"RFC 3986 3.2.2", "an IPv6 address without brackets", "2001:db8::1"},
    {"RFC 3986 3.2.2", "an open bracket", "[::1"},
    {"RFC 3986 3.2.2", "a closing bracket", "::1]"},
    {"RFC 3986 3.2.2", "empty brackets", "[]"},
    {"RFC 3986 3.2.2", "a name in brackets", "[localhost]"},
    {"RFC 3986 3.2.2", "an IPv4 address in brackets", "[127.0.0.1]"},
    {"RFC 3986 3.2.2", "too many groups", "[1:2:3:4:5:6:7:8:9]"},
    {"RFC 3986 3.2.2", "letters after the bracket", "[::1]a"},
    {"RFC 3986 3.2.2", "a zone", "[fe80::1%eth0]"},
    {"RFC 6874 2", "an escaped zone", "[fe80::1%25eth0]"},
    {"RFC 3986 3.2.2", "an address of no version", "[v.x]"},
    {"RFC 3986 3.2.2", "nothing after a version", "[v1.]"},
    {"RFC 1034 3.1", "a dot alone", "."},
    {"RFC 1034 3.1", "an empty label in front", ".example.com"},
    {"RFC 1034 3.1", "an empty label", "www..example.com"},
    {"RFC 1034 3.1", "two dots after it", "www.example.com.."},
}
for _, case in ipairs(values) do
    local section, name, value = table.unpack(case)
    test(("%s: Host with %s is refused"):format(section, name), function()
        http.check_refused(server, 400, host(" " .. value))
    end)
end

local refused = {
    {"RFC 9112 3.2: no Host", http.bare("GET / HTTP/1.1")},
    {"RFC 9112 3.2: no Host among other fields", http.bare("GET / HTTP/1.1", "A: b", "Hos: a")},
    {"RFC 9112 3.2: no Host in HTTP/1.2", http.bare("GET / HTTP/1.2")},
    {"RFC 9112 3.2: Host twice, the same", http.bare("GET / HTTP/1.1", "Host: a", "Host: a")},
    {"RFC 9112 3.2: Host twice, not the same", http.bare("GET / HTTP/1.1", "Host: a", "Host: b")},
    {"RFC 9112 3.2: Host twice, once empty", http.bare("GET / HTTP/1.1", "Host: a", "Host:")},
    {"RFC 9112 3.2: Host twice, in other letters",
     http.bare("GET / HTTP/1.1", "Host: a", "hOST: a")},
    {"RFC 9112 3.2: Host twice, with fields between",
     http.bare("GET / HTTP/1.1", "Host: a", "X: y", "Z: y", "Host: a")},
    {"RFC 9112 3.2: Host twice, in HTTP/1.0", http.bare("GET / HTTP/1.0", "Host: a", "Host: b")},
    {"RFC 9112 3.2: a bad Host in HTTP/1.0", http.bare("GET / HTTP/1.0", "Host: a b")},
    {"RFC 9112 3.2.2: a bad Host beside a target in absolute form",
     http.bare("GET http://a/ HTTP/1.1", "Host: a b")},
    {"RFC 9110 6.5.1: Host in the trailer alone",
     http.bare("POST / HTTP/1.1", "Transfer-Encoding: chunked") .. "0\r\nHost: a\r\n\r\n"},
}
for _, case in ipairs(refused) do
    local name, bytes = table.unpack(case)
    test(name .. " is refused", function() http.check_refused(server, 400, bytes) end)
end
