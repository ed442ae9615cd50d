-- SPDX-License-Identifier: MIT
-- Ranges: RFC 9110 section 14, and If-Range of its section 13.1.5.

local http = require "http"
local site = require "site"
local server <close> = site.start()

local BIG = site.BIG
local etag = server:get("/big.bin").headers.etag

local function check_whole(reply)
    equal(reply.status, 200)
    equal(reply.body, BIG)
    equal(reply.headers["content-range"], nil)
end

local function check_part(reply, first, last)
    equal(reply.status, 206)
    equal(reply.headers["content-range"], ("bytes %d-%d/1000"):format(first, last))
    equal(reply.headers["content-length"], tostring(last - first + 1))
    equal(reply.body, BIG:sub(first + 1, last + 1))
end

test("RFC 9110 14.3: the server sends Accept-Ranges", function()
    equal(server:get("/big.bin").headers["accept-ranges"], "bytes")
end)

local parts = {
    {"RFC 9110 14.1.2", "the first byte", "bytes=0-0", 0, 0},
    {"RFC 9110 14.1.2", "the first 500 bytes", "bytes=0-499", 0, 499},
    {"RFC 9110 14.1.2", "the second 500 bytes", "bytes=500-999", 500, 999},
    {"RFC 9110 14.1.2", "bytes from the middle", "bytes=123-456", 123, 456},
    {"RFC 9110 14.1.2", "all from a byte on", "bytes=500-", 500, 999},
    {"RFC 9110 14.1.2", "the last byte by its number", "bytes=999-999", 999, 999},
    {"RFC 9110 14.1.2", "the last byte as the rest", "bytes=999-", 999, 999},
    {"RFC 9110 14.1.2", "the last byte as a suffix", "bytes=-1", 999, 999},
    {"RFC 9110 14.1.2", "the last 500 bytes", "bytes=-500", 500, 999},
    {"RFC 9110 14.1.2", "all bytes as a rest", "bytes=0-", 0, 999},
    {"RFC 9110 14.1.2", "all bytes by their numbers", "bytes=0-999", 0, 999},
    {"RFC 9110 14.1.2", "all bytes as a suffix", "bytes=-1000", 0, 999},
    {"RFC 9110 14.1.2", "a suffix longer than the file", "bytes=-1001", 0, 999},
    {"RFC 9110 14.1.2", "a suffix much longer than the file", "bytes=-9223372036854775807", 0, 999},
    {"RFC 9110 14.1.2", "an end one after the file's", "bytes=990-1000", 990, 999},
    {"RFC 9110 14.1.2", "an end far after the file's", "bytes=990-9223372036854775807", 990, 999},
    {"RFC 9110 14.1.1", "zeros in front of numbers", "bytes=0010-0019", 10, 19},
    {"RFC 9110 14.1", "the unit in capitals", "BYTES=0-9", 0, 9},
    {"RFC 9110 5.6.1", "empty elements in the list", "bytes=,0-9,", 0, 9},
}
for _, case in ipairs(parts) do
    local section, name, range, first, last = table.unpack(case)
    test(("%s: %s: %s"):format(section, name, range), function()
        check_part(server:get_and_go_on("/big.bin", "Range: " .. range), first, last)
    end)
end

local whole = {
    {"RFC 9110 14.1.1", "no unit", "0-499"},
    {"RFC 9110 14.1.1", "no equals sign", "bytes 0-499"},
    {"RFC 9110 14.2", "a unit nobody knows", "items=0-5"},
    {"RFC 9110 14.2", "a malformed range of a unit nobody knows", "items=x"},
    {"RFC 9110 14.2", "a unit that begins like bytes", "bytesx=0-5"},
    {"RFC 9110 14.2", "an empty Range", ""},
    {"RFC 9110 14.2", "more bytes than there are", "bytes=0-,0-0"},
    {"RFC 9110 14.2", "all of it again and again", "bytes=0-,1-,2-,3-,4-"},
}
for _, case in ipairs(whole) do
    local section, name, range = table.unpack(case)
    test(("%s: the whole file for %s: %s"):format(section, name, range), function()
        check_whole(server:get_and_go_on("/big.bin", "Range: " .. range))
    end)
end

