-- SPDX-License-Identifier: MIT
-- A request line has at most 8 KiB, a head at most 16 KiB; malformed input costs no memory.

local httpd = require "httpd"
local server <close> = httpd.start()

local function line_of(length)
    return "GET /" .. ("x"):rep(length - #"GET / HTTP/1.1") .. " HTTP/1.1\r\n"
end

local function head_of(length)
    local fixed = "GET / HTTP/1.1\r\nHost: a\r\n"
    local lines = {fixed}
    local left = length - #fixed - 2
    while left > 0 do
        local size = left < 2000 and left or 1000
        lines[#lines + 1] = "X: " .. ("y"):rep(size - 5) .. "\r\n"
        left = left - size
    end
    return table.concat(lines) .. "\r\n"
end

local cases = {
    {200, "a request line of 8,100 bytes", line_of(8100) .. "Host: a\r\n\r\n"},
    {414, "a request line of 8,300 bytes", line_of(8300) .. "Host: a\r\n\r\n"},
    {414, "a request line of 100,000 bytes", line_of(100000) .. "Host: a\r\n\r\n"},
    {414, "a target that never ends", "GET /" .. ("x"):rep(100000)},
    {200, "a head of 16,300 bytes", head_of(16300)},
    {431, "a head of 16,500 bytes", head_of(16500)},
    {431, "a head of 200,000 bytes", head_of(200000)},
    {431, "a header that never ends", "GET / HTTP/1.1\r\nHost: a\r\nX: " .. ("x"):rep(100000)},
}

for _, case in ipairs(cases) do
    local status, name, bytes = table.unpack(case)
    test(("%d: %s"):format(status, name), function()
        local sock <close> = server:connect()
        sock:pump(bytes)
        local reply = sock:read_reply()
        equal(reply.status, status)
        equal(reply.headers.connection, status ~= 200 and "close" or nil)
        if status ~= 200 then
            check(sock:eof(), "not closed")
        end
    end)
end

-- Pseudo-random bytes of all values except those of line ends.
local function noise(length)
    local bytes, seed = {}, 12345
    for i = 1, length do
        seed = (seed * 1103515245 + 12345) % 2147483648
        local byte = seed // 65536 % 256
        bytes[i] = string.char((byte == 10 or byte == 13) and 46 or byte)
    end
    return table.concat(bytes)
end

test("1 MiB of random bytes is refused, and costs no memory", function()
    local descriptors = wire.fds(server.pid)
    local rubbish = {noise(1024 * 1024), ("\r\n"):rep(512 * 1024), ("\0"):rep(1024 * 1024),
                     ("GET "):rep(256 * 1024), (":"):rep(1024 * 1024)}
    local memory
    for round = 1, 6 do
        for _, bytes in ipairs(rubbish) do
            local sock <close> = server:connect()
            sock:pump(bytes)
            sock:shutdown()
            local said = sock:recv_all()
            check(said == "" or said:find("^HTTP/1%.1 4%d%d "), said:sub(1, 80))
        end
        memory = memory or wire.rss(server.pid)
    end
    local grown = wire.rss(server.pid) - memory
    check(grown < 2 * 1024 * 1024 * httpd.slack, ("grown by %d bytes"):format(grown))
    server:check_answers()
    server:check_descriptors(descriptors)
end)
