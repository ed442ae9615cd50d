-- SPDX-License-Identifier: MIT
-- Field lines: RFC 9112 section 5, RFC 9110 section 5. The cases use fields whose value shows in the reply:
-- Content-Length in the body's length, and Connection in whether the connection closes.

local http = require "http"
local request = http.request
local server <close> = http.echo()

local function field(line)
    return request("GET /", line)
end

local function length(line)
    return request("POST /", line) .. "hello"
end

http.test_answered(server, {
    {"RFC 9112 5.1: no blank after the colon", length("Content-Length:5"), {body = "hello"}},
    {"RFC 9112 5.1: blanks around a value are no part of it", length("Content-Length: \t 5 \t "),
     {body = "hello"}},
    {"RFC 9112 5.1: a tab after the colon", length("Content-Length:\t5"), {body = "hello"}},
    {"RFC 9110 5.1: names in capitals", length("CONTENT-LENGTH: 5"), {body = "hello"}},
    {"RFC 9110 5.1: names in lower case", length("content-length: 5"), {body = "hello"}},
    {"RFC 9110 5.1: names in mixed case", length("cONTENT-lENGTH: 5"), {body = "hello"}},
    {"RFC 9110 5.1: a name that begins like another",
     length("Content-Lengthy: 9\r\nContent-Length: 5"), {body = "hello"}},
    {"RFC 9110 5.1: a name that is the beginning of another",
     length("Content-Lengt: 9\r\nContent-Length: 5"), {body = "hello"}},
    {"RFC 9110 5.1: underscores are no hyphens", length("Content_Length: 9\r\nContent-Length: 5"),
     {body = "hello"}},
    {"RFC 9110 5.6.2: every byte of a token in a name", field("!#$%&'*+-.^_`|~09azAZ: a")},
    {"RFC 9110 5.5: an empty value", field("X:")},
    {"RFC 9110 5.5: a value of blanks is empty", field("X: \t ")},
    {"RFC 9110 5.5: tabs and blanks in a value", field("X: a\tb  c")},
    {"RFC 9110 5.5: every visible byte in a value",
     field("X: !\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~")},
    {"RFC 9110 5.5: bytes above ASCII in a value", field("X: \x80\xc3\xa9\xff")},
    {"RFC 9110 5.5: colons in a value", field("X: a:b: c")},
    {"RFC 9110 5.3: many lines of the same name", request("GET /", "X: a", "X: b", "x: c", "X: a")},
    {"RFC 9110 5.3: the order of lines does not matter",
     http.bare("POST / HTTP/1.1", "Content-Length: 5", "X: y", "Host: a") .. "hello",
     {body = "hello"}},
    {"RFC 9110 5.4: a value of 8,000 bytes", field("X: " .. ("y"):rep(8000))},
    {"RFC 9110 5.1: a name of 1,000 bytes", field(("X"):rep(1000) .. ": y")},
})