local malformed = {
    {"the end is before the begin", "bytes=500-499"},
    {"no range", "bytes="},
    {"a number alone", "bytes=5"},
    {"a minus alone", "bytes=-"},
    {"two minuses", "bytes=--5"},
    {"three numbers", "bytes=1-2-3"},
    {"words", "bytes=a-b"},
    {"a sign", "bytes=+0-5"},
    {"hexadecimal numbers", "bytes=0x0-0x5"},
    {"a blank in a range", "bytes=0 -5"},
    {"a blank between ranges", "bytes=10-11 12-"},
    {"text after the range", "bytes=0-5x"},
    {"a semicolon between ranges", "bytes=0-5;7-9"},
    {"a good range before a bad one", "bytes=0-5,x"},
    {"a good range after a bad one", "bytes=9-5,0-5"},
}
for _, case in ipairs(malformed) do
    local name, range = table.unpack(case)
    test(("RFC 9110 14.2: malformed ranges are refused: %s: %s"):format(name, range), function()
        local reply = server:get_and_go_on("/big.bin", "Range: " .. range)
        equal(reply.status, 416)
        equal(reply.headers["content-range"], "bytes */1000")
    end)
end

test("RFC 9110 13.1.5: If-Range with another tag, and a malformed range", function()
    check_whole(server:get_and_go_on("/big.bin", "Range: bytes=x", "If-Range: \"other\""))
end)

local unsatisfiable = {
    {"the first byte after the end", "bytes=1000-"},
    {"one byte after the end", "bytes=1000-1000"},
    {"bytes after the end", "bytes=2000-3000"},
    {"bytes far after the end", "bytes=9223372036854775807-"},
    {"a suffix of no bytes", "bytes=-0"},
    {"two ranges after the end", "bytes=1000-1001,2000-"},
}
for _, case in ipairs(unsatisfiable) do
    local name, range = table.unpack(case)
    test(("RFC 9110 15.5.17: the range cannot be satisfied: %s: %s"):format(name, range), function()
        local reply = server:get_and_go_on("/big.bin", "Range: " .. range)
        equal(reply.status, 416)
        equal(reply.headers["content-range"], "bytes */1000")
    end)
end

-- A number beyond 64 bits may be refused or clipped to the file's end, but must not wrap around.
for _, case in ipairs{
    {"an end of 2 to the 64th", "bytes=0-18446744073709551616", {[200] = true, [206] = true}},
    {"an end of 30 digits", "bytes=0-" .. ("9"):rep(30), {[200] = true, [206] = true}},
    {"a suffix of 30 digits", "bytes=-" .. ("9"):rep(30), {[200] = true, [206] = true}},
    {"a suffix of 2 to the 64th", "bytes=-18446744073709551616", {[200] = true, [206] = true}},
    {"a begin of 2 to the 64th", "bytes=18446744073709551616-", {[200] = true, [416] = true}},
    {"a begin of 30 digits", "bytes=" .. ("9"):rep(30) .. "-", {[200] = true, [416] = true}},
} do
    local name, range, good = table.unpack(case)
    test(("RFC 9110 14.1.2: %s does not overflow"):format(name), function()
        local reply = server:get_and_go_on("/big.bin", "Range: " .. range)
        check(good[reply.status], reply.raw)
        if reply.status == 206 then
            check_part(reply, 0, 999)
        end
    end)
end

test("RFC 9110 15.3.7: a 206 has the fields of the 200", function()
    local full, part = server:get("/big.bin"), server:get("/big.bin", "Range: bytes=0-9")
    for _, name in ipairs{"etag", "last-modified", "content-type", "cache-control", "vary"} do
        equal(part.headers[name], full.headers[name], name)
    end
end)

test("RFC 9110 14.2: HEAD ignores Range", function()
    local reply = http.ask(server, http.request("HEAD /big.bin", "Range: bytes=0-9"))
    equal(reply.status, 200)
    equal(reply.headers["content-length"], "1000")
    equal(reply.headers["content-range"], nil)
end)

test("RFC 9110 14.2: a Range of a missing file is 404", function()
    equal(server:get_and_go_on("/missing", "Range: bytes=0-9").status, 404)
end)

test("RFC 9110 14.2: an empty file has no range that can be satisfied", function()
    for _, range in ipairs{"bytes=0-", "bytes=0-0", "bytes=-1"} do
        local reply = server:get_and_go_on("/empty.txt", "Range: " .. range)
        http.check_one_of({200, 416}, reply.status)
        if reply.status == 416 then
            equal(reply.headers["content-range"], "bytes */0")
        end
    end
end)

-- ---- If-Range ----

local if_range = {
    {"RFC 9110 13.1.5", "the tag", 206, "TAG"},
    {"RFC 9110 13.1.5", "another tag", 200, "\"other\""},
    {"RFC 9110 13.1.5", "the weak tag", 200, "W/TAG"},
    {"RFC 9110 13.1.5", "a list with the tag", 200, "\"a\", TAG"},
    {"RFC 9110 13.1.5", "*", 200, "*"},
    {"RFC 9110 13.1.5", "the file's time", 206, site.MODIFIED},
    {"RFC 9110 13.1.5", "a later time", 200, site.AFTER},
    {"RFC 9110 13.1.5", "an earlier time", 200, site.BEFORE},
    {"RFC 9110 13.1.5", "neither tag nor time", 200, "yesterday"},
    {"RFC 9110 13.1.5", "nothing", 200, ""},
}
for _, case in ipairs(if_range) do
    local section, name, status, value = table.unpack(case)
    test(("%s: If-Range with %s: %d"):format(section, name, status), function()
        local field = "If-Range: " .. value:gsub("TAG", etag)
        local reply = server:get_and_go_on("/big.bin", "Range: bytes=0-9", field)
        if status == 206 then
            check_part(reply, 0, 9)
        else
            check_whole(reply)
        end
    end)
end

test("RFC 9110 8.8.2.2: a time that is hardly past is a weak validator for If-Range", function()
    server:write("future.bin", BIG, "2099-01-01 00:00:00 UTC")
    local said = server:get("/future.bin").headers["last-modified"] or site.AFTER
    check_whole(server:get("/future.bin", "Range: bytes=0-9", "If-Range: " .. said))
end)

test("RFC 9110 13.1.5: If-Range with another tag, and a range that cannot be satisfied", function()
    check_whole(server:get_and_go_on("/big.bin", "Range: bytes=5000-", "If-Range: \"other\""))
end)

test("RFC 9110 13.1.5: If-Range with the tag, and a range that cannot be satisfied", function()
    equal(server:get_and_go_on("/big.bin", "Range: bytes=5000-", "If-Range: " .. etag).status, 416)
end)

test("RFC 9110 13.1.5: If-Range without Range is ignored", function()
    check_whole(server:get_and_go_on("/big.bin", "If-Range: " .. etag))
end)

-- ---- Several ranges ----