local refused = {
    {"RFC 9112 5.1: a blank before the colon", field("X : a")},
    {"RFC 9112 5.1: a tab before the colon", field("X\t: a")},
    {"RFC 9112 5.1: a blank before the colon of Content-Length", length("Content-Length : 5")},
    {"RFC 9112 5.1: a blank before the colon of Transfer-Encoding",
     request("POST /", "Transfer-Encoding : chunked") .. "0\r\n\r\n"},
    {"RFC 9112 5: a line without a colon", field("X")},
    {"RFC 9112 5: a line without a colon, with a blank", field("Content-Length 5")},
    {"RFC 9112 5: a line without a name", field(": a")},
    {"RFC 9112 5: a colon alone", field(":")},
    {"RFC 9110 5.1: a blank in a name", field("X Y: a")},
    {"RFC 9110 5.1: a byte above ASCII in a name", field("X\xe9: a")},
    {"RFC 9110 5.1: a byte above ASCII after a name", length("Content-Length\x85: 5")},
    {"RFC 9110 5.1: a NUL in a name", field("X\0: a")},
    {"RFC 9110 5.1: a control byte in a name", field("X\1: a")},
    {"RFC 9110 5.1: a DEL in a name", field("X\127: a")},
    {"RFC 9110 5.1: a CR in a name", field("X\rY: a")},
    {"RFC 9110 5.1: an LF in a name", field("X\nY: a")},
    {"RFC 9112 2.2: a blank before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
    {"RFC 9112 2.2: a tab before the first field", "GET / HTTP/1.1\r\n\tHost: a\r\n\r\n"},
    {"RFC 9112 2.2: a line of blanks before the first field",
     "GET / HTTP/1.1\r\n \r\nHost: a\r\n\r\n"},
    {"RFC 9112 2.2: a bare LF after a field", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"},
    {"RFC 9112 2.2: a bare LF after the last field", "GET / HTTP/1.1\r\nHost: a\n\r\n"},
    {"RFC 9112 2.2: a bare LF for the empty line", "GET / HTTP/1.1\r\nHost: a\r\n\n"},
    {"RFC 9112 2.2: bare LF everywhere", "GET / HTTP/1.1\nHost: a\n\n"},
    {"RFC 9112 2.2: a bare CR for the empty line", "GET / HTTP/1.1\r\nHost: a\r\n\rX: y\r\n\r\n"},
    {"RFC 9112 2.2: CR CR LF after a field", "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"},
    {"RFC 9112 2.2: CR CR LF for the empty line", "GET / HTTP/1.1\r\nHost: a\r\n\r\r\n"},
    {"RFC 9112 2.2: LF CR after a field", "GET / HTTP/1.1\r\nHost: a\n\r\r\n"},
    {"RFC 9110 5.5: a bare CR in a value", field("X: a\rb")},
    {"RFC 9110 5.5: a bare CR before a field's name", field("X: a\rContent-Length: 5")},
    {"RFC 9110 5.5: a bare CR at a value's front", field("X:\r a")},
    {"RFC 9110 5.5: a bare LF in a value", field("X: a\nb")},
    {"RFC 9112 5.2: a folded line", field("X: a\r\n b")},
    {"RFC 9112 5.2: a line folded with a tab", field("X: a\r\n\tb")},
    {"RFC 9112 5.2: a line folded after an empty value", field("X:\r\n a")},
    {"RFC 9112 5.2: a fold of blanks alone", field("X: a\r\n \r\nY: b")},
    {"RFC 9112 5.2: a folded Content-Length", length("Content-Length:\r\n 5")},
    {"RFC 9112 5.2: a folded Transfer-Encoding",
     request("POST /", "Transfer-Encoding:\r\n chunked") .. "0\r\n\r\n"},
    {"RFC 9112 5.2: a name in two lines",
     request("POST /", "Transfer-\r\nEncoding: chunked") .. "0\r\n\r\n"},
}
for byte in ("\"(),/;<=>?@[\\]{}"):gmatch(".") do
    refused[#refused + 1] = {("RFC 9110 5.6.2: %s in a name"):format(byte),
                             field("X" .. byte .. ": a")}
end
for byte = 0, 127 do
    if (byte < 32 and byte ~= 9 and byte ~= 10 and byte ~= 13) or byte == 127 then
        refused[#refused + 1] = {("RFC 9110 5.5: the control byte 0x%02x in a value"):format(byte),
                                 field("X: a" .. string.char(byte) .. "b")}
    end
end
for _, case in ipairs(refused) do
    local name, bytes = table.unpack(case)
    test(name .. " is refused", function() http.check_refused(server, 400, bytes) end)
end

test("RFC 9110 5.5: control bytes after a value are not whitespace", function()
    for _, byte in ipairs{0, 11, 12, 127} do
        http.check_refused(server, 400, length("Content-Length: 5" .. string.char(byte)))
    end
end)