-- The parts of a multipart/byteranges reply, as a list of {first, last}; each must equal the file's bytes.
local function parts_of(reply)
    local boundary = reply.headers["content-type"]:match("^multipart/byteranges; ?boundary=(.*)$")
    check(boundary, reply.raw)
    boundary = boundary:gsub("^\"(.*)\"$", "%1")
    check(#boundary >= 1 and #boundary <= 70, "RFC 2046 5.1.1: " .. boundary)
    equal(reply.headers["content-length"], tostring(#reply.body))
    equal(reply.headers["content-range"], nil, "RFC 9110 15.3.7.2: Content-Range of a multipart")
    local delimiter = "^\r\n%-%-" .. boundary:gsub("%p", "%%%0") .. "\r\n"
    local rest = ("\r\n" .. reply.body):gsub("^\r\n\r\n", "\r\n")
    local found = {}
    while true do
        local head, at = rest:match(delimiter .. "(.-\r\n)\r\n()")
        if not head then
            break
        end
        local first, last = head:lower():match("content%-range: bytes (%d+)%-(%d+)/1000\r\n")
        check(first, head)
        check(head:lower():find("content%-type: application/octet%-stream\r\n"), head)
        local size = last - first + 1
        equal(rest:sub(at, at + size - 1), BIG:sub(first + 1, last + 1))
        found[#found + 1] = {tonumber(first), tonumber(last)}
        rest = rest:sub(at + size)
    end
    equal(rest:gsub("\r\n$", ""), "\r\n--" .. boundary .. "--", "the end of the parts")
    return found
end

-- Check that a reply contains all bytes of the ranges in `expected`, and no others.
local function check_parts(reply, expected)
    equal(reply.status, 206)
    local found = reply.headers["content-range"]
        and {{reply.headers["content-range"]:match("^bytes (%d+)%-(%d+)/1000$")}} or parts_of(reply)
    local wanted, got = {}, {}
    for _, range in ipairs(expected) do
        for i = range[1], range[2] do
            wanted[i] = true
        end
    end
    for _, range in ipairs(found) do
        for i = range[1], range[2] do
            check(wanted[i], ("byte %d was not asked for"):format(i))
            got[i] = true
        end
    end
    for i in pairs(wanted) do
        check(got[i], ("byte %d is missing"):format(i))
    end
    return found
end

local several = {
    {"two", "bytes=0-9,100-109", {{0, 9}, {100, 109}}},
    {"two, with blanks between", "bytes=0-9 ,\t 100-109", {{0, 9}, {100, 109}}},
    {"the first and the last byte", "bytes=0-0,-1", {{0, 0}, {999, 999}}},
    {"every form", "bytes=0-9, 500-509, 990-, -2", {{0, 9}, {500, 509}, {990, 999}}},
    {"not in order", "bytes=500-509,0-9,200-209", {{500, 509}, {0, 9}, {200, 209}}},
    {"one of which is not there", "bytes=0-9,5000-5001", {{0, 9}}},
    {"the first of which is not there", "bytes=5000-,0-9,20-29", {{0, 9}, {20, 29}}},
    {"two that overlap", "bytes=0-99,50-149", {{0, 149}}},
    {"two that touch", "bytes=0-99,100-199", {{0, 199}}},
    {"two that are equal", "bytes=0-99,0-99", {{0, 99}}},
    {"one in another", "bytes=0-99,10-19", {{0, 99}}},
    {"with empty elements", "bytes=0-9,,100-109,", {{0, 9}, {100, 109}}},
}
for _, case in ipairs(several) do
    local name, range, expected = table.unpack(case)
    test(("RFC 9110 15.3.7.2: several ranges: %s: %s"):format(name, range), function()
        check_parts(server:get_and_go_on("/big.bin", "Range: " .. range), expected)
    end)
end

test("RFC 9110 15.3.7.2: one range never gets a multipart", function()
    local reply = server:get("/big.bin", "Range: bytes=0-9")
    equal(reply.headers["content-type"], "application/octet-stream")
end)

local function spread(count)
    local ranges, expected = {}, {}
    for i = 1, count do
        ranges[i] = ("%d-%d"):format(i * 20, i * 20 + 4)
        expected[i] = {i * 20, i * 20 + 4}
    end
    return "Range: bytes=" .. table.concat(ranges, ","), expected
end

test("RFC 9110 14.2: 16 ranges are sent", function()
    local range, expected = spread(16)
    equal(#check_parts(server:get_and_go_on("/big.bin", range), expected), 16)
end)

for _, count in ipairs{17, 40} do
    test(("RFC 9110 14.2: %d ranges are more than --max-ranges, and get the whole file"):format(count), function()
        check_whole(server:get_and_go_on("/big.bin", (spread(count))))
    end)
end

test("RFC 9110 17.15: a thousand ranges of the same bytes cost no more than the file", function()
    local reply = server:get_and_go_on("/big.bin", "Range: bytes=0-" .. (",0-"):rep(1000))
    http.check_one_of({200, 206, 416}, reply.status)
    check(#reply.body <= 1200, ("%d bytes"):format(#reply.body))
end)

test("RFC 9110 14.2: several ranges after If-Range with another tag", function()
    check_whole(server:get_and_go_on("/big.bin", "Range: bytes=0-9,20-29", "If-Range: \"other\""))
end)

test("RFC 9110 14.2: a range of a large file is sent with the right bytes", function()
    local large = {}
    for i = 0, 99999 do
        large[i + 1] = ("%09d\n"):format(i)
    end
    server:write("large.bin", table.concat(large))
    local reply = server:get_and_go_on("/large.bin", "Range: bytes=500000-500019")
    equal(reply.body, "000050000\n000050001\n")
    reply = server:get_and_go_on("/large.bin", "Range: bytes=10-")
    equal(reply.body, table.concat(large, "", 2))
end)
